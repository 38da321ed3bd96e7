/* SPDX-License-Identifier: MIT */
/* The compact policy, through the public interface: what moves, when, and what stays. */
#include "support/test.h"

#include <stdlib.h>

#include "support/draw.h"
#include "support/rig.h"
#include "support/scarce.h"
#include "tarn/ipc.h"
#include "tarn/pages.h"
#include "tarn/pool.h"
#include "tarn/pressure.h"
#include "tarn/request.h"

#define COMPACT "policy:compact"

static uint64_t reserved(struct rig *rig)
{
    return (uint64_t)rig_now(rig, TARN_STAT_RESERVED_BYTES);
}

static uint64_t moved(struct rig *rig)
{
    return rig_engine(rig->allocator)->compact.pages_moved;
}

/* A hole of 30 MiB with 2 MiB in use behind it. */
static tarn_ptr leave_hole(struct rig *rig, tarn_stream stream)
{
    const tarn_ptr hole = rig_alloc(rig, 30 * MIB, stream);

    (void)rig_alloc(rig, 2 * MIB, stream);
    rig_free(rig, hole);
    return hole;
}

static void free_pages_move_to_a_larger_request(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    const tarn_ptr hole = leave_hole(&rig, 0);

    assert_int_equal(reserved(&rig), 32 * MIB);
    assert_true(rig_alloc(&rig, 40 * MIB, 0) > hole);
    assert_int_equal(reserved(&rig), 42 * MIB); /* 15 pages moved, 5 new ones */
    assert_int_equal(moved(&rig), 15);
    rig_close(&rig);
}

static void a_request_that_a_free_block_fits_moves_nothing(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    const tarn_ptr hole = leave_hole(&rig, 0);

    assert_int_equal(rig_alloc(&rig, 12 * MIB, 0), hole);
    assert_int_equal(rig_alloc(&rig, 18 * MIB, 0), hole + 12 * MIB);
    assert_int_equal(moved(&rig), 0);
    rig_close(&rig);
}

/* What lies free beside unmapped addresses is used where it is. */
static void a_place_lacks_as_little_as_possible(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    const tarn_ptr first = rig_alloc(&rig, 20 * MIB, 0);

    (void)rig_alloc(&rig, 2 * MIB, 0);
    const tarn_ptr last = rig_alloc(&rig, 10 * MIB, 0);

    rig_free(&rig, last);
    assert_int_equal(rig_alloc(&rig, 16 * MIB, 0), last); /* 3 new pages behind it */
    assert_int_equal(reserved(&rig), 38 * MIB);
    rig_free(&rig, first);
    assert_int_equal(moved(&rig), 0);
    rig_close(&rig);
}

static void an_old_address_stays_until_its_stream_has_come_by(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    (void)leave_hole(&rig, 1);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    (void)rig_alloc(&rig, 40 * MIB, 1); /* its own stream need not wait */
    assert_int_equal(moved(&rig), 15);
    assert_int_equal(sim_counters(rig.device).live_mappings, 21 + 15);
    (void)rig_alloc(&rig, 50 * MIB, 1); /* nowhere near the old addresses */
    assert_int_equal(sim_counters(rig.device).live_mappings, 46 + 15);
    assert_int_equal(tarn_sim_unblock_stream(rig.device, 1), TARN_OK);
    (void)rig_alloc(&rig, 60 * MIB, 1);
    assert_int_equal(sim_counters(rig.device).live_mappings, 76);
    rig_close(&rig);
}

static void another_stream_takes_what_is_done_and_else_new_pages(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    (void)leave_hole(&rig, 1);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    (void)rig_alloc(&rig, 10 * MIB, 2);
    assert_int_equal(reserved(&rig), 42 * MIB); /* stream 1 may still use its pages */
    assert_int_equal(tarn_sim_unblock_stream(rig.device, 1), TARN_OK);
    (void)rig_alloc(&rig, 20 * MIB, 3);
    assert_int_equal(reserved(&rig), 42 * MIB);
    assert_int_equal(moved(&rig), 10);
    rig_close(&rig);
}

/* Streams are found whatever the order in which they come. */
static void pages_of_many_streams_are_found(void **state)
{
    enum {
        STREAMS = 40
    };
    tarn_ptr ptrs[STREAMS];
    struct rig rig;

    (void)state;
    rig_open(&rig, 4 * GIB, COMPACT);
    for (tarn_stream i = 0; i < STREAMS; i++) {
        ptrs[i] = rig_alloc(&rig, 30 * MIB, 1 + i * 17 % STREAMS);
    }
    for (int i = 0; i < STREAMS; i++) {
        rig_free(&rig, ptrs[i]);
    }
    (void)rig_alloc(&rig, 30 * MIB * STREAMS, 99);
    assert_int_equal(reserved(&rig), 30 * MIB * STREAMS);
    assert_int_equal(moved(&rig), STREAMS * 15);
    rig_close(&rig);
}

/* Also when the stream has no other free pages. */
static void pages_kept_after_a_failure_serve_others_once_their_stream_is_done(void **state)
{
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    (void)leave_hole(&rig, 1);
    const tarn_ptr small = rig_alloc(&rig, 2 * MIB, 1);

    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    tarn_sim_fail_nth(rig.device, TARN_SIM_MAP, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 40 * MIB, 1, &ptr, NULL), TARN_ERR_DEVICE);
    rig_free(&rig, small);
    const uint64_t before = reserved(&rig);

    (void)rig_alloc(&rig, 4 * MIB, 2); /* marks stream 1 */
    assert_int_equal(reserved(&rig), before + 4 * MIB);
    assert_int_equal(rig_alloc(&rig, 2 * MIB, 1), small);
    assert_int_equal(tarn_sim_unblock_stream(rig.device, 1), TARN_OK);
    (void)rig_alloc(&rig, 20 * MIB, 2);
    assert_int_equal(reserved(&rig), before + 4 * MIB);
    rig_close(&rig);
}

/* At the limit a stream waits for another on the device, and nobody on the host. */
static void at_the_limit_streams_wait_for_each_other(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 32 * MIB, COMPACT);
    (void)leave_hole(&rig, 1);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    (void)rig_alloc(&rig, 30 * MIB, 2);
    assert_int_equal(moved(&rig), 15);
    assert_int_equal(sim_counters(rig.device).forced_unblocks, 0);
    assert_int_equal(rig_stats(&rig).num_alloc_retries, 0);
    assert_int_equal(rig_stats(&rig).num_sync_all_streams, 0);
    rig_alloc_oom(&rig, 2 * MIB, 2);
    rig_close(&rig);
}

/* Pages kept after a failure: one wait on the device for all that came from one stream. */
static void a_stream_waits_once_for_kept_pages(void **state)
{
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, 42 * MIB, COMPACT);
    (void)leave_hole(&rig, 1);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    tarn_sim_fail_nth(rig.device, TARN_SIM_MAP, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 40 * MIB, 1, &ptr, NULL), TARN_ERR_DEVICE);
    const uint64_t before = sim_counters(rig.device).calls[TARN_SIM_STREAM_WAIT_EVENT];

    (void)rig_alloc(&rig, 40 * MIB, 2);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_STREAM_WAIT_EVENT], before + 1);
    assert_int_equal(reserved(&rig), 42 * MIB);
    assert_int_equal(sim_counters(rig.device).forced_unblocks, 0);
    rig_close(&rig);
}

/* The place for a request is behind old addresses that are still mapped; after a failure it is part
 * of its hole again. */
static void a_place_that_was_not_filled_leaves_no_trace(void **state)
{
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, 32 * MIB, COMPACT);
    const tarn_ptr first = rig_alloc(&rig, 4 * MIB, 1);
    const tarn_ptr last = rig_alloc(&rig, 20 * MIB, 1);

    rig_free(&rig, last);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    const tarn_ptr other = rig_alloc(&rig, 28 * MIB, 2);

    assert_int_equal(moved(&rig), 10);
    rig_free(&rig, other);
    tarn_sim_fail_nth(rig.device, TARN_SIM_MAP, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 6 * MIB, 1, &ptr, NULL), TARN_ERR_DEVICE);
    rig_check(&rig);
    assert_int_equal(rig_alloc(&rig, 6 * MIB, 1), first + 24 * MIB);
    rig_close(&rig);
}

/* One in which no event can be recorded, because it is gone, gives nothing. */
static void streams_that_are_gone_are_passed_over(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 100 * MIB, COMPACT);
    const tarn_ptr first = rig_alloc(&rig, 40 * MIB, 1);
    const tarn_ptr second = rig_alloc(&rig, 40 * MIB, 2);

    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    assert_int_equal(tarn_sim_block_stream(rig.device, 2), TARN_OK);
    rig_free(&rig, first);
    rig_free(&rig, second);
    (void)rig_alloc(&rig, 2 * MIB, 3); /* marks both */
    tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_RECORD, 1, TARN_ERR_DEVICE);
    (void)rig_alloc(&rig, 56 * MIB, 3); /* 9 new pages, 19 of stream 2 */
    assert_int_equal(moved(&rig), 19);
    rig_close(&rig);
}

static bool only_stream_1(void *context, tarn_stream stream)
{
    (void)context;
    return stream == 1;
}

/* What graphs had that are gone is not touched before the limit, and there alone: what the other
 * pools keep stays. */
static void pools_that_nobody_uses_come_last(void **state)
{
    const struct tarn_pool_id id = {.first = 1};
    struct rig rig;

    (void)state;
    rig_open(&rig, 32 * MIB, COMPACT);
    const tarn_ptr kept = rig_alloc(&rig, 5 * MIB, 2); /* half of its third page is free */

    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, id, only_stream_1, NULL, NULL),
                     TARN_OK);
    rig_free(&rig, rig_alloc(&rig, 20 * MIB, 1));
    assert_int_equal(tarn_allocator_end_pool(rig.allocator, id, NULL), TARN_OK);
    rig_alloc_oom(&rig, 8 * MIB, 2);
    assert_int_equal(tarn_allocator_release_pool(rig.allocator, id, NULL), TARN_OK);
    assert_int_equal(reserved(&rig), 32 * MIB); /* with pages that did not suffice */
    (void)rig_alloc(&rig, 8 * MIB, 2);
    assert_int_equal(reserved(&rig), 14 * MIB);
    assert_int_equal(rig_stats(&rig).num_alloc_retries, 0);
    rig_free(&rig, kept);
    rig_close(&rig);
}

static uint64_t device_waits(struct rig *rig)
{
    return sim_counters(rig->device).calls[TARN_SIM_STREAM_WAIT_EVENT];
}

/* It waits for the streams whose pages it gets, and for no others. */
static void a_stream_waits_for_no_more_than_it_takes(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 64 * MIB, COMPACT);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    assert_int_equal(tarn_sim_block_stream(rig.device, 3), TARN_OK);
    (void)leave_hole(&rig, 1);
    (void)leave_hole(&rig, 3);
    assert_int_equal(device_waits(&rig), 0);
    (void)rig_alloc(&rig, 30 * MIB, 2);
    assert_int_equal(moved(&rig), 15);
    assert_int_equal(device_waits(&rig), 1);
    (void)rig_alloc(&rig, 20 * MIB, 2);
    assert_int_equal(moved(&rig), 25);
    assert_int_equal(device_waits(&rig), 2);
    assert_int_equal(sim_counters(rig.device).forced_unblocks, 0);
    rig_close(&rig);
}

/* A block in use on another stream is waited for on the host, when nothing else is left. */
static void blocks_of_other_streams_are_waited_for_last(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 32 * MIB, COMPACT);
    const tarn_ptr ptr = rig_alloc(&rig, 30 * MIB, 0);

    rig_record(&rig, ptr, 1);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    rig_free(&rig, ptr);
    (void)rig_alloc(&rig, 2 * MIB, 0);
    assert_int_equal(sim_counters(rig.device).forced_unblocks, 0);
    (void)rig_alloc(&rig, 20 * MIB, 2);
    assert_int_equal(sim_counters(rig.device).forced_unblocks, 1);
    rig_close(&rig);
}

/* Old addresses of 32 MiB, `first` and 42 MiB live, and `left` are free. The stream is blocked. */
static void fall_behind_with(struct rig *rig, uint64_t first, uint64_t left)
{
    (void)rig_alloc(rig, first, 0);
    const tarn_ptr hole = rig_alloc(rig, 32 * MIB, 0);

    (void)rig_alloc(rig, 2 * MIB, 0);
    assert_int_equal(tarn_sim_block_stream(rig->device, 0), TARN_OK);
    rig_free(rig, hole);
    (void)rig_alloc(rig, 40 * MIB, 0);
    assert_int_equal(moved(rig), 16);
    const tarn_ptr last = rig_alloc(rig, left, 0);

    (void)rig_alloc(rig, 2 * MIB, 0);
    rig_free(rig, last);
    assert_int_equal(reserved(rig), first + 44 * MIB + left);
}

/* Old addresses are an eighth of what is reserved; 2 MiB are free. */
static void fall_behind(struct rig *rig)
{
    fall_behind_with(rig, 200 * MIB, 2 * MIB);
}

/* Every page that moves takes an address away for as long as the device is behind. */
static void few_free_pages_stay_while_the_device_is_far_behind(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    fall_behind(&rig);
    (void)rig_alloc(&rig, 4 * MIB, 0);
    assert_int_equal(moved(&rig), 16);
    assert_int_equal(reserved(&rig), 250 * MIB);
    assert_int_equal(tarn_sim_unblock_stream(rig.device, 0), TARN_OK);
    (void)rig_alloc(&rig, 40 * MIB, 0);
    assert_int_equal(moved(&rig), 17);
    assert_int_equal(reserved(&rig), 288 * MIB);
    rig_close(&rig);
}

/* Those that stayed are taken before a request fails, within a limit and where the device is full
 * before. */
static void pages_that_stayed_are_taken_when_memory_is_short(void **state)
{
    struct rig rig;

    (void)state;
    for (int i = 0; i < 2; i++) {
        rig_open(&rig, GIB, COMPACT);
        if (i == 0) {
            rig_limit(&rig, 248.0 / 1024);
        }
        fall_behind(&rig);
        if (i == 1) {
            tarn_sim_set_foreign_memory(rig.device, GIB - 248 * MIB);
        }
        (void)rig_alloc(&rig, 4 * MIB, 0);
        assert_int_equal(moved(&rig), 17);
        assert_int_equal(reserved(&rig), 248 * MIB);
        rig_alloc_oom(&rig, 4 * MIB, 0);
        assert_int_equal(tarn_sim_unblock_stream(rig.device, 0), TARN_OK);
        rig_close(&rig);
    }
}

static void take_turns(struct rig *rig, int times)
{
    for (int i = 0; i < times; i++) {
        rig_free(rig, rig_alloc(rig, 40 * MIB, 1));
        rig_free(rig, rig_alloc(rig, 40 * MIB, 2));
    }
}

/* Moving the same pages to and fro would take longer than the work. */
static void streams_that_take_turns_get_new_pages(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    take_turns(&rig, 5);
    assert_int_equal(moved(&rig), 40); /* to the second stream, and back once */
    assert_int_equal(reserved(&rig), 80 * MIB);
    rig_free(&rig, rig_alloc(&rig, 40 * MIB, 3));
    assert_int_equal(reserved(&rig), 120 * MIB);
    tarn_sim_advance_ns(rig.device, 1000000000); /* a thirtieth of it may be used */
    rig_free(&rig, rig_alloc(&rig, 80 * MIB, 3));
    assert_int_equal(moved(&rig), 40 + 20);
    assert_int_equal(reserved(&rig), 120 * MIB);
    rig_close(&rig);
}

/* Where the device is full before it says so, those pages move after all; each host allocation of
 * that fails once. */
static void a_full_device_ends_taking_turns(void **state)
{
    enum {
        CALLS = 40 /* more than it makes: some are coped with */
    };
    enum tarn_status st = TARN_ERR_HOST_MEMORY;
    unsigned failures = 0;

    (void)state;
    for (uint64_t n = 1; n <= CALLS; n++) {
        tarn_ptr ptr = 0;
        struct rig rig;

        rig_open(&rig, GIB, COMPACT);
        take_turns(&rig, 5);
        tarn_sim_set_foreign_memory(rig.device, GIB - 80 * MIB);
        scarce_begin(rig.allocator);
        tarn_host_fail_nth(n);
        st = tarn_allocator_alloc(rig.allocator, 60 * MIB, 1, &ptr, &rig.error);
        tarn_host_fail_nth(0);
        scarce_end();
        assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
        failures += st != TARN_OK;
        rig_check(&rig);
        assert_int_equal(reserved(&rig), 80 * MIB);
        assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATED_BYTES), st ? 0 : 60 * MIB);
        rig_close(&rig);
    }
    assert_int_equal(st, TARN_OK);
    assert_true(failures > 2);
}

