/* SPDX-License-Identifier: MIT */
/* Growing segments, through the public interface. Names in comments are PyTorch's tests. */
#include "support/test.h"

#include "alloc/pool/mapping.h"
#include "alloc/pool/segment.h"
#include "support/rig.h"

#define GROW "expandable_segments:True"

static void device_holds(struct rig *rig, uint64_t reservations, uint64_t pages, uint64_t bytes)
{
    const struct tarn_sim_counters counters = sim_counters(rig->device);

    assert_int_equal(counters.live_reservations, reservations);
    assert_int_equal(counters.live_pages, pages);
    assert_int_equal(counters.live_mappings, pages);
    assert_int_equal(counters.used_bytes, bytes);
    assert_int_equal(rig_now(rig, TARN_STAT_RESERVED_BYTES), bytes);
}

static void pages_are_mapped_as_needed(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, GROW);
    const tarn_ptr a = rig_alloc(&rig, 512, 0);

    device_holds(&rig, 1, 1, 2 * MIB); /* small pool: pages of 2 MiB */
    assert_int_equal(rig_now(&rig, TARN_STAT_SEGMENT), 0);
    assert_int_equal(rig_stats(&rig).num_device_alloc, 1);
    const tarn_ptr b = rig_alloc(&rig, 5 * MIB, 0);

    device_holds(&rig, 2, 2, 22 * MIB); /* large pool: of 20 MiB */
    const tarn_ptr c = rig_alloc(&rig, 18 * MIB, 0);

    assert_int_equal(c, b + 5 * MIB); /* the free 15 MiB and the front of a new page */
    device_holds(&rig, 2, 3, 42 * MIB);
    const tarn_ptr d = rig_alloc(&rig, 97 * MIB, 0);

    assert_int_equal(d, c + 18 * MIB);
    device_holds(&rig, 2, 7, 122 * MIB);                          /* 120 MiB in use of 120 */
    assert_int_equal(rig_stats(&rig).num_device_alloc, 4);        /* one a piece */
    assert_int_equal(rig_now(&rig, TARN_STAT_INACTIVE_SPLIT), 0); /* not counted */
    assert_int_equal(rig_alloc(&rig, MIB, 0), a + 512);
    rig_close(&rig);
}

/* Free memory between blocks is filled piece by piece: one event a piece. */
static void holes_are_mapped_piece_by_piece(void **state)
{
    struct rig rig;
    tarn_ptr pages[6];

    (void)state;
    rig_open(&rig, GIB, GROW);
    for (int i = 0; i < 6; i++) {
        pages[i] = rig_alloc(&rig, 20 * MIB, 0);
        assert_int_equal(pages[i], pages[0] + (uint64_t)i * 20 * MIB);
    }
    rig_free(&rig, pages[1]);
    rig_free(&rig, pages[3]);
    rig_empty_cache(&rig); /* holes at 1 and 3 */
    device_holds(&rig, 1, 4, 80 * MIB);
    assert_int_equal(rig_totals(&rig).segments, 3);
    rig_free(&rig, pages[2]); /* mapped and free, holes on both sides */
    const int64_t maps = rig_stats(&rig).num_device_alloc;

    assert_int_equal(rig_alloc(&rig, 60 * MIB, 0), pages[1]);
    device_holds(&rig, 1, 6, 120 * MIB);
    assert_int_equal(rig_stats(&rig).num_device_alloc, maps + 2);
    assert_int_equal(rig_totals(&rig).segments, 1);
    rig_close(&rig);
}

