/* SPDX-License-Identifier: MIT */
/* backend:cudaMallocAsync on the simulated device, through the public functions. */
#include "support/any_stream.h"
#include "support/test.h"

#include "alloc/engine/allocator.h"
#include "base/lock.h"
#include "support/device_check.h"
#include "support/sim.h"

#include <pthread.h>
#include <string.h>

enum {
    S1 = 1,
    S2 = 2,
    S3 = 3
};

static struct tarn_findings findings;

/* A checked device and an allocator on it; `sim` is the device that takes the controls. */
struct rig {
    struct tarn_device *sim;
    struct tarn_device *device;
    struct tarn_allocator *allocator;
    struct tarn_error error;
};

static void rig_open(struct rig *rig, uint64_t capacity)
{
    struct tarn_config config;

    memset(rig, 0, sizeof *rig);
    findings = (struct tarn_findings)TARN_FINDINGS_INIT;
    rig->sim = sim_open(capacity);
    assert_int_equal(tn_device_check_create(rig->sim, &findings, &rig->device), TARN_OK);
    assert_int_equal(tarn_config_parse("backend:cudaMallocAsync", &config, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_create(rig->device, &config, &rig->allocator, &rig->error),
                     TARN_OK);
}

static void expect_clean(void)
{
    if (findings.count != 0) {
        fail_msg("%s", findings.text[0]);
    }
}

static void rig_check(struct rig *rig)
{
    (void)tarn_allocator_check(rig->allocator, &findings);
    (void)tn_sim_check(tn_sim_from(rig->sim), &findings);
    expect_clean();
}

static void rig_close(struct rig *rig)
{
    rig_check(rig);
    tarn_allocator_destroy(rig->allocator);
    assert_int_equal(sim_counters(rig->sim).used_bytes, 0);
    assert_int_equal(sim_counters(rig->sim).live_events, 0);
    assert_int_equal(sim_counters(rig->sim).live_streams, 0);
    tarn_device_close(rig->device);
    expect_clean();
}

static tarn_ptr take(struct rig *rig, uint64_t size, tarn_stream stream)
{
    tarn_ptr ptr = 0;

    assert_int_equal(tarn_allocator_alloc(rig->allocator, size, stream, &ptr, &rig->error),
                     TARN_OK);
    assert_true(ptr != 0);
    return ptr;
}

static void give(struct rig *rig, tarn_ptr ptr)
{
    assert_int_equal(tarn_allocator_free(rig->allocator, ptr, &rig->error), TARN_OK);
}

static void use(struct rig *rig, tarn_ptr ptr, tarn_stream stream)
{
    assert_int_equal(tarn_allocator_record_stream(rig->allocator, ptr, stream, &rig->error),
                     TARN_OK);
}

static struct tarn_stat stat_of(struct rig *rig, enum tarn_stat_kind kind)
{
    struct tarn_stats stats = {.struct_size = sizeof stats};

    tarn_allocator_get_stats(rig->allocator, &stats);
    return stats.by_pool[kind][TARN_STAT_ALL];
}

static void expect_error(const struct rig *rig, enum tarn_status st, enum tarn_status wanted,
                         const char *text)
{
    assert_int_equal(st, wanted);
    assert_int_equal(rig->error.status, wanted);
    assert_string_equal(rig->error.text, text);
}

static void begin(struct rig *rig)
{
    assert_int_equal(tarn_allocator_begin_pool(rig->allocator, (struct tarn_pool_id){0, 1},
                                               any_stream, NULL, &rig->error),
                     TARN_OK);
}

static void end(struct rig *rig)
{
    assert_int_equal(
        tarn_allocator_end_pool(rig->allocator, (struct tarn_pool_id){0, 1}, &rig->error), TARN_OK);
}

/* ---- cases ---------------------------------------------------------------------------------- */

static void counts_what_the_pool_says(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB);
    const tarn_ptr a = take(&rig, 1000, S1);
    const tarn_ptr b = take(&rig, 40 * MIB, S1);
    tarn_ptr none = 5;
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 0, S1, &none, NULL), TARN_OK);
    assert_int_equal(none, 0);
    give(&rig, b);
    assert_int_equal(stat_of(&rig, TARN_STAT_ALLOCATED_BYTES).current, 1000);
    assert_int_equal(stat_of(&rig, TARN_STAT_ALLOCATED_BYTES).peak, 1000 + 40 * MIB);
    assert_int_equal(stat_of(&rig, TARN_STAT_ACTIVE_BYTES).peak, 1000 + 40 * MIB);
    assert_int_equal(stat_of(&rig, TARN_STAT_RESERVED_BYTES).current, 96 * MIB);
    assert_int_equal(stat_of(&rig, TARN_STAT_RESERVED_BYTES).allocated, 0);
    assert_int_equal(stat_of(&rig, TARN_STAT_ALLOCATION).current, 0);
    assert_int_equal(stat_of(&rig, TARN_STAT_REQUESTED_BYTES).peak, 0);
    tarn_allocator_reset_peak_stats(rig.allocator);
    tarn_allocator_reset_accumulated_stats(rig.allocator);
    assert_int_equal(stat_of(&rig, TARN_STAT_ALLOCATED_BYTES).peak, 1000);
    assert_int_equal(tarn_allocator_empty_cache(rig.allocator, &rig.error), TARN_OK);
    assert_int_equal(stat_of(&rig, TARN_STAT_RESERVED_BYTES).current, 32 * MIB);
    give(&rig, a);
    rig_close(&rig);
}

