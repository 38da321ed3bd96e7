/* SPDX-License-Identifier: MIT */
/* Giving memory back: by age, a few large blocks, or everything, in PyTorch's orders. */
#include "support/any_stream.h"
#include "support/test.h"

#include "alloc/engine/gc.h"
#include "support/rig.h"
#include "tarn/block.h"
#include "tarn/pages.h"
#include "tarn/pool.h"

/* Segments given back since the last look, in order. */
struct freed_log {
    tarn_ptr addresses[64];
    int count;
};

static void log_receive(void *context, const struct tarn_trace_event *event)
{
    struct freed_log *log = context;

    if (event->action == TARN_ACTION_SEGMENT_FREE || event->action == TARN_ACTION_SEGMENT_UNMAP) {
        assert_true(log->count < 64);
        log->addresses[log->count++] = event->address;
    }
}

static void log_attach(struct rig *rig, struct freed_log *log)
{
    const struct tarn_sink sink = {
        .context = log, .level = TARN_CONTEXT_NEVER, .receive = log_receive};

    *log = (struct freed_log){0};
    assert_int_equal(tarn_allocator_add_sink(rig->allocator, &sink, NULL), TARN_OK);
}

static void log_is(struct freed_log *log, const tarn_ptr *expected, int count)
{
    assert_int_equal(log->count, count);
    for (int i = 0; i < count; i++) {
        assert_int_equal(log->addresses[i], expected[i]);
    }
    log->count = 0;
}

/* Three free blocks of different ages; `ticker` is a block of another stream with which searches
 * are made. */
struct aged {
    struct rig rig;
    struct freed_log log;
    tarn_ptr oldest;
    tarn_ptr middle;
    tarn_ptr youngest;
    tarn_ptr ticker;
};

static void aged_tick(struct aged *aged, int searches)
{
    for (int i = 0; i < searches; i++) {
        rig_free(&aged->rig, aged->ticker);
        aged->ticker = rig_alloc(&aged->rig, 12 * MIB, 9);
    }
}

static void aged_open(struct aged *aged, const char *conf, double fraction)
{
    rig_open(&aged->rig, 1024 * MIB, conf);
    log_attach(&aged->rig, &aged->log);
    rig_limit(&aged->rig, fraction);
    aged->oldest = rig_alloc(&aged->rig, 104 * MIB, 0);
    aged->middle = rig_alloc(&aged->rig, 100 * MIB, 0);
    aged->youngest = rig_alloc(&aged->rig, 102 * MIB, 0);
    aged->ticker = rig_alloc(&aged->rig, 12 * MIB, 9);
    rig_free(&aged->rig, aged->oldest);
    aged_tick(aged, 6);
    rig_free(&aged->rig, aged->middle);
    aged_tick(aged, 2);
    rig_free(&aged->rig, aged->youngest);
    aged->log.count = 0;
}

/* Ages at the request are 9, 3 and 1: the average is above 4. */
static void one_pass_takes_those_above_the_average_age(void **state)
{
    struct aged aged;

    (void)state;
    aged_open(&aged, "garbage_collection_threshold:0.5", 0.5); /* keeps 256 of 318 MiB */
    (void)rig_alloc(&aged.rig, 120 * MIB, 0);
    log_is(&aged.log, (tarn_ptr[]){aged.oldest}, 1);
    rig_close(&aged.rig);
}

/* 190 MiB must go: the second pass has the average of 3 and 1. */
static void passes_go_on_until_enough_went_back(void **state)
{
    struct aged aged;

    (void)state;
    aged_open(&aged, "garbage_collection_threshold:0.25", 0.5);
    (void)rig_alloc(&aged.rig, 120 * MIB, 0);
    log_is(&aged.log, (tarn_ptr[]){aged.oldest, aged.middle}, 2);
    rig_close(&aged.rig);
}

/* Blocks of equal age go in one pass, smallest first, though fewer would do. */
static void a_pass_does_not_stop_early(void **state)
{
    struct rig rig;
    struct freed_log log;
    tarn_ptr blocks[4];

    (void)state;
    rig_open(&rig, 1024 * MIB, "garbage_collection_threshold:0.5");
    log_attach(&rig, &log);
    rig_limit(&rig, 0.5);
    for (uint64_t i = 0; i < 4; i++) {
        blocks[i] = rig_alloc(&rig, (100 - i * 2) * MIB, 0);
    }
    for (int i = 0; i < 4; i++) {
        rig_free(&rig, blocks[i]);
    }
    (void)rig_alloc(&rig, 110 * MIB, 0);
    log_is(&log, (tarn_ptr[]){blocks[3], blocks[2], blocks[1], blocks[0]}, 4);
    rig_close(&rig);
}

/* Ages at the request are 11, 5 and 1, the average is above 5: a search that finds nothing counts
 * as one. */
static void a_search_without_a_block_ages_once(void **state)
{
    struct rig rig;
    struct freed_log log;

    (void)state;
    rig_open(&rig, 1024 * MIB, "garbage_collection_threshold:0.75"); /* keeps 384 MiB */
    log_attach(&rig, &log);
    rig_limit(&rig, 0.5);
    const tarn_ptr oldest = rig_alloc(&rig, 104 * MIB, 0);
    const tarn_ptr middle = rig_alloc(&rig, 100 * MIB, 0);
    const tarn_ptr youngest = rig_alloc(&rig, 102 * MIB, 0);

    rig_free(&rig, oldest);
    for (int i = 0; i < 6; i++) {
        rig_free(&rig, rig_alloc(&rig, 12 * MIB, 9));
    }
    rig_free(&rig, middle);
    for (int i = 0; i < 4; i++) {
        (void)rig_alloc(&rig, 18 * MIB, 9);
    }
    rig_free(&rig, youngest);
    log.count = 0;
    (void)rig_alloc(&rig, 120 * MIB, 0);
    log_is(&log, &oldest, 1);
    rig_close(&rig);
}

static void below_the_threshold_nothing_is_collected(void **state)
{
    struct aged aged;

    (void)state;
    aged_open(&aged, "garbage_collection_threshold:0.7", 0.5); /* keeps 358 MiB */
    (void)rig_alloc(&aged.rig, 120 * MIB, 0);
    log_is(&aged.log, NULL, 0);
    rig_close(&aged.rig);
}

static void without_a_limit_nothing_is_collected(void **state)
{
    struct aged aged;

    (void)state;
    aged_open(&aged, "garbage_collection_threshold:0.1", 1.0);
    (void)rig_alloc(&aged.rig, 120 * MIB, 0);
    log_is(&aged.log, NULL, 0);
    rig_close(&aged.rig);
}