static void the_lowest_hole_with_room_is_taken(void **state)
{
    struct rig rig;
    tarn_ptr pages[6];

    (void)state;
    rig_open(&rig, GIB, GROW);
    for (int i = 0; i < 6; i++) {
        pages[i] = rig_alloc(&rig, 20 * MIB, 0);
    }
    rig_free(&rig, pages[0]);
    rig_free(&rig, pages[2]);
    rig_free(&rig, pages[3]);
    rig_empty_cache(&rig);
    assert_int_equal(rig_alloc(&rig, 40 * MIB, 0), pages[2]); /* not at 0, not at the end */
    assert_int_equal(rig_alloc(&rig, 20 * MIB, 0), pages[0]);
    assert_int_equal(rig_alloc(&rig, 20 * MIB, 0), pages[5] + 20 * MIB);
    rig_close(&rig);
}

static void only_whole_pages_are_unmapped(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, GROW);
    const tarn_ptr a = rig_alloc(&rig, 10 * MIB, 0);
    const tarn_ptr b = rig_alloc(&rig, 60 * MIB, 0); /* 10 to 70 */
    const tarn_ptr c = rig_alloc(&rig, 5 * MIB, 0);  /* 70 to 75 */

    device_holds(&rig, 1, 4, 80 * MIB);
    rig_free(&rig, b);
    rig_empty_cache(&rig);
    device_holds(&rig, 1, 2, 40 * MIB); /* pages 1 and 2 are gone, 0 and 3 are shared */
    assert_int_equal(rig_stats(&rig).num_device_free, 1);
    /* Left are 10 MiB in page 0 and in page 3, which has no room to grow. */
    assert_int_equal(rig_alloc(&rig, 10 * MIB, 0), b + 50 * MIB);
    assert_int_equal(rig_alloc(&rig, 10 * MIB, 0), b);
    rig_free(&rig, b);
    rig_free(&rig, b + 50 * MIB);
    rig_free(&rig, a);
    rig_free(&rig, c);
    rig_empty_cache(&rig);
    device_holds(&rig, 0, 0, 0); /* the range goes with its last page */
    assert_int_equal(rig_totals(&rig).segments, 0);
    rig_free(&rig, rig_alloc(&rig, 20 * MIB, 0));
    device_holds(&rig, 1, 1, 20 * MIB);
    rig_close(&rig);
}

/* A range with free pages but no free page that is whole stays. */
static void nothing_whole_is_nothing_to_give(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, GROW);
    (void)rig_alloc(&rig, 3 * MIB, 0);
    rig_empty_cache(&rig);
    device_holds(&rig, 1, 1, 20 * MIB);
    assert_int_equal(rig_stats(&rig).num_device_free, 0);
    rig_close(&rig);
}

static void every_stream_and_pool_has_its_own_range(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 8 * GIB, GROW);
    for (tarn_stream stream = 0; stream < 4; stream++) {
        (void)rig_alloc(&rig, 512, stream);
        (void)rig_alloc(&rig, 2 * MIB, stream);
    }
    device_holds(&rig, 8, 8, 88 * MIB);
    assert_int_equal(rig_totals(&rig).expandable, 8);
    rig_close(&rig);
}

static void the_option_can_be_switched(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, GROW);
    const tarn_ptr a = rig_alloc(&rig, 20 * MIB, 0);

    rig_free(&rig, a);
    rig_configure(&rig, "expandable_segments:False");
    const tarn_ptr b =
        rig_alloc(&rig, 20 * MIB, 0); /* a free block of an expandable one is no use */

    assert_int_not_equal(a, b);
    assert_int_equal(rig_now(&rig, TARN_STAT_SEGMENT), 1);
    assert_int_equal(rig_totals(&rig).expandable, 1);
    assert_int_equal(rig_totals(&rig).segments, 2);
    rig_configure(&rig, GROW);
    assert_int_equal(rig_alloc(&rig, 20 * MIB, 0), a);
    rig_free(&rig, b);
    assert_int_equal(rig_alloc(&rig, 20 * MIB, 0), b); /* plain free blocks serve as ever */
    rig_close(&rig);
}