static const struct tn_device_ops *usual_ops;
static uint64_t clock_ns; /* of the slow device */

static uint64_t clock_now_ns(struct tarn_device *device)
{
    (void)device;
    return clock_ns;
}

static enum tarn_status map_slowly(struct tarn_device *device, tarn_ptr address, uint64_t size,
                                   tn_page_handle page)
{
    clock_ns += 1000000;
    return usual_ops->map(device, address, size, page);
}

/* Where a page takes longer than assumed, fewer may move in the same time. */
static void pages_that_move_slowly_move_less(void **state)
{
    struct rig rig;
    struct tn_device_ops slow;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    usual_ops = rig.device->ops;
    slow = *usual_ops;
    slow.map = map_slowly;
    slow.now_ns = clock_now_ns;
    rig.device->ops = &slow;
    take_turns(&rig, 5);
    assert_int_equal(moved(&rig), 40); /* which took 40 ms */
    assert_int_equal(reserved(&rig), 80 * MIB);
    rig_free(&rig, rig_alloc(&rig, 40 * MIB, 3));
    clock_ns += 1000000000;
    rig_free(&rig, rig_alloc(&rig, 80 * MIB, 3));
    assert_int_equal(moved(&rig), 40);
    assert_int_equal(reserved(&rig), 160 * MIB);
    clock_ns += 200000000;
    rig_free(&rig, rig_alloc(&rig, 120 * MIB, 3));
    assert_int_equal(moved(&rig), 40 + 20);
    assert_int_equal(reserved(&rig), 160 * MIB);
    rig.device->ops = usual_ops;
    rig_close(&rig);
}

/* What a stream left behind that needs no more moves to the next one, in no time. */
static void streams_used_once_leave_their_pages_to_the_next(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    for (tarn_stream stream = 1; stream <= 20; stream++) {
        rig_free(&rig, rig_alloc(&rig, 40 * MIB, stream));
        assert_int_equal(reserved(&rig), 40 * MIB);
    }
    assert_int_equal(moved(&rig), 19 * 20);
    rig_close(&rig);
}

static void streams_that_take_turns_move_pages_when_memory_is_short(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 100 * MIB, COMPACT);
    take_turns(&rig, 5);
    assert_int_equal(moved(&rig), 9 * 20);
    assert_int_equal(reserved(&rig), 40 * MIB);
    rig_close(&rig);
}

/* Under a limit memory is short only when the limit is reached. */
static void streams_that_take_turns_may_use_all_of_a_limit(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    rig_limit(&rig, 100.0 / 1024);
    take_turns(&rig, 5);
    assert_int_equal(moved(&rig), 40); /* to the second stream, and back once */
    assert_int_equal(reserved(&rig), 80 * MIB);
    (void)rig_alloc(&rig, 40 * MIB, 3);
    assert_int_equal(moved(&rig), 40 + 20);
    assert_int_equal(reserved(&rig), 80 * MIB);
    rig_close(&rig);
}

/* A hole whose first half has lost its pages. Returns its address. */
static tarn_ptr leave_half_a_hole(struct rig *rig)
{
    (void)rig_alloc(rig, 2 * MIB, 0);
    const tarn_ptr first = rig_alloc(rig, 8 * MIB, 0);
    const tarn_ptr second = rig_alloc(rig, 8 * MIB, 0);

    (void)rig_alloc(rig, 2 * MIB, 0);
    rig_free(rig, first);
    (void)rig_alloc(rig, 30 * MIB, 0);
    assert_int_equal(moved(rig), 4);
    (void)rig_alloc(rig, 20 * MIB, 0); /* the old addresses are unmapped */
    rig_free(rig, second);
    return first;
}

/* A step of training, the same each time: a layer keeps some blocks until its turn comes again on
 * the way back, where each of them needs another of its size and leaves a gradient; then the
 * optimizer has a temporary for each gradient. */
static void train_step(struct rig *rig)
{
    enum {
        LAYERS = 12,
        KEPT = 14,
        ROW = 513 * 8 * 768 * 2 /* bytes */
    };
    static const uint64_t rows[KEPT] = {2, 1, 3, 1, 2, 2, 1, 4, 4, 4, 4, 4, 4, 2};
    tarn_ptr kept[LAYERS][KEPT];
    tarn_ptr gradients[LAYERS];

    for (int layer = 0; layer < LAYERS; layer++) {
        for (int i = 0; i < KEPT; i++) {
            const tarn_ptr temporary = rig_alloc(rig, rows[KEPT - 1 - i] * ROW, 1);

            kept[layer][i] = rig_alloc(rig, rows[i] * ROW, 1);
            rig_free(rig, temporary);
        }
    }
    const tarn_ptr logits = rig_alloc(rig, 65 * (uint64_t)ROW, 1);

    rig_free(rig, rig_alloc(rig, 130 * (uint64_t)ROW, 1));
    for (int layer = LAYERS - 1; layer >= 0; layer--) {
        for (int i = KEPT - 1; i >= 0; i--) {
            const tarn_ptr temporary = rig_alloc(rig, rows[i] * ROW, 1);

            rig_free(rig, kept[layer][i]);
            rig_free(rig, temporary);
        }
        gradients[layer] = rig_alloc(rig, 9 * MIB + 4096, 1);
    }
    rig_free(rig, logits);
    for (int layer = 0; layer < LAYERS; layer++) {
        rig_free(rig, rig_alloc(rig, 9 * MIB + 4096, 1));
        rig_free(rig, gradients[layer]);
    }
}

/* For less than a hundredth of the memory. */
static void what_repeats_itself_moves_no_pages(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 16 * GIB, COMPACT);
    for (int i = 0; i < 5; i++) {
        train_step(&rig);
    }
    const uint64_t before = moved(&rig);

    assert_true(before > 0);
    for (int i = 0; i < 20; i++) {
        train_step(&rig);
    }
    assert_int_equal(moved(&rig), before);
    const int64_t live = rig_stats(&rig).by_pool[TARN_STAT_ACTIVE_BYTES][TARN_STAT_ALL].peak;

    assert_true(reserved(&rig) > (uint64_t)live);
    assert_true(reserved(&rig) <= (uint64_t)live * 129 / 128);
    rig_close(&rig);
}

/* Forward and backward, with the same random sizes in every step. */
static void random_step(struct rig *rig, uint64_t largest)
{
    enum {
        BLOCKS = 60
    };
    tarn_ptr kept[BLOCKS];
    uint64_t seed = 7;

    for (int i = 0; i < BLOCKS; i++) {
        const tarn_ptr temporary = rig_alloc(rig, 512 + draw(&seed) % largest, 1);

        kept[i] = rig_alloc(rig, 512 + draw(&seed) % largest, 1);
        rig_free(rig, temporary);
    }
    for (int i = BLOCKS - 1; i >= 0; i--) {
        const tarn_ptr temporary = rig_alloc(rig, 512 + draw(&seed) % largest, 1);

        rig_free(rig, kept[i]);
        rig_free(rig, temporary);
    }
}

static uint64_t moved_in_steps(struct rig *rig, int steps, uint64_t largest)
{
    const uint64_t before = moved(rig);

    for (int i = 0; i < steps; i++) {
        random_step(rig, largest);
    }
    return moved(rig) - before;
}

/* Where a 128th is too little a program gets more memory once much has moved, until more lives than
 * before or the cache is emptied. */
static void what_repeats_itself_for_long_settles(void **state)
{
    const uint64_t largest = 6 * MIB;
    struct rig rig;

    (void)state;
    rig_open(&rig, 16 * GIB, COMPACT);
    const uint64_t *grown_to = &rig_engine(rig.allocator)->compact.slack.grown_to;

    for (int i = 0; i < 2; i++) {
        (void)moved_in_steps(&rig, 20, largest);
        assert_true(moved_in_steps(&rig, 10, largest) > 0);
        assert_int_equal(*grown_to, 0);
        const uint64_t before = reserved(&rig);

        (void)moved_in_steps(&rig, 500, largest);
        assert_int_equal(moved_in_steps(&rig, 50, largest), 0);
        assert_true(reserved(&rig) > before);
        assert_true(reserved(&rig) <= *grown_to);
        assert_true(*grown_to <= before + before / 15);
        if (i == 0) {
            assert_int_equal(tarn_allocator_empty_cache(rig.allocator, NULL), TARN_OK);
        }
    }
    (void)rig_alloc(&rig, *grown_to + 1, 1);
    assert_int_equal(*grown_to, 0);
    rig_close(&rig);
}

static void nothing_settles_where_memory_is_short(void **state)
{
    const uint64_t largest = 6 * MIB;
    struct rig rig;

    (void)state;
    rig_open(&rig, 16 * GIB, COMPACT);
    (void)moved_in_steps(&rig, 20, largest);
    const uint64_t enough = reserved(&rig);

    assert_int_equal(tarn_allocator_empty_cache(rig.allocator, NULL), TARN_OK);
    rig_limit(&rig, (double)enough / (16.0 * GIB));
    (void)moved_in_steps(&rig, 500, largest);
    assert_int_equal(reserved(&rig), enough);
    assert_int_equal(rig_engine(rig.allocator)->compact.slack.grown_to, 0);
    assert_true(moved_in_steps(&rig, 10, largest) > 0);
    rig_close(&rig);
}

/* Beyond half of the device pages move to the beginning of holes also for what had settled: no
 * slack is left that could end it. */
static void what_settled_is_tidy_where_memory_is_short(void **state)
{
    struct rig rig;

    (void)state;
    for (int is_short = 0; is_short < 2; is_short++) {
        rig_open(&rig, 100 * MIB, "policy:compact");
        struct tn_compact *compact = &rig_engine(rig.allocator)->compact;
        const tarn_ptr first = rig_alloc(&rig, 6 * MIB, 0);
        const tarn_ptr hole = rig_alloc(&rig, 8 * MIB, 0);
        const tarn_ptr rest = rig_alloc(&rig, (is_short ? 50 : 20) * MIB, 0);

        rig_free(&rig, hole);
        (void)rig_alloc(&rig, 12 * MIB, 0); /* takes the pages of the hole */
        assert_int_equal(compact->pages_moved, 4);
        rig_free(&rig, first);
        compact->slack.grown_to = 1; /* it had moved too much before */
        rig_empty_cache(&rig);
        compact->slack.grown_to = 1;
        assert_int_equal(rig_alloc(&rig, 10 * MIB, 0), first);
        rig_free(&rig, first);
        rig_free(&rig, rest);
        rig_close(&rig);
    }
}

/* A free block without a place in a bin, for want of host memory, does not pass for pages. */
static void blocks_without_a_place_are_no_pages(void **state)
{
    unsigned reached = 0;

    (void)state;
    for (uint64_t k = 1; k <= 30; k++) {
        for (uint64_t n = 1; n <= 16; n++) {
            tarn_ptr small = 0;
            tarn_ptr large = 0;
            struct rig rig;

            rig_open(&rig, 200 * MIB, "policy:compact");
            tarn_host_fail_nth(k);
            enum tarn_status st = tarn_allocator_alloc(rig.allocator, 512, 1, &small, &rig.error);

            tarn_host_fail_nth(0);
            assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
            const struct tn_pool *pool = &rig_engine(rig.allocator)->heap.small;
            const struct tn_free_set *set = pool->count > 0 ? pool->sets[0] : NULL;
            const bool is_linked = st == TARN_OK && set && set->linked.first;

            tarn_host_fail_nth(n);
            st = tarn_allocator_alloc(rig.allocator, 30 * MIB, 1, &large, &rig.error);
            tarn_host_fail_nth(0);
            assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
            reached += is_linked && st == TARN_OK && set->linked.first;
            rig_check(&rig);
            rig_close(&rig);
        }
    }
    assert_true(reached > 0);
}

/* Slack is for what lives, not for what lived before the cache was emptied. */
static void an_emptied_cache_has_no_slack(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 16 * GIB, COMPACT);
    rig_free(&rig, rig_alloc(&rig, 2 * GIB, 1)); /* 16 MiB of slack */
    assert_int_equal(tarn_allocator_empty_cache(rig.allocator, NULL), TARN_OK);
    (void)leave_hole(&rig, 1);
    (void)rig_alloc(&rig, 40 * MIB, 1);
    assert_int_equal(moved(&rig), 15);
    assert_int_equal(reserved(&rig), 42 * MIB);
    rig_close(&rig);
}

/* Where memory is short it has to move them. */
static void what_repeats_itself_needs_no_slack(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 16 * GIB, COMPACT);
    train_step(&rig);
    const int64_t live = rig_stats(&rig).by_pool[TARN_STAT_ACTIVE_BYTES][TARN_STAT_ALL].peak;

    assert_int_equal(tarn_allocator_empty_cache(rig.allocator, NULL), TARN_OK);
    rig_limit(&rig, (double)live * 1.002 / (16.0 * GIB));
    for (int i = 0; i < 5; i++) {
        train_step(&rig);
    }
    assert_true(reserved(&rig) <= (uint64_t)live + (uint64_t)live / 500);
    rig_close(&rig);
}

/* As if much had moved: nothing may for a second. */
static void spend_time(struct rig *rig)
{
    rig_engine(rig->allocator)->heap.tidy_from_ns = tarn_sim_now_ns(rig->device) + 1000000000;
}

static void a_request_goes_to_the_beginning_of_a_hole(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    const tarn_ptr hole = leave_half_a_hole(&rig);
    const uint64_t before = reserved(&rig);

    assert_int_equal(rig_alloc(&rig, 7 * MIB, 0), hole);
    assert_int_equal(moved(&rig), 8);
    assert_int_equal(reserved(&rig), before);
    rig_close(&rig);
}

/* Where the pages are, if moving has taken too long already. */
static void a_request_stays_in_the_middle_of_a_hole_when_time_is_short(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    const tarn_ptr hole = leave_half_a_hole(&rig);

    spend_time(&rig);
    assert_int_equal(rig_alloc(&rig, 7 * MIB, 0), hole + 8 * MIB);
    assert_int_equal(moved(&rig), 4);
    rig_close(&rig);
}

/* A try that may not grow moves nothing. */
static void a_try_stays_in_the_middle_of_a_hole(void **state)
{
    struct rig rig;
    tarn_ptr ptr = 0;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    const tarn_ptr hole = leave_half_a_hole(&rig);

    assert_int_equal(tarn_alloc_try(rig.allocator, 9 * MIB, 0, TARN_ALLOC_NEVER_GROW, &ptr),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(tarn_alloc_try(rig.allocator, 7 * MIB, 0, TARN_ALLOC_NEVER_GROW, &ptr),
                     TARN_OK);
    assert_int_equal(ptr, hole + 8 * MIB);
    assert_int_equal(moved(&rig), 4);
    rig_close(&rig);
}

/* What was chosen for lack of time is chosen anew when there is time again. */
static void a_request_goes_to_the_beginning_of_a_hole_once_there_is_time(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    const tarn_ptr hole = leave_half_a_hole(&rig);

    spend_time(&rig);
    for (int i = 0; i < 3; i++) {
        const tarn_ptr ptr = rig_alloc(&rig, 7 * MIB, 0);

        assert_int_equal(ptr, hole + 8 * MIB);
        rig_free(&rig, ptr);
    }
    tarn_sim_advance_ns(rig.device, 1000000000);
    assert_int_equal(rig_alloc(&rig, 7 * MIB, 0), hole);
    assert_int_equal(moved(&rig), 8);
    rig_close(&rig);
}

/* While a graph may be captured no event is recorded, so that nothing can move. */
static void a_request_stays_in_the_middle_of_a_hole_during_a_capture(void **state)
{
    const struct tarn_pool_id id = {0, 1};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    const tarn_ptr hole = leave_half_a_hole(&rig);
    const uint64_t before = reserved(&rig);

    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, id, only_stream_1, NULL, NULL),
                     TARN_OK);
    assert_int_equal(rig_alloc(&rig, 7 * MIB, 0), hole + 8 * MIB);
    assert_int_equal(reserved(&rig), before);
    assert_int_equal(tarn_allocator_end_pool(rig.allocator, id, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_release_pool(rig.allocator, id, NULL), TARN_OK);
    rig_close(&rig);
}