static void split_and_used_blocks_are_not_collected(void **state)
{
    struct aged aged;

    (void)state;
    aged_open(&aged, "garbage_collection_threshold:0.25", 0.5);
    /* The middle one becomes a part of a split segment, the youngest is used. */
    assert_int_equal(rig_alloc(&aged.rig, 50 * MIB, 0), aged.middle);
    assert_int_equal(rig_alloc(&aged.rig, 102 * MIB, 0), aged.youngest);
    (void)rig_alloc(&aged.rig, 120 * MIB, 0);
    log_is(&aged.log, (tarn_ptr[]){aged.oldest}, 1);
    rig_close(&aged.rig);
}

/* With max_split_size a free block that could serve but may not goes back alone. */
static void one_oversize_block_makes_room(void **state)
{
    struct rig rig;
    struct freed_log log;

    (void)state;
    rig_open(&rig, 300 * MIB, "max_split_size_mb:40");
    log_attach(&rig, &log);
    const tarn_ptr a = rig_alloc(&rig, 100 * MIB, 0);
    const tarn_ptr b = rig_alloc(&rig, 60 * MIB, 0);
    const tarn_ptr c = rig_alloc(&rig, 120 * MIB, 0);

    rig_free(&rig, a);
    rig_free(&rig, b);
    rig_free(&rig, c);
    assert_int_equal(rig_stats(&rig).oversize_segments.current, 3);
    assert_int_equal(rig_stats(&rig).oversize_allocations.current, 0);
    assert_int_equal(rig_stats(&rig).oversize_allocations.peak, 3);
    (void)rig_alloc(&rig, 70 * MIB, 0); /* 100 is more than 20 MiB too large for it */
    log_is(&log, &a, 1);
    assert_int_equal(rig_stats(&rig).num_alloc_retries, 0);
    rig_close(&rig);
}

/* None is large enough: the largest go until their sum is. */
static void several_oversize_blocks_make_room(void **state)
{
    struct rig rig;
    struct freed_log log;

    (void)state;
    rig_open(&rig, 300 * MIB, "max_split_size_mb:40");
    log_attach(&rig, &log);
    const tarn_ptr a = rig_alloc(&rig, 100 * MIB, 0);
    const tarn_ptr b = rig_alloc(&rig, 60 * MIB, 0);
    const tarn_ptr c = rig_alloc(&rig, 120 * MIB, 0);

    rig_free(&rig, a);
    rig_free(&rig, b);
    rig_free(&rig, c);
    (void)rig_alloc(&rig, 130 * MIB, 0);
    log_is(&log, (tarn_ptr[]){c, a}, 2);
    assert_int_equal(rig_stats(&rig).num_alloc_retries, 0);
    rig_close(&rig);
}

/* Just enough is enough: a block below max_split_size stays. */
static void oversize_blocks_of_the_size_make_room(void **state)
{
    struct rig rig;
    struct freed_log log;

    (void)state;
    rig_open(&rig, 300 * MIB, "max_split_size_mb:40");
    log_attach(&rig, &log);
    const tarn_ptr a = rig_alloc(&rig, 60 * MIB, 0);
    const tarn_ptr b = rig_alloc(&rig, 70 * MIB, 0);
    const tarn_ptr small = rig_alloc(&rig, 20 * MIB, 0);

    (void)rig_alloc(&rig, 150 * MIB, 0);
    rig_free(&rig, a);
    rig_free(&rig, b);
    rig_free(&rig, small);
    (void)rig_alloc(&rig, 130 * MIB, 0);
    log_is(&log, (tarn_ptr[]){b, a}, 2);
    assert_int_equal(rig_stats(&rig).num_alloc_retries, 0);
    rig_close(&rig);
}

/* Blocks below max_split_size do not count: then everything goes. */
static void too_little_oversize_memory_flushes_the_cache(void **state)
{
    struct rig rig;
    struct freed_log log;

    (void)state;
    rig_open(&rig, 200 * MIB, "max_split_size_mb:40");
    log_attach(&rig, &log);
    const tarn_ptr a = rig_alloc(&rig, 60 * MIB, 0);
    const tarn_ptr b = rig_alloc(&rig, 30 * MIB, 0);
    const tarn_ptr c = rig_alloc(&rig, 32 * MIB, 0);
    const tarn_ptr d = rig_alloc(&rig, 34 * MIB, 1);

    rig_free(&rig, a);
    rig_free(&rig, b);
    rig_free(&rig, c);
    rig_free(&rig, d);
    (void)rig_alloc(&rig, 150 * MIB, 0);
    log_is(&log, (tarn_ptr[]){a, b, c, d}, 4); /* the largest first, then the flush in order */
    assert_int_equal(rig_stats(&rig).num_alloc_retries, 1);
    rig_close(&rig);
}

/* max_non_split_rounding: a block may be that much too large. */
static void an_oversize_request_takes_a_block_a_little_larger(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "max_split_size_mb:40");
    const tarn_ptr a = rig_alloc(&rig, 100 * MIB, 0);

    rig_free(&rig, a);
    assert_int_equal(rig_alloc(&rig, 82 * MIB, 0), a); /* whole: 100 < 82 + 20 */
    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATED_BYTES), 100 * MIB);
    rig_free(&rig, a);
    assert_int_not_equal(rig_alloc(&rig, 80 * MIB, 0), a);
    assert_int_not_equal(rig_alloc(&rig, 30 * MIB, 0), a); /* small ones may not split it */
    rig_close(&rig);
}

/* Large pool before small pool, in each by stream, size and address. */
static void the_cache_is_emptied_in_order(void **state)
{
    struct rig rig;
    struct freed_log log;
    tarn_ptr ptrs[10];

    (void)state;
    rig_open(&rig, GIB, "");
    log_attach(&rig, &log);
    ptrs[8] = rig_alloc(&rig, 512, 2);
    ptrs[7] = rig_alloc(&rig, 512, 1);
    ptrs[5] = rig_alloc(&rig, 12 * MIB, 2);
    ptrs[6] = rig_alloc(&rig, 14 * MIB, 2);
    ptrs[2] = rig_alloc(&rig, 20 * MIB, 1);
    ptrs[3] = rig_alloc(&rig, 20 * MIB, 1);
    ptrs[4] = rig_alloc(&rig, 22 * MIB, 1);
    ptrs[1] = rig_alloc(&rig, 40 * MIB, 0);
    ptrs[0] = rig_alloc(&rig, 30 * MIB, 0);
    assert_true(ptrs[2] < ptrs[3]);
    for (int i = 8; i >= 0; i--) {
        rig_free(&rig, ptrs[i]);
    }
    ptrs[9] = rig_alloc(&rig, 5 * MIB, 3); /* a used segment stays */
    rig_empty_cache(&rig);
    log_is(&log, ptrs, 9);
    assert_int_equal(rig_totals(&rig).segments, 1);
    rig_empty_cache(&rig);
    log_is(&log, NULL, 0);
    rig_close(&rig);
}