/* Of free blocks that are large enough, the one with the least room to grow is taken. */
static void the_block_with_less_room_is_preferred(void **state)
{
    struct rig rig;
    tarn_ptr pages[4];

    (void)state;
    rig_open(&rig, GIB, GROW);
    for (int i = 0; i < 4; i++) {
        pages[i] = rig_alloc(&rig, i == 1 ? 40 * MIB : 20 * MIB, 0);
    }
    rig_free(&rig, pages[3]); /* 20 MiB, and the rest of the range behind it */
    rig_free(&rig, pages[1]); /* 40 MiB between blocks */
    assert_int_equal(rig_alloc(&rig, 20 * MIB, 0), pages[1]);
    rig_close(&rig);
}

static void without_device_memory_nothing_changes(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 100 * MIB, GROW);
    const tarn_ptr a = rig_alloc(&rig, 30 * MIB, 0); /* 2 pages, 10 MiB free */

    rig_alloc_oom(&rig, 71 * MIB, 0); /* 4 pages more: only 3 are there */
    assert_int_equal(sim_counters(rig.device).live_pages, 2);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 40 * MIB);
    assert_int_equal(rig_stats(&rig).num_device_alloc, 1);
    rig_check(&rig);
    assert_int_equal(rig_alloc(&rig, 70 * MIB, 0), a + 30 * MIB);
    rig_close(&rig);
}

/* Each call that makes and maps pages fails once. The page that could not be had is tried again
 * after a flush, so running out once is no failure. */
static void each_failing_call_leaves_everything_as_it_was(void **state)
{
    static const enum tarn_sim_call calls[] = {TARN_SIM_VA_RESERVE, TARN_SIM_PAGE_CREATE,
                                               TARN_SIM_MAP};

    (void)state;
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
        for (uint64_t nth = 1; nth <= (calls[c] == TARN_SIM_VA_RESERVE ? 1 : 4); nth++) {
            struct rig rig;
            tarn_ptr ptr = 5;

            rig_open(&rig, GIB, GROW);
            tarn_sim_fail_nth(rig.device, calls[c], nth, TARN_ERR_DEVICE);
            assert_int_equal(tarn_allocator_alloc(rig.allocator, 80 * MIB, 0, &ptr, &rig.error),
                             TARN_ERR_DEVICE);
            assert_int_equal(ptr, 5);
            assert_int_equal(sim_counters(rig.device).live_pages, 0);
            assert_int_equal(sim_counters(rig.device).live_mappings, 0);
            assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 0);
            assert_int_equal(rig_stats(&rig).num_device_alloc, 0);
            rig_check(&rig);
            (void)rig_alloc(&rig, 80 * MIB, 0);
            assert_int_equal(rig_stats(&rig).num_alloc_retries, 0);
            assert_int_equal(sim_counters(rig.device).live_pages, 4);
            rig_close(&rig);
        }
    }
}

static void running_out_once_is_tried_again(void **state)
{
    (void)state;
    for (uint64_t nth = 1; nth <= 4; nth++) {
        struct rig rig;

        rig_open(&rig, GIB, GROW);
        tarn_sim_fail_nth(rig.device, TARN_SIM_PAGE_CREATE, nth, TARN_ERR_OUT_OF_MEMORY);
        (void)rig_alloc(&rig, 80 * MIB, 0);
        assert_int_equal(rig_stats(&rig).num_alloc_retries, 1);
        assert_int_equal(rig_stats(&rig).num_ooms, 0);
        rig_close(&rig);
    }
}

/* Unmapping stops at the page that the device refuses; those before it are gone. */
static void unmapping_stops_where_the_device_refuses(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, GROW);
    rig_free(&rig, rig_alloc(&rig, 80 * MIB, 0));
    tarn_sim_fail_nth(rig.device, TARN_SIM_UNMAP, 3, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_empty_cache(rig.allocator, &rig.error), TARN_ERR_DEVICE);
    device_holds(&rig, 1, 2, 40 * MIB);
    rig_check(&rig);
    rig_empty_cache(&rig);
    device_holds(&rig, 0, 0, 0);
    rig_close(&rig);
}

