/* SPDX-License-Identifier: MIT */
/* Programs made of small traces, run: streams of any number, starts with holes, failing memory. */
#include "support/test.h"

#include "replay/compile.h"
#include "replay/run.h"
#include "support/trace.h"
#include "tarn/host.h"

struct made {
    struct trace_model trace;
    struct tn_program program;
};

static void made_open(struct made *made, const struct trace_row *rows, size_t count,
                      const struct tn_model_segment *segments, size_t segment_count)
{
    struct tarn_config config;
    struct tarn_error error = {.text = ""};

    assert_int_equal(tarn_config_parse("", &config, NULL), TARN_OK);
    trace_open(&made->trace, rows, count, segments, segment_count);
    if (tn_program_compile(&made->program, &made->trace.model, 0, &config, &error)) {
        fail_msg("%s", error.text);
    }
}

static void made_close(struct made *made)
{
    tn_program_fini(&made->program);
    trace_close(&made->trace);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* Runs it under these settings on a device of that size, 0 = any. */
static enum tarn_status run(const struct made *made, const char *conf, uint64_t device,
                            struct tarn_replay_result *result, struct tarn_error *error)
{
    const struct tn_runner_room room = {.device = device};
    struct tarn_config config;
    struct tn_runner runner;

    *result = (struct tarn_replay_result){.struct_size = sizeof *result};
    assert_int_equal(tarn_config_parse(conf, &config, NULL), TARN_OK);
    enum tarn_status st = tn_runner_open(&runner, &made->program, &config, &room, error);

    if (st) {
        return st;
    }
    st = tn_run_program(&runner, result, error);
    tn_runner_close(&runner);
    return st;
}

/* The streams that pending frees wait for are made up. A file may have blocks on one of them: their
 * frees wait for nothing. */
static void blocks_may_be_on_the_streams_that_frees_wait_for(void **state)
{
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_ALLOC, A, 2 * MIB, UINT64_MAX},
        {TN_TRACE_ALLOC, A, 512, UINT64_MAX},
        {TN_TRACE_FREE_REQUESTED, A, 512, UINT64_MAX},
        {TN_TRACE_SNAPSHOT, 0, 0, 0},
        {TN_TRACE_FREE_COMPLETED, A, 512, UINT64_MAX},
        {TN_TRACE_SEGMENT_ALLOC, A + 2 * MIB, 2 * MIB, 0},
        {TN_TRACE_ALLOC, A + 2 * MIB, 512, 0},
        {TN_TRACE_FREE_REQUESTED, A + 2 * MIB, 512, 0},
        {TN_TRACE_SNAPSHOT, 0, 0, 0},
        {TN_TRACE_FREE_COMPLETED, A + 2 * MIB, 512, 0}, /* its queue is empty afterwards */
        {TN_TRACE_ALLOC, A, 512, UINT64_MAX},
        {TN_TRACE_FREE_REQUESTED, A, 512, UINT64_MAX},
        {TN_TRACE_SNAPSHOT, 0, 0, 0},
        {TN_TRACE_FREE_COMPLETED, A, 512, UINT64_MAX},
        {TN_TRACE_ALLOC, A, 512, UINT64_MAX},
    };
    static const char *const confs[] = {"", "expandable_segments:True", "policy:compact",
                                        "backend:cudaMallocAsync"};
    struct made made;

    (void)state;
    made_open(&made, rows, sizeof rows / sizeof *rows, NULL, 0);
    assert_int_equal(made.program.queue_count, 1);
    for (size_t i = 0; i < sizeof confs / sizeof *confs; i++) {
        struct tarn_replay_result result;
        struct tarn_error error = {.text = ""};

        assert_int_equal(run(&made, confs[i], 0, &result, &error), TARN_OK);
        assert_int_equal(result.allocations, 4);
        assert_int_equal(result.first_oom, -1);
        if (i == 0) {
            assert_int_equal(result.same_address, 4);
            assert_int_equal(result.first_other, -1);
        }
    }
    made_close(&made);
}

/* ---- failing memory ---- */

/* Whatever fails is reported, and leaks nothing. A simulated device without host memory is short of
 * memory, too: then the allocator tries again. Returns how many failures were reported. */
static uint64_t fail_each(const struct made *made, const char *conf, uint64_t device)
{
    const uint64_t live = tarn_host_get_usage().live_bytes;
    uint64_t reported = 0;
    uint64_t calls = UINT64_MAX;
    struct tarn_replay_result whole;
    struct tarn_error error = {.text = ""};

    assert_int_equal(run(made, conf, device, &whole, &error), TARN_OK);
    for (uint64_t n = 1; n <= calls; n++) {
        const uint64_t before = tarn_host_get_usage().alloc_calls;
        struct tarn_replay_result result;

        error.status = TARN_OK;
        tarn_host_fail_nth(n);
        const enum tarn_status st = run(made, conf, device, &result, &error);

        tarn_host_fail_nth(0);
        assert_int_equal(tarn_host_get_usage().live_bytes, live);
        assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
        if (st == TARN_OK) { /* requests may have failed */
            assert_int_equal(result.operations, whole.operations);
            calls = tarn_host_get_usage().alloc_calls - before;
        } else {
            assert_int_equal(error.status, st);
            reported++;
        }
    }
    return reported;
}

/* Frees that were pending when the trace began and some that begin in it, a request that failed
 * when it was recorded, a flush. */