/* Within a pool the plain segments first, then the pages of expandable ones. */
static void plain_segments_go_before_pages(void **state)
{
    struct rig rig;
    struct freed_log log;

    (void)state;
    rig_open(&rig, GIB, "expandable_segments:True");
    log_attach(&rig, &log);
    const tarn_ptr grown = rig_alloc(&rig, 20 * MIB, 0);
    const tarn_ptr grown_small = rig_alloc(&rig, 512, 0);

    rig_configure(&rig, "expandable_segments:False");
    const tarn_ptr plain = rig_alloc(&rig, 60 * MIB, 0);
    const tarn_ptr plain_small = rig_alloc(&rig, 512, 1);

    rig_free(&rig, grown);
    rig_free(&rig, grown_small);
    rig_free(&rig, plain);
    rig_free(&rig, plain_small);
    rig_empty_cache(&rig);
    log_is(&log, (tarn_ptr[]){plain, grown, plain_small, grown_small}, 4);
    rig_close(&rig);
}

/* The ways in which all that is cached goes back. */
enum way {
    EMPTIED,
    TRIMMED,
    COLLECTED, /* for a request beyond the limit */
    WAYS
};

static void give_all_back(struct rig *rig, enum way way)
{
    if (way == EMPTIED) {
        rig_empty_cache(rig);
    } else if (way == TRIMMED) {
        assert_int_equal(tarn_allocator_trim(rig->allocator, 0, NULL, &rig->error), TARN_OK);
    } else {
        rig_limit(rig, 1);
        rig_free(rig, rig_alloc(rig, 512, 0));
        rig_empty_cache(rig); /* that request's page */
    }
}

/* On a device that maps more memory than its driver reports, a range can be mapped from end to end.
 * Its only block is a whole segment then, but its pages are unmapped: it cannot be freed as a plain
 * segment is. */
static void a_range_that_is_mapped_whole_is_unmapped(void **state)
{
    (void)state;
    for (enum way way = EMPTIED; way < WAYS; way++) {
        struct rig rig = {.host_bytes = tarn_host_get_usage().live_bytes};
        struct tarn_config config;

        rig.device = sim_open(GIB);
        rig.device->total_memory = 16 * MIB; /* a range has one page of 20 MiB */
        assert_int_equal(
            tarn_config_parse("expandable_segments:True,garbage_collection_threshold:0.5", &config,
                              &rig.error),
            TARN_OK);
        assert_int_equal(tarn_allocator_create(rig.device, &config, &rig.allocator, &rig.error),
                         TARN_OK);
        const tarn_ptr first = rig_alloc(&rig, 20 * MIB, 0);
        const tarn_ptr second = rig_alloc(&rig, 20 * MIB, 0);

        assert_int_equal(sim_counters(rig.device).live_reservations, 2);
        rig_free(&rig, first);
        rig_free(&rig, second);
        rig_check(&rig);
        assert_int_equal(rig_alloc(&rig, 20 * MIB, 0), first);
        rig_free(&rig, first);
        give_all_back(&rig, way);
        assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_FREE], 0);
        assert_int_equal(sim_counters(rig.device).live_reservations, 0);
        assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 0);
        rig_close(&rig);
    }
}

static void a_failing_free_stops_a_pass(void **state)
{
    struct aged aged;
    tarn_ptr ptr = 7;

    (void)state;
    aged_open(&aged, "garbage_collection_threshold:0.1", 0.5);
    tarn_sim_fail_nth(aged.rig.device, TARN_SIM_FREE, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_alloc(aged.rig.allocator, 150 * MIB, 0, &ptr, &aged.rig.error),
                     TARN_ERR_DEVICE);
    assert_int_equal(ptr, 7);
    rig_check(&aged.rig);
    rig_free(&aged.rig, rig_alloc(&aged.rig, 150 * MIB, 0));
    rig_close(&aged.rig);
}

static void a_failing_free_stops_the_flush(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr a = rig_alloc(&rig, 30 * MIB, 0);
    const tarn_ptr b = rig_alloc(&rig, 32 * MIB, 0);
    const tarn_ptr c = rig_alloc(&rig, 34 * MIB, 0);

    rig_free(&rig, a);
    rig_free(&rig, b);
    rig_free(&rig, c);
    tarn_sim_fail_nth(rig.device, TARN_SIM_FREE, 2, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_empty_cache(rig.allocator, &rig.error), TARN_ERR_DEVICE);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 66 * MIB);
    rig_check(&rig);
    assert_int_equal(rig_alloc(&rig, 32 * MIB, 0), b);
    rig_close(&rig);
}

/* Addresses that the device does not take back are reported. They serve the next request, and go
 * with it. */
static void addresses_that_stay_are_reported(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "expandable_segments:True");
    const tarn_ptr ptr = rig_alloc(&rig, 30 * MIB, 0);

    rig_free(&rig, ptr);
    tarn_sim_fail_nth(rig.device, TARN_SIM_VA_RELEASE, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_empty_cache(rig.allocator, &rig.error), TARN_ERR_DEVICE);
    assert_non_null(strstr(rig.error.text, "releasing addresses"));
    assert_int_equal(sim_counters(rig.device).live_reservations, 1);
    rig_check(&rig);
    assert_int_equal(rig_alloc(&rig, 30 * MIB, 0), ptr);
    rig_free(&rig, ptr);
    rig_empty_cache(&rig);
    assert_int_equal(sim_counters(rig.device).live_reservations, 0);
    rig_close(&rig);
}

/* Host bytes of free sets, of the default pools and the others. */
static size_t free_set_memory(const struct rig *rig)
{
    const struct tn_heap *heap = &rig_engine(rig->allocator)->heap;
    size_t bytes = tn_pool_memory(&heap->small) + tn_pool_memory(&heap->large);

    for (const struct tn_private_pool *p = heap->private_pools.first; p; p = p->next) {
        bytes += tn_pool_memory(&p->small) + tn_pool_memory(&p->large);
    }
    return bytes;
}

/* An emptied cache has no free blocks, so that its sets need no more of the host than at first,
 * whatever sizes they had. */