/* test_max_split_expandable: releasing cached blocks copes with expandable segments among them. */
static void flushing_copes_with_both_kinds(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 1200 * MIB, "");
    rig_limit(&rig, 0.1); /* 120 MiB */
    rig_configure(&rig, "expandable_segments:False,max_split_size_mb:40");
    const tarn_ptr a = rig_alloc(&rig, 40 * MIB, 0);

    rig_configure(&rig, "expandable_segments:True,max_split_size_mb:40");
    const tarn_ptr b = rig_alloc(&rig, 40 * MIB, 0);

    rig_configure(&rig, "expandable_segments:False,max_split_size_mb:40");
    const tarn_ptr c = rig_alloc(&rig, 40 * MIB, 0);

    rig_alloc_oom(&rig, 40 * MIB, 0);
    rig_free(&rig, a);
    rig_free(&rig, b);
    rig_free(&rig, c);
    (void)rig_alloc(&rig, 120 * MIB, 0);
    device_holds(&rig, 0, 0, 120 * MIB);
    rig_close(&rig);
}

/* test_garbage_collect_expandable: collection leaves expandable segments alone. */
static void garbage_collection_skips_growing_segments(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 1200 * MIB, "");
    rig_limit(&rig, 0.1);
    rig_configure(&rig, "expandable_segments:False,garbage_collection_threshold:0.5");
    const tarn_ptr a = rig_alloc(&rig, 40 * MIB, 0);

    rig_configure(&rig, "expandable_segments:True,garbage_collection_threshold:0.5");
    const tarn_ptr b = rig_alloc(&rig, 40 * MIB, 0);

    rig_free(&rig, a);
    rig_free(&rig, b);
    (void)rig_alloc(&rig, 80 * MIB, 0);
    assert_int_equal(rig_now(&rig, TARN_STAT_SEGMENT), 0); /* the plain one was collected */
    assert_int_equal(rig_stats(&rig).num_alloc_retries, 0);
    rig_close(&rig);
}

/* The device refuses to map, and then to unmap what it had mapped before: that page is counted no
 * more, and goes when another is mapped there. */
static void a_page_that_stays_mapped_is_replaced(void **state)
{
    static const char *const settings[] = {"expandable_segments:True", "policy:compact"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        tarn_ptr ptr = 7;
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        (void)rig_alloc(&rig, 20 * MIB, 0);
        const int64_t reserved = rig_now(&rig, TARN_STAT_RESERVED_BYTES);
        const uint64_t pages = sim_counters(rig.device).live_pages;

        tarn_sim_fail_nth(rig.device, TARN_SIM_MAP, 3, TARN_ERR_DEVICE);
        tarn_sim_fail_nth(rig.device, TARN_SIM_UNMAP, 1, TARN_ERR_DEVICE);
        assert_int_equal(tarn_allocator_alloc(rig.allocator, 60 * MIB, 0, &ptr, &rig.error),
                         TARN_ERR_DEVICE);
        assert_int_equal(ptr, 7);
        rig_check(&rig);
        assert_true(rig_now(&rig, TARN_STAT_RESERVED_BYTES) >= reserved);
        tarn_sim_fail_nth(rig.device, TARN_SIM_UNMAP, 1, TARN_ERR_LIMIT); /* once more */
        assert_int_equal(tarn_allocator_alloc(rig.allocator, 60 * MIB, 0, &ptr, &rig.error),
                         TARN_ERR_LIMIT);
        rig_check(&rig);
        assert_int_equal(tarn_allocator_alloc(rig.allocator, 60 * MIB, 0, &ptr, &rig.error),
                         TARN_OK);
        rig_check(&rig);
        assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 80 * MIB);
        assert_int_equal(sim_counters(rig.device).live_pages, 4 * pages);
        assert_int_equal(sim_counters(rig.device).live_mappings, 4 * pages);
        rig_close(&rig);
    }
}