static void reuse_follows_the_streams(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB);
    const tarn_ptr a = take(&rig, 32 * MIB, S1);
    assert_int_equal(tarn_sim_enqueue_ns(rig.sim, S1, 100), TARN_OK);
    give(&rig, a);
    const tarn_ptr other = take(&rig, 32 * MIB, S2);
    assert_true(other != a); /* S1 has not got there */
    const tarn_ptr same = take(&rig, 32 * MIB, S1);
    assert_true(same == a);
    give(&rig, same);
    tarn_sim_advance_ns(rig.sim, 100);
    assert_true(take(&rig, 32 * MIB, S2) == a);
    rig_close(&rig);
}

static void recorded_streams_are_waited_for(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB);
    const tarn_ptr a = take(&rig, 32 * MIB, S1);
    use(&rig, a, S1); /* its own: no effect */
    assert_int_equal(sim_counters(rig.sim).live_streams, 0);
    use(&rig, a, S2);
    use(&rig, a, S3);
    use(&rig, a, S2);
    assert_int_equal(sim_counters(rig.sim).live_streams, 1);
    assert_int_equal(tarn_sim_enqueue_ns(rig.sim, S2, 100), TARN_OK);
    assert_int_equal(tarn_sim_block_stream(rig.sim, S3), TARN_OK);
    give(&rig, a);
    assert_int_equal(sim_counters(rig.sim).calls[TARN_SIM_STREAM_WAIT_EVENT], 3);
    const tarn_ptr b = take(&rig, 32 * MIB, S1);
    assert_true(b != a); /* not even on its own stream */
    tarn_sim_advance_ns(rig.sim, 100);
    const tarn_ptr c = take(&rig, 32 * MIB, S1);
    assert_true(c != a); /* S3 is busy */
    assert_int_equal(tarn_sim_unblock_stream(rig.sim, S3), TARN_OK);
    assert_true(take(&rig, 32 * MIB, S1) == a);
    use(&rig, 0, S2);
    rig_close(&rig);
}

/* A block is not given back before all the streams that use it are joined. */
static void a_free_fails_with_the_first_stream_that_is_not_joined(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB);
    const tarn_ptr a = take(&rig, 32 * MIB, S1);
    use(&rig, a, S2);
    use(&rig, a, S3);
    assert_int_equal(tarn_sim_block_stream(rig.sim, S2), TARN_OK);
    for (uint64_t nth = 1; nth <= 3; nth++) { /* S1, S2, S3 */
        tarn_sim_fail_nth(rig.sim, TARN_SIM_EVENT_RECORD, nth, TARN_ERR_DEVICE);
        assert_int_equal(tarn_allocator_free(rig.allocator, a, &rig.error), TARN_ERR_DEVICE);
        assert_non_null(strstr(rig.error.text, "freeing memory on device 0 failed"));
        assert_int_equal(stat_of(&rig, TARN_STAT_ALLOCATED_BYTES).current, 32 * MIB);
    }
    give(&rig, a);
    assert_int_equal(tarn_sim_unblock_stream(rig.sim, S2), TARN_OK);
    rig_close(&rig);
}

/* A use that could not be recorded is none. */
static void a_use_that_fails_is_not_recorded(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB);
    const tarn_ptr a = take(&rig, 1000, S1);
    const uint64_t recorded = sim_counters(rig.sim).calls[TARN_SIM_EVENT_RECORD];
    tarn_sim_fail_nth(rig.sim, TARN_SIM_STREAM_CREATE, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_record_stream(rig.allocator, a, S2, &rig.error),
                     TARN_ERR_DEVICE);
    rig_check(&rig);
    tarn_sim_fail_nth(rig.sim, TARN_SIM_EVENT_CREATE, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_record_stream(rig.allocator, a, S2, &rig.error),
                     TARN_ERR_DEVICE);
    rig_check(&rig);
    use(&rig, take(&rig, 1000, S1), S3); /* creates the joining stream */
    tarn_host_fail_nth(1);
    assert_int_equal(tarn_allocator_record_stream(rig.allocator, a, S2, &rig.error),
                     TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    give(&rig, a);
    assert_int_equal(sim_counters(rig.sim).calls[TARN_SIM_EVENT_RECORD], recorded);
    rig_close(&rig);
}

/* The checker counts them all, and destroying gives all of them back. */
static void many_blocks(void **state)
{
    struct rig rig;
    tarn_ptr ptr[500];

    (void)state;
    rig_open(&rig, GIB);
    for (unsigned i = 0; i < 500; i++) {
        ptr[i] = take(&rig, 1000 + i, S1);
    }
    rig_check(&rig);
    for (unsigned i = 0; i < 500; i += 7) {
        give(&rig, ptr[i]);
        rig_check(&rig);
    }
    for (unsigned i = 0; i < 500; i += 7) {
        (void)take(&rig, 1000 + i, S1);
    }
    rig_close(&rig);
}

/* A lock of a table of allocators may be held around every call. */
static void its_lock_is_behind_those_of_tables(void **state)
{
    struct tn_lock table;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB);
    tn_lock_init(&table, TN_LOCK_DEVICES);
    tn_lock_acquire(&table);
    give(&rig, take(&rig, 1000, S1));
    tn_lock_release(&table);
    tn_lock_fini(&table);
    rig_close(&rig);
}

/* Findings of others are not its own. */
static void the_checker_counts_what_it_finds(void **state)
{
    struct tarn_findings of_others = TARN_FINDINGS_INIT;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB);
    of_others.count = 3;
    assert_int_equal(tarn_allocator_check(rig.allocator, &of_others), 0);
    assert_int_equal(of_others.count, 3);
    rig_close(&rig);
}

