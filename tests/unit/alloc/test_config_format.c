/* SPDX-License-Identifier: MIT */
/* Settings back to text, and the walk over the options. */
#include "support/test.h"

#include "tarn/config.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

#define MIB_BYTES ((uint64_t)1 << 20)

static void expect_format(const char *text, const char *expected)
{
    char buffer[TARN_CONFIG_TEXT_MAX];
    struct tarn_config config;
    struct tarn_config back;
    struct tarn_error error = {.text = ""};

    if (tarn_config_parse(text, &config, &error) != TARN_OK ||
        tarn_config_format(&config, buffer, sizeof buffer, &error) != TARN_OK ||
        tarn_config_parse(buffer, &back, &error) != TARN_OK) {
        fail_msg("%s: %s", text, error.text);
    }
    if (expected) {
        assert_string_equal(buffer, expected);
    }
    memcpy(back.text, config.text, sizeof back.text);
    assert_memory_equal(&back, &config, sizeof back);
}

static void defaults_are_the_empty_text(void **state)
{
    (void)state;
    expect_format("", "");
    expect_format("expandable_segments:False,backend:native,max_non_split_rounding_mb:20", "");
    expect_format("large_segment_size_mb:30,max_non_split_rounding_mb:30",
                  "large_segment_size_mb:30");
}

static void options_come_back_in_the_order_of_the_table(void **state)
{
    (void)state;
    expect_format("expandable_segments:True,max_split_size_mb:40MB",
                  "max_split_size_mb:40,expandable_segments:True");
    expect_format("garbage_collection_threshold:0.80", "garbage_collection_threshold:0.8");
    expect_format("per_process_memory_fraction:1.00", "per_process_memory_fraction:1");
    expect_format("per_process_memory_fraction:0.1234567890123456789", NULL);
    expect_format("max_split_size_mb:99999999999999999", "max_split_size_mb:17592186044415");
    expect_format("release_lock_on_hipmalloc:True", "release_lock_on_cudamalloc:True");
}

static void lists_take_their_shortest_shape(void **state)
{
    (void)state;
    expect_format("roundup_power2_divisions:4", "roundup_power2_divisions:4");
    expect_format("roundup_power2_divisions:[1:4,>:4]", "roundup_power2_divisions:4");
    expect_format("roundup_power2_divisions:[64:8,128:2,256:2,512:2,1024:1,>:1]",
                  "roundup_power2_divisions:[64:8,128:2,256:2,512:2,>:1]");
    expect_format("roundup_power2_divisions:[1:8,>:2]", "roundup_power2_divisions:[1:8,>:2]");
    expect_format("roundup_power2_divisions:[>:2]", "roundup_power2_divisions:[>:2]");
    expect_format("roundup_power2_divisions:[512:8]", "roundup_power2_divisions:[512:8]");
    expect_format("roundup_power2_divisions:[16:0,32:8]", "roundup_power2_divisions:[1:0,32:8]");
    expect_format("roundup_power2_divisions:[8:0,>:8]", "roundup_power2_divisions:[8:0,>:8]");
    expect_format("roundup_power2_divisions:[16384:0,32768:8]",
                  "roundup_power2_divisions:[16384:0,>:8]");
    expect_format("roundup_power2_divisions:[1:4,32768:8]", NULL);
    expect_format("roundup_power2_divisions:[1:2,8192:0,>:8]", NULL);
    /* What is 0 in between needs no pair but before the rest. */
    expect_format("roundup_power2_divisions:[1:2,8:0,>:8]",
                  "roundup_power2_divisions:[1:2,8:0,>:8]");
    /* Zeros at the start are one pair: of their last interval, or of the first if that is
     * shorter. */
    expect_format("roundup_power2_divisions:[8:0,16:4]", "roundup_power2_divisions:[8:0,16:4]");
    expect_format("roundup_power2_divisions:[16:0,32:8,>:2]",
                  "roundup_power2_divisions:[1:0,32:8,>:2]");
}

static void every_setting_at_once_fits_the_buffer(void **state)
{
    (void)state;
    expect_format("max_split_size_mb:17592186044415,max_non_split_rounding_mb:17592186044414,"
                  "large_segment_size_mb:17592186044413,garbage_collection_threshold:"
                  "0.30000000000000004,roundup_power2_divisions:[1:2147483648,2:1073741824,"
                  "4:2147483648,8:1073741824,16:2147483648,32:1073741824,64:2147483648,"
                  "128:1073741824,256:2147483648,512:1073741824,1024:2147483648,2048:1073741824,"
                  "4096:2147483648,8192:1073741824,16384:2147483648,32768:1073741824],"
                  "expandable_segments:True,release_lock_on_cudamalloc:True,"
                  "per_process_memory_fraction:0.30000000000000004,throw_on_cudamalloc_oom:True,"
                  "graph_capture_record_stream_reuse:True,backend:cudaMallocAsync",
                  NULL);
}

