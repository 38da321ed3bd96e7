/* SPDX-License-Identifier: MIT */
/* Blocks used on several streams, through the public interface. Names in comments are PyTorch's. */
#include "support/any_stream.h"
#include "support/test.h"

#include "support/rig.h"
#include "tarn/block.h"
#include "tarn/pool.h"

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

static uint64_t records(const struct rig *rig)
{
    return sim_counters(rig->device).calls[TARN_SIM_EVENT_RECORD];
}

/* A use that was recorded in a capture needs no event, even if it is recorded again later. */
static void a_use_in_a_capture_stays_one(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr ptr = rig_alloc(&rig, 30 * MIB, 0);

    begin_routing(&rig);
    rig_record(&rig, ptr, 1);
    end_routing(&rig);
    rig_record(&rig, ptr, 1);
    block_stream(&rig, 1);
    begin_routing(&rig);
    rig_free(&rig, ptr);
    end_routing(&rig);
    assert_int_equal(rig_alloc(&rig, 30 * MIB, 0), ptr);
    assert_int_equal(records(&rig), 0);
    unblock_stream(&rig, 1);
    rig_close(&rig);
}

/* What many blocks need for their streams is used again by later ones. */
static void host_memory_for_streams_does_not_grow(void **state)
{
    enum {
        BLOCKS = 5
    };
    uint64_t live = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const uint64_t before = tarn_host_get_usage().live_bytes;

    for (int round = 0; round < 30; round++) {
        tarn_ptr ptrs[BLOCKS];

        for (int i = 0; i < BLOCKS; i++) {
            ptrs[i] = rig_alloc(&rig, 512, 0);
            rig_record(&rig, ptrs[i], 1);
        }
        for (int i = 0; i < BLOCKS; i++) {
            rig_free(&rig, ptrs[i]);
        }
        rig_free(&rig, rig_alloc(&rig, 512, 0)); /* completes them */
        assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 0);
        live = round == 1 ? tarn_host_get_usage().live_bytes : live;
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
    assert_true(live - before < MIB);
    rig_close(&rig);
}

/* Without host memory a block has no uses afterwards, so that it is freed as cheaply as any. */
static void a_use_that_was_not_kept_leaves_nothing(void **state)
{
    enum tarn_status st = TARN_ERR_HOST_MEMORY;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr ptr = rig_alloc(&rig, 30 * MIB, 0);
    const struct tn_block *block = tn_heap_find(&rig_engine(rig.allocator)->heap, ptr);

    assert_non_null(block);
    for (uint64_t n = 1; st != TARN_OK; n++) {
        tarn_host_fail_nth(n);
        st = tarn_allocator_record_stream(rig.allocator, ptr, 1, &rig.error);
        tarn_host_fail_nth(0);
        assert_int_equal(block->uses != 0, st == TARN_OK);
    }
    rig_close(&rig);
}

/* A ring that grows while its first event is somewhere within. */
static void events_stay_in_order_while_their_ring_grows(void **state)
{
    enum {
        FIRST = 12,
        DONE = 5,
        MORE = 40
    };
    tarn_ptr blocks[FIRST + MORE];
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    for (int i = 0; i < FIRST + MORE; i++) {
        blocks[i] = rig_alloc(&rig, 512, 0);
        rig_record(&rig, blocks[i], 1);
    }
    for (int i = 0; i < FIRST + MORE; i++) {
        if (i == FIRST) {
            for (int k = 0; k < DONE; k++) {
                unblock_stream(&rig, 1);
            }
            rig_free(&rig, rig_alloc(&rig, 512, 2));
            assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), FIRST + MORE - DONE);
        }
        block_stream(&rig, 1);
        rig_free(&rig, blocks[i]);
    }
    for (int i = DONE; i < FIRST + MORE; i++) {
        unblock_stream(&rig, 1);
        rig_free(&rig, rig_alloc(&rig, 512, 2));
        assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), FIRST + MORE - i - 1);
    }
    rig_close(&rig);
}

/* A free that fails at its second stream takes the event of the first back: of the newest use, not
 * of the blocks that were freed before. */