static void captures_put_frees_off(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB);
    const tarn_ptr before = take(&rig, 1000, S1);
    const tarn_ptr used = take(&rig, 500, S1);
    use(&rig, used, S2);
    begin(&rig);
    const tarn_ptr during = take(&rig, 2000, S1);
    give(&rig, before);
    give(&rig, used);
    expect_error(&rig, tarn_allocator_free(rig.allocator, before, &rig.error),
                 TARN_ERR_INVALID_POINTER, rig.error.text);
    assert_int_equal(tarn_allocator_record_stream(rig.allocator, before, S2, &rig.error),
                     TARN_ERR_INVALID_POINTER);
    rig_check(&rig);
    assert_int_equal(stat_of(&rig, TARN_STAT_ALLOCATED_BYTES).current, 3500);
    give(&rig, during); /* at once */
    assert_int_equal(stat_of(&rig, TARN_STAT_ALLOCATED_BYTES).current, 1500);
    const tarn_ptr kept = take(&rig, 10, S1); /* frees nothing yet */
    assert_int_equal(stat_of(&rig, TARN_STAT_ALLOCATED_BYTES).current, 1510);
    end(&rig);
    assert_int_equal(stat_of(&rig, TARN_STAT_ALLOCATED_BYTES).current, 1510);
    const tarn_ptr after = take(&rig, 20, S1);
    assert_int_equal(stat_of(&rig, TARN_STAT_ALLOCATED_BYTES).current, 30);
    give(&rig, kept);
    give(&rig, after);
    rig_close(&rig);
}

static void empty_cache_frees_what_was_put_off(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB);
    const tarn_ptr a = take(&rig, 1000, S1);
    begin(&rig);
    give(&rig, a);
    end(&rig);
    tarn_sim_fail_nth(rig.sim, TARN_SIM_POOL_FREE, 1, TARN_ERR_DEVICE);
    expect_error(&rig, tarn_allocator_empty_cache(rig.allocator, &rig.error), TARN_ERR_DEVICE,
                 "freeing memory on device 0 failed: planned failure of pool_free, call 1");
    tarn_ptr next = 0;

    tarn_sim_fail_nth(rig.sim, TARN_SIM_POOL_FREE, 1, TARN_ERR_DEVICE);
    expect_error(&rig, tarn_allocator_alloc(rig.allocator, 1000, S1, &next, &rig.error),
                 TARN_ERR_DEVICE,
                 "freeing memory on device 0 failed: planned failure of pool_free, call 2");
    assert_int_equal(next, 0);
    rig_check(&rig);
    assert_int_equal(
        tarn_allocator_empty_pool(rig.allocator, (struct tarn_pool_id){0, 1}, &rig.error), TARN_OK);
    assert_int_equal(sim_counters(rig.sim).used_bytes, 0);
    rig_close(&rig);
}

/* What is freed when the device gets there is free then. */
static void empty_cache_waits_for_the_device(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB);
    const tarn_ptr a = take(&rig, 32 * MIB, S1);
    assert_int_equal(tarn_sim_enqueue_ns(rig.sim, S1, 100), TARN_OK);
    give(&rig, a);
    tarn_sim_fail_nth(rig.sim, TARN_SIM_DEVICE_WAIT, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_empty_cache(rig.allocator, &rig.error), TARN_ERR_DEVICE);
    assert_non_null(strstr(rig.error.text, "releasing cached memory on device 0 failed"));
    assert_int_equal(stat_of(&rig, TARN_STAT_RESERVED_BYTES).current, 32 * MIB);
    assert_int_equal(tarn_allocator_empty_cache(rig.allocator, &rig.error), TARN_OK);
    assert_int_equal(stat_of(&rig, TARN_STAT_RESERVED_BYTES).current, 0);
    rig_close(&rig);
}

/* The pool decides by the order of the calls: it must be PyTorch's, who frees in the order of the
 * frees that were put off. */
static void frees_put_off_keep_their_order(void **state)
{
    struct rig rig;
    tarn_ptr next = 0;

    (void)state;
    rig_open(&rig, GIB);
    const tarn_ptr first = take(&rig, 1000, S1);
    const tarn_ptr second = take(&rig, 500, S1);
    begin(&rig);
    give(&rig, first);
    give(&rig, second);
    end(&rig);
    tarn_sim_fail_nth(rig.sim, TARN_SIM_POOL_FREE, 2, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 10, S1, &next, &rig.error),
                     TARN_ERR_DEVICE);
    assert_int_equal(stat_of(&rig, TARN_STAT_ALLOCATED_BYTES).current, 500);
    rig_check(&rig);
    const tarn_ptr third = take(&rig, 10, S1);
    assert_int_equal(stat_of(&rig, TARN_STAT_ALLOCATED_BYTES).current, 10);
    begin(&rig);
    give(&rig, third);
    end(&rig);
    assert_int_equal(tarn_allocator_empty_cache(rig.allocator, &rig.error), TARN_OK);
    assert_int_equal(sim_counters(rig.sim).used_bytes, 0);
    rig_close(&rig);
}

static void destroying_gives_back_what_was_put_off(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB);
    const tarn_ptr a = take(&rig, 1000, S1);
    (void)take(&rig, 1000, S1);
    use(&rig, a, S2);
    begin(&rig);
    give(&rig, a);
    rig_close(&rig);
}