static struct tarn_page_stats pages_of(struct rig *rig)
{
    struct tarn_page_stats pages = {.struct_size = sizeof pages};

    tarn_allocator_get_page_stats(rig->allocator, &pages);
    return pages;
}

static void pages_and_their_time_are_counted(void **state)
{
    struct rig rig;
    uint64_t timed = 0;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    (void)leave_hole(&rig, 1);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    (void)rig_alloc(&rig, 40 * MIB, 1);
    const struct tarn_page_stats pages = pages_of(&rig);

    assert_int_equal(pages.page_size, 2 * MIB);
    assert_int_equal(pages.created, 21);
    assert_int_equal(pages.moved, 15);
    assert_int_equal(pages.kept, 0);
    assert_int_equal(pages.retired, 15);
    assert_int_equal(rig_engine(rig.allocator)->compact.retired.pages_most, 15);
    assert_int_equal(pages.requests, 3);
    assert_true(pages.longest_ns > 0 && pages.longest_ns <= pages.request_ns);
    for (int i = 0; i < TARN_PAGE_TIMES; i++) {
        timed += pages.by_time[i];
    }
    assert_int_equal(timed, 3);
    rig_close(&rig);
}

/* Each bucket has the times below 1 us, 2 us, 4 us and so on, and the last one also the rest. */
static void times_of_requests_are_sorted_by_length(void **state)
{
    static struct tn_compact compact;

    (void)state;
    for (unsigned bucket = 0; bucket < TARN_PAGE_TIMES; bucket++) {
        const uint64_t end = UINT64_C(1000) << bucket;

        compact.measured = (struct tarn_page_stats){0};
        tn_compact_measured(&compact, end - 1);
        assert_int_equal(compact.measured.by_time[bucket], 1);
        tn_compact_measured(&compact, end);
        assert_int_equal(compact.measured.requests, 2);
        assert_int_equal(compact.measured.request_ns, 2 * end - 1);
        assert_int_equal(compact.measured.longest_ns, end);
        if (bucket + 1 < TARN_PAGE_TIMES) {
            assert_int_equal(compact.measured.by_time[bucket + 1], 1);
        } else {
            assert_int_equal(compact.measured.by_time[bucket], 2);
        }
    }
}

static void the_exact_policy_has_no_pages_to_count(void **state)
{
    const struct tarn_page_stats none = {.struct_size = sizeof none};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "expandable_segments:True");
    (void)rig_alloc(&rig, 40 * MIB, 0);
    const struct tarn_page_stats pages = pages_of(&rig);

    assert_memory_equal(&pages, &none, sizeof none);
    rig_close(&rig);
}

static void small_requests_share_pages_of_their_own(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    const tarn_ptr small = rig_alloc(&rig, 512, 0);
    const tarn_ptr large = rig_alloc(&rig, 3 * MIB, 0);

    assert_int_equal(reserved(&rig), 6 * MIB);
    rig_free(&rig, large);
    assert_int_equal(rig_alloc(&rig, MIB, 0), small + 512);
    assert_int_equal(rig_alloc(&rig, MIB, 0) >> 30, small >> 30); /* a page of the free block */
    assert_int_equal(reserved(&rig), 6 * MIB);
    assert_int_equal(moved(&rig), 1);
    rig_close(&rig);
}

static bool every_stream(void *context, tarn_stream stream)
{
    (void)context;
    (void)stream;
    return true;
}

static tarn_ptr alloc_in_pool(struct rig *rig, uint64_t size, tarn_stream stream)
{
    const struct tarn_pool_id id = {0, 1};

    assert_int_equal(tarn_allocator_begin_pool(rig->allocator, id, every_stream, NULL, NULL),
                     TARN_OK);
    const tarn_ptr ptr = rig_alloc(rig, size, stream);

    assert_int_equal(tarn_allocator_end_pool(rig->allocator, id, NULL), TARN_OK);
    return ptr;
}

static void pages_of_a_private_pool_stay(void **state)
{
    const struct tarn_pool_id id = {0, 1};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, id, every_stream, NULL, NULL),
                     TARN_OK);
    (void)leave_hole(&rig, 1);
    assert_int_equal(tarn_allocator_end_pool(rig.allocator, id, NULL), TARN_OK);
    (void)rig_alloc(&rig, 40 * MIB, 1);
    assert_int_equal(moved(&rig), 0);
    assert_int_equal(reserved(&rig), 72 * MIB);
    assert_int_equal(tarn_allocator_release_pool(rig.allocator, id, NULL), TARN_OK);
    rig_close(&rig);
}

/* CUDA does not capture that stream. */
static void pages_of_a_private_pool_of_the_default_stream_move(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    rig_free(&rig, alloc_in_pool(&rig, 30 * MIB, 0));
    (void)rig_alloc(&rig, 40 * MIB, 0);
    assert_int_equal(moved(&rig), 15);
    assert_int_equal(reserved(&rig), 40 * MIB);
    rig_close(&rig);
}

static void pages_of_the_default_stream_stay_once_another_uses_their_pool(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    const tarn_ptr ptr = alloc_in_pool(&rig, 30 * MIB, 0);

    rig_free(&rig, alloc_in_pool(&rig, 2 * MIB, 1));
    rig_free(&rig, ptr);
    (void)rig_alloc(&rig, 40 * MIB, 0);
    assert_int_equal(moved(&rig), 0);
    assert_int_equal(reserved(&rig), 72 * MIB);
    rig_close(&rig);
}

/* Under rules:2.14 a use of a private pool is no capture. */
#define NO_CAPTURE "policy:compact,rules:2.14"

enum {
    REFILLED = 24
};

/* New weights of other sizes replace the old ones, one after the other. */
static void a_pool_that_is_refilled_keeps_no_more_than_lives(void **state)
{
    tarn_ptr ptrs[REFILLED] = {0};
    struct rig rig;

    (void)state;
    rig_open(&rig, 16 * GIB, NO_CAPTURE);
    for (uint64_t round = 0; round < 8; round++) {
        for (uint64_t i = 0; i < REFILLED; i++) {
            const tarn_ptr old = ptrs[i];

            ptrs[i] =
                alloc_in_pool(&rig, (40 + (i * 7 + round * 5) % 31 * 4) * MIB + i * 100 * KIB, 1);
            if (old) {
                rig_free(&rig, old);
            }
        }
    }
    const int64_t live = rig_stats(&rig).by_pool[TARN_STAT_ACTIVE_BYTES][TARN_STAT_ALL].peak;
    const int64_t peak = rig_stats(&rig).by_pool[TARN_STAT_RESERVED_BYTES][TARN_STAT_ALL].peak;

    assert_true(peak * 100 <= live * 102);
    assert_true(moved(&rig) > 0);
    rig_close(&rig);
}

/* A run without a capture, as it precedes one, and the capture into a pool of its own, whose result
 * lives on; the bytes that lived in it at most. PyTorch empties the cache in between. */
static uint64_t warm_and_capture(struct rig *rig, uint64_t batch)
{
    const struct tarn_pool_id id = {0, batch};
    const uint64_t size = batch * 4 * MIB;
    const tarn_ptr warm = rig_alloc(rig, size, 1);

    rig_free(rig, rig_alloc(rig, size, 1));
    rig_free(rig, warm);
    assert_int_equal(tarn_allocator_empty_cache(rig->allocator, NULL), TARN_OK);
    assert_int_equal(tarn_sim_set_capturing(rig->device, 1, true), TARN_OK);
    assert_int_equal(tarn_allocator_begin_pool(rig->allocator, id, every_stream, NULL, NULL),
                     TARN_OK);
    const tarn_ptr between = rig_alloc(rig, size, 1);

    (void)rig_alloc(rig, size, 1);
    rig_free(rig, between);
    assert_int_equal(tarn_allocator_end_pool(rig->allocator, id, NULL), TARN_OK);
    assert_int_equal(tarn_sim_set_capturing(rig->device, 1, false), TARN_OK);
    return 2 * size;
}

/* Thirty of them, from the largest and from the smallest batch on. */
static void captures_hold_what_lived_in_them(void **state)
{
    enum {
        BATCHES = 30
    };

    (void)state;
    for (int is_rising = 0; is_rising < 2; is_rising++) {
        struct rig rig;
        uint64_t live = 0;

        rig_open(&rig, 64 * GIB, COMPACT);
        for (uint64_t i = 1; i <= BATCHES; i++) {
            live += warm_and_capture(&rig, is_rising ? i : BATCHES + 1 - i);
        }
        assert_int_equal(reserved(&rig), live);
        rig_close(&rig);
    }
}

static void pages_of_a_pool_without_captures_go_anywhere(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, NO_CAPTURE);
    rig_free(&rig, alloc_in_pool(&rig, 30 * MIB, 1));
    (void)rig_alloc(&rig, 40 * MIB, 1);
    assert_int_equal(reserved(&rig), 40 * MIB);
    rig_close(&rig);
}

enum need {
    ANNOUNCED_CAPTURE,
    CAPTURE_OF_THE_DEVICE, /* only the device knows */
    CHECKPOINT,
    NEEDS
};

static void begin_need(struct rig *rig, enum need need, tarn_stream stream)
{
    if (need == ANNOUNCED_CAPTURE) {
        assert_int_equal(tarn_allocator_begin_capture(rig->allocator, NULL), TARN_OK);
    } else if (need == CAPTURE_OF_THE_DEVICE) {
        assert_int_equal(tarn_sim_set_capturing(rig->device, stream, true), TARN_OK);
    }
}

static struct tarn_checkpoint *end_need(struct rig *rig, enum need need, tarn_stream stream)
{
    const struct tarn_pool_id id = {0, 1};
    struct tarn_checkpoint *checkpoint = NULL;

    if (need == ANNOUNCED_CAPTURE) {
        assert_int_equal(tarn_allocator_end_capture(rig->allocator, NULL), TARN_OK);
    } else if (need == CAPTURE_OF_THE_DEVICE) {
        assert_int_equal(tarn_sim_set_capturing(rig->device, stream, false), TARN_OK);
    } else {
        assert_int_equal(tarn_allocator_get_checkpoint(rig->allocator, id, &checkpoint, NULL),
                         TARN_OK);
    }
    return checkpoint;
}

/* Also on the default stream, which only the simulated device captures. */
static void pages_that_a_capture_or_a_checkpoint_needs_stay(void **state)
{
    (void)state;
    for (unsigned i = 0; i < NEEDS * 2 * 2; i++) {
        const enum need need = i % NEEDS;
        const tarn_stream stream = i / NEEDS % 2;
        struct rig rig;

        rig_open(&rig, GIB, i / NEEDS / 2 == 0 ? NO_CAPTURE : COMPACT);
        begin_need(&rig, need, stream);
        rig_free(&rig, alloc_in_pool(&rig, 30 * MIB, stream));
        struct tarn_checkpoint *checkpoint = end_need(&rig, need, stream);

        (void)rig_alloc(&rig, 40 * MIB, stream);
        assert_int_equal(reserved(&rig), 70 * MIB);
        assert_int_equal(moved(&rig), 0);
        tarn_checkpoint_destroy(checkpoint);
        rig_close(&rig);
    }
}

static void shared_pages_stay(void **state)
{
    unsigned char message[1024];
    size_t length = 0;
    struct rig rig;

    (void)state;
    rig_open_with(&rig, (struct tarn_sim_options){.capacity = GIB, .backed = true}, COMPACT);
    const tarn_ptr ptr = rig_alloc(&rig, 30 * MIB, 0);

    (void)rig_alloc(&rig, 2 * MIB, 0);
    assert_int_equal(
        tarn_ipc_export(rig.allocator, ptr, message, sizeof message, &length, &rig.error), TARN_OK);
    rig_free(&rig, ptr);
    (void)rig_alloc(&rig, 40 * MIB, 0);
    assert_int_equal(moved(&rig), 0);
    assert_int_equal(reserved(&rig), 72 * MIB);
    rig_close(&rig);
}

static void share(struct rig *rig, tarn_ptr ptr)
{
    unsigned char message[1024];
    size_t length = 0;

    assert_int_equal(
        tarn_ipc_export(rig->allocator, ptr, message, sizeof message, &length, &rig->error),
        TARN_OK);
}

/* Free pages on both sides of shared ones, in one block, move. */
static void shared_pages_keep_no_others(void **state)
{
    struct rig rig;

    (void)state;
    rig_open_with(&rig, (struct tarn_sim_options){.capacity = GIB, .backed = true}, COMPACT);
    rig_limit(&rig, 110.0 / 1024);
    tarn_ptr parts[5];

    for (int i = 0; i < 5; i++) {
        parts[i] = rig_alloc(&rig, i % 2 == 0 ? 30 * MIB : 4 * MIB, 0);
    }
    (void)rig_alloc(&rig, 2 * MIB, 0);
    share(&rig, parts[1]);
    share(&rig, parts[3]);
    for (int i = 0; i < 5; i++) {
        rig_free(&rig, parts[i]);
    }
    (void)rig_alloc(&rig, 100 * MIB, 0); /* 45 pages move, 5 are new */
    assert_int_equal(moved(&rig), 45);
    assert_int_equal(reserved(&rig), 110 * MIB);
    rig_empty_cache(&rig);
    assert_int_equal(reserved(&rig), 102 * MIB);
    rig_close(&rig);
}

/* They go back to the device when nothing else helps: only live blocks make a request fail. */
static void free_shared_pages_go_back_before_a_request_fails(void **state)
{
    struct rig rig;

    (void)state;
    rig_open_with(&rig, (struct tarn_sim_options){.capacity = GIB, .backed = true}, COMPACT);
    rig_limit(&rig, 64.0 / 1024);
    const tarn_ptr given = rig_alloc(&rig, 40 * MIB, 1);
    const tarn_ptr kept = rig_alloc(&rig, 20 * MIB, 1);

    share(&rig, given);
    share(&rig, kept);
    rig_free(&rig, given);
    (void)rig_alloc(&rig, 44 * MIB, 2);
    assert_int_equal(moved(&rig), 0);
    assert_int_equal(reserved(&rig), 64 * MIB);
    assert_int_equal(sim_counters(rig.device).used_bytes, 64 * MIB);
    rig_alloc_oom(&rig, 2 * MIB, 2);
    rig_close(&rig);
}

/* Free pages of others that nobody was given stay when a pool is at its limit: giving them back
 * would not help. */
