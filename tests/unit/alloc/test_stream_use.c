/* SPDX-License-Identifier: MIT */
/* Blocks used on several streams, through the public interface. Names in comments are PyTorch's. */
#include "support/test.h"

#include "support/rig.h"
#include "tarn/block.h"

static bool any_stream(void *context, tarn_stream stream)
{
    (void)context;
    (void)stream;
    return true;
}

static void block_stream(struct rig *rig, tarn_stream stream)
{
    assert_int_equal(tarn_sim_block_stream(rig->device, stream), TARN_OK);
}

static void unblock_stream(struct rig *rig, tarn_stream stream)
{
    assert_int_equal(tarn_sim_unblock_stream(rig->device, stream), TARN_OK);
}

static void begin_routing(struct rig *rig)
{
    const struct tarn_pool_id id = {0, 1};

    assert_int_equal(tarn_allocator_begin_pool(rig->allocator, id, any_stream, NULL, &rig->error),
                     TARN_OK);
}

static void end_routing(struct rig *rig)
{
    const struct tarn_pool_id id = {0, 1};

    assert_int_equal(tarn_allocator_end_pool(rig->allocator, id, &rig->error), TARN_OK);
}

/* test_record_stream: no reuse while the side stream is busy, reuse afterwards. */
static void a_block_is_not_reused_before_the_other_stream_is_done(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    block_stream(&rig, 1);
    const tarn_ptr a = rig_alloc(&rig, 30 * MIB, 0);

    rig_record(&rig, a, 1);
    rig_free(&rig, a);
    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATION), 0);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 1);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE_BYTES), 30 * MIB);
    const tarn_ptr b = rig_alloc(&rig, 30 * MIB, 0);

    assert_int_not_equal(a, b);
    unblock_stream(&rig, 1);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 2); /* seen by the next allocation */
    assert_int_equal(rig_alloc(&rig, 30 * MIB, 0), a);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 2);
    rig_close(&rig);
}

/* test_record_stream_on_shifted_view: what looks into a block is recorded by the block's address,
 * as PyTorch's tensors do. An address inside is none that was handed out: it is refused and changes
 * nothing, so that the block is reused at once. */
static void a_view_is_recorded_by_its_block(void **state)
{
    (void)state;
    for (int by_block = 0; by_block < 2; by_block++) {
        struct rig rig;

        rig_open(&rig, GIB, "");
        block_stream(&rig, 1);
        const tarn_ptr base = rig_alloc(&rig, 8, 2);
        const tarn_ptr view = base + 20; /* its sixth float */

        assert_int_equal(tarn_allocator_record_stream(rig.allocator, view, 1, &rig.error),
                         TARN_ERR_INVALID_POINTER);
        if (by_block) {
            rig_record(&rig, base, 1);
        }
        rig_free(&rig, base);
        assert_int_equal(rig_alloc(&rig, 8, 2) == base, !by_block);
        rig_close(&rig);
    }
}

static void its_own_stream_needs_no_event(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    block_stream(&rig, 4);
    const tarn_ptr a = rig_alloc(&rig, 30 * MIB, 4);

    rig_record(&rig, a, 4);
    rig_free(&rig, a);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_EVENT_CREATE], 0);
    assert_int_equal(rig_alloc(&rig, 30 * MIB, 4), a);
    unblock_stream(&rig, 4);
    rig_close(&rig);
}

/* The same stream twice is one event; three streams are three. */
static void one_event_a_stream(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr a = rig_alloc(&rig, 512, 0);

    for (int i = 0; i < 4; i++) {
        for (tarn_stream stream = 0; stream < 4; stream++) {
            rig_record(&rig, a, stream);
        }
    }
    rig_free(&rig, a);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_EVENT_RECORD], 3);
    rig_close(&rig);
}

static void events_may_complete_in_any_order(void **state)
{
    struct rig rig;

    (void)state;
    for (int order = 0; order < 6; order++) {
        static const tarn_stream orders[6][3] = {{1, 2, 3}, {1, 3, 2}, {2, 1, 3},
                                                 {2, 3, 1}, {3, 1, 2}, {3, 2, 1}};
        tarn_ptr single[3];

        rig_open(&rig, 2 * GIB, "");
        const tarn_ptr all = rig_alloc(&rig, 100 * MIB, 0);

        for (tarn_stream s = 1; s <= 3; s++) {
            block_stream(&rig, s);
            single[s - 1] = rig_alloc(&rig, 30 * MIB + s * 2 * MIB, 0);
            rig_record(&rig, single[s - 1], s);
            rig_record(&rig, all, s);
        }
        rig_free(&rig, all);
        for (int s = 0; s < 3; s++) {
            rig_free(&rig, single[s]);
        }
        assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 4);
        for (int i = 0; i < 3; i++) {
            unblock_stream(&rig, orders[order][i]);
            rig_free(&rig, rig_alloc(&rig, 512, 0)); /* looks at the events */
            /* A slow stream does not hold up the others; the common block waits for the last. */
            assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), i < 2 ? 3 - i : 0);
            const uint64_t size = 30 * MIB + orders[order][i] * 2 * MIB;

            assert_int_equal(rig_alloc(&rig, size, 0), single[orders[order][i] - 1]);
            rig_free(&rig, single[orders[order][i] - 1]);
        }
        assert_int_equal(rig_alloc(&rig, 100 * MIB, 0), all);
        rig_close(&rig);
    }
}

