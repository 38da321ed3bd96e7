/* SPDX-License-Identifier: MIT */
/* The compact policy, through the public interface: what moves, when, and what stays. */
#include "support/test.h"

#include <stdlib.h>

#include "support/compact_rig.h"
#include "support/draw.h"
#include "support/scarce.h"
#include "tarn/pool.h"
#include "tarn/request.h"

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

static tarn_ptr alloc_in_pool(struct rig *rig, uint64_t size, tarn_stream stream)
{
    const struct tarn_pool_id id = {0, 1};

    assert_int_equal(tarn_allocator_begin_pool(rig->allocator, id, any_stream, NULL, NULL),
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
    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, id, any_stream, NULL, NULL), TARN_OK);
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
    assert_int_equal(tarn_allocator_begin_pool(rig->allocator, id, any_stream, NULL, NULL),
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