/* What frees were put in order behind must be done before the pool gives its memory back. */
static void destroying_waits_for_the_device(void **state)
{
    struct rig rig;
    tarn_ptr ptr = 0;

    (void)state;
    rig_open(&rig, GIB);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, MIB, S1, &ptr, &rig.error), TARN_OK);
    const uint64_t waits = sim_counters(rig.sim).calls[TARN_SIM_DEVICE_WAIT];

    rig_check(&rig);
    tarn_allocator_destroy(rig.allocator);
    assert_int_equal(sim_counters(rig.sim).calls[TARN_SIM_DEVICE_WAIT], waits + 1);
    assert_int_equal(sim_counters(rig.sim).used_bytes, 0);
    tarn_device_close(rig.device);
    expect_clean();
}

static void one_capture_at_a_time(void **state)
{
    const struct tarn_pool_id id = {0, 1};
    const struct tarn_pool_id other = {0, 2};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB);
    expect_error(&rig, tarn_allocator_end_pool(rig.allocator, id, &rig.error), TARN_ERR_STATE,
                 "CudaMallocAsync::notifyCaptureAboutToEnd called, but "
                 "CudaMallocAsync::capture_underway is false.");
    begin(&rig);
    expect_error(&rig,
                 tarn_allocator_begin_pool(rig.allocator, other, any_stream, NULL, &rig.error),
                 TARN_ERR_STATE, "Only one capture at a time is allowed in a process.");
    end(&rig);
    assert_int_equal(tarn_allocator_release_pool(rig.allocator, id, &rig.error), TARN_OK);
    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, id, NULL, NULL, &rig.error),
                     TARN_ERR_INVALID_ARGUMENT);
    rig_close(&rig);
}

static void join_frees(struct rig *rig, tarn_stream stream)
{
    assert_int_equal(tarn_allocator_join_frees(rig->allocator, stream, &rig->error), TARN_OK);
}

static uint64_t calls_of(const struct rig *rig, enum tarn_sim_call call)
{
    return sim_counters(rig->sim).calls[call];
}

static void a_capture_waits_for_what_it_freed(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB);
    const tarn_ptr outside = take(&rig, 1000, S3);
    join_frees(&rig, S1); /* nothing to wait for */
    begin(&rig);
    const tarn_ptr own = take(&rig, 1000, S1);
    const tarn_ptr other = take(&rig, 1000, S2);
    const tarn_ptr again = take(&rig, 1000, S2);
    const tarn_ptr used = take(&rig, 1000, S1);
    use(&rig, used, S3);
    give(&rig, own);
    give(&rig, other);
    give(&rig, again);
    give(&rig, outside); /* later */
    give(&rig, used);    /* on the joining stream, behind S1 and S3 */
    end(&rig);
    assert_int_equal(tarn_sim_block_stream(rig.sim, S2), TARN_OK);
    const uint64_t recorded = calls_of(&rig, TARN_SIM_EVENT_RECORD);
    const uint64_t waits = calls_of(&rig, TARN_SIM_STREAM_WAIT_EVENT);
    tarn_sim_fail_nth(rig.sim, TARN_SIM_STREAM_WAIT_EVENT, 2, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_join_frees(rig.allocator, S1, &rig.error), TARN_ERR_DEVICE);
    assert_non_null(strstr(rig.error.text, "joining the streams of a capture on device 0 failed"));
    join_frees(&rig, S1); /* S1, S2 and the joining stream, from the start */
    assert_int_equal(calls_of(&rig, TARN_SIM_EVENT_RECORD), recorded + 2 + 3);
    assert_int_equal(calls_of(&rig, TARN_SIM_STREAM_WAIT_EVENT), waits + 2 + 3);
    const tarn_ptr behind = take(&rig, 40 * MIB, S1);
    give(&rig, behind);
    const tarn_ptr apart = take(&rig, 40 * MIB, S3); /* S1 is not done before S2 is */
    assert_true(apart != behind);
    give(&rig, apart);
    join_frees(&rig, S1); /* nothing is left */
    assert_int_equal(calls_of(&rig, TARN_SIM_STREAM_WAIT_EVENT), waits + 2 + 3);
    rig_close(&rig);
}

/* A free needs room to record its stream; without it the block stays. */
static void a_captured_free_needs_host_memory(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB);
    begin(&rig);
    const tarn_ptr a = take(&rig, 1000, S1);
    tarn_host_fail_nth(1);
    assert_int_equal(tarn_allocator_free(rig.allocator, a, &rig.error), TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    assert_int_equal(stat_of(&rig, TARN_STAT_ALLOCATED_BYTES).current, 1000);
    give(&rig, a);
    end(&rig);
    rig_close(&rig);
}

/* Only what was freed needs a stream and an event to join it. */
static void joining_needs_a_stream(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB);
    join_frees(&rig, S1);
    assert_int_equal(calls_of(&rig, TARN_SIM_STREAM_CREATE), 0);
    begin(&rig);
    give(&rig, take(&rig, 1000, S2));
    end(&rig);
    const uint64_t recorded = calls_of(&rig, TARN_SIM_EVENT_RECORD);
    tarn_sim_fail_nth(rig.sim, TARN_SIM_STREAM_CREATE, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_join_frees(rig.allocator, S1, &rig.error), TARN_ERR_DEVICE);
    assert_non_null(strstr(rig.error.text, "creating a stream on device 0 failed"));
    assert_int_equal(calls_of(&rig, TARN_SIM_EVENT_RECORD), recorded);
    join_frees(&rig, S1);
    assert_int_equal(calls_of(&rig, TARN_SIM_EVENT_RECORD), recorded + 1);
    rig_close(&rig);
}

/* The next capture does not wait for what an earlier one freed. */
static void a_capture_starts_with_nothing_freed(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB);
    begin(&rig);
    give(&rig, take(&rig, 1000, S2));
    end(&rig);
    begin(&rig);
    end(&rig);
    join_frees(&rig, S1);
    assert_int_equal(calls_of(&rig, TARN_SIM_STREAM_WAIT_EVENT), 0);
    rig_close(&rig);
}