static void events_are_used_again(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    for (int i = 0; i < 100; i++) {
        const tarn_ptr a = rig_alloc(&rig, 512, 0);

        rig_record(&rig, a, 1);
        rig_free(&rig, a);
    }
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_EVENT_CREATE], 1);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_EVENT_RECORD], 100);
    rig_close(&rig);
}

static void flushing_the_cache_waits(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    block_stream(&rig, 1);
    const tarn_ptr a = rig_alloc(&rig, 30 * MIB, 0);

    rig_record(&rig, a, 1);
    rig_free(&rig, a);
    rig_empty_cache(&rig);
    assert_int_equal(rig_now(&rig, TARN_STAT_SEGMENT), 0);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_EVENT_WAIT], 1);
    assert_int_equal(sim_counters(rig.device).forced_unblocks, 1);
    rig_close(&rig);
}

/* test_caching_allocator_record_stream_oom: it waits and reuses instead of running out. */
static void running_short_waits_for_pending_frees(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 2 * GIB, "");
    for (int i = 0; i < 100; i++) {
        const tarn_ptr a = rig_alloc(&rig, 160 * MIB, 0);

        rig_record(&rig, a, 1);
        assert_int_equal(tarn_sim_enqueue_ns(rig.device, 1, 1000000), TARN_OK);
        rig_free(&rig, a);
    }
    assert_int_equal(rig_stats(&rig).num_ooms, 0);
    assert_true(rig_stats(&rig).num_sync_all_streams > 0);
    rig_close(&rig);
}

/* test_graph_record_stream: while requests are routed, no event may be recorded. */
static void frees_are_deferred_while_routing(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    block_stream(&rig, 1);
    const tarn_ptr before = rig_alloc(&rig, 30 * MIB, 0);
    const tarn_ptr during = rig_alloc(&rig, 60 * MIB, 0);

    rig_record(&rig, before, 1);
    begin_routing(&rig);
    rig_record(&rig, during, 1);
    rig_free(&rig, before);
    rig_free(&rig, during);
    (void)rig_alloc(&rig, 512, 0);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_EVENT_CREATE], 0);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_EVENT_QUERY], 0);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 3);
    end_routing(&rig);
    (void)rig_alloc(&rig, 512, 0);
    /* What was used before the capture waits now; a use recorded in it needs no event. */
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_EVENT_RECORD], 1);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 3);
    assert_int_equal(rig_alloc(&rig, 60 * MIB, 0), during);
    unblock_stream(&rig, 1);
    assert_int_equal(rig_alloc(&rig, 30 * MIB, 0), before);
    rig_close(&rig);
}

static void event_failure(enum tarn_sim_call call, uint64_t nth)
{
    struct rig rig;

    rig_open(&rig, GIB, "");
    const tarn_ptr a = rig_alloc(&rig, 30 * MIB, 0);

    for (tarn_stream s = 1; s <= 3; s++) {
        block_stream(&rig, s);
        rig_record(&rig, a, s);
    }
    tarn_sim_fail_nth(rig.device, call, nth, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_free(rig.allocator, a, &rig.error), TARN_ERR_DEVICE);
    assert_int_equal(rig.error.status, TARN_ERR_DEVICE);
    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATION), 1);
    assert_int_equal(tarn_allocator_base_allocation(rig.allocator, a, NULL, NULL, NULL), TARN_OK);
    rig_check(&rig);
    (void)rig_alloc(&rig, 512, 0); /* nothing of it is pending */
    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATION), 2);
    rig_free(&rig, a);
    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATION), 1);
    for (tarn_stream s = 1; s <= 3; s++) {
        assert_int_not_equal(rig_alloc(&rig, 30 * MIB, 0), a);
        unblock_stream(&rig, s);
    }
    assert_int_equal(rig_alloc(&rig, 30 * MIB, 0), a);
    rig_close(&rig);
}