static void other_pages_stay_when_a_pool_is_full(void **state)
{
    const struct tarn_pool_options options = {.struct_size = sizeof options, .limit = 4 * MIB};
    struct tarn_pool *pool = NULL;
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open_with(&rig, (struct tarn_sim_options){.capacity = GIB, .backed = true}, COMPACT);
    assert_int_equal(tarn_pool_create(rig.allocator, &options, &pool, &rig.error), TARN_OK);
    assert_int_equal(tarn_pool_alloc(pool, 4 * MIB, 1, &ptr, &rig.error), TARN_OK);
    (void)leave_hole(&rig, 1);
    assert_int_equal(tarn_pool_alloc(pool, 2 * MIB, 1, &ptr, &rig.error), TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(moved(&rig), 0);
    assert_int_equal(reserved(&rig), 36 * MIB);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* The others are counted where that decides. */
static void shared_pages_do_not_hide_those_of_a_full_pool(void **state)
{
    static const uint64_t sizes[] = {30 * MIB, 4 * MIB, 2 * MIB, 30 * MIB, 2 * MIB};
    const struct tarn_pool_options options = {.struct_size = sizeof options, .limit = 72 * MIB};
    struct tarn_pool *pool = NULL;
    tarn_ptr parts[5];
    struct rig rig;

    (void)state;
    rig_open_with(&rig, (struct tarn_sim_options){.capacity = GIB, .backed = true}, COMPACT);
    assert_int_equal(tarn_pool_create(rig.allocator, &options, &pool, &rig.error), TARN_OK);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(tarn_pool_alloc(pool, sizes[i], 0, &parts[i], &rig.error), TARN_OK);
    }
    share(&rig, parts[1]);
    rig_free(&rig, parts[0]);
    rig_free(&rig, parts[1]);
    rig_free(&rig, parts[3]);
    assert_int_equal(tarn_pool_alloc(pool, 62 * MIB, 0, &parts[0], &rig.error), TARN_OK);
    assert_int_equal(moved(&rig), 30); /* else the pool would have given all of it back */
    assert_int_equal(reserved(&rig), 70 * MIB);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* Whether pages could have been new decides how much slack there is, so those that had to move
 * because the pool is at its limit do not count: 12 of 15 pages here. */
static void what_a_full_pool_moves_adds_no_slack(void **state)
{
    const struct tarn_pool_options options = {.struct_size = sizeof options, .limit = 48 * MIB};
    struct tarn_pool *pool = NULL;
    tarn_ptr hole = 0;
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, 16 * GIB, COMPACT);
    assert_int_equal(tarn_pool_create(rig.allocator, &options, &pool, &rig.error), TARN_OK);
    assert_int_equal(tarn_pool_alloc(pool, 30 * MIB, 0, &hole, &rig.error), TARN_OK);
    assert_int_equal(tarn_pool_alloc(pool, 2 * MIB, 0, &ptr, &rig.error), TARN_OK);
    rig_free(&rig, hole);
    assert_int_equal(tarn_pool_alloc(pool, 40 * MIB, 0, &ptr, &rig.error), TARN_OK);
    assert_int_equal(moved(&rig), 15);
    assert_int_equal(rig_engine(rig.allocator)->compact.slack.moved, 6 * MIB);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

static void emptying_the_cache_gives_every_free_page_back(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    (void)leave_hole(&rig, 0);
    (void)rig_alloc(&rig, 40 * MIB, 0);
    (void)leave_hole(&rig, 1);
    rig_empty_cache(&rig);
    assert_int_equal(reserved(&rig), 44 * MIB);
    assert_int_equal(sim_counters(rig.device).live_mappings, 22);
    rig_close(&rig);
}

/* ---- whoever registered the memory elsewhere ---- */

struct registrar {
    struct rig *rig;
    int64_t bytes;   /* mapped, by the events */
    uint64_t unmaps; /* of these, of memory that was mapped still */
    uint64_t late;
};

static void hear(void *context, const struct tarn_trace_event *event)
{
    struct registrar *registrar = context;

    if (event->action == TARN_ACTION_SEGMENT_MAP) {
        registrar->bytes += (int64_t)event->size;
    } else if (event->action == TARN_ACTION_SEGMENT_UNMAP) {
        const bool is_mapped =
            tarn_sim_host_memory(registrar->rig->device, event->address, event->size) != NULL;

        registrar->bytes -= (int64_t)event->size;
        registrar->unmaps += is_mapped;
        registrar->late += !is_mapped;
    }
}

static void registrar_check(struct registrar *registrar, uint64_t unmaps)
{
    assert_int_equal(registrar->unmaps, unmaps);
    assert_int_equal(registrar->late, 0);
    assert_int_equal(registrar->bytes, reserved(registrar->rig));
}

static void listeners_hear_before_an_address_goes(void **state)
{
    uint64_t left = 0;
    struct rig rig;
    struct registrar registrar = {.rig = &rig};
    const struct tarn_sink sink = {.context = &registrar, .receive = hear};

    (void)state;
    rig_open_with(&rig, (struct tarn_sim_options){.capacity = GIB, .backed = true}, COMPACT);
    assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, &rig.error), TARN_OK);
    (void)leave_hole(&rig, 0);
    (void)rig_alloc(&rig, 40 * MIB, 0); /* moves */
    registrar_check(&registrar, 1);
    (void)leave_hole(&rig, 0);
    assert_int_equal(tarn_allocator_trim(rig.allocator, 0, &left, &rig.error), TARN_OK);
    registrar_check(&registrar, 2);
    (void)leave_hole(&rig, 0);
    tarn_sim_fail_nth(rig.device, TARN_SIM_UNMAP, 4, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_empty_cache(rig.allocator, &rig.error), TARN_ERR_DEVICE);
    registrar_check(&registrar, 3); /* it also heard of what stays */
    rig_empty_cache(&rig);
    registrar_check(&registrar, 4);
    rig_close(&rig);
}

/* ---- what may stay cached ---- */

static void cached_memory_beyond_the_limit_goes_back(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact,max_cached_mb:8");
    (void)leave_hole(&rig, 0);
    assert_int_equal(reserved(&rig), 10 * MIB);
    assert_int_equal(sim_counters(rig.device).used_bytes, 10 * MIB);
    rig_free(&rig, rig_alloc(&rig, 7 * MIB, 0));
    assert_int_equal(reserved(&rig), 10 * MIB);
    rig_configure(&rig, "policy:compact,max_cached_mb:0");
    rig_free(&rig, rig_alloc(&rig, 512, 0));
    assert_int_equal(reserved(&rig), 2 * MIB);
    rig_configure(&rig, "policy:compact,max_cached_mb:100");
    rig_free(&rig, rig_alloc(&rig, 90 * MIB, 0));
    assert_true(reserved(&rig) >= 92 * MIB);
    rig_close(&rig);
}

static void what_work_may_use_is_not_given_back(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact,max_cached_mb:0");
    const tarn_ptr ptr = rig_alloc(&rig, 30 * MIB, 1);

    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    rig_free(&rig, ptr);
    assert_int_equal(reserved(&rig), 30 * MIB);
    assert_int_equal(sim_counters(rig.device).forced_unblocks, 0);
    assert_int_equal(tarn_sim_unblock_stream(rig.device, 1), TARN_OK);
    for (int i = 0; i < 8; i++) {
        rig_free(&rig, rig_alloc(&rig, 512, 0));
    }
    assert_int_equal(reserved(&rig), 0);
    rig_close(&rig);
}

/* Allocates, or frees what it allocated the last time. */
static void call_once(struct rig *rig, tarn_ptr *ptr)
{
    if (*ptr) {
        rig_free(rig, *ptr);
        *ptr = 0;
    } else {
        *ptr = rig_alloc(rig, 512, 0);
    }
}

/* How many calls it takes until a freed block goes back, after so many while work used it. */
static int calls_until_given_back(int calls_before)
{
    struct rig rig;
    tarn_ptr other = 0;
    int calls = 0;

    rig_open(&rig, GIB, "policy:compact,max_cached_mb:0");
    const tarn_ptr ptr = rig_alloc(&rig, 30 * MIB, 1);

    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    rig_free(&rig, ptr);
    for (int i = 0; i < calls_before; i++) {
        call_once(&rig, &other);
    }
    assert_true(reserved(&rig) >= 30 * MIB);
    assert_int_equal(tarn_sim_unblock_stream(rig.device, 1), TARN_OK);
    for (; reserved(&rig) >= 30 * MIB && calls < 1000; calls++) {
        call_once(&rig, &other);
    }
    rig_close(&rig);
    return calls;
}

/* The longer nothing can go, the more rarely that is looked at, but at least every 256th call. */
static void what_stays_in_use_is_looked_at_more_rarely(void **state)
{
    (void)state;
    for (int pause = 2; pause <= 256; pause *= 2) { /* it has just been looked at; or will be */
        assert_int_equal(calls_until_given_back(pause + 1), pause);
        assert_int_equal(calls_until_given_back(pause), 1);
    }
    assert_int_equal(calls_until_given_back(2 * 256 + 1), 256);
    assert_int_equal(calls_until_given_back(3 * 256 + 1), 256);
}

static void little_is_given_back_at_a_time(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact,max_cached_mb:16");
    rig_free(&rig, rig_alloc(&rig, 200 * MIB, 0));
    assert_int_equal(reserved(&rig), 136 * MIB);
    const tarn_ptr used = rig_alloc(&rig, 2 * MIB, 0);

    assert_int_equal(reserved(&rig), 72 * MIB);
    rig_free(&rig, used);
    assert_int_equal(reserved(&rig), 16 * MIB);
    rig_close(&rig);
}

static void pages_that_cannot_be_given_back_are_tried_again(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact,max_cached_mb:0");
    const tarn_ptr ptr = rig_alloc(&rig, 30 * MIB, 0);

    tarn_sim_fail_nth(rig.device, TARN_SIM_UNMAP, 1, TARN_ERR_DEVICE);
    rig_free(&rig, ptr);
    rig_check(&rig);
    assert_int_equal(reserved(&rig), 30 * MIB);
    for (int i = 0; i < 4; i++) {
        rig_free(&rig, rig_alloc(&rig, 512, 0));
    }
    assert_int_equal(reserved(&rig), 0);
    rig_close(&rig);
}

/* Old addresses of two streams stay, for two reasons: the first is reported. */
static void the_first_of_two_failures_is_reported(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    for (tarn_stream stream = 1; stream <= 2; stream++) {
        (void)leave_hole(&rig, stream);
        assert_int_equal(tarn_sim_block_stream(rig.device, stream), TARN_OK);
        (void)rig_alloc(&rig, 40 * MIB, stream);
    }
    assert_int_equal(moved(&rig), 30);
    tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_WAIT, 1, TARN_ERR_DEVICE);
    tarn_sim_fail_nth(rig.device, TARN_SIM_UNMAP, 1, TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(tarn_allocator_empty_cache(rig.allocator, &rig.error), TARN_ERR_DEVICE);
    rig_check(&rig);
    rig_empty_cache(&rig);
    rig_close(&rig);
}

static void the_policy_is_decided_at_creation(void **state)
{
    struct tarn_config config;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_config_parse(COMPACT, &config, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_set_config(rig.allocator, &config, &rig.error),
                     TARN_ERR_CONFIG);
    assert_non_null(strstr(rig.error.text, "the policy is decided"));
    rig_close(&rig);
}

/* The other options are taken, and those without a meaning change nothing. */
static void options_that_mean_nothing_change_nothing(void **state)
{
    static const char *const settings[] = {
        COMPACT ",expandable_segments:False",        COMPACT ",large_segment_size_mb:25",
        COMPACT ",garbage_collection_threshold:0.1", COMPACT ",throw_on_cudamalloc_oom:True",
        COMPACT ",release_lock_on_cudamalloc:True",  COMPACT ",max_split_size_mb:64",
    };

    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        rig_limit(&rig, 48.0 / 1024);
        (void)leave_hole(&rig, 1);
        (void)rig_alloc(&rig, 40 * MIB, 2);
        assert_int_equal(reserved(&rig), 42 * MIB);
        assert_int_equal(moved(&rig), 15);
        rig_close(&rig);
    }
}

static void the_async_backend_is_refused(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    struct tarn_allocator *allocator = NULL;
    struct tarn_config config;
    struct tarn_error error;

    (void)state;
    assert_int_equal(tarn_config_parse(COMPACT ",backend:cudaMallocAsync", &config, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_create(device, &config, &allocator, &error), TARN_ERR_CONFIG);
    assert_non_null(strstr(error.text, "cannot be combined with backend:cudaMallocAsync"));
    assert_null(allocator);
    sim_close(device);
}

/* ---- which moves when ---- */

/* Without a limit the other half of the device is left to others, to the page. */
static void half_of_a_device_is_plenty(void **state)
{
    (void)state;
    for (int is_short = 0; is_short < 2; is_short++) {
        struct rig rig;

        rig_open(&rig, (is_short ? 158 : 160) * MIB, COMPACT);
        take_turns(&rig, 5);
        assert_int_equal(reserved(&rig), (is_short ? 40 : 80) * MIB);
        rig_close(&rig);
    }
}

/* Moving 40 pages takes 1.24 ms; half of what creating 60 took, 780 us, is free. 30 times the rest
 * later more may move, and no nanosecond before. */
static void streams_that_take_turns_wait_for_their_share_of_time(void **state)
{
    (void)state;
    for (uint64_t early = 0; early < 2; early++) {
        struct rig rig;

        rig_open(&rig, GIB, COMPACT);
        take_turns(&rig, 5);
        rig_free(&rig, rig_alloc(&rig, 40 * MIB, 3));
        assert_int_equal(reserved(&rig), 120 * MIB);
        tarn_sim_advance_ns(rig.device, 30 * (1240000 - 780000) - early);
        rig_free(&rig, rig_alloc(&rig, 80 * MIB, 3));
        assert_int_equal(moved(&rig), early ? 40 : 60);
        rig_close(&rig);
    }
}

/* What moving takes beyond the usual is shared out among the pages moved and created. */
static void time_is_counted_by_the_page(void **state)
{
    struct rig rig;
    struct tn_device_ops slow;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    const struct tn_compact *compact = &rig_engine(rig.allocator)->compact;
    const tarn_ptr one = rig_alloc(&rig, 2 * MIB, 1);

    rig_free(&rig, one);
    rig_free(&rig, rig_alloc(&rig, 2 * MIB, 2)); /* one page moves, in no time */
    assert_int_equal(compact->pages_moved, 1);
    assert_int_equal(compact->moving_ns, TN_PAGE_MOVE_NS);
    (void)leave_hole(&rig, 1);
    usual_ops = rig.device->ops;
    slow = *usual_ops;
    slow.map = map_slowly;
    slow.now_ns = clock_now_ns;
    rig.device->ops = &slow;
    const uint64_t pages = 20;
    const uint64_t moved_before = compact->pages_moved;
    const uint64_t ns_before = compact->moving_ns;

    (void)rig_alloc(&rig, 40 * MIB, 1);
    rig.device->ops = usual_ops;
    const uint64_t again = compact->pages_moved - moved_before;
    const uint64_t assumed = again * TN_PAGE_MOVE_NS + (pages - again) * TN_PAGE_CREATE_NS;
    const uint64_t beyond = pages * 1000000 - assumed;

    assert_true(again > 0 && again < pages);
    assert_int_equal(compact->moving_ns - ns_before,
                     again * TN_PAGE_MOVE_NS + beyond / pages * again);
    rig_close(&rig);
}

/* The costs of a request are those of all that is tried for it. */
static void a_request_costs_what_all_its_steps_do(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 64 * MIB, COMPACT);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    (void)leave_hole(&rig, 1);
    rig_free(&rig, rig_alloc(&rig, 20 * MIB, 2));
    const uint64_t before = moved(&rig);

    (void)rig_alloc(&rig, 60 * MIB, 2);
    assert_int_equal(reserved(&rig), 64 * MIB);
    const uint64_t ns = (moved(&rig) - before) * TN_PAGE_MOVE_NS + 6 * TN_PAGE_CREATE_NS;

    assert_int_equal(rig_engine(rig.allocator)->compact.longest_ns, ns);
    rig_close(&rig);
}

/* A limit that is not below what the device has is none. */
static void a_limit_of_the_whole_device_is_none(void **state)
{
    struct rig rig;

    (void)state;
    for (uint64_t beyond = 0; beyond < 2; beyond++) {
        rig_open(&rig, 158 * MIB, COMPACT);
        assert_int_equal(tarn_allocator_set_limit(rig.allocator, (158 + beyond) * MIB, &rig.error),
                         TARN_OK);
        take_turns(&rig, 5);
        assert_int_equal(reserved(&rig), 40 * MIB);
        rig_close(&rig);
    }
}

/* A hole that was left for `size` bytes: two pieces of them are free, and 256 MiB lived. */
static void leave_pieces(struct rig *rig, uint64_t size, tarn_ptr pieces[2])
{
    pieces[0] = rig_alloc(rig, size / 2, 0);
    (void)rig_alloc(rig, 2 * MIB, 0);
    pieces[1] = rig_alloc(rig, size / 2, 0);
    (void)rig_alloc(rig, 254 * MIB - size, 0);
    rig_free(rig, pieces[0]);
    rig_free(rig, pieces[1]);
    assert_int_equal(reserved(rig), 256 * MIB);
}

/* As many pages are new as a 128th of what lived allows: one here, unless half of the device is
 * reserved or a watermark would take it back. */
static void slack_is_used_to_the_page(void **state)
{
    static const struct {
        uint64_t capacity;
        const char *conf;
        uint64_t moved;
        uint64_t counted; /* that were not moved for want of memory */
    } cases[] = {
        {GIB, COMPACT, 13, 13},
        {516 * MIB, COMPACT, 13, 0},
        {514 * MIB, COMPACT, 14, 0},
        {GIB, COMPACT ",max_cached_mb:1000", 14, 14},
        {516 * MIB, COMPACT ",max_cached_mb:1000", 14, 14},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tarn_ptr pieces[2];
        struct rig rig;

        rig_open(&rig, cases[i].capacity, cases[i].conf);
        leave_pieces(&rig, 28 * MIB, pieces);
        (void)rig_alloc(&rig, 28 * MIB, 0);
        assert_int_equal(moved(&rig), cases[i].moved);
        assert_int_equal(reserved(&rig), (256 + 2 * (14 - cases[i].moved)) * MIB);
        assert_int_equal(rig_engine(rig.allocator)->compact.slack.moved,
                         cases[i].counted * 2 * MIB);
        rig_close(&rig);
    }
}