static void limit_counts_what_is_out(void **state)
{
    struct rig rig;
    tarn_ptr ptr = 0;

    (void)state;
    rig_open(&rig, GIB);
    assert_true(tarn_allocator_get_limit(rig.allocator) == TARN_SIZE_UNLIMITED);
    assert_int_equal(tarn_allocator_set_memory_fraction(rig.allocator, 0.25, &rig.error), TARN_OK);
    assert_int_equal(tarn_allocator_get_limit(rig.allocator), 256 * MIB);
    const tarn_ptr a = take(&rig, 255 * MIB, S1);
    const tarn_ptr b = take(&rig, MIB, S1);
    expect_error(&rig, tarn_allocator_alloc(rig.allocator, 1, S1, &ptr, &rig.error),
                 TARN_ERR_OUT_OF_MEMORY,
                 "Allocation on device 0 would exceed allowed memory. (out of memory)\n"
                 "Currently allocated     : 256.00 MiB\n"
                 "Requested               : 1 bytes\n"
                 "Device limit            : 1024.00 MiB\n"
                 "Free (according to CUDA): 768.00 MiB\n"
                 "PyTorch limit (set by user-supplied memory fraction)\n"
                 "                        : 256.00 MiB");
    assert_int_equal(ptr, 0);
    give(&rig, b);
    give(&rig, take(&rig, MIB, S1));
    assert_int_equal(tarn_allocator_set_memory_fraction(rig.allocator, 0.0, &rig.error), TARN_OK);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 1, S1, &ptr, &rig.error),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(tarn_allocator_set_memory_fraction(rig.allocator, 1.0, &rig.error), TARN_OK);
    assert_int_equal(tarn_allocator_get_limit(rig.allocator), GIB);
    expect_error(&rig, tarn_allocator_set_memory_fraction(rig.allocator, 1.5, &rig.error),
                 TARN_ERR_INVALID_ARGUMENT, "invalid fraction:1.5. Please set within (0, 1).");
    give(&rig, a);
    rig_close(&rig);
}

static void full_devices_say_so(void **state)
{
    struct rig rig;
    tarn_ptr ptr = 0;

    (void)state;
    rig_open(&rig, 64 * MIB);
    const tarn_ptr a = take(&rig, 33 * MIB, S1);
    expect_error(&rig, tarn_allocator_alloc(rig.allocator, 40 * MIB, S1, &ptr, &rig.error),
                 TARN_ERR_OUT_OF_MEMORY,
                 "Allocation on device 0 would exceed allowed memory. (out of memory)\n"
                 "Currently allocated     : 33.00 MiB\n"
                 "Requested               : 40.00 MiB\n"
                 "Device limit            : 64.00 MiB\n"
                 "Free (according to CUDA): 0 bytes\n"
                 "PyTorch limit (set by user-supplied memory fraction)\n"
                 "                        : 17179869184.00 GiB");
    expect_error(&rig, tarn_allocator_alloc(rig.allocator, UINT64_C(1) << 60, S1, &ptr, &rig.error),
                 TARN_ERR_OUT_OF_MEMORY,
                 "CUDA out of memory. Tried to allocate more than 1EB memory.");
    /* The message stands also where the device does not tell how much is free. */
    tarn_sim_fail_nth(rig.sim, TARN_SIM_MEMORY_INFO, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 40 * MIB, S1, &ptr, &rig.error),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_non_null(strstr(rig.error.text, "Device limit            : 64.00 MiB\n"
                                           "Free (according to CUDA): 0 bytes\n"));
    give(&rig, a);
    give(&rig, take(&rig, 40 * MIB, S1));
    rig_close(&rig);
}

static void wrong_pointers_are_named(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB);
    const tarn_ptr a = take(&rig, 1000, S1);
    tarn_ptr base = 0;
    uint64_t size = 0;
    assert_int_equal(tarn_allocator_base_allocation(rig.allocator, a, &base, &size, &rig.error),
                     TARN_OK);
    assert_true(base == a);
    assert_int_equal(size, 1000);
    assert_int_equal(tarn_allocator_base_allocation(rig.allocator, a, NULL, NULL, &rig.error),
                     TARN_OK);
    size = 0;
    assert_int_equal(tarn_allocator_block_size(rig.allocator, a, &size, &rig.error), TARN_OK);
    assert_int_equal(size, 1000);
    give(&rig, a);
    const char *text = "invalid device pointer: 0x7f0000000000 is not allocated here (never "
                       "allocated, freed already, or inside a block)";
    expect_error(&rig, tarn_allocator_free(rig.allocator, a, &rig.error), TARN_ERR_INVALID_POINTER,
                 text);
    expect_error(&rig, tarn_allocator_record_stream(rig.allocator, a, S2, &rig.error),
                 TARN_ERR_INVALID_POINTER, text);
    expect_error(&rig, tarn_allocator_base_allocation(rig.allocator, a, NULL, NULL, &rig.error),
                 TARN_ERR_INVALID_POINTER, text);
    give(&rig, 0);
    rig_close(&rig);
}

