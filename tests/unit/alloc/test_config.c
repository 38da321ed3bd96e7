/* SPDX-License-Identifier: MIT */
/* Parsing, updating and the environment. */
#include "support/test.h"

#include "alloc/config/config_parse.h"
#include "tarn/config.h"
#include "tarn/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

/* Exactly equal: comparison of values read from text, not of sums. */
static bool same(double a, double b)
{
    return a >= b && a <= b;
}

static struct tarn_config parsed(const char *text)
{
    struct tarn_config config;
    struct tarn_error error = {.text = ""};

    if (tarn_config_parse(text, &config, &error) != TARN_OK) {
        fail_msg("\"%s\": %s", text ? text : "(none)", error.text);
    }
    return config;
}

/* The text is refused at `offset` with exactly this message, and nothing changes. */
static void expect_error(const char *text, int64_t offset, const char *message)
{
    struct tarn_config config;
    struct tarn_config before;
    struct tarn_error error;

    memset(&config, 0xA5, sizeof config);
    before = config;
    assert_int_equal(tarn_config_parse(text, &config, &error), TARN_ERR_CONFIG);
    assert_string_equal(error.text, message);
    assert_int_equal(error.offset, offset);
    assert_int_equal(error.status, TARN_ERR_CONFIG);
    assert_memory_equal(&config, &before, sizeof config);
    assert_int_equal(tarn_config_parse(text, &config, NULL), TARN_ERR_CONFIG);
}

/* ---- structs of other sizes ---- */

enum {
    OLDER = offsetof(struct tarn_config, policy) /* before `policy` was added */
};

/* A program whose struct ends earlier: nothing beyond it is written, and what it does not know has
 * its default. */
static void an_older_struct_keeps_its_size(void **state)
{
    union {
        struct tarn_config config;
        unsigned char bytes[sizeof(struct tarn_config)];
    } older;
    struct tarn_config full;
    struct tarn_error error;

    (void)state;
    memset(older.bytes, 0xA5, sizeof older.bytes);
    assert_int_equal(tarn_config_parse_sized("max_split_size_mb:64,policy:compact", &older.config,
                                             OLDER, &error),
                     TARN_OK);
    assert_int_equal(older.config.struct_size, OLDER);
    assert_int_equal(older.config.max_split_size, 64 * MIB);
    for (size_t i = OLDER; i < sizeof older.bytes; i++) {
        assert_int_equal(older.bytes[i], 0xA5);
    }
    assert_int_equal(tarn_config_update("max_split_size_mb:32", &older.config, &error), TARN_OK);
    assert_int_equal(older.config.struct_size, OLDER);
    assert_int_equal(older.config.max_split_size, 32 * MIB);
    assert_int_equal(older.bytes[OLDER], 0xA5);

    char text[TARN_CONFIG_TEXT_MAX];

    assert_int_equal(tarn_config_format(&older.config, text, sizeof text, &error), TARN_OK);
    assert_string_equal(text, "max_split_size_mb:32");
    tarn_config_init(&full);
    assert_int_equal(full.policy, TARN_POLICY_EXACT);
}

/* A program whose struct goes on: the library fills in what it knows and leaves the rest. */
static void a_newer_struct_keeps_what_follows(void **state)
{
    struct {
        struct tarn_config config;
        uint64_t later;
    } newer = {.later = 7};

    (void)state;
    assert_int_equal(tarn_config_init_sized(&newer.config, sizeof newer), TARN_OK);
    assert_int_equal(newer.config.struct_size, sizeof newer);
    assert_int_equal(newer.later, 7);
    assert_int_equal(tarn_config_update("max_split_size_mb:32", &newer.config, NULL), TARN_OK);
    assert_int_equal(newer.config.struct_size, sizeof newer);
    assert_int_equal(newer.later, 7);
    /* However far it goes on, if its size can be written down. */
    assert_int_equal(tarn_config_init_sized(&newer.config, UINT32_MAX), TARN_OK);
    assert_int_equal(newer.config.struct_size, UINT32_MAX);
    assert_int_equal(newer.later, 7);
}

/* A struct of nothing but its size is one that knows no option. */
static void a_struct_may_end_after_its_size(void **state)
{
    struct tarn_config config;

    (void)state;
    memset(&config, 0xA5, sizeof config);
    assert_int_equal(tarn_config_init_sized(&config, sizeof config.struct_size), TARN_OK);
    assert_int_equal(config.struct_size, sizeof config.struct_size);
    for (size_t i = sizeof config.struct_size; i < sizeof config; i++) {
        assert_int_equal(((const unsigned char *)&config)[i], 0xA5);
    }
}