static void a_failing_free_takes_its_own_event_back(void **state)
{
    tarn_ptr blocks[4];
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    for (uint64_t i = 0; i < 4; i++) {
        blocks[i] = rig_alloc(&rig, (20 + 2 * i) * MIB, 0);
        rig_record(&rig, blocks[i], 1);
    }
    rig_record(&rig, blocks[3], 2);
    rig_free(&rig, blocks[0]);
    rig_free(&rig, blocks[1]);
    rig_free(&rig, rig_alloc(&rig, 512, 0)); /* two are done: the ring begins further on */
    block_stream(&rig, 1);
    rig_free(&rig, blocks[2]);
    tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_RECORD, 2, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_free(rig.allocator, blocks[3], &rig.error), TARN_ERR_DEVICE);
    rig_check(&rig);
    block_stream(&rig, 1);
    rig_free(&rig, blocks[3]);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 2);
    unblock_stream(&rig, 1);
    assert_int_equal(rig_alloc(&rig, 24 * MIB, 0), blocks[2]);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 2);
    unblock_stream(&rig, 1);
    assert_int_equal(rig_alloc(&rig, 26 * MIB, 0), blocks[3]);
    rig_close(&rig);
}

/* The device refuses at one of several deferred frees: those before it wait, the others follow at
 * the next request. */
static void deferred_frees_go_on_after_a_failure(void **state)
{
    enum {
        BLOCKS = 5
    };

    (void)state;
    for (uint64_t n = 1; n <= BLOCKS; n++) {
        tarn_ptr blocks[BLOCKS];
        tarn_ptr ptr = 0;
        struct rig rig;

        rig_open(&rig, GIB, "");
        block_stream(&rig, 1);
        for (uint64_t i = 0; i < BLOCKS; i++) {
            blocks[i] = rig_alloc(&rig, (20 + 2 * i) * MIB, 0);
            rig_record(&rig, blocks[i], 1);
        }
        begin_routing(&rig);
        for (int i = 0; i < BLOCKS; i++) {
            rig_free(&rig, blocks[i]);
        }
        end_routing(&rig);
        tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_RECORD, n, TARN_ERR_DEVICE);
        assert_int_equal(tarn_allocator_alloc(rig.allocator, 40 * MIB, 0, &ptr, &rig.error),
                         TARN_ERR_DEVICE);
        rig_check(&rig);
        assert_int_equal(rig_engine(rig.allocator)->waits.pending, n - 1);
        ptr = rig_alloc(&rig, 40 * MIB, 0);
        assert_int_equal(rig_engine(rig.allocator)->waits.pending, BLOCKS);
        assert_int_equal(records(&rig), BLOCKS + 1);
        unblock_stream(&rig, 1);
        for (uint64_t i = 0; i < BLOCKS; i++) {
            assert_int_equal(rig_alloc(&rig, (20 + 2 * i) * MIB, 0), blocks[i]);
        }
        rig_close(&rig);
    }
}

/* Whichever of its queries fails: a request reports it, and only one request. */
static void every_failing_query_is_reported_once(void **state)
{
    uint64_t failures = 0;

    (void)state;
    for (uint64_t n = 1; n <= failures + 1; n++) {
        tarn_ptr ptr = 0;
        struct rig rig;

        rig_open(&rig, GIB, "");
        for (tarn_stream stream = 1; stream <= 3; stream++) {
            const tarn_ptr block = rig_alloc(&rig, 30 * MIB, 0);

            rig_record(&rig, block, stream);
            if (stream != 2) {
                block_stream(&rig, stream);
            }
            rig_free(&rig, block);
        }
        const uint64_t before = sim_counters(rig.device).calls[TARN_SIM_EVENT_QUERY];

        tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_QUERY, n, TARN_ERR_DEVICE);
        const enum tarn_status st =
            tarn_allocator_alloc(rig.allocator, 40 * MIB, 0, &ptr, &rig.error);
        const bool failed = sim_counters(rig.device).calls[TARN_SIM_EVENT_QUERY] - before >= n;

        tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_QUERY, 0, TARN_OK);
        assert_int_equal(st, failed ? TARN_ERR_DEVICE : TARN_OK);
        if (failed) {
            assert_non_null(strstr(rig.error.text, "querying an event"));
            failures++;
        } else {
            assert_int_equal(rig.error.text[0], 0);
        }
        rig_free(&rig, rig_alloc(&rig, 40 * MIB, 0));
        assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE_BYTES), (failed ? 60 : 100) * (int64_t)MIB);
        unblock_stream(&rig, 1);
        unblock_stream(&rig, 3);
        rig_close(&rig);
    }
    assert_true(failures >= 3);
}