static void cache_info_tries(void **state)
{
    struct rig rig;
    uint64_t largest = 0;

    (void)state;
    rig_open(&rig, 256 * MIB);
    const tarn_ptr a = take(&rig, 100 * MIB, S1); /* 128 MiB reserved, 128 free */
    assert_int_equal(tarn_allocator_cache_info(rig.allocator, &largest, &rig.error), TARN_OK);
    assert_int_equal(largest, 128 * MIB);
    assert_int_equal(tarn_allocator_set_memory_fraction(rig.allocator, 0.5, &rig.error), TARN_OK);
    assert_int_equal(tarn_allocator_cache_info(rig.allocator, &largest, &rig.error), TARN_OK);
    assert_int_equal(largest, 0); /* the trial left nothing free */
    assert_int_equal(tarn_allocator_empty_cache(rig.allocator, &rig.error), TARN_OK);
    assert_int_equal(tarn_allocator_cache_info(rig.allocator, &largest, &rig.error), TARN_OK);
    assert_int_equal(largest, 28 * MIB);
    /* With more allocated than is allowed there is nothing to try. */
    assert_int_equal(tarn_allocator_set_memory_fraction(rig.allocator, 0.25, &rig.error), TARN_OK);
    assert_int_equal(tarn_allocator_cache_info(rig.allocator, &largest, &rig.error), TARN_OK);
    assert_int_equal(largest, 0);
    tarn_sim_fail_nth(rig.sim, TARN_SIM_MEMORY_INFO, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_cache_info(rig.allocator, &largest, &rig.error),
                     TARN_ERR_DEVICE);
    give(&rig, a);
    rig_close(&rig);
}

/* The trial is on the default stream: what a stream still uses is not to be had. */
static void cache_info_tries_on_the_default_stream(void **state)
{
    struct rig rig;
    uint64_t largest = 0;

    (void)state;
    rig_open(&rig, 256 * MIB);
    const tarn_ptr a = take(&rig, 128 * MIB, S1);
    assert_int_equal(tarn_sim_block_stream(rig.sim, S1), TARN_OK);
    give(&rig, a);
    assert_int_equal(tarn_allocator_cache_info(rig.allocator, &largest, &rig.error), TARN_OK);
    assert_int_equal(largest, 128 * MIB);
    assert_int_equal(stat_of(&rig, TARN_STAT_RESERVED_BYTES).current, 256 * MIB);
    assert_int_equal(tarn_sim_unblock_stream(rig.sim, S1), TARN_OK);
    rig_close(&rig);
}

/* The trial allocation is a block like others: it needs a place in the map. */
static void cache_info_needs_host_memory(void **state)
{
    const uint64_t live = tarn_host_get_usage().live_bytes;
    enum tarn_status st = TARN_ERR_HOST_MEMORY;
    uint64_t n = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, 256 * MIB);
    while (st == TARN_ERR_HOST_MEMORY) {
        uint64_t largest = 0;

        tarn_host_fail_nth(++n);
        st = tarn_allocator_cache_info(rig.allocator, &largest, &rig.error);
        tarn_host_fail_nth(0);
        assert_true(st == TARN_OK || largest == 0);
        rig_check(&rig);
    }
    assert_int_equal(st, TARN_OK);
    assert_true(n >= 3); /* the block and its place */
    assert_int_equal(tarn_allocator_empty_cache(rig.allocator, &rig.error), TARN_OK);
    assert_int_equal(sim_counters(rig.sim).used_bytes, 0);
    rig_close(&rig);
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
}

static void what_is_not_supported_says_so(void **state)
{
    const struct tarn_walker walker = {0};
    const struct tarn_sink sink = {0};
    const struct tarn_pool_id id = {0, 1};
    struct tarn_checkpoint *checkpoint = NULL;
    struct tarn_checkpoint_delta delta = {0};
    bool live = false;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB);
    struct tarn_allocator *allocator = rig.allocator;
    struct tarn_error *error = &rig.error;
    expect_error(&rig, tn_allocator_walk(allocator, &walker, error), TARN_ERR_NOT_SUPPORTED,
                 "Calling snapshot with backend:cudaMallocAsync is not meaningful. (For "
                 "backend:native, snapshot returns a detailed summary of all blocks tracked by the "
                 "allocator, but the cudaMallocAsync backend does not track individual blocks.)");
    assert_int_equal(tarn_allocator_walk(allocator, &walker), TARN_ERR_NOT_SUPPORTED);
    assert_int_equal(tarn_allocator_add_sink(allocator, &sink, NULL), TARN_ERR_NOT_SUPPORTED);
    expect_error(&rig, tarn_allocator_add_sink(allocator, &sink, error), TARN_ERR_NOT_SUPPORTED,
                 "cudaMallocAsync does not yet support recordHistory. If you need it, please file "
                 "an issue describing your use case.");
    tn_allocator_mark_snapshot(allocator);
    expect_error(&rig, tarn_allocator_get_checkpoint(allocator, id, &checkpoint, error),
                 TARN_ERR_NOT_SUPPORTED,
                 "cudaMallocAsync does not yet support getCheckpointState. If you need it, please "
                 "file an issue describing your use case.");
    assert_int_equal(tarn_allocator_set_checkpoint(allocator, checkpoint, &delta, error),
                     TARN_ERR_NOT_SUPPORTED);
    assert_int_equal(tarn_allocator_check_pool_live(allocator, id, NULL, 0, &live, error),
                     TARN_ERR_NOT_SUPPORTED);
    assert_int_equal(tarn_allocator_acquire_pool(allocator, id, error), TARN_ERR_NOT_SUPPORTED);
    assert_int_equal(tarn_allocator_pool_use_count(allocator, id), 0);
    assert_int_equal(tarn_allocator_set_pool_use_on_oom(allocator, id, true),
                     TARN_ERR_NOT_SUPPORTED);
    assert_int_equal(tarn_allocator_set_pool_no_split(allocator, id, true), TARN_ERR_NOT_SUPPORTED);
    assert_int_equal(tarn_allocator_add_oom_observer(allocator, NULL, NULL),
                     TARN_ERR_NOT_SUPPORTED);
    assert_int_equal(tarn_allocator_add_memory_callback(allocator, NULL, NULL),
                     TARN_ERR_NOT_SUPPORTED);
    assert_int_equal(tarn_allocator_set_enabled(allocator, false, error), TARN_ERR_NOT_SUPPORTED);
    assert_int_equal(tarn_allocator_set_enabled(allocator, true, error), TARN_OK);
    assert_true(tarn_allocator_is_enabled(allocator));
    rig_close(&rig);
}