/* Whether that is plenty is asked about the page that is needed, not about all that are free, in
 * several blocks or in one that a shared page divides. */
static void slack_is_for_what_is_needed(void **state)
{
    (void)state;
    for (int is_shared = 0; is_shared < 2; is_shared++) {
        tarn_ptr parts[4];
        struct rig rig;

        rig_open_with(&rig, (struct tarn_sim_options){.capacity = 1030 * MIB, .backed = is_shared},
                      COMPACT);
        for (int i = 0; i < 4; i++) {
            parts[i] = rig_alloc(&rig, 2 * MIB, 0);
        }
        (void)rig_alloc(&rig, 496 * MIB, 0);
        const tarn_ptr last = rig_alloc(&rig, 8 * MIB, 0);

        if (is_shared) {
            share(&rig, parts[1]);
            rig_free(&rig, parts[1]);
        }
        rig_free(&rig, parts[0]);
        rig_free(&rig, parts[2]);
        rig_free(&rig, last);
        assert_int_equal(reserved(&rig), 512 * MIB);
        assert_int_equal(rig_alloc(&rig, 10 * MIB, 0), last); /* lacks one page */
        assert_int_equal(moved(&rig), 0);
        assert_int_equal(reserved(&rig), 514 * MIB);
        rig_close(&rig);
    }
}

/* Free pages that shared ones divide are taken before any are new. */
static void shared_pages_keep_no_others_from_moving(void **state)
{
    tarn_ptr parts[3];
    struct rig rig;

    (void)state;
    rig_open_with(&rig, (struct tarn_sim_options){.capacity = GIB, .backed = true}, COMPACT);
    for (int i = 0; i < 3; i++) {
        parts[i] = rig_alloc(&rig, 10 * MIB, 0);
    }
    (void)rig_alloc(&rig, 2 * MIB, 0);
    share(&rig, parts[1]);
    for (int i = 0; i < 3; i++) {
        rig_free(&rig, parts[i]);
    }
    (void)rig_alloc(&rig, 40 * MIB, 0);
    assert_int_equal(moved(&rig), 10);
    assert_int_equal(reserved(&rig), 52 * MIB);
    rig_close(&rig);
}

/* A pool has a free block of `before`, 4 shared and `after` MiB, and three pages are left until its
 * limit. A request that fits no free block needs all of its pages, and `more`. */
static uint64_t moved_in_full_pool(uint64_t before, uint64_t after, uint64_t more)
{
    const uint64_t sizes[] = {2, before, 4, after, 14};
    const struct tarn_pool_options options = {.struct_size = sizeof options,
                                              .limit = (26 + before + after) * MIB};
    struct tarn_pool *pool = NULL;
    tarn_ptr parts[5];
    struct rig rig;

    rig_open_with(&rig, (struct tarn_sim_options){.capacity = GIB, .backed = true}, COMPACT);
    assert_int_equal(tarn_pool_create(rig.allocator, &options, &pool, &rig.error), TARN_OK);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(tarn_pool_alloc(pool, sizes[i] * MIB, 0, &parts[i], &rig.error), TARN_OK);
    }
    share(&rig, parts[2]);
    for (int i = 1; i < 4; i++) {
        rig_free(&rig, parts[i]);
    }
    assert_int_equal(
        tarn_pool_alloc(pool, (before + after + 6 + 2 * more) * MIB, 0, &parts[0], &rig.error),
        TARN_OK); /* what the pool cannot move it gives back */
    const uint64_t pages = moved(&rig);

    tarn_pool_destroy(pool);
    rig_close(&rig);
    return pages;
}

/* All pages that a full pool has are counted, each of them once. If they are too few they go back
 * to the device, but for one page that may stay. */
static void pages_of_a_full_pool_that_shared_ones_divide_are_counted(void **state)
{
    (void)state;
    assert_int_equal(moved_in_full_pool(6, 10, 0), 8);
    assert_int_equal(moved_in_full_pool(6, 10, 1), 1);
    assert_int_equal(moved_in_full_pool(2, 10, 0), 6);
    assert_int_equal(moved_in_full_pool(2, 10, 1), 1);
    assert_int_equal(moved_in_full_pool(10, 2, 0), 6);
    assert_int_equal(moved_in_full_pool(10, 2, 1), 1);
}

/* ---- what a full pool may take ---- */

/* What its limit does not let it get from elsewhere comes from its own streams, which it waits for,
 * and the rest from wherever pages are free. */
static void a_full_pool_takes_no_more_from_others_than_its_limit_allows(void **state)
{
    const struct tarn_pool_options options = {.struct_size = sizeof options, .limit = 40 * MIB};
    struct tarn_pool_stats stats = {.struct_size = sizeof stats};
    struct tarn_pool *pool = NULL;
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    assert_int_equal(tarn_pool_create(rig.allocator, &options, &pool, &rig.error), TARN_OK);
    assert_int_equal(tarn_pool_alloc(pool, 30 * MIB, 1, &ptr, &rig.error), TARN_OK);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    rig_free(&rig, ptr);
    (void)leave_hole(&rig, 2);
    assert_int_equal(reserved(&rig), 62 * MIB);
    assert_int_equal(tarn_pool_alloc(pool, 40 * MIB, 2, &ptr, &rig.error), TARN_OK);
    assert_int_equal(tarn_pool_get_stats(pool, &stats), TARN_OK);
    assert_int_equal(stats.reserved, 40 * MIB);
    assert_int_equal(reserved(&rig), 62 * MIB);
    assert_int_equal(moved(&rig), 20);
    assert_int_equal(tarn_sim_unblock_stream(rig.device, 1), TARN_OK);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* Where no event may be recorded it fails, and waits for nobody. */
static void a_full_pool_waits_for_nobody_during_a_capture(void **state)
{
    const struct tarn_pool_id id = {.first = 1};
    const struct tarn_pool_options options = {.struct_size = sizeof options, .limit = 30 * MIB};
    struct tarn_pool *pool = NULL;
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    assert_int_equal(tarn_pool_create(rig.allocator, &options, &pool, &rig.error), TARN_OK);
    assert_int_equal(tarn_pool_alloc(pool, 30 * MIB, 2, &ptr, &rig.error), TARN_OK);
    rig_free(&rig, ptr);
    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, id, only_stream_1, NULL, NULL),
                     TARN_OK);
    const uint64_t records = sim_counters(rig.device).calls[TARN_SIM_EVENT_RECORD];

    assert_int_equal(tarn_pool_alloc(pool, 20 * MIB, 3, &ptr, &rig.error), TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_EVENT_RECORD], records);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_STREAM_WAIT_EVENT], 0);
    assert_int_equal(tarn_allocator_end_pool(rig.allocator, id, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_release_pool(rig.allocator, id, NULL), TARN_OK);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* A request of the default pools takes nothing from a pool with a higher priority. */
static void pages_of_pools_with_a_higher_priority_stay(void **state)
{
    (void)state;
    for (int priority = 0; priority < 2; priority++) {
        const struct tarn_pool_options options = {.struct_size = sizeof options,
                                                  .priority = priority};
        struct tarn_pool *pool = NULL;
        tarn_ptr ptr = 0;
        struct rig rig;

        rig_open(&rig, GIB, COMPACT);
        assert_int_equal(tarn_pool_create(rig.allocator, &options, &pool, &rig.error), TARN_OK);
        assert_int_equal(tarn_pool_alloc(pool, 30 * MIB, 1, &ptr, &rig.error), TARN_OK);
        rig_free(&rig, ptr);
        (void)rig_alloc(&rig, 40 * MIB, 1);
        assert_int_equal(moved(&rig), priority ? 0 : 15);
        assert_int_equal(reserved(&rig), (priority ? 70 : 40) * MIB);
        tarn_pool_destroy(pool);
        rig_close(&rig);
    }
}

/* ---- while the device is behind ---- */

/* An eighth of what is reserved is old, to the page, and memory is plentiful: no more than a 96th
 * of what is reserved, and a page, stays free. */
static void free_pages_stay_only_while_the_device_is_far_behind(void **state)
{
    static const struct {
        uint64_t capacity;
        uint64_t first; /* that lives */
        uint64_t free;
        bool stays;
    } cases[] = {
        {GIB, 200 * MIB, 2 * MIB, true},       {GIB, 210 * MIB, 2 * MIB, true},
        {GIB, 212 * MIB, 2 * MIB, false},      {GIB, 200 * MIB, 4 * MIB, false},
        {504 * MIB, 200 * MIB, 2 * MIB, true}, {502 * MIB, 200 * MIB, 2 * MIB, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rig rig;

        rig_open(&rig, cases[i].capacity, COMPACT);
        fall_behind_with(&rig, cases[i].first, cases[i].free);
        const uint64_t before = reserved(&rig);

        (void)rig_alloc(&rig, 6 * MIB, 0);
        assert_int_equal(moved(&rig), 16 + (cases[i].stays ? 0 : cases[i].free / (2 * MIB)));
        assert_int_equal(reserved(&rig), before + 6 * MIB - (cases[i].stays ? 0 : cases[i].free));
        assert_int_equal(tarn_sim_unblock_stream(rig.device, 0), TARN_OK);
        rig_close(&rig);
    }
}

/* ---- pages that are kept ---- */

/* 15 pages of the stream, which is blocked, and five new ones are kept after a failure. */
static void keep_pages(struct rig *rig, tarn_stream stream)
{
    tarn_ptr ptr = 0;

    (void)leave_hole(rig, stream);
    assert_int_equal(tarn_sim_block_stream(rig->device, stream), TARN_OK);
    tarn_sim_fail_nth(rig->device, TARN_SIM_MAP, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_alloc(rig->allocator, 40 * MIB, stream, &ptr, NULL),
                     TARN_ERR_DEVICE);
    assert_int_equal(pages_of(rig).kept, 20);
}

/* Once their streams are done with them, also those of a stream that kept one page only, and has no
 * free ones. */
static void kept_pages_of_several_streams_serve_others(void **state)
{
    tarn_ptr small[2];
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    for (tarn_stream i = 0; i < 2; i++) {
        small[i] = rig_alloc(&rig, 2 * MIB, 1 + i);
    }
    keep_pages(&rig, 1);
    assert_int_equal(tarn_sim_block_stream(rig.device, 2), TARN_OK);
    tarn_sim_fail_nth(rig.device, TARN_SIM_MAP, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 2 * MIB, 2, &ptr, NULL), TARN_ERR_DEVICE);
    assert_int_equal(pages_of(&rig).kept, 21);
    rig_free(&rig, small[0]);
    rig_free(&rig, small[1]);
    (void)rig_alloc(&rig, 4 * MIB, 3); /* marks both, whose work is under way */
    for (tarn_stream i = 0; i < 2; i++) {
        assert_int_equal(rig_alloc(&rig, 2 * MIB, 1 + i), small[i]);
        assert_int_equal(tarn_sim_unblock_stream(rig.device, 1 + i), TARN_OK);
    }
    const uint64_t before = reserved(&rig);

    (void)rig_alloc(&rig, 42 * MIB, 3);
    assert_int_equal(pages_of(&rig).kept, 0);
    assert_int_equal(reserved(&rig), before);
    rig_close(&rig);
}

/* A stream that has to wait takes no more of them than it needs: the others stay with theirs. */
static void a_stream_takes_no_more_kept_pages_than_it_needs(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 42 * MIB, COMPACT);
    keep_pages(&rig, 1);
    (void)rig_alloc(&rig, 10 * MIB, 2);
    assert_int_equal(pages_of(&rig).kept, 15);
    assert_int_equal(device_waits(&rig), 1);
    (void)rig_alloc(&rig, 30 * MIB, 1);
    assert_int_equal(pages_of(&rig).kept, 0);
    assert_int_equal(device_waits(&rig), 1);
    assert_int_equal(reserved(&rig), 42 * MIB);
    rig_close(&rig);
}

/* Where streams can wait on the device the host does not, for a block in use either. */
static void the_host_waits_for_nothing_while_pages_suffice(void **state)
{
    (void)state;
    for (int is_kept = 0; is_kept < 2; is_kept++) {
        struct rig rig;

        rig_open(&rig, (is_kept ? 44 : 34) * MIB, COMPACT);
        const tarn_ptr used = rig_alloc(&rig, 2 * MIB, 3);

        rig_record(&rig, used, 4);
        assert_int_equal(tarn_sim_block_stream(rig.device, 4), TARN_OK);
        rig_free(&rig, used);
        if (is_kept) {
            keep_pages(&rig, 1);
        } else {
            (void)leave_hole(&rig, 1);
            assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
        }
        (void)rig_alloc(&rig, 20 * MIB, 2);
        assert_int_equal(sim_counters(rig.device).forced_unblocks, 0);
        rig_close(&rig);
    }
}

/* A try makes no stream wait, at the limit of a pool or of all. */
static void a_try_makes_no_stream_wait(void **state)
{
    const struct tarn_pool_options options = {.struct_size = sizeof options, .limit = 30 * MIB};
    struct tarn_pool *pool = NULL;
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, 60 * MIB, COMPACT);
    assert_int_equal(tarn_pool_create(rig.allocator, &options, &pool, &rig.error), TARN_OK);
    assert_int_equal(tarn_pool_alloc(pool, 30 * MIB, 1, &ptr, &rig.error), TARN_OK);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    rig_free(&rig, ptr);
    assert_int_equal(tarn_pool_alloc_try(pool, 20 * MIB, 2, TARN_ALLOC_TRY, &ptr),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(device_waits(&rig), 0);
    assert_int_equal(tarn_pool_alloc(pool, 20 * MIB, 2, &ptr, &rig.error), TARN_OK);
    assert_int_equal(device_waits(&rig), 1);
    rig_free(&rig, rig_alloc(&rig, 30 * MIB, 1));
    assert_int_equal(tarn_alloc_try(rig.allocator, 30 * MIB, 2, TARN_ALLOC_TRY, &ptr),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(device_waits(&rig), 1);
    (void)rig_alloc(&rig, 30 * MIB, 2);
    assert_int_equal(device_waits(&rig), 2);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* Nor does it wait while requests are routed to private pools. */
static void kept_pages_stay_during_a_capture(void **state)
{
    const struct tarn_pool_id id = {.first = 1};
    struct rig rig;

    (void)state;
    rig_open(&rig, 42 * MIB, COMPACT);
    keep_pages(&rig, 1);
    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, id, only_stream_1, NULL, NULL),
                     TARN_OK);
    rig_alloc_oom(&rig, 10 * MIB, 2);
    assert_int_equal(device_waits(&rig), 0);
    rig_empty_cache(&rig); /* they may still be mapped at old addresses */
    assert_int_equal(pages_of(&rig).kept, 20);
    assert_int_equal(tarn_allocator_end_pool(rig.allocator, id, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_release_pool(rig.allocator, id, NULL), TARN_OK);
    rig_empty_cache(&rig);
    assert_int_equal(reserved(&rig), 2 * MIB);
    rig_close(&rig);
}

/* A device that cannot let streams wait for each other makes the request fail, with kept pages and
 * with those of free blocks. */
static void a_wait_that_fails_is_reported(void **state)
{
    (void)state;
    for (int is_kept = 0; is_kept < 2; is_kept++) {
        tarn_ptr ptr = 0;
        struct rig rig;

        rig_open(&rig, (is_kept ? 42 : 32) * MIB, COMPACT);
        if (is_kept) {
            keep_pages(&rig, 1);
        } else {
            (void)leave_hole(&rig, 1);
            assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
        }
        tarn_sim_fail_nth(rig.device, TARN_SIM_STREAM_WAIT_EVENT, 1, TARN_ERR_DEVICE);
        assert_int_equal(tarn_allocator_alloc(rig.allocator, 20 * MIB, 2, &ptr, &rig.error),
                         TARN_ERR_DEVICE);
        assert_non_null(strstr(rig.error.text, "ordering streams"));
        assert_int_equal(moved(&rig), is_kept ? 15 : 0);
        rig_check(&rig);
        (void)rig_alloc(&rig, 20 * MIB, 2);
        rig_close(&rig);
    }
}

/* The stream of the request itself is there, so a failure to record an event is reported. */
static void an_event_that_cannot_be_recorded_is_explained(void **state)
{
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    (void)leave_hole(&rig, 1);
    tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_RECORD, 2, TARN_ERR_DEVICE); /* after the mark */
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 40 * MIB, 1, &ptr, &rig.error),
                     TARN_ERR_DEVICE);
    assert_non_null(strstr(rig.error.text, "recording an event"));
    (void)rig_alloc(&rig, 40 * MIB, 1);
    rig_close(&rig);
}