static void an_emptied_cache_leaves_bare_sets(void **state)
{
    static const uint64_t step[] = {4096, 3 * MIB}; /* of small and of large blocks */

    (void)state;
    for (int k = 0; k < 4; k++) {
        struct tarn_pool *pool = NULL;
        size_t bytes[2];
        struct rig rig;

        rig_open(&rig, GIB, "");
        assert_int_equal(tarn_pool_create(rig.allocator, NULL, &pool, &rig.error), TARN_OK);
        for (uint64_t round = 0; round < 2; round++) { /* of one size, of many */
            tarn_ptr ptrs[20];

            for (uint64_t i = 0; i < 20; i++) {
                const uint64_t size = step[k % 2] * (1 + round * i);

                assert_int_equal(
                    k < 2 ? tarn_allocator_alloc(rig.allocator, size, 0, &ptrs[i], &rig.error)
                          : tarn_pool_alloc(pool, size, 0, &ptrs[i], &rig.error),
                    TARN_OK);
            }
            for (int i = 0; i < 20; i += 2) { /* first those that have no free neighbour */
                rig_free(&rig, ptrs[i]);
            }
            for (int i = 1; i < 20; i += 2) {
                rig_free(&rig, ptrs[i]);
            }
            rig_empty_cache(&rig);
            bytes[round] = free_set_memory(&rig);
        }
        assert_int_equal(bytes[0], bytes[1]);
        tarn_pool_destroy(pool);
        rig_close(&rig);
    }
}

/* What blocks of a pool wait for is waited for when more is to go than is free; that can fail. */
static void a_failing_wait_stops_a_trim(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        struct tarn_pool *pool = NULL;
        tarn_ptr ptr = 0;
        struct rig rig;

        rig_open(&rig, GIB, "");
        assert_int_equal(tarn_pool_create(rig.allocator, NULL, &pool, &rig.error), TARN_OK);
        assert_int_equal(tarn_pool_alloc(pool, 30 * MIB, 0, &ptr, &rig.error), TARN_OK);
        rig_record(&rig, ptr, 2);
        assert_int_equal(tarn_sim_block_stream(rig.device, 2), TARN_OK);
        rig_free(&rig, ptr);
        for (int failing = 1; failing >= 0; failing--) {
            tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_WAIT, (uint64_t)failing, TARN_ERR_DEVICE);
            const enum tarn_status st =
                whole ? tarn_allocator_empty_pool(rig.allocator, tarn_pool_get_id(pool), &rig.error)
                      : tarn_pool_trim(pool, 0, NULL, &rig.error);

            assert_int_equal(st, failing ? TARN_ERR_DEVICE : TARN_OK);
            rig_check(&rig);
            assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), failing ? 30 * MIB : 0);
        }
        tarn_pool_destroy(pool);
        rig_close(&rig);
    }
}

/* Of several that are old enough the first that fails ends it, and the error is the caller's. */
static void after_a_failing_free_no_other_block_of_a_pass_goes(void **state)
{
    struct rig rig;
    tarn_ptr blocks[4];
    tarn_ptr ptr = 7;

    (void)state;
    rig_open(&rig, 1024 * MIB, "garbage_collection_threshold:0.5");
    rig_limit(&rig, 0.5);
    for (uint64_t i = 0; i < 4; i++) {
        blocks[i] = rig_alloc(&rig, (100 - i * 2) * MIB, 0);
    }
    for (int i = 0; i < 4; i++) {
        rig_free(&rig, blocks[i]);
    }
    const int64_t reserved = rig_now(&rig, TARN_STAT_RESERVED_BYTES);

    tarn_sim_fail_nth(rig.device, TARN_SIM_FREE, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 110 * MIB, 0, &ptr, &rig.error),
                     TARN_ERR_DEVICE);
    assert_int_equal(ptr, 7);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), reserved);
    rig_close(&rig);
}

/* 214 of 318 MiB may stay: the oldest block alone is what has to go. */
static void a_pass_that_gave_back_just_enough_is_the_last(void **state)
{
    struct aged aged;

    (void)state;
    aged_open(&aged, "garbage_collection_threshold:0.41796875", 0.5);
    (void)rig_alloc(&aged.rig, 120 * MIB, 0);
    log_is(&aged.log, &aged.oldest, 1);
    rig_close(&aged.rig);
}

/* Three blocks of these sizes, free, under max_split_size_mb:40 and on a device without room for
 * more. */
static void oversize_open(struct rig *rig, struct freed_log *log, const uint64_t *sizes,
                          tarn_ptr *ptrs)
{
    rig_open(rig, sizes[0] + sizes[1] + sizes[2] + 10 * MIB, "max_split_size_mb:40");
    log_attach(rig, log);
    for (int i = 0; i < 3; i++) {
        ptrs[i] = rig_alloc(rig, sizes[i], 0);
    }
    for (int i = 0; i < 3; i++) {
        rig_free(rig, ptrs[i]);
    }
}

/* From the largest down, a block of max_split_size included, until there is enough. */
static void oversize_blocks_go_until_there_is_enough(void **state)
{
    static const uint64_t sizes[] = {90 * MIB, 50 * MIB, 40 * MIB};
    struct freed_log log;
    struct rig rig;
    tarn_ptr ptrs[3];

    (void)state;
    oversize_open(&rig, &log, sizes, ptrs);
    (void)rig_alloc(&rig, 140 * MIB, 0); /* just the two largest */
    log_is(&log, (tarn_ptr[]){ptrs[0], ptrs[1]}, 2);
    assert_int_equal(rig_stats(&rig).num_alloc_retries, 0);
    rig_close(&rig);
    oversize_open(&rig, &log, sizes, ptrs);
    (void)rig_alloc(&rig, 180 * MIB, 0); /* all three */
    log_is(&log, ptrs, 3);
    assert_int_equal(rig_stats(&rig).num_alloc_retries, 0);
    rig_close(&rig);
}

/* Whether one block is enough or several are needed. */
static void a_failing_free_of_an_oversize_block_is_reported(void **state)
{
    static const uint64_t sizes[] = {120 * MIB, 100 * MIB, 60 * MIB};
    static const uint64_t wanted[] = {70 * MIB, 130 * MIB};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct freed_log log;
        struct rig rig;
        tarn_ptr ptrs[3];
        tarn_ptr ptr = 0;

        oversize_open(&rig, &log, sizes, ptrs);
        tarn_sim_fail_nth(rig.device, TARN_SIM_FREE, 1, TARN_ERR_DEVICE);
        assert_int_equal(tarn_allocator_alloc(rig.allocator, wanted[i], 0, &ptr, &rig.error),
                         TARN_ERR_DEVICE);
        assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 280 * MIB);
        rig_check(&rig);
        rig_free(&rig, rig_alloc(&rig, wanted[i], 0));
        rig_close(&rig);
    }
}