static void a_struct_without_a_size_is_refused(void **state)
{
    const struct tarn_config before = {.struct_size = 0};
    struct tarn_config config = before;
    struct tarn_config_value value;
    struct tarn_error error;
    char text[TARN_CONFIG_TEXT_MAX];

    (void)state;
    assert_int_equal(tarn_config_init_sized(&config, 0), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_config_init_sized(NULL, sizeof config), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_config_parse_sized("", &config, 3, &error), TARN_ERR_INVALID_ARGUMENT);
    assert_string_equal(error.text, "settings need a struct and its size, not one of 3 bytes");
    assert_int_equal(tarn_config_from_env_sized(&config, 0, &error), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_config_update("", &config, &error), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_config_format(&config, text, sizeof text, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_config_option_value(&config, 0, &value), TARN_ERR_INVALID_ARGUMENT);
    assert_memory_equal(&config, &before, sizeof config);
}

/* ---- values ---- */

static void the_defaults_are_pytorchs(void **state)
{
    struct tarn_config config;

    (void)state;
    tarn_config_init(&config);
    assert_int_equal(config.struct_size, sizeof config);
    assert_true(config.max_split_size == TARN_SIZE_UNLIMITED);
    assert_int_equal(config.max_non_split_rounding, 20 * MIB);
    assert_int_equal(config.large_segment_size, 20 * MIB);
    assert_true(same(config.garbage_collection_threshold, 0.0));
    assert_true(same(config.memory_fraction, 1.0));
    assert_false(config.memory_fraction_given);
    assert_int_equal(config.pinned_num_register_threads, 1);
    assert_int_equal(config.backend, TARN_BACKEND_NATIVE);
    assert_string_equal(config.text, "");
    for (size_t i = 0; i < TARN_ROUNDUP_INTERVALS; i++) {
        assert_int_equal(config.roundup_power2_divisions[i], 0);
    }
}

static void empty_blank_and_missing_texts_are_the_defaults(void **state)
{
    struct tarn_config defaults;
    struct tarn_config config;

    (void)state;
    tarn_config_init(&defaults);
    config = parsed("");
    assert_memory_equal(&config, &defaults, sizeof config);
    config = parsed(NULL);
    assert_memory_equal(&config, &defaults, sizeof config);
    config = parsed(" \t\n");
    assert_string_equal(config.text, " \t\n");
    config.text[0] = config.text[1] = config.text[2] = '\0';
    assert_memory_equal(&config, &defaults, sizeof config);
}

static void every_flag_is_stored(void **state)
{
    static const struct {
        const char *name;
        size_t at;
    } flags[] = {
        {"expandable_segments", offsetof(struct tarn_config, expandable_segments)},
        {"release_lock_on_cudamalloc", offsetof(struct tarn_config, release_lock_on_device_alloc)},
        {"release_lock_on_hipmalloc", offsetof(struct tarn_config, release_lock_on_device_alloc)},
        {"throw_on_cudamalloc_oom", offsetof(struct tarn_config, throw_on_device_oom)},
        {"graph_capture_record_stream_reuse",
         offsetof(struct tarn_config, graph_capture_record_stream_reuse)},
        {"pinned_use_cuda_host_register", offsetof(struct tarn_config, pinned_use_host_register)},
        {"pinned_use_hip_host_register", offsetof(struct tarn_config, pinned_use_host_register)},
        {"pinned_use_background_threads",
         offsetof(struct tarn_config, pinned_use_background_threads)},
        {"pinned_free_catch_all", offsetof(struct tarn_config, pinned_free_catch_all)},
    };
    char text[100];
    char message[200];

    (void)state;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        struct tarn_config config;
        struct tarn_error error;

        (void)snprintf(text, sizeof text, "%s:True", flags[i].name);
        config = parsed(text);
        assert_true(*(const bool *)((const char *)&config + flags[i].at));
        (void)snprintf(text, sizeof text, "%s:True,%s:False", flags[i].name, flags[i].name);
        config = parsed(text);
        assert_false(*(const bool *)((const char *)&config + flags[i].at));
        (void)snprintf(text, sizeof text, "%s:true", flags[i].name);
        assert_int_equal(tarn_config_parse(text, &config, &error), TARN_ERR_CONFIG);
        assert_int_equal(error.offset, strlen(flags[i].name) + 1);
        (void)snprintf(message, sizeof message,
                       "\"true\" at offset %zu is not known, allowed: True or False",
                       strlen(flags[i].name) + 1);
        assert_non_null(strstr(error.text, message));
    }
}

static void numbers_are_stored_in_bytes(void **state)
{
    struct tarn_config config = parsed("max_split_size_mb:40MB , max_non_split_rounding_mb : 30,"
                                       "large_segment_size_mb:11,pinned_reserve_segment_size_mb:1,"
                                       "pinned_num_register_threads:128,"
                                       "garbage_collection_threshold:0.8,"
                                       "per_process_memory_fraction:0.5,backend:cudaMallocAsync,");

    (void)state;
    assert_int_equal(config.max_split_size, 40 * MIB);
    assert_int_equal(config.max_non_split_rounding, 30 * MIB);
    assert_int_equal(config.large_segment_size, 11 * MIB);
    assert_int_equal(config.pinned_reserve_segment_size, MIB);
    assert_int_equal(config.pinned_num_register_threads, 128);
    assert_true(same(config.garbage_collection_threshold, 0.8));
    assert_true(same(config.memory_fraction, 0.5));
    assert_true(config.memory_fraction_given);
    assert_int_equal(config.backend, TARN_BACKEND_ASYNC);
    assert_int_equal(parsed("backend:native").backend, TARN_BACKEND_NATIVE);
    assert_int_equal(parsed("").rules, TARN_RULES_2_11);
    assert_int_equal(parsed("rules:2.14").rules, TARN_RULES_2_14);
    assert_true(parsed("").max_cached == TARN_SIZE_UNLIMITED);
    assert_int_equal(parsed("max_cached_mb:64").max_cached, (uint64_t)64 << 20);
    assert_int_equal(parsed("max_cached_mb:0").max_cached, 0);
    assert_int_equal(parsed("rules:2.14,rules: 2.11").rules, TARN_RULES_2_11);
    assert_true(same(parsed("per_process_memory_fraction:0").memory_fraction, 0.0));
    assert_true(parsed("per_process_memory_fraction:1.0").memory_fraction_given);
    assert_int_equal(parsed("max_split_size_mb:20").max_split_size, 20 * MIB);
    assert_int_equal(parsed("max _split_ size_mb:2 1").max_split_size, 21 * MIB);
    assert_true(parsed("max_split_size_mb:18446744073709551615").max_split_size ==
                (UINT64_MAX >> 20) << 20);
}