/* ---- the soft limit ---- */

/* At the soft limit new pages come before those that the stream would have to wait for. */
static void a_soft_limit_makes_no_stream_wait(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    (void)leave_hole(&rig, 1);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    assert_int_equal(tarn_allocator_set_soft_limit(rig.allocator, 32 * MIB, &rig.error), TARN_OK);
    (void)rig_alloc(&rig, 20 * MIB, 2);
    assert_int_equal(device_waits(&rig), 0);
    assert_int_equal(moved(&rig), 0);
    assert_int_equal(reserved(&rig), 52 * MIB);
    rig_close(&rig);
}

/* ---- a watermark, kept pages and captures ---- */

/* Nothing goes back while old addresses are mapped: kept pages may be mapped there. */
static void nothing_is_given_back_while_old_addresses_are_mapped(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    keep_pages(&rig, 1);
    rig_configure(&rig, COMPACT ",max_cached_mb:0");
    rig_free(&rig, rig_alloc(&rig, 512, 2));
    assert_int_equal(pages_of(&rig).kept, 20);
    assert_true(reserved(&rig) >= 42 * MIB);
    assert_int_equal(tarn_sim_unblock_stream(rig.device, 1), TARN_OK);
    for (int i = 0; i < 8; i++) {
        rig_free(&rig, rig_alloc(&rig, 512, 2));
    }
    assert_int_equal(pages_of(&rig).kept, 0);
    assert_int_equal(reserved(&rig), 2 * MIB);
    rig_close(&rig);
}

/* As many pages as are cached beyond the watermark: kept ones first. */
static void kept_pages_go_back_as_far_as_wanted(void **state)
{
    static const struct {
        const char *conf;
        uint64_t kept;
        uint64_t cached;                                /* MiB */
    } cases[] = {{COMPACT ",max_cached_mb:60", 14, 60}, /* of 32 MiB free and 20 pages kept */
                 {COMPACT ",max_cached_mb:10", 0, 10}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rig rig;

        rig_open(&rig, GIB, COMPACT);
        const tarn_ptr other = rig_alloc(&rig, 30 * MIB, 3);
        const tarn_ptr last = rig_alloc(&rig, 2 * MIB, 3);
        tarn_ptr ptr = 0;

        (void)leave_hole(&rig, 1);
        tarn_sim_fail_nth(rig.device, TARN_SIM_MAP, 1, TARN_ERR_DEVICE);
        assert_int_equal(tarn_allocator_alloc(rig.allocator, 40 * MIB, 1, &ptr, NULL),
                         TARN_ERR_DEVICE);
        assert_int_equal(pages_of(&rig).kept, 20);
        rig_free(&rig, other);
        rig_configure(&rig, cases[i].conf);
        rig_free(&rig, last); /* 2 MiB more are free */
        assert_int_equal(pages_of(&rig).kept, cases[i].kept);
        assert_int_equal(reserved(&rig), (2 + cases[i].cached) * MIB);
        rig_close(&rig);
    }
}

/* What could not be given back is kept, and the default stream may have it at once. */
static void pages_that_cannot_be_given_back_are_kept(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact,max_cached_mb:0");
    const tarn_ptr ptr = rig_alloc(&rig, 30 * MIB, 0);

    tarn_sim_fail_nth(rig.device, TARN_SIM_UNMAP, 1, TARN_ERR_DEVICE);
    rig_free(&rig, ptr);
    assert_int_equal(pages_of(&rig).kept, 15);
    (void)rig_alloc(&rig, 30 * MIB, 0);
    assert_int_equal(pages_of(&rig).kept, 0);
    assert_int_equal(reserved(&rig), 30 * MIB);
    rig_close(&rig);
}

static void nothing_is_given_back_during_a_capture(void **state)
{
    const struct tarn_pool_id id = {.first = 1};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact,max_cached_mb:0");
    const tarn_ptr ptr = rig_alloc(&rig, 30 * MIB, 2);

    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, id, only_stream_1, NULL, NULL),
                     TARN_OK);
    const uint64_t queries = sim_counters(rig.device).calls[TARN_SIM_EVENT_QUERY];
    const uint64_t records = sim_counters(rig.device).calls[TARN_SIM_EVENT_RECORD];

    rig_free(&rig, ptr);
    assert_int_equal(reserved(&rig), 30 * MIB);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_EVENT_QUERY], queries);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_EVENT_RECORD], records);
    assert_int_equal(tarn_allocator_end_pool(rig.allocator, id, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_release_pool(rig.allocator, id, NULL), TARN_OK);
    rig_free(&rig, rig_alloc(&rig, 512, 2));
    assert_int_equal(reserved(&rig), 0);
    rig_close(&rig);
}

static void a_watermark_means_nothing_to_the_exact_policy(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "expandable_segments:True,max_cached_mb:0");
    rig_free(&rig, rig_alloc(&rig, 30 * MIB, 1));
    for (int i = 0; i < 4; i++) {
        rig_free(&rig, rig_alloc(&rig, 512, 1));
    }
    assert_int_equal(reserved(&rig), 42 * MIB);
    rig_close(&rig);
}

/* Free pages of the default pools stay where they are while a capture runs, because no event can be
 * recorded. */
static void free_pages_stay_during_a_capture(void **state)
{
    const struct tarn_pool_id id = {.first = 1};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    (void)leave_hole(&rig, 2);
    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, id, only_stream_1, NULL, NULL),
                     TARN_OK);
    const uint64_t records = sim_counters(rig.device).calls[TARN_SIM_EVENT_RECORD];

    (void)rig_alloc(&rig, 40 * MIB, 2);
    assert_int_equal(moved(&rig), 0);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_EVENT_RECORD], records);
    assert_int_equal(tarn_allocator_end_pool(rig.allocator, id, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_release_pool(rig.allocator, id, NULL), TARN_OK);
    rig_close(&rig);
}

/* Emptying the cache during a capture gives back what it may, unless old addresses are mapped. */
static tarn_ptr alloc_in(struct rig *rig, struct tarn_pool_id id, uint64_t size)
{
    assert_int_equal(tarn_allocator_begin_pool(rig->allocator, id, every_stream, NULL, NULL),
                     TARN_OK);
    const tarn_ptr ptr = rig_alloc(rig, size, 1);

    assert_int_equal(tarn_allocator_end_pool(rig->allocator, id, NULL), TARN_OK);
    return ptr;
}

static void a_cache_is_emptied_during_a_capture_unless_pages_have_moved(void **state)
{
    (void)state;
    for (int has_moved = 0; has_moved < 2; has_moved++) {
        const struct tarn_pool_id id = {.first = 1};
        const struct tarn_pool_id gone = {.first = 2};
        struct rig rig;

        rig_open(&rig, GIB, COMPACT);
        rig_free(&rig, alloc_in(&rig, gone, 20 * MIB));
        assert_int_equal(tarn_allocator_release_pool(rig.allocator, gone, NULL), TARN_OK);
        (void)leave_hole(&rig, 2);
        assert_int_equal(tarn_sim_block_stream(rig.device, 2), TARN_OK);
        if (has_moved) {
            (void)rig_alloc(&rig, 40 * MIB, 2);
        }
        const uint64_t before = reserved(&rig);

        assert_int_equal(tarn_allocator_begin_pool(rig.allocator, id, only_stream_1, NULL, NULL),
                         TARN_OK);
        rig_empty_cache(&rig);
        assert_int_equal(reserved(&rig), before - (has_moved ? 0 : 20 * MIB));
        assert_int_equal(tarn_allocator_end_pool(rig.allocator, id, NULL), TARN_OK);
        assert_int_equal(tarn_allocator_release_pool(rig.allocator, id, NULL), TARN_OK);
        rig_close(&rig);
    }
}

/* ---- places ---- */

/* A mapped block in the middle of a hole serves the request if the stream has too few free pages
 * for the beginning: here one of two, because a live block has part of the other. */
static void a_request_stays_in_the_middle_of_a_hole_when_pages_are_few(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    (void)rig_alloc(&rig, 2 * MIB, 0);
    const tarn_ptr first = rig_alloc(&rig, 4 * MIB, 0);
    const tarn_ptr second = rig_alloc(&rig, 3 * MIB, 0);

    (void)rig_alloc(&rig, 3 * MIB, 0);
    rig_free(&rig, first);
    (void)rig_alloc(&rig, 30 * MIB, 0);
    assert_int_equal(moved(&rig), 2);
    (void)rig_alloc(&rig, 20 * MIB, 0); /* the old addresses are unmapped */
    rig_free(&rig, second);
    assert_int_equal(rig_alloc(&rig, 3 * MIB, 0), second);
    assert_int_equal(moved(&rig), 2);
    rig_close(&rig);
}

/* While more slack is to end all moving, none is done to keep together what lives, unless memory is
 * short: 62 MiB are reserved, and one page more or none is plentiful. */
static void what_settled_stays_in_the_middle_of_a_hole_while_memory_is_plentiful(void **state)
{
    static const struct {
        uint64_t capacity;
        bool is_short;
    } cases[] = {{GIB, false}, {128 * MIB, false}, {126 * MIB, true}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rig rig;

        rig_open(&rig, cases[i].capacity, COMPACT);
        const tarn_ptr hole = leave_half_a_hole(&rig);

        assert_int_equal(reserved(&rig), 62 * MIB);
        rig_engine(rig.allocator)->compact.slack.grown_to = 1; /* much had moved before */
        assert_int_equal(rig_alloc(&rig, 7 * MIB, 0), hole + (cases[i].is_short ? 0 : 8 * MIB));
        rig_close(&rig);
    }
}

/* Of two holes of that size the one that has more pages, on both sides of what it lacks. */
static void the_hole_that_lacks_least_is_found_behind_others(void **state)
{
    static const uint64_t sizes[] = {8, 12, 2, 8, 4, 8, 2};
    tarn_ptr parts[7];
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    for (int i = 0; i < 7; i++) {
        parts[i] = rig_alloc(&rig, sizes[i] * MIB, 0);
    }
    rig_free(&rig, parts[1]);
    rig_free(&rig, parts[4]);
    (void)rig_alloc(&rig, 16 * MIB, 0);
    assert_int_equal(moved(&rig), 8);
    (void)rig_alloc(&rig, 20 * MIB, 0); /* the old addresses are unmapped */
    rig_free(&rig, parts[0]);
    rig_free(&rig, parts[3]);
    rig_free(&rig, parts[5]);
    assert_int_equal(rig_alloc(&rig, 20 * MIB, 0), parts[3]);
    rig_close(&rig);
}

/* Among places that lack as much, the one in the smallest hole: here one that it fills. */
static void a_hole_of_the_right_size_is_filled(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    const tarn_ptr first = rig_alloc(&rig, 2 * MIB, 0);
    const tarn_ptr hole = rig_alloc(&rig, 8 * MIB, 0);

    (void)rig_alloc(&rig, 2 * MIB, 0);
    rig_free(&rig, hole);
    (void)rig_alloc(&rig, 30 * MIB, 0);
    assert_int_equal(moved(&rig), 4);
    (void)rig_alloc(&rig, 20 * MIB, 0); /* the old addresses are unmapped */
    assert_int_equal(rig_alloc(&rig, 8 * MIB, 0), hole);
    assert_true(hole > first);
    rig_close(&rig);
}

/* Where old addresses leave no room in the stream's range, it gets another one. */
static void a_range_full_of_old_addresses_is_followed_by_another(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 64 * MIB, COMPACT);
    const tarn_ptr first = rig_alloc(&rig, 2 * MIB, 1);
    const tarn_ptr hole = rig_alloc(&rig, 62 * MIB, 1);

    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    rig_free(&rig, hole);
    rig_free(&rig, rig_alloc(&rig, 62 * MIB, 2));
    assert_int_equal(moved(&rig), 31);
    const tarn_ptr ptr = rig_alloc(&rig, 40 * MIB, 1);

    assert_true(ptr < first || ptr >= first + 72 * MIB);
    assert_int_equal(reserved(&rig), 64 * MIB);
    rig_close(&rig);
}

/* Old addresses of other streams say nothing about a place: it is the beginning of the hole. */
static void old_addresses_of_other_streams_suggest_no_place(void **state)
{
    static const uint64_t sizes[] = {2, 20, 10, 2, 10, 2};
    tarn_ptr parts[6];
    struct rig rig;

    (void)state;
    rig_open(&rig, 4 * GIB, COMPACT);
    for (int i = 0; i < 6; i++) {
        parts[i] = rig_alloc(&rig, sizes[i] * MIB, 1);
    }
    rig_free(&rig, parts[1]);
    (void)rig_alloc(&rig, 30 * MIB, 1);
    (void)rig_alloc(&rig, 200 * MIB, 1); /* the old addresses are unmapped */
    assert_int_equal(moved(&rig), 10);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    assert_int_equal(tarn_sim_block_stream(rig.device, 2), TARN_OK);
    rig_free(&rig, parts[4]);
    (void)rig_alloc(&rig, 24 * MIB, 1);
    assert_int_equal(moved(&rig), 15);
    const tarn_ptr other = rig_alloc(&rig, 16 * MIB, 2);

    (void)rig_alloc(&rig, 2 * MIB, 2);
    rig_free(&rig, other);
    (void)rig_alloc(&rig, 30 * MIB, 2);
    assert_true(moved(&rig) > 15); /* up to the eighth page of stream 2 */
    rig_free(&rig, parts[2]);
    tarn_sim_advance_ns(rig.device, 1000000000);
    assert_int_equal(rig_alloc(&rig, 16 * MIB, 1), parts[1]);
    rig_close(&rig);
}

/* A place that begins with a mapped block behind old addresses, and is not filled. */
static void a_place_in_the_middle_that_was_not_filled_is_found_again(void **state)
{
    tarn_ptr parts[5];
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    for (int i = 0; i < 5; i++) {
        parts[i] = rig_alloc(&rig, 8 * MIB, 0);
    }
    rig_free(&rig, parts[3]);
    (void)rig_alloc(&rig, 30 * MIB, 0);
    (void)rig_alloc(&rig, 20 * MIB, 0); /* the old addresses are unmapped */
    assert_int_equal(tarn_sim_block_stream(rig.device, 0), TARN_OK);
    rig_free(&rig, parts[1]);
    (void)rig_alloc(&rig, 30 * MIB, 0);
    assert_int_equal(moved(&rig), 8);
    rig_free(&rig, parts[2]);
    for (int i = 0; i < 2; i++) {
        spend_time(&rig);
        if (i == 0) {
            tarn_sim_fail_nth(rig.device, TARN_SIM_MAP, 1, TARN_ERR_DEVICE);
            assert_int_equal(tarn_allocator_alloc(rig.allocator, 12 * MIB, 0, &ptr, NULL),
                             TARN_ERR_DEVICE);
            rig_check(&rig);
        } else {
            assert_int_equal(rig_alloc(&rig, 12 * MIB, 0), parts[2]);
        }
    }
    rig_close(&rig);
}

/* ---- old addresses that cannot be unmapped ---- */

static uint64_t records(struct rig *rig)
{
    return sim_counters(rig->device).calls[TARN_SIM_EVENT_RECORD];
}

/* Their event is done with all the same: it is used for other work meanwhile, and given up once. */
static void old_addresses_that_were_not_unmapped_need_no_event(void **state)
{
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    const tarn_ptr left = rig_alloc(&rig, 4 * MIB, 1);
    const tarn_ptr left_too = rig_alloc(&rig, 4 * MIB, 4);

    (void)leave_hole(&rig, 1);
    (void)rig_alloc(&rig, 40 * MIB, 1);
    assert_int_equal(moved(&rig), 15);
    tarn_sim_fail_nth(rig.device, TARN_SIM_UNMAP, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 50 * MIB, 1, &ptr, NULL), TARN_ERR_DEVICE);
    assert_int_equal(pages_of(&rig).retired, 15);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    assert_int_equal(tarn_sim_block_stream(rig.device, 4), TARN_OK);
    rig_free(&rig, left);
    rig_free(&rig, left_too);
    const tarn_ptr other = rig_alloc(&rig, 4 * MIB, 2); /* marks both */

    assert_int_equal(pages_of(&rig).retired, 0);
    rig_free(&rig, other);
    const uint64_t before = reserved(&rig);

    (void)rig_alloc(&rig, 4 * MIB, 3); /* marks stream 2, and takes its pages */
    assert_int_equal(reserved(&rig), before);
    (void)rig_alloc(&rig, 4 * MIB, 3);
    assert_int_equal(reserved(&rig), before + 4 * MIB); /* the others are not done */
    rig_close(&rig);
}

