/* SPDX-License-Identifier: MIT */
/* Pools that no entry names, found by the addresses of blocks: where there are none to be found. */
#include "support/test.h"

#include "replay/compile.h"
#include "replay/pool_search.h"
#include "support/two_pools.h"
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

struct searched {
    struct trace_model trace;
    struct tn_program program;
    struct tarn_config config;
};

static void searched_open(struct searched *searched, const struct trace_row *trace, size_t count,
                          const struct tn_model_segment *segments, size_t segment_count)
{
    struct tarn_error error = {.text = ""};

    assert_int_equal(tarn_config_parse("", &searched->config, NULL), TARN_OK);
    trace_open(&searched->trace, trace, count, segments, segment_count);
    if (tn_program_compile(&searched->program, &searched->trace.model, 0, &searched->config,
                           &error)) {
        fail_msg("%s", error.text);
    }
}

static void searched_close(struct searched *searched)
{
    tn_program_fini(&searched->program);
    trace_close(&searched->trace);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static enum tarn_status pools_search(struct searched *searched)
{
    struct tarn_error error = {.text = ""};
    const enum tarn_status st =
        tn_pool_search(&searched->program, &searched->trace.model, &searched->config, &error);

    assert_true(st == TARN_OK || error.status == st); /* requests may have failed */
    return st;
}

/* Searches with these final segments; the number of pools before and after. */
static void search(const struct tn_model_segment *segments, size_t count, size_t *before_out,
                   size_t *after_out)
{
    struct searched searched;

    searched_open(&searched, rows, ROWS, segments, count);
    *before_out = searched.program.pools.count;
    const size_t ops = searched.program.ops.count;

    assert_int_equal(pools_search(&searched), TARN_OK);
    *after_out = searched.program.pools.count;
    assert_int_equal(searched.program.ops.count, ops);
    searched_close(&searched);
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

/* A segment released twice is searched for in vain; blocks of expandable ones are found. */
static void segments_end_once(void **state)
{
    static const struct trace_row again[] = {
        {TN_TRACE_SEGMENT_MAP, A + 64 * GIB, 2 * MIB, 0},
        {TN_TRACE_SEGMENT_UNMAP, A + 64 * GIB, 2 * MIB, 0},
        {TN_TRACE_SEGMENT_ALLOC, A, 2 * MIB, 0},
        {TN_TRACE_ALLOC, A + 512, 512, 0},
        {TN_TRACE_FREE_REQUESTED, A + 512, 512, 0},
        {TN_TRACE_FREE_COMPLETED, A + 512, 512, 0},
        {TN_TRACE_SEGMENT_FREE, A, 2 * MIB, 0},
        {TN_TRACE_SEGMENT_FREE, A, 2 * MIB, 0},
        {TN_TRACE_SEGMENT_UNMAP, A + 64 * GIB, 2 * MIB, 0},
    };
    static const struct tn_model_segment before[] = {
        {.address = A + 32 * GIB, .total_size = 2 * MIB, .is_expandable = true},
        {.address = A + 48 * GIB, .total_size = 2 * MIB}};
    struct searched searched;

    (void)state;
    searched_open(&searched, again, sizeof again / sizeof *again, before, 2);
    assert_int_equal(searched.program.start_segments.count, 2);
    assert_int_equal(pools_search(&searched), TARN_OK);
    assert_int_equal(searched.program.pools.count, 2);
    searched_close(&searched);
}

/* A segment is tried in the pool of another one that was gone by then. */
static void pools_are_found_one_by_one(void **state)
{
    static const uint16_t kinds[][2] = {
        {TN_OP_ALLOC, 0},   {TN_OP_ALLOC, 1},      {TN_OP_FREE, 0},
        {TN_OP_RELEASE, 1}, {TN_OP_FLUSH_WANT, 0}, {TN_OP_ALLOC, 2},
        {TN_OP_FREE, 0},    {TN_OP_RELEASE, 2},    {TN_OP_FLUSH, 0}};
    struct searched searched;

    (void)state;
    searched_open(&searched, two_pools, TWO_POOLS, &two_pools_kept, 1);
    assert_int_equal(pools_search(&searched), TARN_OK);
    const struct tn_op *ops = searched.program.ops.items;

    assert_int_equal(searched.program.ops.count, sizeof kinds / sizeof *kinds);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        assert_int_equal(ops[i].kind, kinds[i][0]);
        assert_int_equal(ops[i].pool, kinds[i][1]);
    }
    assert_string_equal(searched.program.notes[searched.program.note_count - 1],
                        "segments of private pools that were released before the end were "
                        "identified by the addresses of blocks: 2 pools");
    searched_close(&searched);
}

/* Of rows followed by so many requests, with so many pools in the final segments: wherever a list
 * has to grow. A simulated device without host memory is short of memory instead. */
static uint64_t fail_each(const struct trace_row *begin, size_t count, size_t more, size_t pools)
{
    struct trace_row all[64];
    struct tn_model_segment segments[32];
    struct searched searched;
    uint64_t failures = 0;
    uint64_t calls = UINT64_MAX;

    assert_true(count + more <= 64 && pools < 32);
    memcpy(all, begin, count * sizeof *all);
    for (size_t i = 0; i < more; i++) {
        all[count + i] = (struct trace_row){TN_TRACE_ALLOC, A + 32 * MIB + i * 512, 512, 0};
    }
    segments[0] = two_pools_kept;
    for (size_t i = 0; i < pools; i++) {
        segments[1 + i] = (struct tn_model_segment){.pool = {{0, i + 1}}};
    }
    for (uint64_t n = 1; n <= calls; n++) {
        searched_open(&searched, all, count + more, segments, 1 + pools);
        const size_t ops = searched.program.ops.count;
        const uint64_t before = tarn_host_get_usage().alloc_calls;

        tarn_host_fail_nth(n);
        const enum tarn_status st = pools_search(&searched);

        tarn_host_fail_nth(0);
        calls = st ? calls : tarn_host_get_usage().alloc_calls - before;
        if (st) { /* the program is unchanged */
            assert_int_equal(st, TARN_ERR_HOST_MEMORY);
            assert_int_equal(searched.program.ops.count, ops);
            assert_int_equal(searched.program.pools.count, 1 + pools);
            failures++;
        }
        searched_close(&searched);
    }
    return failures;
}

static void every_host_failure_is_reported(void **state)
{
    static const struct trace_row in_vain[] = {/* none of the segments can be in another pool */
                                               {TN_TRACE_SEGMENT_ALLOC, A, 2 * MIB, 0},
                                               {TN_TRACE_ALLOC, A + 512, 512, 0},
                                               {TN_TRACE_SEGMENT_FREE, A + 8 * MIB, 2 * MIB, 0}};

    (void)state;
    for (size_t i = 0; i < 17; i++) {
        assert_true(fail_each(two_pools, TWO_POOLS, i, i > 12 ? i : 0) > 10);
        assert_true(fail_each(in_vain, sizeof in_vain / sizeof *in_vain, i, i) > 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_pool_is_tried),
        cmocka_unit_test(there_is_room_for_more_pools),
        cmocka_unit_test(there_is_an_id_for_more_pools),
        cmocka_unit_test(segments_end_once),
        cmocka_unit_test(pools_are_found_one_by_one),
        cmocka_unit_test(every_host_failure_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