/* A request over two holes with something mapped between them: what was mapped of both goes again
 * when a page of the second one fails. */
static void a_failing_piece_undoes_the_others(void **state)
{
    struct rig rig;
    tarn_ptr ptr = 0;

    (void)state;
    rig_open_with(&rig, (struct tarn_sim_options){.capacity = GIB, .backed = true}, GROW);
    const tarn_ptr first = rig_alloc(&rig, 20 * MIB, 0);
    const tarn_ptr middle = rig_alloc(&rig, 20 * MIB, 0);
    const tarn_ptr second = rig_alloc(&rig, 60 * MIB, 0);
    const tarn_ptr behind = rig_alloc(&rig, 20 * MIB, 0);

    rig_free(&rig, first);
    rig_free(&rig, second);
    rig_empty_cache(&rig);
    rig_free(&rig, middle);
    device_holds(&rig, 1, 2, 40 * MIB);
    for (uint64_t n = 1; n <= 4; n++) {
        tarn_sim_fail_nth(rig.device, TARN_SIM_MAP, n, TARN_ERR_DEVICE);
        assert_int_equal(tarn_allocator_alloc(rig.allocator, 100 * MIB, 0, &ptr, &rig.error),
                         TARN_ERR_DEVICE);
        rig_check(&rig);
        device_holds(&rig, 1, 2, 40 * MIB);
        assert_null(tarn_sim_host_memory(rig.device, first, 512));
        assert_non_null(tarn_sim_host_memory(rig.device, middle, 20 * MIB));
        assert_null(tarn_sim_host_memory(rig.device, second, 512));
        assert_non_null(tarn_sim_host_memory(rig.device, behind, 20 * MIB));
    }
    assert_int_equal(rig_alloc(&rig, 100 * MIB, 0), first);
    rig_free(&rig, first);
    rig_free(&rig, behind);
    rig_close(&rig);
}

/* A page that the device does not unmap when the allocator ends stays mapped, and its range
 * reserved; everything else goes back. */
static void a_page_that_stays_mapped_outlives_the_allocator(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 3; n++) {
        struct rig rig;

        rig_open(&rig, GIB, GROW);
        rig_free(&rig, rig_alloc(&rig, 60 * MIB, 0));
        (void)rig_alloc(&rig, 512, 0); /* from a range of its own */
        device_holds(&rig, 2, 4, 62 * MIB);
        tarn_sim_fail_nth(rig.device, TARN_SIM_UNMAP, n, TARN_ERR_DEVICE);
        tarn_allocator_destroy(rig.allocator);
        const struct tarn_sim_counters left = sim_counters(rig.device);

        assert_int_equal(left.calls[TARN_SIM_PAGE_RELEASE], 3); /* not asked for what is mapped */
        assert_int_equal(left.live_pages, 1);
        assert_int_equal(left.live_mappings, 1);
        assert_int_equal(left.live_reservations, 1);
        sim_close(rig.device);
        assert_int_equal(tarn_host_get_usage().live_bytes, rig.host_bytes);
    }
}

/* How many pages a request lacks, and where the last of them is. */
static void what_is_mapped_is_not_missing(void **state)
{
    uint64_t end = 7;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, GROW);
    const tarn_ptr ptr = rig_alloc(&rig, 40 * MIB, 0);
    struct tn_segment *segment = tn_segment_find(&rig_engine(rig.allocator)->heap, ptr);

    assert_int_equal(tn_mapping_missing(segment, segment->first, 40 * MIB, &end), 0);
    assert_int_equal(end, 0);
    assert_int_equal(tn_mapping_missing(segment, segment->first, 40 * MIB + 512, &end), 1);
    assert_int_equal(end, 3);
    assert_int_equal(tn_mapping_missing(segment, segment->first, 100 * MIB, &end), 3);
    assert_int_equal(end, 5);
    rig_close(&rig);
}