/* A query that fails while nothing is ready is reported once, too. */
static void a_failing_query_is_not_kept(void **state)
{
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr block = rig_alloc(&rig, 30 * MIB, 0);

    rig_record(&rig, block, 1);
    block_stream(&rig, 1);
    rig_free(&rig, block);
    rig_free(&rig, rig_alloc(&rig, 40 * MIB, 0));
    tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_QUERY, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 50 * MIB, 0, &ptr, &rig.error),
                     TARN_ERR_DEVICE);
    (void)rig_alloc(&rig, 50 * MIB, 0);
    (void)rig_alloc(&rig, 60 * MIB, 0);
    unblock_stream(&rig, 1);
    rig_close(&rig);
}

/* Blocks of two pools wait for one stream, in turn. Emptying one pool waits for its blocks only;
 * those of the other still complete in their order. */
static void emptying_a_pool_leaves_the_order_of_others(void **state)
{
    enum {
        PAIRS = 4
    };
    tarn_ptr own[PAIRS];
    tarn_ptr others[PAIRS];
    struct tarn_pool *pool = NULL;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_pool_create(rig.allocator, NULL, &pool, &rig.error), TARN_OK);
    for (int done = 0; done < 3; done++) { /* the ring begins further on each time */
        for (uint64_t i = 0; i < PAIRS; i++) {
            others[i] = rig_alloc(&rig, (20 + 2 * i) * MIB, 0);
            assert_int_equal(tarn_pool_alloc(pool, (20 + 2 * i) * MIB, 0, &own[i], &rig.error),
                             TARN_OK);
            rig_record(&rig, others[i], 1);
            rig_record(&rig, own[i], 1);
        }
        const uint64_t waits = sim_counters(rig.device).calls[TARN_SIM_EVENT_WAIT];

        for (int i = 0; i < PAIRS; i++) {
            rig_free(&rig, own[i]); /* done at once, but only seen later */
        }
        for (int i = 0; i < PAIRS; i++) {
            block_stream(&rig, 1);
            rig_free(&rig, others[i]);
        }
        assert_int_equal(
            tarn_allocator_empty_pool(rig.allocator, tarn_pool_get_id(pool), &rig.error), TARN_OK);
        assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_EVENT_WAIT], waits + PAIRS);
        assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), PAIRS);
        for (int i = 0; i < PAIRS; i++) {
            unblock_stream(&rig, 1);
            rig_free(&rig, rig_alloc(&rig, 512, 2));
            assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), PAIRS - i - 1);
        }
    }
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* Waiting for one block waits where one is pending, though another stream came first. */
static void a_request_waits_for_the_stream_that_is_behind(void **state)
{
    tarn_ptr blocks[2];
    struct rig rig;

    (void)state;
    rig_open(&rig, 128 * MIB, "policy:compact");
    for (tarn_stream stream = 1; stream <= 2; stream++) {
        blocks[stream - 1] = rig_alloc(&rig, 40 * MIB, 0);
        rig_record(&rig, blocks[stream - 1], stream);
    }
    rig_free(&rig, blocks[0]);
    rig_free(&rig, rig_alloc(&rig, 512, 0)); /* completes it */
    block_stream(&rig, 2);
    rig_free(&rig, blocks[1]);
    rig_free(&rig, rig_alloc(&rig, 100 * MIB, 0));
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_EVENT_WAIT], 1);
    assert_int_equal(sim_counters(rig.device).forced_unblocks, 1);
    rig_close(&rig);
}

