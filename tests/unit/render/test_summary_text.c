/* SPDX-License-Identifier: MIT */
/* The counters of recorded runs give PyTorch's summary, byte for byte. */
#include "support/collect.h"
#include "support/file.h"

#include "tarn/report.h"

#include <jansson.h>

static const char *const names[] = {"tiny",         "gpt2_varlen",   "gpt2_varlen_expandable",
                                    "resnet_sizes", "multistream",   "cudagraph",
                                    "oom",          "llama_generate"};

/* Names as in memory_stats, in the order of enum tarn_stat_kind and enum tarn_stat_pool. */
static const char *const kinds[TARN_STAT_KINDS] = {
#define KIND_NAME(name, key, text) [TARN_STAT_##name] = key,
    TARN_STAT_MAP(KIND_NAME)
#undef KIND_NAME
};
static const char *const pools[TARN_STAT_POOLS] = {"all", "small_pool", "large_pool"};

/* A number by its flat key; also from the nested form of the same keys. */
static int64_t number(const json_t *stats, const char *key)
{
    const json_t *value = json_object_get(stats, key);
    const char *at = key;

    for (const json_t *level = stats; !value && level && *at;) {
        char part[64];
        const size_t length = strcspn(at, ".");

        (void)snprintf(part, sizeof part, "%.*s", (int)length, at);
        level = json_object_get(level, part);
        at += length + (at[length] == '.');
        value = *at == '\0' ? level : NULL;
    }
    if (!json_is_integer(value)) {
        fail_msg("memory_stats has no number %s", key);
    }
    return json_integer_value(value);
}

static struct tarn_stat read_stat(const json_t *flat, const char *prefix)
{
    static const char *const parts[] = {"current", "peak", "allocated", "freed"};
    int64_t values[4];

    for (int i = 0; i < 4; i++) {
        char key[128];

        (void)snprintf(key, sizeof key, "%s.%s", prefix, parts[i]);
        values[i] = number(flat, key);
    }
    return (struct tarn_stat){values[0], values[1], values[2], values[3]};
}

static struct tarn_stats read_stats(const char *name)
{
    char path[1024];
    struct tarn_stats stats = {.struct_size = sizeof stats};

    /* Of cudagraph the flat form was recorded before blocks were freed, the summary after. */
    (void)snprintf(path, sizeof path, "%s/snapshots/%s.%s.json", TEST_DATA_DIR, name,
                   strcmp(name, "cudagraph") == 0 ? "nested_stats" : "memory_stats");
    json_t *flat = json_load_file(path, 0, NULL);

    assert_non_null(flat);
    for (int kind = 0; kind < TARN_STAT_KINDS; kind++) {
        for (int pool = 0; pool < TARN_STAT_POOLS; pool++) {
            char prefix[64];

            (void)snprintf(prefix, sizeof prefix, "%s.%s", kinds[kind], pools[pool]);
            stats.by_pool[kind][pool] = read_stat(flat, prefix);
        }
    }
    stats.oversize_allocations = read_stat(flat, "oversize_allocations");
    stats.oversize_segments = read_stat(flat, "oversize_segments");
    stats.num_alloc_retries = number(flat, "num_alloc_retries");
    stats.num_ooms = number(flat, "num_ooms");
    json_decref(flat);
    return stats;
}

static void summary_is(const struct tarn_stats *stats, bool abbreviated, const char *name)
{
    char file_name[256];
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};

    (void)snprintf(file_name, sizeof file_name, "snapshots/%s.summary%s.txt", name,
                   abbreviated ? "_abbreviated" : "");
    struct test_file golden = test_file_read(file_name);

    assert_int_equal(tarn_report_summary(stats, 0, abbreviated, &writer), TARN_OK);
    assert_string_equal(collect.text, (char *)golden.bytes);
    free(golden.bytes);
    free(collect.text);
}

static void summaries_equal_the_goldens(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct tarn_stats stats = read_stats(names[i]);

        summary_is(&stats, false, names[i]);
        summary_is(&stats, true, names[i]);
    }
}

/* One counter, its row as it comes out. */
static void row_is(int64_t bytes, const char *row)
{
    struct tarn_stats stats = {.struct_size = sizeof stats};
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};

    stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL].current = bytes;
    stats.by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL].current = bytes;
    assert_int_equal(tarn_report_summary(&stats, 0, true, &writer), TARN_OK);
    if (!strstr(collect.text, row)) {
        fail_msg("%lld: no \"%s\" in\n%s", (long long)bytes, row, collect.text);
    }
    free(collect.text);
}

/* Units change at 768 x 1024 and 750 x 1000. */
static void units_change_where_pytorch_changes_them(void **state)
{
    (void)state;
    row_is(0, "| Allocated memory      |      0 B   |");
    row_is(786431, "| Allocated memory      | 786431 B   |");
    row_is(786432, "| Allocated memory      |    768 KiB |");
    row_is(((int64_t)768 << 20) - 1, "| Allocated memory      | 786431 KiB |");
    row_is((int64_t)768 << 20, "| Allocated memory      |    768 MiB |");
    row_is((int64_t)768 << 30, "| Allocated memory      |    768 GiB |");
    row_is((int64_t)768 << 40, "| Allocated memory      |    768 TiB |");
    row_is((int64_t)4096 << 50, "| Allocated memory      |   4096 PiB |");
    row_is(749999, "| Allocations           |  749999    |");
    row_is(750000, "| Allocations           |     750 K  |");
    row_is(749999999, "| Allocations           |  749999 K  |");
    row_is(750000000, "| Allocations           |     750 M  |");
}

static void the_device_and_failures_are_named(void **state)
{
    struct tarn_stats stats = {
        .struct_size = sizeof stats, .num_ooms = 12, .num_alloc_retries = 345};
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};

    (void)state;
    assert_int_equal(tarn_report_summary(&stats, 7, false, &writer), TARN_OK);
    assert_non_null(strstr(collect.text,
                           "|                  PyTorch CUDA memory summary, device ID 7        "
                           "         |\n"));
    assert_non_null(strstr(
        collect.text, "|            CUDA OOMs: 12           |        cudaMalloc retries: 345"));
    free(collect.text);
}

static void a_refusing_writer_stops_the_report(void **state)
{
    const struct tarn_stats stats = {.struct_size = sizeof stats};
    struct test_collect collect = {.room = 10};
    const struct tarn_writer writer = {test_collect_write, &collect};

    (void)state;
    assert_int_equal(tarn_report_summary(&stats, 0, false, &writer), TARN_ERR_IO);
    free(collect.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(summaries_equal_the_goldens),
        cmocka_unit_test(units_change_where_pytorch_changes_them),
        cmocka_unit_test(the_device_and_failures_are_named),
        cmocka_unit_test(a_refusing_writer_stops_the_report),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