static void nothing_is_oversize_without_the_setting(void **state)
{
    bool released = true;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    rig_free(&rig, rig_alloc(&rig, 100 * MIB, 0));
    struct tn_engine *engine = rig_engine(rig.allocator);

    assert_int_equal(tn_gc_release_oversize(engine, engine->heap.large.sets[0], 100 * MIB, 0,
                                            &released, &rig.error),
                     TARN_OK);
    assert_false(released);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 100 * MIB);
    rig_close(&rig);
}

static void a_failing_unmap_stops_the_flush(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "expandable_segments:True");
    const tarn_ptr first = rig_alloc(&rig, 20 * MIB, 0);
    const tarn_ptr kept = rig_alloc(&rig, 20 * MIB, 0);
    const tarn_ptr last = rig_alloc(&rig, 20 * MIB, 0);

    rig_free(&rig, first);
    rig_free(&rig, last);
    tarn_sim_fail_nth(rig.device, TARN_SIM_UNMAP, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_empty_cache(rig.allocator, &rig.error), TARN_ERR_DEVICE);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 60 * MIB);
    rig_empty_cache(&rig);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 20 * MIB);
    rig_free(&rig, kept);
    rig_close(&rig);
}

/* ---- pools that requests were routed to ---- */

static void begin_routing(struct rig *rig, struct tarn_pool_id id)
{
    assert_int_equal(tarn_allocator_begin_pool(rig->allocator, id, any_stream, NULL, &rig->error),
                     TARN_OK);
}

static void end_routing(struct rig *rig, struct tarn_pool_id id)
{
    assert_int_equal(tarn_allocator_end_pool(rig->allocator, id, &rig->error), TARN_OK);
}

/* The pool has a free block of that size then. */
static void leave_free(struct rig *rig, struct tarn_pool_id id, uint64_t size)
{
    begin_routing(rig, id);
    rig_free(rig, rig_alloc(rig, size, 0));
    end_routing(rig, id);
}

static void release_pool(struct rig *rig, struct tarn_pool_id id)
{
    assert_int_equal(tarn_allocator_release_pool(rig->allocator, id, &rig->error), TARN_OK);
}

/* A pool that was released stays as long as its memory does: the error says that it did not go. */
static void a_released_pool_that_cannot_go_is_reported(void **state)
{
    static const struct {
        const char *conf;
        enum tarn_sim_call call;
        int64_t left;
    } ways[] = {{"", TARN_SIM_FREE, 30 * MIB},
                {"expandable_segments:True", TARN_SIM_UNMAP, 40 * MIB},
                {"expandable_segments:True", TARN_SIM_VA_RELEASE, 0}};
    const struct tarn_pool_id id = {0, 1};

    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct rig rig;

        rig_open(&rig, GIB, ways[i].conf);
        leave_free(&rig, id, 30 * MIB);
        release_pool(&rig, id);
        tarn_sim_fail_nth(rig.device, ways[i].call, 1, TARN_ERR_DEVICE);
        assert_int_equal(tarn_allocator_empty_cache(rig.allocator, &rig.error), TARN_ERR_DEVICE);
        assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), ways[i].left);
        assert_non_null(rig_engine(rig.allocator)->heap.private_pools.first);
        rig_check(&rig);
        tarn_sim_fail_nth(rig.device, ways[i].call, 1, TARN_ERR_DEVICE); /* also at the next try */
        assert_int_equal(tarn_allocator_empty_cache(rig.allocator, &rig.error), TARN_ERR_DEVICE);
        assert_non_null(rig_engine(rig.allocator)->heap.private_pools.first);
        rig_empty_cache(&rig);
        assert_null(rig_engine(rig.allocator)->heap.private_pools.first);
        assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 0);
        rig_close(&rig);
    }
}

/* Both numbers of an id count. */
static void only_the_pool_of_that_id_is_emptied(void **state)
{
    static const struct tarn_pool_id ids[] = {{1, 1}, {2, 1}, {1, 2}};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    for (size_t i = 0; i < 3; i++) {
        leave_free(&rig, ids[i], (20 + i * 10) * MIB);
        release_pool(&rig, ids[i]);
    }
    assert_int_equal(tarn_allocator_empty_pool(rig.allocator, ids[1], &rig.error), TARN_OK);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 60 * MIB);
    rig_close(&rig);
}

/* ---- pools with a handle ---- */

static struct tarn_pool *pool_open(struct rig *rig, int32_t priority)
{
    const struct tarn_pool_options options = {.struct_size = sizeof options, .priority = priority};
    struct tarn_pool *pool = NULL;

    assert_int_equal(tarn_pool_create(rig->allocator, &options, &pool, &rig->error), TARN_OK);
    return pool;
}

static void pool_leave_free(struct rig *rig, struct tarn_pool *pool, uint64_t size)
{
    tarn_ptr ptr = 0;

    assert_int_equal(tarn_pool_alloc(pool, size, 0, &ptr, &rig->error), TARN_OK);
    rig_free(rig, ptr);
}

static uint64_t pool_reserved(struct tarn_pool *pool)
{
    struct tarn_pool_stats stats = {.struct_size = sizeof stats};

    assert_int_equal(tarn_pool_get_stats(pool, &stats), TARN_OK);
    return stats.reserved;
}

/* However the cache is given back: the first pool that fails ends it. */
static void a_failing_free_of_one_pool_leaves_the_others(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) {
        struct rig rig;
        tarn_ptr ptr = 0;

        rig_open(&rig, 130 * MIB, "");
        struct tarn_pool *a = pool_open(&rig, 0);
        struct tarn_pool *b = pool_open(&rig, 0);

        pool_leave_free(&rig, a, 60 * MIB);
        pool_leave_free(&rig, b, 60 * MIB);
        tarn_sim_fail_nth(rig.device, TARN_SIM_FREE, 1, TARN_ERR_DEVICE);
        enum tarn_status st;

        if (way == 0) {
            st = tarn_allocator_empty_cache(rig.allocator, &rig.error);
        } else if (way == 1) {
            st = tarn_allocator_trim(rig.allocator, 0, NULL, &rig.error);
        } else {
            st = tarn_allocator_alloc(rig.allocator, 40 * MIB, 0, &ptr, &rig.error);
        }
        assert_int_equal(st, TARN_ERR_DEVICE);
        assert_int_equal(pool_reserved(a) + pool_reserved(b), 120 * MIB);
        rig_check(&rig);
        tarn_pool_destroy(a);
        tarn_pool_destroy(b);
        rig_close(&rig);
    }
}