/* The addresses behind the last block are too few: another range, which the device cannot fill. */
static void a_range_has_an_end(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, GROW);
    const tarn_ptr ptr = rig_alloc(&rig, 600 * MIB, 0);

    rig_alloc_oom(&rig, 600 * MIB, 0);
    rig_check(&rig);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 600 * MIB);
    rig_free(&rig, ptr);
    rig_close(&rig);
}

/* Records of pages grow in steps, not with every page. */
static void a_range_that_grows_takes_host_memory_in_steps(void **state)
{
    enum {
        COUNT = 200
    };
    struct rig rig;

    (void)state;
    rig_open(&rig, 8 * GIB, GROW);
    (void)rig_alloc(&rig, 20 * MIB, 0);
    const uint64_t calls = tarn_host_get_usage().alloc_calls;

    for (int i = 0; i < COUNT; i++) {
        (void)rig_alloc(&rig, 20 * MIB, 0);
    }
    assert_true(tarn_host_get_usage().alloc_calls - calls < UINT64_C(4) * COUNT);
    rig_close(&rig);
}

/* Any allocation of host memory that the first request makes may fail. */
static void without_host_memory_nothing_is_mapped(void **state)
{
    uint64_t failures = 0;
    uint64_t calls = 1;

    (void)state;
    for (uint64_t n = 0; n <= calls; n++) {
        tarn_ptr ptr = 0;
        struct rig rig;

        rig_open(&rig, GIB, GROW);
        const uint64_t before = tarn_host_get_usage().alloc_calls;

        tarn_host_fail_nth(n);
        const enum tarn_status st =
            tarn_allocator_alloc(rig.allocator, 50 * MIB, 0, &ptr, &rig.error);

        tarn_host_fail_nth(0);
        calls = n == 0 ? tarn_host_get_usage().alloc_calls - before : calls;
        assert_true(st == TARN_OK || (st == TARN_ERR_HOST_MEMORY && n > 0));
        assert_int_equal(sim_counters(rig.device).live_pages, st == TARN_OK ? 3 : 0);
        rig_check(&rig);
        failures += st != TARN_OK;
        rig_close(&rig);
    }
    assert_true(failures > 3);
}

/* Small blocks until the next one needs a node that the host must provide. */
static tarn_ptr use_up_nodes(struct rig *rig)
{
    const struct tn_heap *heap = &rig_engine(rig->allocator)->heap;
    tarn_ptr last = 0;

    while (heap->slab.partial || heap->slab.spare || heap->shard.spare_count > 0) {
        last = rig_alloc(rig, 512, 0);
    }
    return last;
}

/* Mapping and unmapping divide blocks, which takes nodes. */
static void pages_need_nodes(void **state)
{
    struct rig rig;
    tarn_ptr ptr = 0;

    (void)state;
    rig_open(&rig, GIB, GROW);
    const tarn_ptr first = rig_alloc(&rig, 20 * MIB, 0);
    const tarn_ptr second = rig_alloc(&rig, 20 * MIB, 0);

    (void)rig_alloc(&rig, 20 * MIB, 0);
    const tarn_ptr last = use_up_nodes(&rig);
    const int64_t reserved = rig_now(&rig, TARN_STAT_RESERVED_BYTES);

    rig_free(&rig, last - 512);
    rig_free(&rig, last);
    rig_check(&rig);
    (void)rig_alloc(&rig, 512, 0); /* one node is left: for a block, but not for pages */
    assert_int_equal(rig_engine(rig.allocator)->heap.shard.spare_count, 1);
    tarn_host_fail_nth(1);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 30 * MIB, 0, &ptr, &rig.error),
                     TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    rig_check(&rig);
    rig_free(&rig, second);
    tarn_host_fail_nth(1);
    assert_int_equal(tarn_allocator_empty_cache(rig.allocator, &rig.error), TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    rig_check(&rig);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), reserved);
    rig_empty_cache(&rig);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), reserved - (int64_t)(20 * MIB));
    rig_free(&rig, first);
    rig_close(&rig);
}

