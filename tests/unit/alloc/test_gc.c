/* SPDX-License-Identifier: MIT */
/* Giving memory back: by age, a few large blocks, or everything, in PyTorch's orders. */
#include "support/test.h"

#include "support/rig.h"
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
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