/* While requests are routed nothing is waited for, so open pools keep what they cache. */
static void nothing_of_an_open_pool_goes_while_requests_are_routed(void **state)
{
    const struct tarn_pool_id id = {0, 1};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    struct tarn_pool *pool = pool_open(&rig, 0);

    pool_leave_free(&rig, pool, 30 * MIB);
    begin_routing(&rig, id);
    rig_empty_cache(&rig);
    assert_int_equal(pool_reserved(pool), 30 * MIB);
    assert_int_equal(tarn_pool_trim(pool, 0, NULL, &rig.error), TARN_OK);
    assert_int_equal(pool_reserved(pool), 30 * MIB);
    end_routing(&rig, id);
    assert_int_equal(tarn_pool_trim(pool, 0, NULL, &rig.error), TARN_OK);
    assert_int_equal(pool_reserved(pool), 0);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* A request takes what pools of its own and of lower priorities cache, and nothing above; the
 * default pools have 0. */
static void a_request_takes_the_cache_up_to_its_priority(void **state)
{
    enum {
        LOWEST = -2,
        HIGHEST = 2,
        POOLS = HIGHEST - LOWEST + 1
    };

    (void)state;
    for (int32_t own = LOWEST; own <= HIGHEST; own++) {
        struct tarn_pool *pools[POOLS];
        tarn_ptr ptr = 0;
        struct rig rig;

        rig_open(&rig, 128 * MIB, "");
        for (int32_t i = 0; i < POOLS; i++) {
            pools[i] = pool_open(&rig, LOWEST + i);
            pool_leave_free(&rig, pools[i], 20 * MIB);
        }
        rig_free(&rig, rig_alloc(&rig, 22 * MIB, 1));
        struct tarn_pool *asking = pool_open(&rig, own);

        assert_int_equal(tarn_pool_alloc(asking, 200 * MIB, 0, &ptr, &rig.error),
                         TARN_ERR_OUT_OF_MEMORY); /* more than there is */
        for (int32_t i = 0; i < POOLS; i++) {
            assert_int_equal(pool_reserved(pools[i]), LOWEST + i <= own ? 0 : 20 * MIB);
        }
        assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES),
                         (uint64_t)(HIGHEST - own) * 20 * MIB + (own < 0 ? 22 * MIB : 0));
        for (int32_t i = 0; i < POOLS; i++) {
            tarn_pool_destroy(pools[i]);
        }
        tarn_pool_destroy(asking);
        rig_close(&rig);
    }
}

/* Requests of no pool have the priority 0. */
static void default_requests_leave_pools_of_higher_priority(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 128 * MIB, "");
    struct tarn_pool *lower = pool_open(&rig, -1);
    struct tarn_pool *same = pool_open(&rig, 0);
    struct tarn_pool *higher = pool_open(&rig, 1);

    pool_leave_free(&rig, lower, 20 * MIB);
    pool_leave_free(&rig, same, 20 * MIB);
    pool_leave_free(&rig, higher, 20 * MIB);
    rig_alloc_oom(&rig, 200 * MIB, 0);
    assert_int_equal(pool_reserved(lower), 0);
    assert_int_equal(pool_reserved(same), 0);
    assert_int_equal(pool_reserved(higher), 20 * MIB);
    tarn_pool_destroy(lower);
    tarn_pool_destroy(same);
    tarn_pool_destroy(higher);
    rig_close(&rig);
}

/* A graph knows the addresses of its pool, which therefore keeps its free memory. */
static void the_pool_of_a_graph_keeps_its_free_memory(void **state)
{
    const struct tarn_pool_id id = {0, 1};
    struct rig rig;

    (void)state;
    rig_open(&rig, 128 * MIB, "");
    struct tarn_pool *pool = pool_open(&rig, 0);

    pool_leave_free(&rig, pool, 20 * MIB);
    leave_free(&rig, id, 30 * MIB);
    rig_alloc_oom(&rig, 200 * MIB, 0);
    assert_int_equal(pool_reserved(pool), 0);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 30 * MIB);
    assert_int_equal(tarn_allocator_release_stream(rig.allocator, 0, &rig.error), TARN_OK);
    assert_int_equal(tarn_allocator_trim(rig.allocator, 0, NULL, &rig.error), TARN_OK);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 30 * MIB);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* The device is asked again only after something was given back. */
static void a_pool_without_a_cache_costs_no_device_call(void **state)
{
    uint64_t calls[2];

    (void)state;
    for (int with = 0; with < 2; with++) {
        struct tarn_pool *pool = NULL;
        struct rig rig;

        rig_open(&rig, 128 * MIB, "");
        if (with) {
            pool = pool_open(&rig, 0);
        }
        rig_alloc_oom(&rig, 200 * MIB, 0);
        calls[with] = sim_counters(rig.device).calls[TARN_SIM_ALLOC];
        tarn_pool_destroy(pool);
        rig_close(&rig);
    }
    assert_int_equal(calls[0], calls[1]);
}

/* ---- to a target ---- */

/* The largest first, and none when the target is reached. */
static void trimming_ends_at_the_target(void **state)
{
    const struct tarn_pool_id id = {0, 1};
    uint64_t reserved = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    struct tarn_pool *pool = pool_open(&rig, 0);

    leave_free(&rig, id, 40 * MIB);
    release_pool(&rig, id);
    pool_leave_free(&rig, pool, 50 * MIB);
    const tarn_ptr waiting = rig_alloc(&rig, 60 * MIB, 0);
    const tarn_ptr small = rig_alloc(&rig, 20 * MIB, 0);
    const tarn_ptr large = rig_alloc(&rig, 30 * MIB, 0);

    rig_record(&rig, waiting, 2);
    assert_int_equal(tarn_sim_block_stream(rig.device, 2), TARN_OK);
    rig_free(&rig, waiting);
    rig_free(&rig, small);
    rig_free(&rig, large);
    assert_int_equal(tarn_allocator_trim(rig.allocator, 170 * MIB, &reserved, &rig.error), TARN_OK);
    assert_int_equal(reserved, 170 * MIB);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE_BYTES), 60 * MIB); /* nobody waited */
    assert_int_equal(rig_alloc(&rig, 20 * MIB, 0), small);
    rig_free(&rig, small);
    /* What other streams use comes before pools, and pools only as far as needed. */
    assert_int_equal(tarn_allocator_trim(rig.allocator, 90 * MIB, &reserved, &rig.error), TARN_OK);
    assert_int_equal(reserved, 90 * MIB);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE_BYTES), 0);
    assert_int_equal(pool_reserved(pool), 50 * MIB);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* What failed is reported, though a second look would have succeeded. */