static void without_events_the_block_stays_allocated(void **state)
{
    (void)state;
    for (uint64_t nth = 1; nth <= 3; nth++) {
        event_failure(TARN_SIM_EVENT_CREATE, nth);
        event_failure(TARN_SIM_EVENT_RECORD, nth);
    }
}

static void a_failing_query_is_reported_and_changes_nothing(void **state)
{
    struct rig rig;
    tarn_ptr ptr = 0;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr a = rig_alloc(&rig, 30 * MIB, 0);

    rig_record(&rig, a, 1);
    rig_free(&rig, a);
    tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_QUERY, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 30 * MIB, 0, &ptr, &rig.error),
                     TARN_ERR_DEVICE);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 1);
    assert_int_equal(rig_alloc(&rig, 30 * MIB, 0), a);
    rig_close(&rig);
}

/* A wait that fails half way: what was waited for is free, the rest still waits, in its order. */
static void a_failing_wait_keeps_the_rest_waiting(void **state)
{
    struct rig rig;
    tarn_ptr blocks[4];

    (void)state;
    rig_open(&rig, GIB, "");
    block_stream(&rig, 1);
    for (uint64_t i = 0; i < 4; i++) {
        blocks[i] = rig_alloc(&rig, (20 + i * 2) * MIB, 0);
        rig_record(&rig, blocks[i], 1);
        rig_free(&rig, blocks[i]);
        block_stream(&rig, 1);
    }
    tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_WAIT, 2, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_empty_cache(rig.allocator, &rig.error), TARN_ERR_DEVICE);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 3);
    rig_check(&rig);
    for (uint64_t i = 1; i < 4; i++) {
        unblock_stream(&rig, 1);
        assert_int_equal(rig_alloc(&rig, (20 + i * 2) * MIB, 0), blocks[i]);
    }
    rig_close(&rig);
}

/* More events on one stream than its ring holds at first, completed in the order of the frees. */
static void many_events_wait_in_order(void **state)
{
    enum {
        MANY = 200
    };
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    for (int round = 0; round < 3; round++) {
        tarn_ptr blocks[MANY];

        for (int i = 0; i < MANY; i++) {
            blocks[i] = rig_alloc(&rig, 512, 0);
            rig_record(&rig, blocks[i], 1);
        }
        for (int i = 0; i < MANY; i++) {
            block_stream(&rig, 1);
            rig_free(&rig, blocks[i]);
        }
        const int64_t active = rig_now(&rig, TARN_STAT_ACTIVE);

        for (int i = 0; i < MANY; i++) {
            unblock_stream(&rig, 1);
            rig_free(&rig, rig_alloc(&rig, 512, 2));
            assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), active - i - 1);
        }
        assert_int_equal(active, MANY);
    }
    rig_close(&rig);
}

/* A use that cannot be kept is refused, and leaves none behind. */
static uint32_t queue_place(const struct tn_stream_waits *waits, tarn_stream stream)
{
    uint32_t place = 0;

    while (place < waits->queue_count && waits->queues[place].stream != stream) {
        place++;
    }
    return place;
}

/* A stream that is named twice, and one for which there is no memory, change nothing. */
static void queues_are_polled_in_an_order(void **state)
{
    static const tarn_stream streams[] = {7, 9, 7, 3};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    struct tn_stream_waits *waits = &rig_engine(rig.allocator)->waits;

    tarn_host_fail_nth(1);
    tn_stream_waits_order(waits, streams, 1);
    tarn_host_fail_nth(0);
    assert_int_equal(waits->queue_count, 0);
    tn_stream_waits_order(waits, streams, 4);
    assert_int_equal(waits->queue_count, 3);
    assert_int_equal(queue_place(waits, 7), 0);
    assert_int_equal(queue_place(waits, 9), 1);
    assert_int_equal(queue_place(waits, 3), 2);
    tn_stream_waits_order(waits, &streams[3], 1);
    assert_int_equal(queue_place(waits, 3), 0);
    assert_int_equal(queue_place(waits, 7), 1);
    assert_false(tn_stream_waits_reserve_deferred(waits, UINT32_MAX)); /* more than are counted */
    rig_close(&rig);
}

/* A block of many streams keeps those that it has. */
static void without_host_memory_no_stream_is_added(void **state)
{
    enum {
        STREAMS = 40
    };
    unsigned failures = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr ptr = rig_alloc(&rig, 3 * MIB, 0);

    rig_record(&rig, ptr, 1);
    for (tarn_stream stream = 2; stream <= STREAMS; stream++) {
        tarn_host_fail_nth(1);
        const enum tarn_status st =
            tarn_allocator_record_stream(rig.allocator, ptr, stream, &rig.error);

        tarn_host_fail_nth(0);
        assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
        failures += st != TARN_OK;
        rig_check(&rig);
        rig_record(&rig, ptr, stream);
        block_stream(&rig, stream);
    }
    assert_true(failures > 0);
    rig_free(&rig, ptr);
    assert_int_equal(rig_engine(rig.allocator)->waits.pending, STREAMS);
    for (tarn_stream stream = 2; stream <= STREAMS; stream++) {
        unblock_stream(&rig, stream);
    }
    rig_close(&rig);
}

