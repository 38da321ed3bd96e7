/* SPDX-License-Identifier: MIT */
/* Pools that no entry names, found by the addresses of blocks: where there are none to be found. */
#include "support/test.h"

#include "replay/compile.h"
#include "replay/pool_search.h"
#include "support/trace.h"
#include "tarn/host.h"

#include <string.h>

/* The block is not where the default pool would have it. */
static const struct trace_row rows[] = {
    {TN_TRACE_SEGMENT_ALLOC, A, 2 * MIB, 0},    {TN_TRACE_ALLOC, A + 512, 512, 0},
    {TN_TRACE_FREE_REQUESTED, A + 512, 512, 0}, {TN_TRACE_FREE_COMPLETED, A + 512, 512, 0},
    {TN_TRACE_SEGMENT_FREE, A, 2 * MIB, 0},     {TN_TRACE_SNAPSHOT, 0, 0, 0},
};

enum {
    ROWS = sizeof rows / sizeof *rows
};

/* Compiles the rows with these final segments and searches; returns the number of pools before and
 * after. */
static void search(const struct tn_model_segment *segments, size_t count, size_t *before_out,
                   size_t *after_out)
{
    struct tarn_config config;
    struct tarn_error error = {.text = ""};
    struct trace_model trace;
    struct tn_program program;

    assert_int_equal(tarn_config_parse("", &config, NULL), TARN_OK);
    trace_open(&trace, rows, ROWS, segments, count);
    assert_int_equal(tn_program_compile(&program, &trace.model, 0, &config, &error), TARN_OK);
    *before_out = program.pools.count;
    const size_t ops = program.ops.count;

    assert_int_equal(tn_pool_search(&program, &trace.model, &config, &error), TARN_OK);
    *after_out = program.pools.count;
    assert_int_equal(program.ops.count, ops);
    tn_program_fini(&program);
    trace_close(&trace);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void an_empty_pool_is_tried(void **state)
{
    const struct tn_model_segment segment = {.pool = {{3, 0}}};
    size_t before;
    size_t after;

    (void)state;
    search(&segment, 1, &before, &after);
    assert_int_equal(before, 2);
    assert_int_equal(after, 3);
}

/* More pools would have the numbers of others. */
static void there_is_room_for_more_pools(void **state)
{
    static struct tn_model_segment segments[UINT16_MAX];
    static const size_t counts[] = {UINT16_MAX, UINT16_MAX - 31};
    size_t before;
    size_t after;

    (void)state;
    for (size_t i = 0; i < UINT16_MAX; i++) {
        segments[i].pool = (struct tn_pool_id){{0, i + 1}};
    }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        search(segments, counts[i], &before, &after);
        assert_int_equal(before, counts[i] + 1);
        assert_int_equal(after, before);
    }
    search(segments, UINT16_MAX - 32, &before, &after);
    assert_int_equal(after, before + 1);
}

/* The id of another pool would be that of the default pool. */
static void there_is_an_id_for_more_pools(void **state)
{
    const struct tn_model_segment segment = {.pool = {{UINT64_MAX, 0}}};
    size_t before;
    size_t after;

    (void)state;
    search(&segment, 1, &before, &after);
    assert_int_equal(before, 2);
    assert_int_equal(after, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_pool_is_tried),
        cmocka_unit_test(there_is_room_for_more_pools),
        cmocka_unit_test(there_is_an_id_for_more_pools),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