static void the_large_segment_counts_wherever_it_stands(void **state)
{
    struct tarn_config config = parsed("max_split_size_mb:12,large_segment_size_mb:12");

    (void)state;
    assert_int_equal(config.max_split_size, 12 * MIB);
    assert_int_equal(config.max_non_split_rounding, 12 * MIB);
    config = parsed("large_segment_size_mb:12,max_split_size_mb:40,large_segment_size_mb:40");
    assert_int_equal(config.large_segment_size, 40 * MIB);
    expect_error("max_split_size_mb:30,large_segment_size_mb:40", 18,
                 "max_split_size_mb: \"30\" at offset 18 is too small, allowed: at least "
                 "large_segment_size_mb (here 40)");
    expect_error(
        "roundup_power2_divisions:[64:8,large_segment_size_mb:12],max_split_size_mb:20", 31,
        "roundup_power2_divisions: \"large_segment_size_mb\" at offset 31 is not a number, "
        "allowed: a power of two, or a list such as [256:1,512:2,>:4]");
}

/* What stands in a list or as a value is no option, although its name says so. */
static void the_large_segment_counts_only_as_an_option(void **state)
{
    const struct tarn_config config = parsed(
        "max_split_size_mb:15,roundup_power2_divisions:[64:8,128:2],large_segment_size_mb:12");

    (void)state;
    assert_int_equal(config.max_split_size, 15 * MIB);
    assert_int_equal(config.roundup_power2_divisions[7], 2);
    expect_error(
        "max_split_size_mb:15,roundup_power2_divisions:[64:8,large_segment_size_mb:12,128:2]", 18,
        "max_split_size_mb: \"15\" at offset 18 is too small, allowed: at least "
        "large_segment_size_mb (here 20)");
    expect_error("max_split_size_mb:15,backend:large_segment_size_mb:12", 18,
                 "max_split_size_mb: \"15\" at offset 18 is too small, allowed: at least "
                 "large_segment_size_mb (here 20)");
}

static void blanks_are_those_of_c(void **state)
{
    (void)state;
    assert_int_equal(parsed("max_split_size_mb:\t40\v\f\r\n,\r\nbackend:native\r\n").max_split_size,
                     40 * MIB);
}

/* A number may have 79 digits. Letters after it do not count, however many, and the words that
 * follow are read as ever. */
static void long_numbers_are_read(void **state)
{
    char text[300];
    char unit[100];
    struct tarn_config config;

    (void)state;
    (void)snprintf(text, sizeof text, "max_split_size_mb:%077d40", 0);
    assert_int_equal(parsed(text).max_split_size, 40 * MIB);
    memset(unit, 'M', sizeof unit);
    unit[sizeof unit - 1] = '\0';
    (void)snprintf(text, sizeof text, "max_split_size_mb:40%s,policy:compact", unit);
    config = parsed(text);
    assert_int_equal(config.max_split_size, 40 * MIB);
    assert_int_equal(config.policy, TARN_POLICY_COMPACT);
}

static void expect_divisions(const char *text, const uint32_t *divisions)
{
    const struct tarn_config config = parsed(text);

    for (size_t i = 0; i < TARN_ROUNDUP_INTERVALS; i++) {
        if (config.roundup_power2_divisions[i] != divisions[i]) {
            fail_msg("%s: interval %zu has %u, expected %u", text, i,
                     config.roundup_power2_divisions[i], divisions[i]);
        }
    }
}