/* Also of settings that no text gives: whatever the fields hold, options with their values are
 * shorter than the buffer. */
static void the_longest_values_fit_the_buffer(void **state)
{
    const struct tarn_config_option *option;
    struct tarn_config config;
    struct tarn_config_value value;
    size_t length = 0;

    (void)state;
    tarn_config_init(&config);
    config.max_split_size = UINT64_MAX - MIB_BYTES + 1;
    config.max_non_split_rounding = config.max_split_size - MIB_BYTES;
    config.large_segment_size = config.max_split_size;
    config.pinned_reserve_segment_size = config.max_split_size;
    config.max_cached = config.max_split_size;
    config.pinned_max_round_threshold = config.max_split_size;
    config.pinned_max_cached_size = config.max_split_size;
    config.garbage_collection_threshold = -DBL_MAX;
    config.memory_fraction = -DBL_MAX;
    for (unsigned i = 0; i < TARN_ROUNDUP_INTERVALS; i++) {
        config.roundup_power2_divisions[i] = UINT32_MAX - i;
    }
    config.pinned_num_register_threads = UINT32_MAX;
    config.backend = TARN_BACKEND_ASYNC;
    config.policy = TARN_POLICY_COMPACT;
    for (size_t i = 0; (option = tarn_config_get_option(i)); i++) {
        assert_int_equal(tarn_config_option_value(&config, i, &value), TARN_OK);
        length += strlen(option->name) + 1 + strlen(value.text) + 1; /* False is longer than True */
    }
    assert_in_range(length, 800, TARN_CONFIG_TEXT_MAX - 1);
}

static uint64_t random_next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static void random_settings_come_back(void **state)
{
    uint64_t seed = 42;

    (void)state;
    for (unsigned round = 0; round < 5000; round++) {
        char buffer[TARN_CONFIG_TEXT_MAX];
        struct tarn_config config;
        struct tarn_config back;

        tarn_config_init(&config);
        for (size_t i = 0; i < TARN_ROUNDUP_INTERVALS; i++) {
            const uint64_t random = random_next(&seed);

            config.roundup_power2_divisions[i] = random % 3 == 0 ? 0 : 1u << (random / 3 % 2 + 1);
        }
        config.large_segment_size = (11 + random_next(&seed) % 30) << 20;
        config.max_non_split_rounding = config.large_segment_size + (random_next(&seed) % 2 << 20);
        config.garbage_collection_threshold = (double)(random_next(&seed) % 1000) / 1001.0;
        config.expandable_segments = random_next(&seed) % 2 == 0;
        config.pinned_free_catch_all = random_next(&seed) % 2 == 0;
        config.pinned_reserve_segment_size = random_next(&seed) % 3 << 20;
        config.pinned_num_register_threads = 1u << random_next(&seed) % 8;
        assert_int_equal(tarn_config_format(&config, buffer, sizeof buffer, NULL), TARN_OK);
        assert_int_equal(tarn_config_parse(buffer, &back, NULL), TARN_OK);
        memcpy(back.text, config.text, sizeof back.text);
        assert_memory_equal(&back, &config, sizeof back);
    }
}