/* ---- marks, waits and turns ---- */

/* A stream is marked once for what it freed, be it a single page. */
static void a_free_page_is_marked_once(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    const tarn_ptr page = rig_alloc(&rig, 2 * MIB, 1);

    (void)rig_alloc(&rig, 2 * MIB, 1);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    rig_free(&rig, page);
    (void)rig_alloc(&rig, 2 * MIB, 2);
    assert_int_equal(records(&rig), 1);
    (void)rig_alloc(&rig, 2 * MIB, 2);
    assert_int_equal(records(&rig), 1);
    rig_close(&rig);
}

/* Pages that a pool handle used for small requests serve others, too. */
static void pages_of_small_requests_of_a_pool_move(void **state)
{
    struct tarn_pool *pool = NULL;
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    assert_int_equal(tarn_pool_create(rig.allocator, NULL, &pool, &rig.error), TARN_OK);
    assert_int_equal(tarn_pool_alloc(pool, 512, 1, &ptr, &rig.error), TARN_OK);
    rig_free(&rig, ptr);
    (void)rig_alloc(&rig, 2 * MIB, 2);
    assert_int_equal(moved(&rig), 1);
    assert_int_equal(reserved(&rig), 2 * MIB);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* Nobody waits for a stream whose free blocks have no whole page. */
static void a_stream_without_a_whole_page_is_not_waited_for(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 4 * MIB, COMPACT);
    const tarn_ptr part = rig_alloc(&rig, 2 * MIB - 512, 1);

    (void)rig_alloc(&rig, 2 * MIB + 512, 1);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    rig_free(&rig, part);
    rig_alloc_oom(&rig, 2 * MIB, 2);
    assert_int_equal(device_waits(&rig), 0);
    assert_int_equal(records(&rig), 0);
    rig_close(&rig);
}

/* Time for pages of other streams is used up: spent by moving all that was created. */
static void use_up_time(struct rig *rig)
{
    rig_engine(rig->allocator)->compact.moving_ns = 1000000000;
}

/* A stream that others asked in vain takes no turns, and its pages move in any case; one that had
 * to give pages takes turns, and they do not. */
static void streams_take_turns_if_they_gave_pages(void **state)
{
    (void)state;
    for (int gives = 0; gives < 2; gives++) {
        struct rig rig;

        rig_open(&rig, GIB, COMPACT);
        assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
        (void)leave_hole(&rig, 1);
        if (gives) {
            rig_limit(&rig, 32.0 / 1024);
        }
        (void)rig_alloc(&rig, 10 * MIB, 2);
        assert_int_equal(moved(&rig), gives ? 5 : 0);
        rig_limit(&rig, 1.0);
        assert_int_equal(tarn_sim_unblock_stream(rig.device, 1), TARN_OK);
        rig_free(&rig, rig_alloc(&rig, 60 * MIB, 1)); /* needs pages */
        const uint64_t before = reserved(&rig);

        use_up_time(&rig);
        (void)rig_alloc(&rig, 60 * MIB, 3);
        assert_int_equal(reserved(&rig), before + (gives ? 60 * MIB : 0));
        rig_close(&rig);
    }
}

/* ---- host memory that is missing ---- */

/* What a request finds: as many free pages as it needs, or more. */
enum scarcity {
    PAGES_OF_THE_STREAM,
    PAGES_OF_A_BLOCK, /* some of them: its front stays */
    PAGES_OF_STREAMS, /* two others, which are done with them */
    PAGES_OF_POOLS,
    PAGES_OF_SMALL_REQUESTS, /* of pools */
    PAGES_TO_WAIT_FOR,
    PAGES_THAT_ARE_KEPT,
    PLACE_BEHIND_OLD_ADDRESSES,
    SCARCITIES
};

struct scarce_request {
    struct tarn_pool *pools[2];
    uint64_t size;
    tarn_stream stream;
};

/* Streams are marked that have free pages, which needs host memory, too. */
static void mark_streams(struct rig *rig)
{
    for (tarn_stream i = 1; i <= 3; i++) {
        assert_int_equal(tarn_sim_block_stream(rig->device, i), TARN_OK);
    }
    (void)rig_alloc(rig, 2 * MIB, 4); /* a new page */
    for (tarn_stream i = 1; i <= 3; i++) {
        assert_int_equal(tarn_sim_unblock_stream(rig->device, i), TARN_OK);
    }
}

static void free_two(struct rig *rig, tarn_stream first, tarn_stream second)
{
    const tarn_ptr a = rig_alloc(rig, 10 * MIB, first);

    (void)rig_alloc(rig, 2 * MIB, first);
    const tarn_ptr b = rig_alloc(rig, 10 * MIB, second);

    (void)rig_alloc(rig, 2 * MIB, second);
    (void)rig_alloc(rig, 60 * MIB, first);
    rig_free(rig, a);
    rig_free(rig, b);
    mark_streams(rig);
}

/* Memory as far as the request needs it. */
static struct scarce_request scarce_request(struct rig *rig, enum scarcity what)
{
    struct scarce_request request = {.size = 20 * MIB, .stream = 1};
    tarn_ptr ptrs[2];

    if (what == PAGES_OF_STREAMS) {
        free_two(rig, 2, 3);
    } else if (what == PAGES_OF_THE_STREAM || what == PAGES_TO_WAIT_FOR) {
        free_two(rig, 1, 1);
    } else if (what == PAGES_OF_A_BLOCK) {
        ptrs[0] = rig_alloc(rig, 10 * MIB, 1);
        (void)rig_alloc(rig, 2 * MIB, 1);
        ptrs[1] = rig_alloc(rig, 10 * MIB, 1);
        rig_free(rig, ptrs[0]);
        rig_free(rig, ptrs[1]);
        request.size = 14 * MIB; /* the second block, and two pages of the first */
    } else if (what == PAGES_OF_POOLS || what == PAGES_OF_SMALL_REQUESTS) {
        const bool is_small = what == PAGES_OF_SMALL_REQUESTS;

        for (int i = 0; i < 2; i++) {
            assert_int_equal(tarn_pool_create(rig->allocator, NULL, &request.pools[i], &rig->error),
                             TARN_OK);
            assert_int_equal(tarn_pool_alloc(request.pools[i], is_small ? 512 : 10 * MIB,
                                             (tarn_stream)i + 1, &ptrs[i], &rig->error),
                             TARN_OK);
        }
        request.size = is_small ? 4 * MIB : 20 * MIB;
        rig_free(rig, ptrs[0]);
        rig_free(rig, ptrs[1]);
        mark_streams(rig);
    } else if (what == PAGES_THAT_ARE_KEPT) {
        keep_pages(rig, 1);
        request.size = 40 * MIB;
    } else {
        ptrs[0] = rig_alloc(rig, 4 * MIB, 1);
        ptrs[1] = rig_alloc(rig, 20 * MIB, 1);
        rig_free(rig, ptrs[1]);
        assert_int_equal(tarn_sim_block_stream(rig->device, 1), TARN_OK);
        rig_limit(rig, 24.0 / 1024);
        rig_free(rig, rig_alloc(rig, 20 * MIB, 2));
        assert_int_equal(moved(rig), 10);
    }
    if (what == PAGES_TO_WAIT_FOR) {
        assert_int_equal(tarn_sim_block_stream(rig->device, 1), TARN_OK);
        rig_limit(rig, (double)reserved(rig) / (double)GIB);
        request.stream = 2;
    }
    return request;
}

/* Host memory that is not to be had from some allocation on. */
struct lack {
    uint64_t calls;
    uint64_t from; /* 0: there is enough */
};

static void *lack_alloc(void *context, size_t size, size_t alignment)
{
    struct lack *lack = context;
    void *memory = NULL;

    lack->calls++;
    if (lack->from > 0 && lack->calls >= lack->from) {
        return NULL;
    }
    return posix_memalign(&memory, alignment > sizeof(void *) ? alignment : sizeof(void *), size)
               ? NULL
               : memory;
}

static void lack_release(void *context, void *memory, size_t size)
{
    (void)context;
    (void)size;
    free(memory);
}

static struct lack lack;

/* With the n-th host allocation failing, or all from that one on; whether there are so many. */
static bool fails_at(enum scarcity what, uint64_t n, bool lasts)
{
    tarn_ptr ptr = 0;
    struct rig rig;

    rig_open(&rig, GIB, COMPACT);
    const struct scarce_request request = scarce_request(&rig, what);
    const uint64_t before = reserved(&rig);
    const uint64_t calls = tarn_host_get_usage().alloc_calls;

    scarce_begin(rig.allocator);
    tarn_host_fail_nth(lasts ? 0 : n);
    lack = (struct lack){.from = lasts ? n : 0};
    const enum tarn_status st =
        tarn_allocator_alloc(rig.allocator, request.size, request.stream, &ptr, &rig.error);
    const bool is_reached = tarn_host_get_usage().alloc_calls - calls >= n;

    tarn_host_fail_nth(0);
    lack.from = 0;
    scarce_end();
    assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
    rig_check(&rig);
    assert_int_equal(reserved(&rig), before);
    if (st != TARN_OK) {
        (void)rig_alloc(&rig, request.size, request.stream);
        assert_int_equal(reserved(&rig), before);
    }
    for (int i = 0; i < 2; i++) {
        if (request.pools[i]) {
            tarn_pool_destroy(request.pools[i]);
        }
    }
    rig_close(&rig);
    return is_reached;
}

/* A request that lacks host memory fails, or does without: it takes no new pages in place of free
 * ones, leaves nothing half done, and succeeds the next time. */
static void a_request_without_host_memory_takes_no_new_pages(void **state)
{
    const struct tarn_host_hooks hooks = {.struct_size = sizeof hooks,
                                          .alloc = lack_alloc,
                                          .release = lack_release,
                                          .context = &lack};

    (void)state;
    assert_int_equal(tarn_host_set_hooks(&hooks), TARN_OK);
    for (unsigned i = 0; i < 2 * SCARCITIES; i++) {
        uint64_t n = 1;

        while (fails_at(i / 2, n, i % 2)) {
            n++;
        }
        assert_true(n > 2);
    }
    assert_int_equal(tarn_host_set_hooks(NULL), TARN_OK);
}

/* ---- places that moving makes, and those that only few pages fill ---- */

/* A place at the beginning of a hole is looked for again when pages have moved: behind the old
 * addresses of a block there may be one that lacks less, here 2 of 5 pages. */
static void a_place_behind_pages_that_moved_is_found(void **state)
{
    tarn_ptr parts[4];
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    (void)rig_alloc(&rig, 2 * MIB, 1);
    for (int i = 0; i < 4; i++) {
        static const uint64_t sizes[] = {4 * MIB, 10 * MIB, 4 * MIB, 8 * MIB};

        parts[i] = rig_alloc(&rig, sizes[i], 1);
    }
    (void)rig_alloc(&rig, 2 * MIB, 1);
    rig_free(&rig, parts[2]);
    (void)rig_alloc(&rig, 30 * MIB, 1);
    (void)rig_alloc(&rig, 30 * MIB, 1); /* the old addresses are unmapped */
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    rig_free(&rig, parts[0]);
    (void)rig_alloc(&rig, 30 * MIB, 1);
    assert_int_equal(moved(&rig), 4); /* two addresses are old, in front of the hole's blocks */
    rig_free(&rig, parts[1]);
    rig_free(&rig, parts[3]);
    tarn_sim_advance_ns(rig.device, 1000000000);
    assert_int_equal(rig_alloc(&rig, 10 * MIB, 1), parts[2]);
    assert_int_equal(moved(&rig), 9);
    assert_int_equal(pages_of(&rig).kept, 3);
    rig_check(&rig);
    rig_close(&rig);
}

/* Before a request fails nothing counts but the fewest pages: 2 that another stream has, and 4
 * shared ones where they are, in the middle of a hole. */
static void the_fewest_pages_count_when_memory_is_short(void **state)
{
    tarn_ptr parts[2];
    struct rig rig;

    (void)state;
    rig_open_with(&rig, (struct tarn_sim_options){.capacity = GIB, .backed = true}, COMPACT);
    for (int i = 0; i < 2; i++) {
        parts[i] = rig_alloc(&rig, 8 * MIB, 1);
    }
    (void)rig_alloc(&rig, 2 * MIB, 1);
    share(&rig, parts[1]);
    rig_free(&rig, parts[0]);
    (void)rig_alloc(&rig, 30 * MIB, 1);
    assert_int_equal(moved(&rig), 4);
    (void)rig_alloc(&rig, 30 * MIB, 1); /* the old addresses are unmapped */
    rig_free(&rig, parts[1]);
    assert_int_equal(tarn_sim_block_stream(rig.device, 2), TARN_OK);
    const tarn_ptr other = rig_alloc(&rig, 4 * MIB, 2);

    rig_free(&rig, other);
    assert_int_equal(tarn_allocator_set_limit(rig.allocator, reserved(&rig), &rig.error), TARN_OK);
    tarn_sim_advance_ns(rig.device, 1000000000);
    assert_int_equal(rig_alloc(&rig, 12 * MIB, 1), parts[0] + 4 * MIB);
    assert_int_equal(moved(&rig), 6);
    assert_int_equal(device_waits(&rig), 1);
    rig_close(&rig);
}

/* A free block that waits for host memory has its place again before others look for its pages. */
static void pages_that_waited_for_host_memory_are_found(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    tarn_ptr parts[6];

    for (int i = 0; i < 6; i++) {
        parts[i] = rig_alloc(&rig, 6 * MIB, 1);
    }
    const struct tn_free_set *set = rig_engine(rig.allocator)->heap.large.sets[0];

    for (int i = 0; i < 5; i += 2) { /* no two are neighbours */
        tarn_host_fail_nth(1);
        rig_free(&rig, parts[i]);
        tarn_host_fail_nth(0);
    }
    assert_non_null(set->linked.first);
    (void)rig_alloc(&rig, 18 * MIB, 2);
    assert_null(set->linked.first);
    assert_int_equal(moved(&rig), 9);
    assert_int_equal(reserved(&rig), 36 * MIB);
    rig_close(&rig);
}

/* Every event that was created is destroyed once. */
static void each_event_is_destroyed_once(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    for (tarn_stream stream = 1; stream <= 3; stream++) {
        (void)leave_hole(&rig, stream);
        (void)rig_alloc(&rig, 40 * MIB, stream);
    }
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    (void)leave_hole(&rig, 1);
    (void)rig_alloc(&rig, 40 * MIB, 2); /* a mark that is not done */
    tarn_allocator_destroy(rig.allocator);
    const struct tarn_sim_counters counters = sim_counters(rig.device);

    assert_true(counters.calls[TARN_SIM_EVENT_CREATE] > 1);
    assert_int_equal(counters.calls[TARN_SIM_EVENT_DESTROY], counters.calls[TARN_SIM_EVENT_CREATE]);
    sim_close(rig.device);
    assert_int_equal(tarn_host_get_usage().live_bytes, rig.host_bytes);
}

static bool see_requested(void *context, const struct tarn_block_info *block)
{
    uint64_t *most = context;

    if (!block->allocated && block->requested_size > *most) {
        *most = block->requested_size;
    }
    return true;
}

static bool see_segment(void *context, const struct tarn_segment_info *segment)
{
    (void)context;
    (void)segment;
    return true;
}