static void every_host_failure_of_a_run_is_reported(void **state)
{
    static const struct tn_model_block blocks[] = {
        {.address = A,
         .size = 1 * MIB,
         .requested_size = 1 * MIB,
         .state = TN_BLOCK_ACTIVE_PENDING_FREE},
        {.address = A + 1 * MIB,
         .size = 512,
         .requested_size = 512,
         .state = TN_BLOCK_ACTIVE_PENDING_FREE},
        {.address = A + 1 * MIB + 512, .size = 1 * MIB - 512},
    };
    static const struct tn_model_segment segments[] = {
        {.address = A, .total_size = 2 * MIB, .blocks = blocks, .block_count = 3}};
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_ALLOC, A + 2 * MIB, 20 * MIB, 0},
        {TN_TRACE_ALLOC, A + 2 * MIB, 4 * MIB, 0},
        {TN_TRACE_ALLOC, A + 6 * MIB, 4 * MIB, 0},
        {TN_TRACE_OOM, 0, 5 * GIB, 0},
        {TN_TRACE_OOM, 0, 4096, 0}, /* which does not fail now */
        {TN_TRACE_FREE_REQUESTED, A + 2 * MIB, 4 * MIB, 0},
        {TN_TRACE_FREE_REQUESTED, A + 6 * MIB, 4 * MIB, 0},
        {TN_TRACE_FREE_COMPLETED, A + 6 * MIB, 4 * MIB, 0},
        {TN_TRACE_FREE_COMPLETED, A + 2 * MIB, 4 * MIB, 0},
        {TN_TRACE_SEGMENT_FREE, A + 2 * MIB, 20 * MIB, 0},
    };
    static const char *const confs[] = {"", "expandable_segments:True", "policy:compact",
                                        "backend:cudaMallocAsync"};
    struct made made;

    (void)state;
    made_open(&made, rows, sizeof rows / sizeof *rows, segments, 1);
    for (size_t i = 0; i < sizeof confs / sizeof *confs; i++) {
        assert_true(fail_each(&made, confs[i], 1 * GIB) > 10);
    }
    made_close(&made);
}

/* ---- the state before the trace ---- */

enum {
    BLOCKS = 20
};

/* An expandable segment of two mapped parts, of which the first has `count` blocks with one unit
 * between two of them, before the first of them, too, if `leads`, and another segment behind
 * TN_RANGE_GAP. */
struct start {
    struct tn_model_block first[2 * BLOCKS + 1];
    struct tn_model_block other[2];
    struct tn_model_segment segments[3];
};

static struct tn_model_block whole_block(uint64_t address, uint64_t size)
{
    return (struct tn_model_block){.address = address,
                                   .size = size,
                                   .requested_size = size,
                                   .state = TN_BLOCK_ACTIVE_ALLOCATED};
}

static void start_make(struct start *start, size_t count, bool leads, uint64_t distance)
{
    for (size_t i = 0; i < 2 * count; i++) {
        const uint64_t address = A + 512 * i;

        start->first[i] = i % 2 == leads ? whole_block(address, 512)
                                         : (struct tn_model_block){.address = address, .size = 512};
    }
    start->first[2 * count] =
        (struct tn_model_block){.address = A + 1024 * count, .size = 2 * MIB - 1024 * count};
    for (size_t i = 0; i < 2; i++) {
        start->other[i] = whole_block(A + (i ? distance : 4 * MIB), 2 * MIB);
    }
    for (size_t i = 0; i < 3; i++) {
        start->segments[i] =
            (struct tn_model_segment){.address = i ? start->other[i - 1].address : A,
                                      .total_size = 2 * MIB,
                                      .is_expandable = true,
                                      .blocks = i ? &start->other[i - 1] : start->first,
                                      .block_count = i ? 1 : 2 * count + 1};
    }
}

static void a_start_is_restored_or_allocated_again(void **state)
{
    static const struct trace_row rows[] = {{TN_TRACE_SNAPSHOT, 0, 0, 0}};
    static const uint64_t distances[] = {8 * MIB, 16 * GIB};
    static struct start start;

    (void)state;
    for (size_t i = 0; i < (size_t)4 * BLOCKS; i++) {
        struct made made;
        struct tarn_replay_result result;
        struct tarn_error error = {.text = ""};
        const size_t count = i / 4 + 1;

        start_make(&start, count, i % 4 < 2, distances[i % 2]);
        made_open(&made, rows, 1, start.segments, 3);
        assert_int_equal(made.program.start_segments.count, 3);
        assert_int_equal(run(&made, "expandable_segments:True", 0, &result, &error), TARN_OK);
        assert_false(result.start_failed);
        assert_int_equal(result.stats.by_pool[TARN_STAT_ALLOCATED_BYTES][0].current,
                         4 * MIB + 512 * count);
        assert_int_equal(result.stats.by_pool[TARN_STAT_RESERVED_BYTES][0].current, 6 * MIB);
        assert_true(fail_each(&made, "expandable_segments:True", 0) > 10);
        assert_int_equal(run(&made, "", 2 * MIB, &result, &error), TARN_OK); /* one fits */
        assert_true(result.start_failed);
        made_close(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_may_be_on_the_streams_that_frees_wait_for),
        cmocka_unit_test(every_host_failure_of_a_run_is_reported),
        cmocka_unit_test(a_start_is_restored_or_allocated_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