static void the_backend_cannot_change(void **state)
{
    struct tarn_config config;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB);
    tarn_allocator_get_config(rig.allocator, &config);
    assert_int_equal(config.backend, TARN_BACKEND_ASYNC);
    assert_int_equal(tarn_config_update("max_split_size_mb:40", &config, &rig.error), TARN_OK);
    assert_int_equal(tarn_allocator_set_config(rig.allocator, &config, &rig.error), TARN_OK);
    config.backend = TARN_BACKEND_NATIVE;
    expect_error(&rig, tarn_allocator_set_config(rig.allocator, &config, &rig.error),
                 TARN_ERR_CONFIG,
                 "Allocator backend parsed at runtime != allocator backend parsed at load time, "
                 "native != cudaMallocAsync");
    tarn_allocator_get_config(rig.allocator, &config);
    assert_int_equal(config.backend, TARN_BACKEND_ASYNC);
    assert_int_equal(config.max_split_size, 40 * MIB);
    rig_close(&rig);
}

/* ---- failures ------------------------------------------------------------------------------- */

static bool alloc_and_free(struct rig *rig, tarn_stream stream)
{
    tarn_ptr ptr = 0;
    bool good = tarn_allocator_alloc(rig->allocator, 1000, stream, &ptr, &rig->error) == TARN_OK;

    if (good && tarn_allocator_free(rig->allocator, ptr, &rig->error) != TARN_OK) {
        good = false;
        rig_check(rig);
        give(rig, ptr);
    }
    return good;
}

/* Uses everything that can fail; true when nothing failed. Frees are tried again: a failed one must
 * have left the block. */
static bool scenario(struct rig *rig)
{
    struct tarn_allocator *allocator = rig->allocator;
    tarn_ptr ptr[3] = {0};
    uint64_t largest = 0;
    bool good = true;

    for (int i = 0; i < 3; i++) {
        good &= tarn_allocator_alloc(allocator, 1000, S1, &ptr[i], &rig->error) == TARN_OK;
    }
    for (tarn_stream stream = S2; ptr[0] && stream < S2 + 5; stream++) {
        good &= tarn_allocator_record_stream(allocator, ptr[0], stream, &rig->error) == TARN_OK;
    }
    good &= tarn_allocator_set_memory_fraction(allocator, 1.0, &rig->error) == TARN_OK;
    good &= tarn_allocator_cache_info(allocator, &largest, &rig->error) == TARN_OK;
    begin(rig);
    if (ptr[2]) {
        give(rig, ptr[2]);
    }
    for (tarn_stream stream = S1; stream < S1 + 5; stream++) {
        good &= alloc_and_free(rig, stream);
    }
    end(rig);
    good &= tarn_allocator_join_frees(allocator, S1, &rig->error) == TARN_OK;
    for (int i = 0; i < 2; i++) {
        if (ptr[i] && tarn_allocator_free(allocator, ptr[i], &rig->error) != TARN_OK) {
            good = false;
            rig_check(rig);
            give(rig, ptr[i]);
        }
    }
    good &= tarn_allocator_empty_cache(allocator, &rig->error) == TARN_OK;
    rig_check(rig);
    return good;
}

static void nth_device_call_fails_without_leak(void **state)
{
    bool good = false;
    uint64_t n = 0;

    (void)state;
    while (!good) {
        struct rig rig;

        rig_open(&rig, GIB);
        tarn_sim_fail_nth(rig.sim, TARN_SIM_ANY, ++n, TARN_ERR_DEVICE);
        good = scenario(&rig);
        tarn_sim_fail_nth(rig.sim, TARN_SIM_ANY, 0, TARN_OK);
        assert_int_equal(scenario(&rig), true);
        assert_int_equal(sim_counters(rig.sim).used_bytes, 0);
        rig_close(&rig);
    }
    assert_true(n > 20);
}

static void nth_host_allocation_fails_without_leak(void **state)
{
    bool good = false;
    uint64_t n = 0;

    (void)state;
    while (!good) {
        const struct tarn_host_usage before = tarn_host_get_usage();
        struct rig rig;

        rig_open(&rig, GIB);
        tarn_host_fail_nth(++n);
        good = scenario(&rig);
        tarn_host_fail_nth(0);
        assert_int_equal(scenario(&rig), true);
        rig_close(&rig);
        assert_int_equal(tarn_host_get_usage().live_bytes, before.live_bytes);
        assert_int_equal(tarn_host_get_usage().live_count, before.live_count);
    }
    assert_true(n > 10);
}