/* What is left of a page behind old addresses was never requested. */
static void a_rest_behind_old_addresses_was_not_requested(void **state)
{
    uint64_t most = 0;
    const struct tarn_walker walker = {&most, see_segment, see_requested};
    struct rig rig;

    (void)state;
    rig_open(&rig, 32 * MIB, COMPACT);
    const tarn_ptr first = rig_alloc(&rig, 4 * MIB, 1);
    const tarn_ptr last = rig_alloc(&rig, 20 * MIB, 1);

    rig_free(&rig, last);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    rig_free(&rig, rig_alloc(&rig, 28 * MIB, 2));
    assert_int_equal(rig_alloc(&rig, 5 * MIB, 1), first + 24 * MIB);
    rig_empty_cache(&rig);
    assert_int_equal(tarn_allocator_walk(rig.allocator, &walker), TARN_OK);
    assert_int_equal(most, 0);
    rig_close(&rig);
}

/* A try gets the pages of streams that take turns, too, where the device is full before it says so;
 * or host memory is missing, which is no lack of device memory. */
static void a_try_gets_pages_of_streams_that_take_turns(void **state)
{
    bool is_reached = true;

    (void)state;
    for (uint64_t n = 1; is_reached; n++) {
        tarn_ptr ptr = 0;
        struct rig rig;

        rig_open(&rig, GIB, COMPACT);
        take_turns(&rig, 5);
        assert_int_equal(reserved(&rig), 80 * MIB);
        tarn_sim_set_foreign_memory(rig.device, GIB - 80 * MIB);
        const uint64_t calls = tarn_host_get_usage().alloc_calls;

        scarce_begin(rig.allocator);
        tarn_host_fail_nth(n);
        const enum tarn_status st =
            tarn_alloc_try(rig.allocator, 80 * MIB, 1, TARN_ALLOC_TRY, &ptr);

        is_reached = tarn_host_get_usage().alloc_calls - calls >= n;
        tarn_host_fail_nth(0);
        scarce_end();
        assert_true(st == TARN_OK || (st == TARN_ERR_HOST_MEMORY && is_reached));
        rig_close(&rig);
    }
}

/* What one event follows stays mapped as long as that is not known to be done: also the second run
 * of two, after a wait that failed. */
static void runs_of_one_event_are_unmapped_together(void **state)
{
    tarn_ptr parts[4];
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    for (int i = 0; i < 4; i++) {
        parts[i] = rig_alloc(&rig, 10 * MIB, 1);
    }
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    rig_free(&rig, parts[0]);
    rig_free(&rig, parts[2]);
    (void)rig_alloc(&rig, 24 * MIB, 1);
    assert_int_equal(pages_of(&rig).retired, 10);
    tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_WAIT, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_empty_cache(rig.allocator, &rig.error), TARN_ERR_DEVICE);
    assert_int_equal(pages_of(&rig).retired, 10);
    rig_empty_cache(&rig);
    assert_int_equal(pages_of(&rig).retired, 0);
    rig_close(&rig);
}

/* A pool is looked at once per source: one event marks the stream, and one is recorded for its
 * pages, which turn out to be shared. */
static void shared_pages_cost_two_events(void **state)
{
    struct rig rig;

    (void)state;
    rig_open_with(&rig, (struct tarn_sim_options){.capacity = GIB, .backed = true}, COMPACT);
    const tarn_ptr ptr = rig_alloc(&rig, 30 * MIB, 0);

    (void)rig_alloc(&rig, 2 * MIB, 0);
    share(&rig, ptr);
    rig_free(&rig, ptr);
    (void)rig_alloc(&rig, 40 * MIB, 0);
    assert_int_equal(moved(&rig), 0);
    assert_int_equal(records(&rig), 2);
    rig_close(&rig);
}

/* ---- free pages that were shared, of pools ---- */

/* Pools with a free block of 20 MiB each whose pages were shared, and as many in the default pool,
 * at a limit without room for more. */
struct shared_pools {
    struct rig rig;
    struct tarn_pool *low;
    struct tarn_pool *same;
    struct tarn_pool *high;
    struct tarn_pool *still; /* its pages do not move */
};

static struct tarn_pool *shared_pool(struct rig *rig, struct tarn_pool_options options)
{
    struct tarn_pool *pool = NULL;
    tarn_ptr ptr = 0;

    options.struct_size = sizeof options;
    assert_int_equal(tarn_pool_create(rig->allocator, &options, &pool, &rig->error), TARN_OK);
    assert_int_equal(tarn_pool_alloc(pool, 20 * MIB, 1, &ptr, &rig->error), TARN_OK);
    share(rig, ptr);
    rig_free(rig, ptr);
    return pool;
}

static void shared_pools_open(struct shared_pools *shared)
{
    rig_open_with(&shared->rig, (struct tarn_sim_options){.capacity = GIB, .backed = true},
                  COMPACT);
    rig_limit(&shared->rig, 104.0 / 1024);
    const tarn_ptr ptr = rig_alloc(&shared->rig, 20 * MIB, 1);

    share(&shared->rig, ptr);
    rig_free(&shared->rig, ptr);
    shared->high = shared_pool(&shared->rig, (struct tarn_pool_options){.priority = 1});
    shared->same = shared_pool(&shared->rig, (struct tarn_pool_options){.priority = 0});
    shared->low = shared_pool(&shared->rig, (struct tarn_pool_options){.priority = -1});
    shared->still =
        shared_pool(&shared->rig, (struct tarn_pool_options){.priority = -1, .pages_stay = true});
    assert_int_equal(reserved(&shared->rig), 100 * MIB);
}

static void shared_pools_close(struct shared_pools *shared)
{
    tarn_pool_destroy(shared->low);
    tarn_pool_destroy(shared->same);
    tarn_pool_destroy(shared->high);
    tarn_pool_destroy(shared->still);
    rig_close(&shared->rig);
}

static uint64_t reserved_of(struct tarn_pool *pool)
{
    struct tarn_pool_stats stats = {.struct_size = sizeof stats};

    assert_int_equal(tarn_pool_get_stats(pool, &stats), TARN_OK);
    return stats.reserved;
}

/* As much as the request needs: those of the default pools first. */
static void shared_pages_go_back_as_far_as_needed(void **state)
{
    struct shared_pools shared;

    (void)state;
    shared_pools_open(&shared);
    (void)rig_alloc(&shared.rig, 20 * MIB, 2);
    assert_int_equal(reserved(&shared.rig), 100 * MIB);
    assert_int_equal(reserved_of(shared.low), 20 * MIB);
    assert_int_equal(reserved_of(shared.same), 20 * MIB);
    assert_int_equal(reserved_of(shared.high), 20 * MIB);
    assert_int_equal(reserved_of(shared.still), 20 * MIB);
    shared_pools_close(&shared);
}

/* Of pools that have no higher priority than the request, and whose pages may move. */
static void shared_pages_of_a_higher_priority_stay(void **state)
{
    struct shared_pools shared;

    (void)state;
    shared_pools_open(&shared);
    (void)rig_alloc(&shared.rig, 62 * MIB, 2);
    assert_int_equal(reserved_of(shared.low), 0);
    assert_int_equal(reserved_of(shared.same), 0);
    assert_int_equal(reserved_of(shared.high), 20 * MIB);
    assert_int_equal(reserved_of(shared.still), 20 * MIB);
    shared_pools_close(&shared);
}

/* The device refuses: the request says so, whichever pool it was. */
static void shared_pages_that_do_not_go_back_are_reported(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 30; n += 5) {
        struct shared_pools shared;
        tarn_ptr ptr = 0;

        shared_pools_open(&shared);
        tarn_sim_fail_nth(shared.rig.device, TARN_SIM_UNMAP, n, TARN_ERR_DEVICE);
        assert_int_equal(
            tarn_allocator_alloc(shared.rig.allocator, 62 * MIB, 2, &ptr, &shared.rig.error),
            TARN_ERR_DEVICE);
        rig_check(&shared.rig);
        (void)rig_alloc(&shared.rig, 62 * MIB, 2);
        shared_pools_close(&shared);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_pages_move_to_a_larger_request),
        cmocka_unit_test(a_request_that_a_free_block_fits_moves_nothing),
        cmocka_unit_test(a_place_lacks_as_little_as_possible),
        cmocka_unit_test(an_old_address_stays_until_its_stream_has_come_by),
        cmocka_unit_test(another_stream_takes_what_is_done_and_else_new_pages),
        cmocka_unit_test(pages_of_many_streams_are_found),
        cmocka_unit_test(pages_kept_after_a_failure_serve_others_once_their_stream_is_done),
        cmocka_unit_test(at_the_limit_streams_wait_for_each_other),
        cmocka_unit_test(a_stream_waits_once_for_kept_pages),
        cmocka_unit_test(a_place_that_was_not_filled_leaves_no_trace),
        cmocka_unit_test(streams_that_are_gone_are_passed_over),
        cmocka_unit_test(pools_that_nobody_uses_come_last),
        cmocka_unit_test(a_stream_waits_for_no_more_than_it_takes),
        cmocka_unit_test(blocks_of_other_streams_are_waited_for_last),
        cmocka_unit_test(few_free_pages_stay_while_the_device_is_far_behind),
        cmocka_unit_test(pages_that_stayed_are_taken_when_memory_is_short),
        cmocka_unit_test(streams_that_take_turns_get_new_pages),
        cmocka_unit_test(a_full_device_ends_taking_turns),
        cmocka_unit_test(pages_that_move_slowly_move_less),
        cmocka_unit_test(streams_used_once_leave_their_pages_to_the_next),
        cmocka_unit_test(streams_that_take_turns_move_pages_when_memory_is_short),
        cmocka_unit_test(streams_that_take_turns_may_use_all_of_a_limit),
        cmocka_unit_test(what_repeats_itself_moves_no_pages),
        cmocka_unit_test(what_repeats_itself_for_long_settles),
        cmocka_unit_test(nothing_settles_where_memory_is_short),
        cmocka_unit_test(what_settled_is_tidy_where_memory_is_short),
        cmocka_unit_test(blocks_without_a_place_are_no_pages),
        cmocka_unit_test(an_emptied_cache_has_no_slack),
        cmocka_unit_test(what_repeats_itself_needs_no_slack),
        cmocka_unit_test(a_request_goes_to_the_beginning_of_a_hole),
        cmocka_unit_test(a_request_stays_in_the_middle_of_a_hole_when_time_is_short),
        cmocka_unit_test(a_request_goes_to_the_beginning_of_a_hole_once_there_is_time),
        cmocka_unit_test(a_try_stays_in_the_middle_of_a_hole),
        cmocka_unit_test(a_request_stays_in_the_middle_of_a_hole_during_a_capture),
        cmocka_unit_test(pages_and_their_time_are_counted),
        cmocka_unit_test(times_of_requests_are_sorted_by_length),
        cmocka_unit_test(the_exact_policy_has_no_pages_to_count),
        cmocka_unit_test(small_requests_share_pages_of_their_own),
        cmocka_unit_test(pages_of_a_private_pool_stay),
        cmocka_unit_test(pages_of_a_private_pool_of_the_default_stream_move),
        cmocka_unit_test(pages_of_the_default_stream_stay_once_another_uses_their_pool),
        cmocka_unit_test(a_pool_that_is_refilled_keeps_no_more_than_lives),
        cmocka_unit_test(captures_hold_what_lived_in_them),
        cmocka_unit_test(pages_of_a_pool_without_captures_go_anywhere),
        cmocka_unit_test(pages_that_a_capture_or_a_checkpoint_needs_stay),
        cmocka_unit_test(shared_pages_stay),
        cmocka_unit_test(shared_pages_keep_no_others),
        cmocka_unit_test(free_shared_pages_go_back_before_a_request_fails),
        cmocka_unit_test(other_pages_stay_when_a_pool_is_full),
        cmocka_unit_test(shared_pages_do_not_hide_those_of_a_full_pool),
        cmocka_unit_test(what_a_full_pool_moves_adds_no_slack),
        cmocka_unit_test(emptying_the_cache_gives_every_free_page_back),
        cmocka_unit_test(listeners_hear_before_an_address_goes),
        cmocka_unit_test(cached_memory_beyond_the_limit_goes_back),
        cmocka_unit_test(what_work_may_use_is_not_given_back),
        cmocka_unit_test(what_stays_in_use_is_looked_at_more_rarely),
        cmocka_unit_test(little_is_given_back_at_a_time),
        cmocka_unit_test(pages_that_cannot_be_given_back_are_tried_again),
        cmocka_unit_test(the_first_of_two_failures_is_reported),
        cmocka_unit_test(the_policy_is_decided_at_creation),
        cmocka_unit_test(options_that_mean_nothing_change_nothing),
        cmocka_unit_test(the_async_backend_is_refused),
        cmocka_unit_test(half_of_a_device_is_plenty),
        cmocka_unit_test(streams_that_take_turns_wait_for_their_share_of_time),
        cmocka_unit_test(time_is_counted_by_the_page),
        cmocka_unit_test(a_request_costs_what_all_its_steps_do),
        cmocka_unit_test(a_limit_of_the_whole_device_is_none),
        cmocka_unit_test(slack_is_used_to_the_page),
        cmocka_unit_test(slack_is_for_what_is_needed),
        cmocka_unit_test(shared_pages_keep_no_others_from_moving),
        cmocka_unit_test(pages_of_a_full_pool_that_shared_ones_divide_are_counted),
        cmocka_unit_test(a_full_pool_takes_no_more_from_others_than_its_limit_allows),
        cmocka_unit_test(a_full_pool_waits_for_nobody_during_a_capture),
        cmocka_unit_test(pages_of_pools_with_a_higher_priority_stay),
        cmocka_unit_test(free_pages_stay_only_while_the_device_is_far_behind),
        cmocka_unit_test(kept_pages_of_several_streams_serve_others),
        cmocka_unit_test(a_stream_takes_no_more_kept_pages_than_it_needs),
        cmocka_unit_test(the_host_waits_for_nothing_while_pages_suffice),
        cmocka_unit_test(a_try_makes_no_stream_wait),
        cmocka_unit_test(kept_pages_stay_during_a_capture),
        cmocka_unit_test(a_wait_that_fails_is_reported),
        cmocka_unit_test(an_event_that_cannot_be_recorded_is_explained),
        cmocka_unit_test(a_soft_limit_makes_no_stream_wait),
        cmocka_unit_test(nothing_is_given_back_while_old_addresses_are_mapped),
        cmocka_unit_test(kept_pages_go_back_as_far_as_wanted),
        cmocka_unit_test(pages_that_cannot_be_given_back_are_kept),
        cmocka_unit_test(nothing_is_given_back_during_a_capture),
        cmocka_unit_test(a_watermark_means_nothing_to_the_exact_policy),
        cmocka_unit_test(free_pages_stay_during_a_capture),
        cmocka_unit_test(a_cache_is_emptied_during_a_capture_unless_pages_have_moved),
        cmocka_unit_test(a_request_stays_in_the_middle_of_a_hole_when_pages_are_few),
        cmocka_unit_test(what_settled_stays_in_the_middle_of_a_hole_while_memory_is_plentiful),
        cmocka_unit_test(the_hole_that_lacks_least_is_found_behind_others),
        cmocka_unit_test(a_hole_of_the_right_size_is_filled),
        cmocka_unit_test(a_range_full_of_old_addresses_is_followed_by_another),
        cmocka_unit_test(old_addresses_of_other_streams_suggest_no_place),
        cmocka_unit_test(a_place_in_the_middle_that_was_not_filled_is_found_again),
        cmocka_unit_test(old_addresses_that_were_not_unmapped_need_no_event),
        cmocka_unit_test(a_free_page_is_marked_once),
        cmocka_unit_test(pages_of_small_requests_of_a_pool_move),
        cmocka_unit_test(a_stream_without_a_whole_page_is_not_waited_for),
        cmocka_unit_test(streams_take_turns_if_they_gave_pages),
        cmocka_unit_test(a_request_without_host_memory_takes_no_new_pages),
        cmocka_unit_test(a_place_behind_pages_that_moved_is_found),
        cmocka_unit_test(the_fewest_pages_count_when_memory_is_short),
        cmocka_unit_test(pages_that_waited_for_host_memory_are_found),
        cmocka_unit_test(each_event_is_destroyed_once),
        cmocka_unit_test(a_rest_behind_old_addresses_was_not_requested),
        cmocka_unit_test(a_try_gets_pages_of_streams_that_take_turns),
        cmocka_unit_test(runs_of_one_event_are_unmapped_together),
        cmocka_unit_test(shared_pages_cost_two_events),
        cmocka_unit_test(shared_pages_go_back_as_far_as_needed),
        cmocka_unit_test(shared_pages_of_a_higher_priority_stay),
        cmocka_unit_test(shared_pages_that_do_not_go_back_are_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