static void divisions_have_a_number_form_and_a_list_form(void **state)
{
    const uint32_t fours[] = {4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4};
    const uint32_t upstream[] = {8, 8, 8, 8, 8, 8, 8, 2, 2, 2, 1, 1, 1, 1, 1, 1};
    const uint32_t documented[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8};
    const uint32_t gap[] = {0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 2, 0, 0, 0, 0, 0};
    const uint32_t late[] = {4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 16};
    const uint32_t rest_first[] = {0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
    const uint32_t none[TARN_ROUNDUP_INTERVALS] = {0};

    (void)state;
    expect_divisions("roundup_power2_divisions:4", fours);
    expect_divisions("roundup_power2_divisions:[64:8,128:2,256:2,512:2,1024:1,>:1]", upstream);
    expect_divisions("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]", documented);
    expect_divisions("roundup_power2_divisions:[32:0,64:8,1024:2,]", gap);
    expect_divisions("roundup_power2_divisions:[16384:4,1048576:16,>:2]", late);
    expect_divisions("roundup_power2_divisions:[16384:4,65536:16]", late);
    expect_divisions("roundup_power2_divisions:[>:2]", rest_first);
    expect_divisions("roundup_power2_divisions:[]", none);
    expect_divisions("roundup_power2_divisions:4,roundup_power2_divisions:[16384:4,32768:16]",
                     late);
}

/* test_allocator_backend: among others, which must be right here (docs/differences.md). */
static void the_backend_is_chosen_by_the_text(void **state)
{
    (void)state;
    assert_int_equal(parsed("max_split_size_mb:20,backend:cudaMallocAsync,"
                            "release_lock_on_cudamalloc:True")
                         .backend,
                     TARN_BACKEND_ASYNC);
    expect_error("max_split_size_mb:20,backend:cudaMallocAsync,release_lock_on_cudamalloc:none", 72,
                 "release_lock_on_cudamalloc: \"none\" at offset 72 is not known, allowed: True or "
                 "False");
}

/* test_allocator_memory_fraction_setting */
static void a_fraction_is_from_0_to_1(void **state)
{
    (void)state;
    assert_true(same(parsed("per_process_memory_fraction:0.0").memory_fraction, 0.0));
    assert_true(same(parsed("per_process_memory_fraction:0.5").memory_fraction, 0.5));
    assert_true(same(parsed("per_process_memory_fraction:1.0").memory_fraction, 1.0));
    expect_error("per_process_memory_fraction:-0.1", 28,
                 "per_process_memory_fraction: \"-0.1\" at offset 28 is out of range, allowed: "
                 "from 0 to 1");
    expect_error("per_process_memory_fraction:1.1", 28,
                 "per_process_memory_fraction: \"1.1\" at offset 28 is out of range, allowed: "
                 "from 0 to 1");
}

/* Among them the seven of test_allocator_settings. */
static void every_wrong_value_says_what_and_where(void **state)
{
    (void)state;
    expect_error("max_split_size_mb:2", 18,
                 "max_split_size_mb: \"2\" at offset 18 is too small, allowed: at least "
                 "large_segment_size_mb (here 20)");
    expect_error("max_split_size_mb:-40", 18,
                 "max_split_size_mb: \"-40\" at offset 18 is negative, allowed: at least "
                 "large_segment_size_mb (here 20)");
    expect_error("max_split_size_mb:18446744073709551616", 18,
                 "max_split_size_mb: \"18446744073709551616\" at offset 18 does not fit a number, "
                 "allowed: at least large_segment_size_mb (here 20)");
    expect_error(
        "max_split_size_mb:"
        "000000000000000000000000000000000000000000000000000000000000000000000000000000040",
        18,
        "max_split_size_mb: \"0000000000000000000000000000000000000000...\" at offset 18 "
        "does not fit a number, allowed: at least large_segment_size_mb (here 20)");
    expect_error(
        "max_split_size_mb:"
        "-99999999999999999999999999999999999999999999999999999999999999999999999999999999",
        18,
        "max_split_size_mb: \"-999999999999999999999999999999999999999...\" at offset 18 "
        "is negative, allowed: at least large_segment_size_mb (here 20)");
    expect_error(
        "max_split_size_mb:", 18,
        "max_split_size_mb: expected a value at offset 18, found the end, allowed: at least "
        "large_segment_size_mb (here 20)");
    expect_error("max_split_size_mb:[40]", 18,
                 "max_split_size_mb: expected a value at offset 18, found \"[\", allowed: at least "
                 "large_segment_size_mb (here 20)");
    expect_error("max_non_split_rounding_mb:19", 26,
                 "max_non_split_rounding_mb: \"19\" at offset 26 is too small, allowed: at least "
                 "large_segment_size_mb, its default (here 20)");
    expect_error("large_segment_size_mb:10", 22,
                 "large_segment_size_mb: \"10\" at offset 22 is too small, allowed: more than 10");
    expect_error(
        "garbage_collection_threshold:1.2", 29,
        "garbage_collection_threshold: \"1.2\" at offset 29 is out of range, allowed: above "
        "0, below 1");
    expect_error("garbage_collection_threshold:0", 29,
                 "garbage_collection_threshold: \"0\" at offset 29 is out of range, allowed: above "
                 "0, below 1");
    expect_error("garbage_collection_threshold:1", 29,
                 "garbage_collection_threshold: \"1\" at offset 29 is out of range, allowed: above "
                 "0, below 1");
    expect_error(
        "garbage_collection_threshold:nan", 29,
        "garbage_collection_threshold: \"nan\" at offset 29 is out of range, allowed: above "
        "0, below 1");
    expect_error(
        "garbage_collection_threshold:half", 29,
        "garbage_collection_threshold: \"half\" at offset 29 is not a number, allowed: above "
        "0, below 1");
    expect_error("garbage_collection_threshold:1e999", 29,
                 "garbage_collection_threshold: \"1e999\" at offset 29 does not fit a number, "
                 "allowed: above 0, below 1");
    expect_error(
        "per_process_memory_fraction:1.01", 28,
        "per_process_memory_fraction: \"1.01\" at offset 28 is out of range, allowed: from "
        "0 to 1");
    expect_error(
        "per_process_memory_fraction:-0.1", 28,
        "per_process_memory_fraction: \"-0.1\" at offset 28 is out of range, allowed: from "
        "0 to 1");
    expect_error("release_lock_on_cudamalloc:none", 27,
                 "release_lock_on_cudamalloc: \"none\" at offset 27 is not known, allowed: True or "
                 "False");
    expect_error(
        "pinned_use_cuda_host_register:none", 30,
        "pinned_use_cuda_host_register: \"none\" at offset 30 is not known, allowed: True or "
        "False");
    expect_error("pinned_num_register_threads:none", 28,
                 "pinned_num_register_threads: \"none\" at offset 28 is not a number, allowed: a "
                 "power of two from 1 to 128");
    expect_error(
        "pinned_num_register_threads:1024", 28,
        "pinned_num_register_threads: \"1024\" at offset 28 is too large, allowed: a power "
        "of two from 1 to 128");
    expect_error(
        "pinned_num_register_threads:3", 28,
        "pinned_num_register_threads: \"3\" at offset 28 is not a power of two, allowed: a "
        "power of two from 1 to 128");
    expect_error("pinned_reserve_segment_size_mb:0", 31,
                 "pinned_reserve_segment_size_mb: \"0\" at offset 31 is too small, allowed: more "
                 "than 0");
    expect_error("backend:cudamalloc", 8,
                 "backend: \"cudamalloc\" at offset 8 is not known, allowed: native or "
                 "cudaMallocAsync");
    expect_error("rules:2.12", 6,
                 "rules: \"2.12\" at offset 6 is not known, allowed: 2.11 or 2.14");
}

#define DIVISIONS_ALLOWED ", allowed: a power of two, or a list such as [256:1,512:2,>:4]"

static void wrong_divisions_say_what_and_where(void **state)
{
    (void)state;
    expect_error("roundup_power2_divisions:3", 25,
                 "roundup_power2_divisions: \"3\" at offset 25 is not a power of "
                 "two" DIVISIONS_ALLOWED);
    expect_error("roundup_power2_divisions:four", 25,
                 "roundup_power2_divisions: \"four\" at offset 25 is not a "
                 "number" DIVISIONS_ALLOWED);
    expect_error("roundup_power2_divisions:0", 25,
                 "roundup_power2_divisions: \"0\" at offset 25 is not a power of "
                 "two" DIVISIONS_ALLOWED);
    expect_error("roundup_power2_divisions:4294967296", 25,
                 "roundup_power2_divisions: \"4294967296\" at offset 25 is more than "
                 "2147483648" DIVISIONS_ALLOWED);
    expect_error("roundup_power2_divisions:[100:4]", 26,
                 "roundup_power2_divisions: \"100\" at offset 26 is not a power of "
                 "two" DIVISIONS_ALLOWED);
    expect_error("roundup_power2_divisions:[0:4]", 26,
                 "roundup_power2_divisions: \"0\" at offset 26 is not a power of "
                 "two" DIVISIONS_ALLOWED);
    expect_error("roundup_power2_divisions:[64:3]", 29,
                 "roundup_power2_divisions: \"3\" at offset 29 is neither a power of two nor "
                 "0" DIVISIONS_ALLOWED);
    expect_error(
        "roundup_power2_divisions:[64=3]", 30,
        "expected \":\" in the list of roundup_power2_divisions at offset 30, found \"]\"");
}

static void separators_are_enforced(void **state)
{
    (void)state;
    expect_error("expandable_segments", 19,
                 "expected \":\" after expandable_segments at offset 19, found the end");
    expect_error("expandable_segments,backend:native", 19,
                 "expected \":\" after expandable_segments at offset 19, found \",\"");
    expect_error("expandable_segments:True:backend", 24,
                 "expected \",\" after the value of expandable_segments at offset 24, found \":\"");
    expect_error("max_split_size_mb:40[", 20,
                 "expected \",\" after the value of max_split_size_mb at offset 20, found \"[\"");
    expect_error(",expandable_segments:True", 0,
                 "expected the name of an option at offset 0, found \",\"");
    expect_error("expandable_segments:True,,", 25,
                 "expected the name of an option at offset 25, found \",\"");
    expect_error("roundup_power2_divisions:[64:8 ; 128:2]", 36,
                 "expected \",\" or \"]\" in the list of roundup_power2_divisions at offset 36, "
                 "found \":\"");
    expect_error("roundup_power2_divisions:[64:8", 30,
                 "expected \",\" or \"]\" in the list of roundup_power2_divisions at offset 30, "
                 "found the end");
    expect_error("roundup_power2_divisions:[64:8,", 31,
                 "roundup_power2_divisions: expected a value at offset 31, found the "
                 "end" DIVISIONS_ALLOWED);
}

static void suggests(const char *name)
{
    const int length = (int)strlen(name) - 1;
    char text[128];
    char message[256];

    (void)snprintf(text, sizeof text, "%.*s:1", length, name);
    (void)snprintf(message, sizeof message,
                   "unknown option \"%.*s\" at offset 0, did you mean \"%s\"?", length, name, name);
    expect_error(text, 0, message);
}

static void every_name_is_suggested_when_a_letter_is_missing(void **state)
{
    const struct tarn_config_option *option;

    (void)state;
    for (size_t i = 0; (option = tarn_config_get_option(i)); i++) {
        suggests(option->name);
        if (option->alias) {
            suggests(option->alias);
        }
    }
}

static void unknown_options_suggest_the_nearest(void **state)
{
    (void)state;
    expect_error("foo:1,bar:2", 0, "unknown option \"foo\" at offset 0");
    expect_error("backend:native,max_split_size:40", 15,
                 "unknown option \"max_split_size\" at offset 15, did you mean "
                 "\"max_split_size_mb\"?");
    expect_error("garbage:0.5", 0,
                 "unknown option \"garbage\" at offset 0, did you mean "
                 "\"garbage_collection_threshold\"?");
    expect_error("expandable_segment:True", 0,
                 "unknown option \"expandable_segment\" at offset 0, did you mean "
                 "\"expandable_segments\"?");
    expect_error("release_lock_on_hipmaloc:True", 0,
                 "unknown option \"release_lock_on_hipmaloc\" at offset 0, did you mean "
                 "\"release_lock_on_hipmalloc\"?");
    /* Four letters that a name begins with are enough. */
    expect_error("back:1", 0, "unknown option \"back\" at offset 0, did you mean \"backend\"?");
    expect_error("expa:1", 0,
                 "unknown option \"expa\" at offset 0, did you mean \"expandable_segments\"?");
    expect_error("max_s:1", 0,
                 "unknown option \"max_s\" at offset 0, did you mean \"max_split_size_mb\"?");
    expect_error("exp:1", 0, "unknown option \"exp\" at offset 0");
    /* Of several names the first of the table, and a name before its alias. */
    expect_error("pinned_:1", 0,
                 "unknown option \"pinned_\" at offset 0, did you mean "
                 "\"pinned_use_cuda_host_register\"?");
    expect_error("release_:1", 0,
                 "unknown option \"release_\" at offset 0, did you mean "
                 "\"release_lock_on_cudamalloc\"?");
    /* A third of a name's letters may be wrong. */
    expect_error("max_splat_size_mb:1", 0,
                 "unknown option \"max_splat_size_mb\" at offset 0, did you mean "
                 "\"max_split_size_mb\"?");
    expect_error("bxckxnd:1", 0,
                 "unknown option \"bxckxnd\" at offset 0, did you mean \"backend\"?");
    expect_error("palacy:1", 0, "unknown option \"palacy\" at offset 0, did you mean \"policy\"?");
    expect_error("palaca:1", 0, "unknown option \"palaca\" at offset 0");
    expect_error("a\x01\xff:1", 0, "unknown option \"a??\" at offset 0");
    expect_error("a\x7f~:1", 0, "unknown option \"a?~\" at offset 0");
    expect_error("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx:1", 0,
                 "unknown option \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\" at offset 0");
    expect_error(
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx:1", 0,
        "unknown option \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...\" at offset 0");
}

static void a_wrong_option_undoes_the_right_ones_before_it(void **state)
{
    struct tarn_config config = parsed("max_split_size_mb:40,expandable_segments:True");
    const struct tarn_config before = config;
    struct tarn_error error;

    (void)state;
    assert_int_equal(tarn_config_update("large_segment_size_mb:30,foo:1", &config, &error),
                     TARN_ERR_CONFIG);
    assert_memory_equal(&config, &before, sizeof config);
}

static void a_policy_is_one_of_two(void **state)
{
    struct tarn_config config;
    struct tarn_error error;

    (void)state;
    assert_int_equal(tarn_config_parse("policy:compact,policy:dense", &config, &error),
                     TARN_ERR_CONFIG);
    assert_non_null(strstr(error.text, "dense"));
    assert_int_equal(tarn_config_parse("policy:compact,policy:exact", &config, &error), TARN_OK);
    assert_int_equal(config.policy, TARN_POLICY_EXACT);
    assert_int_equal(tn_config_write(&config, &config, SIZE_MAX, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tn_config_write(&config, NULL, sizeof config, &error),
                     TARN_ERR_INVALID_ARGUMENT);
}

static void long_texts_are_refused(void **state)
{
    char text[2 * TARN_CONFIG_TEXT_MAX];

    (void)state;
    memset(text, ' ', sizeof text);
    text[sizeof text - 1] = '\0';
    expect_error(text, TARN_CONFIG_TEXT_MAX, "settings are longer than 1023 bytes");
    text[TARN_CONFIG_TEXT_MAX - 1] = '\0';
    (void)parsed(text);
}

static void an_update_resets_what_pytorch_resets(void **state)
{
    struct tarn_config config =
        parsed("max_split_size_mb:40,max_non_split_rounding_mb:50,large_segment_size_mb:30,"
               "garbage_collection_threshold:0.5,roundup_power2_divisions:4,"
               "expandable_segments:True,release_lock_on_cudamalloc:True,"
               "per_process_memory_fraction:0.5,backend:cudaMallocAsync,"
               "pinned_num_register_threads:8,throw_on_cudamalloc_oom:True");

    (void)state;
    config.no_caching = true;
    assert_int_equal(tarn_config_update("", &config, NULL), TARN_OK);
    assert_true(config.max_split_size == TARN_SIZE_UNLIMITED);
    assert_int_equal(config.large_segment_size, 30 * MIB);
    assert_int_equal(config.max_non_split_rounding, 30 * MIB);
    assert_true(same(config.garbage_collection_threshold, 0.0));
    assert_int_equal(config.roundup_power2_divisions[0], 0);
    assert_int_equal(config.roundup_power2_divisions[15], 0);
    assert_true(config.expandable_segments && config.release_lock_on_device_alloc);
    assert_true(config.throw_on_device_oom && config.no_caching);
    assert_true(config.memory_fraction_given && same(config.memory_fraction, 0.5));
    assert_int_equal(config.backend, TARN_BACKEND_ASYNC);
    assert_int_equal(config.pinned_num_register_threads, 8);
    assert_string_equal(config.text, "");
}

static void a_null_update_keeps_the_recorded_text(void **state)
{
    struct tarn_config config = parsed("max_split_size_mb:40");

    (void)state;
    assert_int_equal(tarn_config_update(NULL, &config, NULL), TARN_OK);
    assert_true(config.max_split_size == TARN_SIZE_UNLIMITED);
    assert_string_equal(config.text, "max_split_size_mb:40");
    assert_int_equal(tarn_config_update("backend:native", &config, NULL), TARN_OK);
    assert_string_equal(config.text, "backend:native");
}

static void structs_that_were_not_initialised_are_refused(void **state)
{
    struct tarn_config config = {0};
    struct tarn_error error;

    (void)state;
    assert_int_equal(tarn_config_update("", &config, &error), TARN_ERR_INVALID_ARGUMENT);
    assert_string_equal(error.text, "settings were not initialised with tarn_config_init");
    assert_int_equal(tarn_config_update("", NULL, NULL), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_config_parse("", NULL, NULL), TARN_ERR_INVALID_ARGUMENT);
}

static void clear_environment(void)
{
    (void)unsetenv("TARN_ALLOC_CONF");
    (void)unsetenv("PYTORCH_CUDA_ALLOC_CONF");
    (void)unsetenv("PYTORCH_ALLOC_CONF");
    (void)unsetenv("PYTORCH_NO_CUDA_MEMORY_CACHING");
    (void)unsetenv("TARN_WATCH");
    (void)unsetenv("XDG_RUNTIME_DIR");
}

static void the_first_variable_that_is_set_counts(void **state)
{
    struct tarn_config config;
    struct tarn_error error;

    (void)state;
    clear_environment();
    assert_int_equal(tarn_config_from_env(&config, &error), TARN_OK);
    assert_string_equal(config.text, "");
    assert_false(config.no_caching);
    (void)setenv("PYTORCH_ALLOC_CONF", "max_split_size_mb:30", 1);
    assert_int_equal(tarn_config_from_env(&config, &error), TARN_OK);
    assert_int_equal(config.max_split_size, 30 * MIB);
    (void)setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:40", 1);
    (void)setenv("PYTORCH_NO_CUDA_MEMORY_CACHING", "0", 1);
    assert_int_equal(tarn_config_from_env(&config, &error), TARN_OK);
    assert_int_equal(config.max_split_size, 40 * MIB);
    assert_true(config.no_caching);
    (void)setenv("TARN_ALLOC_CONF", "", 1);
    assert_int_equal(tarn_config_from_env(&config, &error), TARN_OK);
    assert_true(config.max_split_size == TARN_SIZE_UNLIMITED);
    clear_environment();
}

static void who_may_watch_is_a_variable(void **state)
{
    static const struct {
        const char *text;
        enum tarn_watch_mode watch;
    } rows[] = {{"", TARN_WATCH_OFF},
                {"0", TARN_WATCH_OFF},
                {"1", TARN_WATCH_PAGE},
                {"control", TARN_WATCH_CONTROL}};
    char folder[TARN_WATCH_FOLDER_MAX + 1];
    struct tarn_config config;
    struct tarn_error error;

    (void)state;
    clear_environment();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)setenv("TARN_WATCH", rows[i].text, 1);
        assert_int_equal(tarn_config_from_env(&config, &error), TARN_OK);
        assert_int_equal(config.watch, rows[i].watch);
        assert_string_equal(config.watch_folder, "");
    }
    memset(folder, 'f', sizeof folder);
    folder[TARN_WATCH_FOLDER_MAX] = '\0'; /* a byte too long */
    (void)setenv("XDG_RUNTIME_DIR", folder, 1);
    assert_int_equal(tarn_config_from_env(&config, &error), TARN_ERR_CONFIG);
    assert_string_equal(error.text, "TARN_WATCH: XDG_RUNTIME_DIR has more than 159 bytes");
    folder[TARN_WATCH_FOLDER_MAX - 1] = '\0';
    (void)setenv("XDG_RUNTIME_DIR", folder, 1);
    assert_int_equal(tarn_config_from_env(&config, &error), TARN_OK);
    assert_string_equal(config.watch_folder, folder);
    (void)setenv("TARN_WATCH", "yes", 1);
    assert_int_equal(tarn_config_from_env(&config, &error), TARN_ERR_CONFIG);
    assert_non_null(strstr(error.text, "not \"yes\""));
    clear_environment();
}