static void expect_no_text(const struct tarn_config *config, const char *message)
{
    char buffer[TARN_CONFIG_TEXT_MAX] = "x";
    struct tarn_error error;

    assert_int_equal(tarn_config_format(config, buffer, sizeof buffer, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_string_equal(error.text, message);
    assert_string_equal(buffer, "");
}

static void fields_that_no_text_gives_are_refused(void **state)
{
    struct tarn_config config;

    (void)state;
    tarn_config_init(&config);
    config.max_split_size = 1000;
    expect_no_text(&config, "max_split_size_mb: no settings string gives the value 1000 bytes");
    tarn_config_init(&config);
    config.large_segment_size = TARN_SIZE_UNLIMITED;
    config.max_non_split_rounding = TARN_SIZE_UNLIMITED;
    expect_no_text(&config, "large_segment_size_mb: no settings string gives the value unlimited");
    tarn_config_init(&config);
    config.garbage_collection_threshold = 1.5;
    expect_no_text(&config,
                   "no settings string gives these settings: garbage_collection_threshold: "
                   "\"1.5\" at offset 29 is out of range, allowed: above 0, below 1");
    tarn_config_init(&config);
    config.roundup_power2_divisions[3] = 3;
    expect_no_text(&config,
                   "no settings string gives these settings: roundup_power2_divisions: \"3\" at "
                   "offset 32 is neither a power of two nor 0, allowed: a power of two, or a list "
                   "such as [256:1,512:2,>:4]");
}

static void small_buffers_are_refused(void **state)
{
    struct tarn_config config;
    struct tarn_error error;
    char buffer[20];

    (void)state;
    assert_int_equal(tarn_config_parse("max_split_size_mb:40", &config, NULL), TARN_OK);
    assert_int_equal(tarn_config_format(&config, buffer, sizeof buffer, &error), TARN_ERR_LIMIT);
    assert_string_equal(error.text, "settings need 21 bytes, the buffer has 20");
    assert_string_equal(buffer, "");
    memset(buffer, 'x', sizeof buffer);
    assert_int_equal(tarn_config_format(&config, buffer, 0, NULL), TARN_ERR_LIMIT);
    assert_int_equal(buffer[0], 'x');
    /* Settings that no text gives are refused as such, whatever the buffer's size. */
    config.max_split_size = 1000;
    assert_int_equal(tarn_config_format(&config, buffer, 1, &error), TARN_ERR_INVALID_ARGUMENT);
    assert_string_equal(error.text,
                        "max_split_size_mb: no settings string gives the value 1000 bytes");
    assert_int_equal(tarn_config_format(&config, NULL, 0, &error), TARN_ERR_INVALID_ARGUMENT);
}

static void nothing_is_written_after_the_text(void **state)
{
    struct tarn_config config;
    char buffer[24];

    (void)state;
    memset(buffer, 'x', sizeof buffer);
    assert_int_equal(tarn_config_parse("max_split_size_mb:40", &config, NULL), TARN_OK);
    assert_int_equal(tarn_config_format(&config, buffer, 21, NULL), TARN_OK);
    assert_string_equal(buffer, "max_split_size_mb:40");
    assert_memory_equal(buffer + 21, "xxx", 3);
}

static void the_walk_shows_every_option_once(void **state)
{
    const struct tarn_config_option *option;
    struct tarn_config config;
    size_t count = 0;

    (void)state;
    tarn_config_init(&config);
    for (; (option = tarn_config_get_option(count)); count++) {
        struct tarn_config_value value;

        assert_int_equal(tarn_config_option_value(&config, count, &value), TARN_OK);
        assert_string_equal(value.text, option->default_text);
        assert_true(value.is_default && value.has_spelling);
        assert_true(strlen(option->help) > 10 && option->help[strlen(option->help) - 1] != '.');
        assert_true(option->range[0] != '\0');
        assert_true(option->since[0] == '2' || strcmp(option->since, "tarn") == 0);
        for (size_t i = 0; i < count; i++) {
            assert_string_not_equal(tarn_config_get_option(i)->name, option->name);
        }
    }
    assert_int_equal(count, 21);
    assert_null(tarn_config_get_option(SIZE_MAX));
}

/* The table says which options an update resets; update must agree. */
static void options_that_reset_are_marked(void **state)
{
    const struct tarn_config_option *option;
    struct tarn_config config;
    struct tarn_config_value value;

    (void)state;
    assert_int_equal(
        tarn_config_parse("max_split_size_mb:40,max_non_split_rounding_mb:50,"
                          "large_segment_size_mb:30,garbage_collection_threshold:0.5,"
                          "roundup_power2_divisions:4,expandable_segments:True,"
                          "release_lock_on_cudamalloc:True,per_process_memory_fraction:0.5,"
                          "throw_on_cudamalloc_oom:True,graph_capture_record_stream_reuse:True,"
                          "backend:cudaMallocAsync,policy:compact,max_cached_mb:64,rules:2.14,"
                          "pinned_use_cuda_host_register:True,"
                          "pinned_num_register_threads:8,pinned_use_background_threads:True,"
                          "pinned_reserve_segment_size_mb:8,pinned_free_catch_all:True,"
                          "pinned_max_round_threshold_mb:64,pinned_max_cached_size_mb:128",
                          &config, NULL),
        TARN_OK);
    for (size_t i = 0; tarn_config_get_option(i); i++) {
        assert_int_equal(tarn_config_option_value(&config, i, &value), TARN_OK);
        assert_false(value.is_default);
    }
    assert_int_equal(tarn_config_update("", &config, NULL), TARN_OK);
    for (size_t i = 0; (option = tarn_config_get_option(i)); i++) {
        assert_int_equal(tarn_config_option_value(&config, i, &value), TARN_OK);
        assert_int_equal(value.is_default, option->resets);
    }
    assert_int_equal(tarn_config_option_value(&config, 99, &value), TARN_ERR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_the_empty_text),
        cmocka_unit_test(options_come_back_in_the_order_of_the_table),
        cmocka_unit_test(lists_take_their_shortest_shape),
        cmocka_unit_test(every_setting_at_once_fits_the_buffer),
        cmocka_unit_test(the_longest_values_fit_the_buffer),
        cmocka_unit_test(random_settings_come_back),
        cmocka_unit_test(fields_that_no_text_gives_are_refused),
        cmocka_unit_test(small_buffers_are_refused),
        cmocka_unit_test(nothing_is_written_after_the_text),
        cmocka_unit_test(the_walk_shows_every_option_once),
        cmocka_unit_test(options_that_reset_are_marked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