/* The list of holes needs host memory, too. */
static void holes_need_host_memory(void **state)
{
    enum {
        COUNT = 40
    };
    enum tarn_status st = TARN_ERR_HOST_MEMORY;
    tarn_ptr ptrs[COUNT];
    uint64_t failures = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, GROW);
    for (int i = 0; i < COUNT; i++) {
        ptrs[i] = rig_alloc(&rig, 20 * MIB, 0);
    }
    for (int i = 1; i < COUNT; i += 2) {
        rig_free(&rig, ptrs[i]);
    }
    for (uint64_t n = 1; st != TARN_OK; n++) {
        tarn_host_fail_nth(n);
        st = tarn_allocator_empty_cache(rig.allocator, &rig.error);
        tarn_host_fail_nth(0);
        assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
        rig_check(&rig);
        failures += st != TARN_OK;
    }
    assert_true(failures > 0);
    device_holds(&rig, 1, COUNT / 2, UINT64_C(10) * COUNT * MIB);
    rig_close(&rig);
}

static const char *no_text(struct tarn_device *device)
{
    (void)device;
    return &"\0of an earlier call"[0];
}

/* Where the device has no text for a failure, that of its status is shown. */
static void a_failure_without_a_text_shows_its_status(void **state)
{
    struct rig rig;
    tarn_ptr ptr = 0;

    (void)state;
    rig_open(&rig, GIB, GROW);
    const struct tn_device_ops *ops = rig.device->ops;
    struct tn_device_ops hooked = *ops;
    struct tarn_error error;

    hooked.last_error = no_text;
    rig.device->ops = &hooked;
    (void)tn_device_failed(rig.device, TARN_ERR_DEVICE, "mapping memory", &error);
    rig.device->ops = ops;
    assert_non_null(strstr(error.text, "mapping memory on device 0 failed: "));
    assert_non_null(strstr(error.text, tarn_status_text(TARN_ERR_DEVICE)));
    tarn_sim_fail_nth(rig.device, TARN_SIM_MAP, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 30 * MIB, 0, &ptr, &error),
                     TARN_ERR_DEVICE);
    assert_non_null(strstr(error.text, ops->last_error(rig.device)));
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_mapped_as_needed),
        cmocka_unit_test(holes_are_mapped_piece_by_piece),
        cmocka_unit_test(the_lowest_hole_with_room_is_taken),
        cmocka_unit_test(only_whole_pages_are_unmapped),
        cmocka_unit_test(nothing_whole_is_nothing_to_give),
        cmocka_unit_test(every_stream_and_pool_has_its_own_range),
        cmocka_unit_test(the_option_can_be_switched),
        cmocka_unit_test(the_block_with_less_room_is_preferred),
        cmocka_unit_test(without_device_memory_nothing_changes),
        cmocka_unit_test(each_failing_call_leaves_everything_as_it_was),
        cmocka_unit_test(running_out_once_is_tried_again),
        cmocka_unit_test(unmapping_stops_where_the_device_refuses),
        cmocka_unit_test(flushing_copes_with_both_kinds),
        cmocka_unit_test(garbage_collection_skips_growing_segments),
        cmocka_unit_test(a_page_that_stays_mapped_is_replaced),
        cmocka_unit_test(a_failing_piece_undoes_the_others),
        cmocka_unit_test(a_page_that_stays_mapped_outlives_the_allocator),
        cmocka_unit_test(what_is_mapped_is_not_missing),
        cmocka_unit_test(a_range_has_an_end),
        cmocka_unit_test(a_range_that_grows_takes_host_memory_in_steps),
        cmocka_unit_test(without_host_memory_nothing_is_mapped),
        cmocka_unit_test(pages_need_nodes),
        cmocka_unit_test(holes_need_host_memory),
        cmocka_unit_test(a_failure_without_a_text_shows_its_status),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