static void nothing_need_not_be_taken_off(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr ptr = rig_alloc(&rig, 3 * MIB, 0);
    struct tn_engine *engine = rig_engine(rig.allocator);
    struct tn_block *block = tn_heap_find(&engine->heap, ptr);

    assert_non_null(block);
    tarn_host_fail_nth(1); /* it takes none */
    assert_int_equal(tn_stream_use_set_user(&engine->waits, block, NULL, 0), TARN_OK);
    tarn_host_fail_nth(0);
    assert_int_equal(block->uses, 0);
    rig_close(&rig);
}

/* Once its data are taken off, a block that no other stream uses is freed as cheaply as any. */
static void what_is_taken_off_leaves_nothing(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr ptr = rig_alloc(&rig, 3 * MIB, 0);
    struct tn_engine *engine = rig_engine(rig.allocator);
    const struct tn_block *block = tn_heap_find(&engine->heap, ptr);

    assert_non_null(block);
    for (int used = 0; used < 2; used++) {
        if (used) {
            rig_record(&rig, ptr, 1);
        }
        assert_int_equal(tarn_allocator_set_user_data(rig.allocator, ptr, &rig, 0, NULL), TARN_OK);
        assert_int_not_equal(block->uses, 0);
        assert_int_equal(tarn_allocator_set_user_data(rig.allocator, ptr, NULL, 0, NULL), TARN_OK);
        assert_int_equal(block->uses != 0, used);
    }
    rig_close(&rig);
}

static void without_host_memory_no_use_is_kept(void **state)
{
    struct rig rig;
    uint64_t n = 0;
    enum tarn_status st = TARN_ERR_HOST_MEMORY;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr ptr = rig_alloc(&rig, 30 * MIB, 0);

    while (st == TARN_ERR_HOST_MEMORY) {
        tarn_host_fail_nth(++n);
        st = tarn_allocator_record_stream(rig.allocator, ptr, 1, &rig.error);
        tarn_host_fail_nth(0);
        rig_check(&rig);
    }
    assert_int_equal(st, TARN_OK);
    assert_true(n > 2); /* its record, and the streams in it */
    block_stream(&rig, 1);
    rig_free(&rig, ptr);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 1);
    unblock_stream(&rig, 1);
    rig_close(&rig);
}

/* Whichever of several streams the device fails to wait for. */
static void a_failing_wait_is_reported(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 3; n++) {
        struct rig rig;

        rig_open(&rig, GIB, "");
        for (tarn_stream stream = 1; stream <= 3; stream++) {
            const tarn_ptr ptr = rig_alloc(&rig, 30 * MIB, 0);

            rig_record(&rig, ptr, stream);
            block_stream(&rig, stream);
            rig_free(&rig, ptr);
        }
        tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_WAIT, n, TARN_ERR_DEVICE);
        assert_int_equal(tarn_allocator_empty_cache(rig.allocator, &rig.error), TARN_ERR_DEVICE);
        rig_check(&rig);
        rig_empty_cache(&rig);
        assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 0);
        rig_close(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_is_not_reused_before_the_other_stream_is_done),
        cmocka_unit_test(a_view_is_recorded_by_its_block),
        cmocka_unit_test(its_own_stream_needs_no_event),
        cmocka_unit_test(one_event_a_stream),
        cmocka_unit_test(events_may_complete_in_any_order),
        cmocka_unit_test(events_are_used_again),
        cmocka_unit_test(flushing_the_cache_waits),
        cmocka_unit_test(running_short_waits_for_pending_frees),
        cmocka_unit_test(frees_are_deferred_while_routing),
        cmocka_unit_test(without_events_the_block_stays_allocated),
        cmocka_unit_test(a_failing_query_is_reported_and_changes_nothing),
        cmocka_unit_test(a_failing_wait_keeps_the_rest_waiting),
        cmocka_unit_test(many_events_wait_in_order),
        cmocka_unit_test(without_host_memory_no_use_is_kept),
        cmocka_unit_test(queues_are_polled_in_an_order),
        cmocka_unit_test(nothing_need_not_be_taken_off),
        cmocka_unit_test(what_is_taken_off_leaves_nothing),
        cmocka_unit_test(without_host_memory_no_stream_is_added),
        cmocka_unit_test(a_failing_wait_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