static void a_failing_free_stops_a_trim(void **state)
{
    static const uint64_t sizes[] = {30 * MIB, 512}; /* of both kinds of a pool */

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        for (int of_pool = 0; of_pool < 2; of_pool++) {
            struct rig rig;

            rig_open(&rig, GIB, "");
            struct tarn_pool *pool = pool_open(&rig, 0);

            for (int k = 0; k < 2; k++) {
                tarn_ptr ptrs[2] = {0, 0};

                assert_int_equal(
                    of_pool ? tarn_pool_alloc(pool, sizes[i], 0, &ptrs[0], &rig.error)
                            : tarn_allocator_alloc(rig.allocator, sizes[i], 0, &ptrs[0], NULL),
                    TARN_OK);
                rig_free(&rig, ptrs[0]);
            }
            const int64_t reserved = rig_now(&rig, TARN_STAT_RESERVED_BYTES);

            tarn_sim_fail_nth(rig.device, TARN_SIM_FREE, 1, TARN_ERR_DEVICE);
            assert_int_equal(of_pool ? tarn_pool_trim(pool, 0, NULL, &rig.error)
                                     : tarn_allocator_trim(rig.allocator, 0, NULL, &rig.error),
                             TARN_ERR_DEVICE);
            assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), reserved);
            assert_int_equal(of_pool ? tarn_pool_trim(pool, 0, NULL, &rig.error)
                                     : tarn_allocator_trim(rig.allocator, 0, NULL, &rig.error),
                             TARN_OK);
            assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 0);
            tarn_pool_destroy(pool);
            rig_close(&rig);
        }
    }
}

/* Two blocks of one stream: the second stays. */
static void a_failing_free_leaves_the_rest_of_the_set(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr a = rig_alloc(&rig, 30 * MIB, 0);
    const tarn_ptr b = rig_alloc(&rig, 40 * MIB, 0);

    rig_free(&rig, a);
    rig_free(&rig, b);
    tarn_sim_fail_nth(rig.device, TARN_SIM_FREE, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_trim(rig.allocator, 0, NULL, &rig.error), TARN_ERR_DEVICE);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 70 * MIB);
    rig_close(&rig);
}

/* ---- of one stream ---- */

static void what_one_stream_cached_goes(void **state)
{
    const struct tarn_pool_id id = {0, 1};
    tarn_ptr ptrs[8];
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    struct tarn_pool *pool = pool_open(&rig, 0);

    for (tarn_stream stream = 0; stream < 2; stream++) {
        tarn_ptr *own = &ptrs[stream * 4];

        own[0] = rig_alloc(&rig, 20 * MIB, stream);
        own[1] = rig_alloc(&rig, 512, stream);
        assert_int_equal(tarn_pool_alloc(pool, 20 * MIB, stream, &own[2], &rig.error), TARN_OK);
        assert_int_equal(tarn_pool_alloc(pool, 512, stream, &own[3], &rig.error), TARN_OK);
    }
    for (int i = 0; i < 8; i++) {
        rig_free(&rig, ptrs[i]);
    }
    begin_routing(&rig, id);
    assert_int_equal(tarn_allocator_release_stream(rig.allocator, 0, &rig.error), TARN_OK);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 88 * MIB); /* not in a capture */
    end_routing(&rig, id);
    for (int64_t stream = 0; stream < 2; stream++) {
        assert_int_equal(
            tarn_allocator_release_stream(rig.allocator, (tarn_stream)stream, &rig.error), TARN_OK);
        assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES),
                         (uint64_t)(1 - stream) * 44 * MIB);
    }
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* Whichever of its segments the device does not take back. */
static void a_failing_free_of_a_stream_is_reported(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 4; n++) {
        struct rig rig;

        rig_open(&rig, GIB, "");
        struct tarn_pool *a = pool_open(&rig, 0);
        struct tarn_pool *b = pool_open(&rig, 0);

        rig_free(&rig, rig_alloc(&rig, 20 * MIB, 0));
        rig_free(&rig, rig_alloc(&rig, 512, 0));
        pool_leave_free(&rig, a, 20 * MIB);
        pool_leave_free(&rig, b, 20 * MIB);
        tarn_sim_fail_nth(rig.device, TARN_SIM_FREE, n, TARN_ERR_DEVICE);
        assert_int_equal(tarn_allocator_release_stream(rig.allocator, 0, &rig.error),
                         TARN_ERR_DEVICE);
        assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_FREE], n);
        tarn_pool_destroy(a);
        tarn_pool_destroy(b);
        rig_close(&rig);
    }
}

/* ---- blocks without a place ---- */

/* A block that was freed when the host had no memory is in no bin yet, but free like any. */
static void what_was_freed_without_host_memory_goes_back(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        tarn_ptr ptr = 0;
        enum tarn_status st;
        struct rig rig;

        rig_open(&rig, GIB, "");
        struct tarn_pool *pool = pool_open(&rig, 0);

        assert_int_equal(tarn_pool_alloc(pool, 30 * MIB, 0, &ptr, &rig.error), TARN_OK);
        const struct tn_free_set *set =
            rig_engine(rig.allocator)->heap.private_pools.first->large.sets[0];

        tarn_host_fail_nth(1);
        rig_free(&rig, ptr);
        tarn_host_fail_nth(0);
        assert_non_null(set->linked.first);
        if (way == 0) {
            st = tarn_pool_trim(pool, 0, NULL, &rig.error);
        } else if (way == 1) {
            st = tarn_allocator_trim(rig.allocator, 0, NULL, &rig.error);
        } else if (way == 2) {
            st = tarn_allocator_release_stream(rig.allocator, 0, &rig.error);
        } else {
            st = tarn_allocator_empty_cache(rig.allocator, &rig.error);
        }
        assert_int_equal(st, TARN_OK);
        assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 0);
        tarn_pool_destroy(pool);
        rig_close(&rig);
    }
}

/* ---- old addresses of pages that moved ---- */

/* Under the compact policy 15 pages moved whose old addresses stay mapped, because their stream has
 * not come by. */
static void retired_open(struct rig *rig)
{
    rig_open(rig, GIB, "policy:compact");
    const tarn_ptr hole = rig_alloc(rig, 30 * MIB, 1);

    (void)rig_alloc(rig, 2 * MIB, 1);
    rig_free(rig, hole);
    assert_int_equal(tarn_sim_block_stream(rig->device, 1), TARN_OK);
    (void)rig_alloc(rig, 40 * MIB, 1);
}

