/* SPDX-License-Identifier: MIT */
/* The compact policy, to the page: which pages move when, what is kept, and what goes back. */
#include "support/test.h"

#include <stdlib.h>

#include "support/compact_rig.h"
#include "tarn/pool.h"
#include "tarn/pressure.h"
#include "tarn/request.h"

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
        tarn_sim_advance_ns(rig.device, UINT64_C(30) * (1240000 - 780000) - early);
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
    const uint64_t ns = (moved(&rig) - before) * TN_PAGE_MOVE_NS + UINT64_C(6) * TN_PAGE_CREATE_NS;

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
    assert_int_equal(tarn_allocator_begin_pool(rig->allocator, id, any_stream, NULL, NULL),
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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