static void a_wrong_variable_is_named(void **state)
{
    struct tarn_config config = {.struct_size = 77};
    struct tarn_error error;

    (void)state;
    clear_environment();
    (void)setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:yes", 1);
    assert_int_equal(tarn_config_from_env(&config, &error), TARN_ERR_CONFIG);
    assert_string_equal(error.text,
                        "PYTORCH_CUDA_ALLOC_CONF: expandable_segments: \"yes\" at offset "
                        "20 is not known, allowed: True or False");
    assert_int_equal(error.offset, 20);
    assert_int_equal(config.struct_size, 77);
    assert_int_equal(tarn_config_from_env(&config, NULL), TARN_ERR_CONFIG);
    clear_environment();
}

static uint64_t random_next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* Strings of pieces of the grammar: whatever they are, they parse or leave everything as it was,
 * and no host memory is asked for. */
static void random_strings_parse_or_change_nothing(void **state)
{
    static const char *const pieces[] = {"max_split_size_mb",
                                         "large_segment_size_mb",
                                         "roundup_power2_divisions",
                                         "garbage_collection_threshold",
                                         "expandable_segments",
                                         "backend",
                                         ":",
                                         ":",
                                         ",",
                                         ",",
                                         "[",
                                         "]",
                                         ">",
                                         "0",
                                         "1",
                                         "20",
                                         "64",
                                         "0.5",
                                         "-1",
                                         "True",
                                         "False",
                                         "native",
                                         " ",
                                         "junk",
                                         "\xff"};
    struct tarn_config config;
    uint64_t seed = 20260101;
    const uint64_t host_calls = tarn_host_get_usage().alloc_calls;
    unsigned good = 0;

    (void)state;
    tarn_config_init(&config);
    for (unsigned round = 0; round < 20000; round++) {
        const struct tarn_config before = config;
        const size_t count = random_next(&seed) % 14;
        char text[600] = "";
        struct tarn_error error;

        for (size_t i = 0; i < count; i++) {
            (void)strncat(text, pieces[random_next(&seed) % (sizeof pieces / sizeof pieces[0])],
                          40);
        }
        if (tarn_config_update(text, &config, &error) == TARN_OK) {
            good++;
            assert_string_equal(config.text, text);
        } else {
            assert_memory_equal(&config, &before, sizeof config);
            assert_in_range(error.offset, 0, strlen(text));
            assert_true(error.text[0] != '\0');
        }
    }
    assert_true(good > 1000);
    assert_int_equal(tarn_host_get_usage().alloc_calls, host_calls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_older_struct_keeps_its_size),
        cmocka_unit_test(a_newer_struct_keeps_what_follows),
        cmocka_unit_test(a_struct_may_end_after_its_size),
        cmocka_unit_test(a_struct_without_a_size_is_refused),
        cmocka_unit_test(the_defaults_are_pytorchs),
        cmocka_unit_test(empty_blank_and_missing_texts_are_the_defaults),
        cmocka_unit_test(every_flag_is_stored),
        cmocka_unit_test(numbers_are_stored_in_bytes),
        cmocka_unit_test(the_large_segment_counts_wherever_it_stands),
        cmocka_unit_test(the_large_segment_counts_only_as_an_option),
        cmocka_unit_test(blanks_are_those_of_c),
        cmocka_unit_test(long_numbers_are_read),
        cmocka_unit_test(divisions_have_a_number_form_and_a_list_form),
        cmocka_unit_test(the_backend_is_chosen_by_the_text),
        cmocka_unit_test(a_fraction_is_from_0_to_1),
        cmocka_unit_test(every_wrong_value_says_what_and_where),
        cmocka_unit_test(wrong_divisions_say_what_and_where),
        cmocka_unit_test(separators_are_enforced),
        cmocka_unit_test(every_name_is_suggested_when_a_letter_is_missing),
        cmocka_unit_test(unknown_options_suggest_the_nearest),
        cmocka_unit_test(a_wrong_option_undoes_the_right_ones_before_it),
        cmocka_unit_test(long_texts_are_refused),
        cmocka_unit_test(a_policy_is_one_of_two),
        cmocka_unit_test(an_update_resets_what_pytorch_resets),
        cmocka_unit_test(a_null_update_keeps_the_recorded_text),
        cmocka_unit_test(structs_that_were_not_initialised_are_refused),
        cmocka_unit_test(the_first_variable_that_is_set_counts),
        cmocka_unit_test(who_may_watch_is_a_variable),
        cmocka_unit_test(a_wrong_variable_is_named),
        cmocka_unit_test(random_strings_parse_or_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