static uint64_t retired(struct rig *rig)
{
    struct tarn_page_stats pages = {.struct_size = sizeof pages};

    tarn_allocator_get_page_stats(rig->allocator, &pages);
    return pages.retired;
}

/* Not in a capture, in which nothing can be waited for. */
static void old_addresses_stay_while_requests_are_routed(void **state)
{
    const struct tarn_pool_id id = {0, 1};
    struct rig rig;

    (void)state;
    retired_open(&rig);
    assert_int_equal(retired(&rig), 15);
    begin_routing(&rig, id);
    rig_empty_cache(&rig); /* succeeds */
    assert_int_equal(retired(&rig), 15);
    end_routing(&rig, id);
    rig_empty_cache(&rig);
    assert_int_equal(retired(&rig), 0);
    rig_close(&rig);
}

/* A pool that has no more than it may keep is not waited for. */
static void a_pool_below_its_target_waits_for_nothing(void **state)
{
    struct rig rig;

    (void)state;
    retired_open(&rig);
    struct tarn_pool *pool = pool_open(&rig, 0);
    tarn_ptr ptr = 0;

    assert_int_equal(tarn_pool_alloc(pool, 20 * MIB, 0, &ptr, &rig.error), TARN_OK);
    const uint64_t before = retired(&rig);

    assert_true(before > 0);
    assert_int_equal(tarn_pool_trim(pool, 30 * MIB, NULL, &rig.error), TARN_OK);
    assert_int_equal(retired(&rig), before);
    assert_int_equal(tarn_pool_trim(pool, 20 * MIB, NULL, &rig.error), TARN_OK);
    assert_int_equal(retired(&rig), before);
    assert_int_equal(tarn_pool_trim(pool, 20 * MIB - 1, NULL, &rig.error), TARN_OK);
    assert_int_equal(retired(&rig), 0);
    rig_free(&rig, ptr);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* An old address that cannot be unmapped ends it before anything of the pool goes. */
static void an_old_address_that_stays_keeps_the_pool(void **state)
{
    struct rig rig;

    (void)state;
    retired_open(&rig);
    struct tarn_pool *pool = pool_open(&rig, 0);

    pool_leave_free(&rig, pool, 20 * MIB);
    tarn_sim_fail_nth(rig.device, TARN_SIM_UNMAP, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_empty_pool(rig.allocator, tarn_pool_get_id(pool), &rig.error),
                     TARN_ERR_DEVICE);
    assert_int_equal(pool_reserved(pool), 20 * MIB);
    rig_check(&rig);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* The pool of a graph has no priority: what it caches is not given back, so that nothing is waited
 * for on its account. */
static void the_pool_of_a_graph_is_not_waited_for(void **state)
{
    const struct tarn_pool_id id = {0, 1};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact");
    leave_free(&rig, id, 20 * MIB);
    const tarn_ptr hole = rig_alloc(&rig, 30 * MIB, 1);

    (void)rig_alloc(&rig, 2 * MIB, 1);
    rig_free(&rig, hole);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    (void)rig_alloc(&rig, 40 * MIB, 1);
    const uint64_t before = retired(&rig);

    assert_true(before > 0);
    rig_limit(&rig, 64.0 / 1024);
    rig_alloc_oom(&rig, 100 * MIB, 1);
    assert_int_equal(retired(&rig), before);
    assert_int_equal(sim_counters(rig.device).forced_unblocks, 0);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_pass_takes_those_above_the_average_age),
        cmocka_unit_test(passes_go_on_until_enough_went_back),
        cmocka_unit_test(a_pass_does_not_stop_early),
        cmocka_unit_test(a_search_without_a_block_ages_once),
        cmocka_unit_test(below_the_threshold_nothing_is_collected),
        cmocka_unit_test(without_a_limit_nothing_is_collected),
        cmocka_unit_test(split_and_used_blocks_are_not_collected),
        cmocka_unit_test(one_oversize_block_makes_room),
        cmocka_unit_test(several_oversize_blocks_make_room),
        cmocka_unit_test(oversize_blocks_of_the_size_make_room),
        cmocka_unit_test(too_little_oversize_memory_flushes_the_cache),
        cmocka_unit_test(an_oversize_request_takes_a_block_a_little_larger),
        cmocka_unit_test(the_cache_is_emptied_in_order),
        cmocka_unit_test(plain_segments_go_before_pages),
        cmocka_unit_test(a_failing_free_stops_the_flush),
        cmocka_unit_test(a_range_that_is_mapped_whole_is_unmapped),
        cmocka_unit_test(a_failing_free_stops_a_pass),
        cmocka_unit_test(addresses_that_stay_are_reported),
        cmocka_unit_test(an_emptied_cache_leaves_bare_sets),
        cmocka_unit_test(a_failing_wait_stops_a_trim),
        cmocka_unit_test(after_a_failing_free_no_other_block_of_a_pass_goes),
        cmocka_unit_test(a_pass_that_gave_back_just_enough_is_the_last),
        cmocka_unit_test(oversize_blocks_go_until_there_is_enough),
        cmocka_unit_test(a_failing_free_of_an_oversize_block_is_reported),
        cmocka_unit_test(nothing_is_oversize_without_the_setting),
        cmocka_unit_test(a_failing_unmap_stops_the_flush),
        cmocka_unit_test(a_released_pool_that_cannot_go_is_reported),
        cmocka_unit_test(only_the_pool_of_that_id_is_emptied),
        cmocka_unit_test(a_failing_free_of_one_pool_leaves_the_others),
        cmocka_unit_test(nothing_of_an_open_pool_goes_while_requests_are_routed),
        cmocka_unit_test(a_request_takes_the_cache_up_to_its_priority),
        cmocka_unit_test(default_requests_leave_pools_of_higher_priority),
        cmocka_unit_test(the_pool_of_a_graph_keeps_its_free_memory),
        cmocka_unit_test(a_pool_without_a_cache_costs_no_device_call),
        cmocka_unit_test(trimming_ends_at_the_target),
        cmocka_unit_test(a_failing_free_stops_a_trim),
        cmocka_unit_test(a_failing_free_leaves_the_rest_of_the_set),
        cmocka_unit_test(what_one_stream_cached_goes),
        cmocka_unit_test(a_failing_free_of_a_stream_is_reported),
        cmocka_unit_test(what_was_freed_without_host_memory_goes_back),
        cmocka_unit_test(old_addresses_stay_while_requests_are_routed),
        cmocka_unit_test(a_pool_below_its_target_waits_for_nothing),
        cmocka_unit_test(an_old_address_that_stays_keeps_the_pool),
        cmocka_unit_test(the_pool_of_a_graph_is_not_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