static void creating_fails_without_leak(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    const struct tarn_host_usage before = tarn_host_get_usage();
    struct tarn_config config;
    struct tarn_allocator *allocator = NULL;

    (void)state;
    assert_int_equal(tarn_config_parse("backend:cudaMallocAsync", &config, NULL), TARN_OK);
    tarn_host_fail_nth(1);
    assert_int_equal(tarn_allocator_create(device, &config, &allocator, NULL),
                     TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    assert_null(allocator);
    assert_int_equal(tarn_host_get_usage().live_bytes, before.live_bytes);
    sim_close(device);
}

/* Freeing a block that one stream used needs no host memory of the engine's; of the simulated
 * device's neither. */
static void freeing_needs_no_host_memory(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB);
    const tarn_ptr a = take(&rig, 1000, S1);
    const tarn_ptr b = take(&rig, 1000, S1);
    use(&rig, b, S2);
    assert_int_equal(tarn_sim_enqueue_ns(rig.sim, S1, 0), TARN_OK); /* the streams are known */
    assert_int_equal(tarn_sim_enqueue_ns(rig.sim, S2, 0), TARN_OK);
    tarn_host_fail_nth(1);
    give(&rig, a);
    give(&rig, b);
    tarn_host_fail_nth(0);
    rig_close(&rig);
}

/* ---- threads -------------------------------------------------------------------------------- */

enum {
    THREADS = 4,
    ROUNDS = 400
};

static void *thread_body(void *argument)
{
    struct rig *rig = argument;
    struct tarn_allocator *allocator = rig->allocator;
    struct tarn_stats stats = {.struct_size = sizeof stats};
    tarn_ptr kept[8] = {0};

    for (unsigned i = 0; i < ROUNDS; i++) {
        tarn_ptr *slot = &kept[i % 8];

        if (*slot && tarn_allocator_free(allocator, *slot, NULL)) {
            return rig;
        }
        if (tarn_allocator_alloc(allocator, 100 + i * 1000, i % 3, slot, NULL) ||
            tarn_allocator_record_stream(allocator, *slot, i % 5, NULL)) {
            return rig;
        }
        tarn_allocator_get_stats(allocator, &stats);
        if (i % 50 == 0 && tarn_allocator_empty_cache(allocator, NULL)) {
            return rig;
        }
        if (i % 16 == 0 &&
            !tarn_allocator_begin_pool(allocator, (struct tarn_pool_id){0, 1}, any_stream, NULL,
                                       NULL) &&
            (tarn_allocator_join_frees(allocator, i % 5, NULL) ||
             tarn_allocator_end_pool(allocator, (struct tarn_pool_id){0, 1}, NULL))) {
            return rig;
        }
    }
    for (int i = 0; i < 8; i++) {
        if (tarn_allocator_free(allocator, kept[i], NULL)) {
            return rig;
        }
    }
    return NULL;
}

static void threads_share_it(void **state)
{
    pthread_t thread[THREADS];
    struct rig rig;

    (void)state;
    rig_open(&rig, 8 * GIB);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, thread_body, &rig), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *result = &rig;

        assert_int_equal(pthread_join(thread[i], &result), 0);
        assert_null(result);
    }
    rig_close(&rig);
}

/* What the device does not tell is 0. */
static void a_device_that_tells_nothing(void **state)
{
    static const enum tarn_sim_call calls[] = {TARN_SIM_POOL_INFO, TARN_SIM_POOL_PEAKS};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB);
    const tarn_ptr ptr = take(&rig, MIB, 0);

    for (size_t i = 0; i < 2; i++) {
        tarn_sim_fail_nth(rig.sim, calls[i], 1, TARN_ERR_DEVICE);
        const struct tarn_stat none = stat_of(&rig, TARN_STAT_RESERVED_BYTES);

        assert_int_equal(none.current, 0);
        assert_int_equal(none.peak, 0);
        assert_true(stat_of(&rig, TARN_STAT_RESERVED_BYTES).current >= (int64_t)MIB);
    }
    give(&rig, ptr);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_what_the_pool_says),
        cmocka_unit_test(reuse_follows_the_streams),
        cmocka_unit_test(recorded_streams_are_waited_for),
        cmocka_unit_test(a_free_fails_with_the_first_stream_that_is_not_joined),
        cmocka_unit_test(a_use_that_fails_is_not_recorded),
        cmocka_unit_test(many_blocks),
        cmocka_unit_test(its_lock_is_behind_those_of_tables),
        cmocka_unit_test(the_checker_counts_what_it_finds),
        cmocka_unit_test(captures_put_frees_off),
        cmocka_unit_test(empty_cache_frees_what_was_put_off),
        cmocka_unit_test(empty_cache_waits_for_the_device),
        cmocka_unit_test(frees_put_off_keep_their_order),
        cmocka_unit_test(destroying_gives_back_what_was_put_off),
        cmocka_unit_test(destroying_waits_for_the_device),
        cmocka_unit_test(one_capture_at_a_time),
        cmocka_unit_test(a_capture_waits_for_what_it_freed),
        cmocka_unit_test(a_captured_free_needs_host_memory),
        cmocka_unit_test(joining_needs_a_stream),
        cmocka_unit_test(a_capture_starts_with_nothing_freed),
        cmocka_unit_test(limit_counts_what_is_out),
        cmocka_unit_test(full_devices_say_so),
        cmocka_unit_test(wrong_pointers_are_named),
        cmocka_unit_test(cache_info_tries),
        cmocka_unit_test(cache_info_tries_on_the_default_stream),
        cmocka_unit_test(cache_info_needs_host_memory),
        cmocka_unit_test(what_is_not_supported_says_so),
        cmocka_unit_test(the_backend_cannot_change),
        cmocka_unit_test(nth_device_call_fails_without_leak),
        cmocka_unit_test(nth_host_allocation_fails_without_leak),
        cmocka_unit_test(creating_fails_without_leak),
        cmocka_unit_test(freeing_needs_no_host_memory),
        cmocka_unit_test(a_device_that_tells_nothing),
        cmocka_unit_test(threads_share_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