/* Room that the host does not have is refused, however much it is. */
static void room_for_deferred_frees_may_be_refused(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    struct tn_stream_waits *waits = &rig_engine(rig.allocator)->waits;

    tarn_host_fail_nth(1);
    assert_false(tn_stream_waits_reserve_deferred(waits, 100));
    tarn_host_fail_nth(0);
    assert_true(tn_stream_waits_reserve_deferred(waits, 100));
    assert_false(tn_stream_waits_reserve_deferred(waits, UINT32_MAX / 4)); /* more than counted */
    assert_false(tn_stream_waits_reserve_deferred(waits, UINT32_MAX / 2));
    rig_close(&rig);
}

struct placed {
    const struct tn_block *blocks[4];
    size_t known;
};

static uint64_t place_of(void *context, const struct tn_block *block)
{
    const struct placed *placed = context;
    size_t i = 0;

    while (i < placed->known && placed->blocks[i] != block) {
        i++;
    }
    assert_true(i < placed->known); /* no other block is asked for */
    return i < 2 ? 7 : 3;
}

/* Blocks of one place stay in the order of their frees. */
static void deferred_frees_are_sorted(void **state)
{
    struct placed placed = {.known = 4};
    tarn_ptr ptrs[4];
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    struct tn_engine *engine = rig_engine(rig.allocator);
    struct tn_stream_waits *waits = &engine->waits;

    for (int i = 0; i < 4; i++) {
        ptrs[i] = rig_alloc(&rig, 512, 0);
        rig_record(&rig, ptrs[i], 1);
        placed.blocks[i] = tn_heap_find(&engine->heap, ptrs[i]);
    }
    begin_routing(&rig);
    for (int i = 0; i < 4; i++) {
        rig_free(&rig, ptrs[i]);
    }
    assert_int_equal(waits->deferred_count, 4);
    tn_stream_waits_sort_deferred(waits, place_of, &placed);
    assert_ptr_equal(waits->deferred[0], placed.blocks[2]);
    assert_ptr_equal(waits->deferred[1], placed.blocks[3]);
    assert_ptr_equal(waits->deferred[2], placed.blocks[0]);
    assert_ptr_equal(waits->deferred[3], placed.blocks[1]);
    end_routing(&rig);
    rig_close(&rig);
}

/* Which streams a freed block will wait for: those that used it outside of a capture. */
static void captured_uses_are_not_waited_for(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr mixed = rig_alloc(&rig, 512, 0);
    const tarn_ptr captured = rig_alloc(&rig, 512, 0);
    struct tn_engine *engine = rig_engine(rig.allocator);
    const struct tn_block *first = tn_heap_find(&engine->heap, mixed);
    const struct tn_block *second = tn_heap_find(&engine->heap, captured);

    assert_true(first && second);
    rig_record(&rig, mixed, 1);
    begin_routing(&rig);
    rig_record(&rig, mixed, 2);
    rig_record(&rig, captured, 2);
    rig_record(&rig, captured, 3);
    assert_true(tn_stream_use_will_wait(&engine->waits, first, 1));
    assert_false(tn_stream_use_will_wait(&engine->waits, first, 2));
    assert_false(tn_stream_use_will_wait(&engine->waits, first, 3));
    assert_true(tn_stream_use_waits(&engine->waits, first));
    assert_false(tn_stream_use_waits(&engine->waits, second));
    end_routing(&rig);
    rig_record(&rig, captured, 4);
    assert_true(tn_stream_use_waits(&engine->waits, second));
    rig_close(&rig);
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
        cmocka_unit_test(a_use_in_a_capture_stays_one),
        cmocka_unit_test(host_memory_for_streams_does_not_grow),
        cmocka_unit_test(a_use_that_was_not_kept_leaves_nothing),
        cmocka_unit_test(events_stay_in_order_while_their_ring_grows),
        cmocka_unit_test(a_failing_free_takes_its_own_event_back),
        cmocka_unit_test(deferred_frees_go_on_after_a_failure),
        cmocka_unit_test(every_failing_query_is_reported_once),
        cmocka_unit_test(a_failing_query_is_not_kept),
        cmocka_unit_test(emptying_a_pool_leaves_the_order_of_others),
        cmocka_unit_test(a_request_waits_for_the_stream_that_is_behind),
        cmocka_unit_test(room_for_deferred_frees_may_be_refused),
        cmocka_unit_test(deferred_frees_are_sorted),
        cmocka_unit_test(captured_uses_are_not_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
