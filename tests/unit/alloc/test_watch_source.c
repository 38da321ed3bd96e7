/* SPDX-License-Identifier: MIT */
/* What an allocator publishes about itself, without a reader: rows, and how it starts. */
#include "support/any_stream.h"
#include "support/test.h"

#include "alloc/engine/watch_source.h"
#include "support/child.h"
#include "support/rig.h"
#include "support/temp.h"
#include "tarn/pages.h"
#include "tarn/watch.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static tarn_ptr alloc_in(struct rig *rig, struct tarn_pool_id id, uint64_t size)
{
    assert_int_equal(tarn_allocator_begin_pool(rig->allocator, id, any_stream, NULL, NULL),
                     TARN_OK);
    const tarn_ptr ptr = rig_alloc(rig, size, 0);

    assert_int_equal(tarn_allocator_end_pool(rig->allocator, id, NULL), TARN_OK);
    return ptr;
}

static struct tn_page_record looked(struct rig *rig)
{
    const struct tn_publisher_source *watched = &rig->allocator->watched;
    struct tn_page_record record = {.state = TN_SLOT_LIVE};

    assert_true(watched->look(watched->context, &record, 1, true));
    return record;
}

/* One stream has a row in each pool, and pools are told apart by both numbers. */
static void pools_have_rows_of_their_own(void **state)
{
    static const struct tarn_pool_id ids[] = {{0, 1}, {0, 2}, {3, 1}};
    struct temp_folder folder = temp_folder_make();
    const struct tarn_watch_options options = {.struct_size = sizeof options,
                                               .runtime_folder = folder.path};
    char inner[300];
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_watch_start(rig.allocator, &options, &rig.error), TARN_OK);
    for (int i = 0; i < 3; i++) {
        (void)alloc_in(&rig, ids[i], 30 * MIB);
        (void)alloc_in(&rig, ids[i], 40 * MIB);
    }
    (void)rig_alloc(&rig, 30 * MIB, 0);
    const struct tn_page_record record = looked(&rig);

    assert_int_equal(record.row_count, 4);
    assert_int_equal(record.rows_left_out, 0);
    for (int i = 0; i < 3; i++) {
        unsigned found = 0;

        for (uint64_t k = 0; k < record.row_count; k++) {
            const struct tn_page_row *row = &record.rows[k];

            if (row->pool_first == ids[i].first && row->pool_second == ids[i].second) {
                assert_int_equal(row->segments, 2);
                assert_int_equal(row->allocated, 70 * MIB);
                found++;
            }
        }
        assert_int_equal(found, 1);
    }
    tarn_watch_stop(rig.allocator);
    rig_close(&rig);
    (void)snprintf(inner, sizeof inner, "%s/tarn", folder.path);
    assert_int_equal(rmdir(inner), 0);
    temp_folder_remove(&folder);
}

/* Those of tarn_allocator_get_page_stats. */
static void a_record_has_the_figures_of_pages(void **state)
{
    struct tarn_page_stats pages = {.struct_size = sizeof pages};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact");
    assert_int_equal(tarn_watch_start(rig.allocator, NULL, &rig.error), TARN_OK);
    rig_free(&rig, rig_alloc(&rig, 30 * MIB, 1));
    (void)rig_alloc(&rig, 20 * MIB, 2);
    (void)rig_alloc(&rig, 20 * MIB, 2);
    const tarn_ptr hole = rig_alloc(&rig, 30 * MIB, 3);

    (void)rig_alloc(&rig, 2 * MIB, 3);
    rig_free(&rig, hole);
    tarn_sim_fail_nth(rig.device, TARN_SIM_MAP, 1, TARN_ERR_DEVICE); /* pages are left over */
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 40 * MIB, 3, &(tarn_ptr){0}, &rig.error),
                     TARN_ERR_DEVICE);
    const struct tn_page_record record = looked(&rig);

    tarn_allocator_get_page_stats(rig.allocator, &pages);
    assert_true(pages.created > 0 && pages.requests > 0 && pages.request_ns > 0);
    assert_true(pages.kept > 0);
    assert_int_equal(record.page_size, pages.page_size);
    assert_int_equal(record.pages_created, pages.created);
    assert_int_equal(record.pages_moved, pages.moved);
    assert_int_equal(record.pages_kept, pages.kept);
    assert_int_equal(record.pages_retired, pages.retired);
    assert_int_equal(record.page_requests, pages.requests);
    assert_int_equal(record.page_request_ns, pages.request_ns);
    assert_int_equal(record.page_longest_ns, pages.longest_ns);
    tarn_watch_stop(rig.allocator);
    rig_close(&rig);
}

/* Of one pool and stream, segments for small requests and for large ones have a row each. */
static void small_and_large_segments_have_rows_of_their_own(void **state)
{
    static const tarn_stream streams[] = {0, 7};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_watch_start(rig.allocator, NULL, &rig.error), TARN_OK);
    for (int i = 0; i < 2; i++) {
        (void)rig_alloc(&rig, 512, streams[i]);
        (void)rig_alloc(&rig, 30 * MIB, streams[i]);
        (void)rig_alloc(&rig, 40 * MIB, streams[i]);
    }
    const struct tn_page_record record = looked(&rig);

    assert_int_equal(record.row_count, 4);
    for (uint64_t k = 0; k < record.row_count; k++) {
        const struct tn_page_row *row = &record.rows[k];

        assert_int_equal(row->segments, row->is_large ? 2 : 1);
        assert_int_equal(row->allocated, row->is_large ? 70 * MIB : 512);
        assert_int_equal(row->largest_free, row->is_large ? 0 : 2 * MIB - 512);
        for (uint64_t other = 0; other < k; other++) {
            assert_true(row->is_large != record.rows[other].is_large ||
                        row->stream != record.rows[other].stream);
        }
    }
    tarn_watch_stop(rig.allocator);
    rig_close(&rig);
}

/* Those of tarn_allocator_get_stats. */
static void a_record_has_the_counters(void **state)
{
    struct rig rig;
    tarn_ptr ptr = 0;

    (void)state;
    rig_open_with(&rig, (struct tarn_sim_options){.capacity = 128 * MIB, .ordinal = 3}, "");
    assert_int_equal(tarn_watch_start(rig.allocator, NULL, &rig.error), TARN_OK);
    rig_free(&rig, rig_alloc(&rig, 80 * MIB, 0));
    ptr = rig_alloc(&rig, 100 * MIB, 0); /* in place of the other */
    rig_alloc_oom(&rig, 100 * MIB, 0);
    rig_configure(&rig, "throw_on_cudamalloc_oom:True");
    rig_limit(&rig, 0.9);
    rig_alloc_oom(&rig, 100 * MIB, 0); /* which the limit forbids */
    const struct tn_page_record record = looked(&rig);
    const struct tarn_stats stats = rig_stats(&rig);

    assert_true(stats.num_alloc_retries > 0 && stats.num_ooms > 0 && stats.num_device_free > 0);
    assert_true(stats.num_sync_all_streams > 0 && stats.num_device_alloc > 0);
    assert_true(stats.num_oom_rejections > 0);
    assert_int_equal(record.device, 3);
    assert_int_equal(record.retries, stats.num_alloc_retries);
    assert_int_equal(record.ooms, stats.num_ooms);
    assert_int_equal(record.oom_rejections, stats.num_oom_rejections);
    assert_int_equal(record.waits, stats.num_sync_all_streams);
    assert_int_equal(record.device_allocs, stats.num_device_alloc);
    assert_int_equal(record.device_frees, stats.num_device_free);
    for (int kind = 0; kind < TARN_STAT_KINDS; kind++) {
        for (int pool = 0; pool < TARN_STAT_POOLS; pool++) {
            assert_int_equal(record.by_pool[kind][pool][0], stats.by_pool[kind][pool].current);
            assert_int_equal(record.by_pool[kind][pool][1], stats.by_pool[kind][pool].peak);
            assert_int_equal(record.by_pool[kind][pool][2], stats.by_pool[kind][pool].allocated);
            assert_int_equal(record.by_pool[kind][pool][3], stats.by_pool[kind][pool].freed);
        }
    }
    rig_free(&rig, ptr);
    tarn_watch_stop(rig.allocator);
    rig_close(&rig);
}

/* Of engines that have no rows too: limit and counters. */
static void every_engine_has_a_limit_and_counters(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "backend:cudaMallocAsync");
    rig_limit(&rig, 0.5);
    assert_int_equal(tarn_watch_start(rig.allocator, NULL, &rig.error), TARN_OK);
    const tarn_ptr ptr = rig_alloc(&rig, 3 * MIB, 0);
    const struct tn_page_record record = looked(&rig);

    assert_int_equal(record.limit, 512 * MIB);
    assert_int_equal(record.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL][0], 3 * MIB);
    assert_int_equal(record.row_count, 0);
    assert_int_equal(record.rows_time_ns, 0);
    rig_free(&rig, ptr);
    tarn_watch_stop(rig.allocator);
    rig_close(&rig);
}

static bool look_again(struct rig *rig, struct tn_page_record *record, uint64_t now_ns,
                       bool renews_rows)
{
    const struct tn_publisher_source *watched = &rig->allocator->watched;

    return watched->look(watched->context, record, now_ns, renews_rows);
}

/* Rows are those of the last time that they were renewed; the other numbers are of now. */
static void rows_stay_until_they_are_renewed(void **state)
{
    struct tn_page_record record = {.state = TN_SLOT_LIVE};
    tarn_ptr ptr[TN_PAGE_ROWS + 2];
    struct rig rig;

    (void)state;
    rig_open(&rig, 4 * GIB, "");
    assert_int_equal(tarn_watch_start(rig.allocator, NULL, &rig.error), TARN_OK);
    for (unsigned i = 0; i < TN_PAGE_ROWS + 2; i++) {
        ptr[i] = rig_alloc(&rig, 20 * MIB, i);
    }
    for (uint64_t now = 1; now <= 2; now++) {
        assert_true(look_again(&rig, &record, now, true));
        assert_int_equal(record.row_count, TN_PAGE_ROWS);
        assert_int_equal(record.rows_left_out, 2);
        assert_int_equal(record.rows_time_ns, now);
        assert_int_equal(record.rows[0].segments, 1);
    }
    for (unsigned i = 3; i < TN_PAGE_ROWS + 2; i++) {
        rig_free(&rig, ptr[i]);
    }
    rig_empty_cache(&rig);
    assert_true(look_again(&rig, &record, 3, false));
    assert_int_equal(record.row_count, TN_PAGE_ROWS);
    assert_int_equal(record.rows_left_out, 2);
    assert_int_equal(record.rows_time_ns, 2);
    assert_int_equal(record.by_pool[TARN_STAT_SEGMENT][TARN_STAT_ALL][0], 3);
    assert_true(look_again(&rig, &record, 4, true));
    assert_int_equal(record.row_count, 3);
    assert_int_equal(record.rows_left_out, 0);
    assert_int_equal(record.rows_time_ns, 4);
    tarn_watch_stop(rig.allocator);
    rig_close(&rig);
}

/* What the fast path has allocated and freed is counted, and is in the rows. */
static void calls_of_the_fast_path_are_seen(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_watch_start(rig.allocator, NULL, &rig.error), TARN_OK);
    (void)rig_alloc(&rig, 512, 0);
    rig_free(&rig, rig_alloc(&rig, 1024, 0));
    (void)rig_stats(&rig);
    const tarn_ptr ptr = rig_alloc(&rig, 1024, 0); /* again */
    struct tn_page_record record = {.state = TN_SLOT_LIVE};

    assert_true(look_again(&rig, &record, 1, false));
    assert_int_equal(record.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL][0], 1536);
    rig_free(&rig, ptr);
    assert_true(look_again(&rig, &record, 2, true));
    assert_int_equal(record.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL][0], 512);
    assert_int_equal(record.row_count, 1);
    assert_int_equal(record.rows[0].allocated, 512);
    assert_int_equal(record.rows[0].largest_free, 2 * MIB - 512);
    tarn_watch_stop(rig.allocator);
    rig_close(&rig);
}

/* With more than 65,536 blocks, used and free ones, a walk would take too long: the rows stay those
 * of the last one. */
static void many_blocks_are_not_walked(void **state)
{
    struct tn_page_record record = {.state = TN_SLOT_LIVE};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_watch_start(rig.allocator, NULL, &rig.error), TARN_OK);
    (void)rig_alloc(&rig, 2 * MIB, 0);
    assert_true(look_again(&rig, &record, 1, true));
    struct tn_counters *counters = &rig_engine(rig.allocator)->heap.shard.counters;
    const struct tarn_stats stats = rig_stats(&rig);
    const int64_t blocks = stats.by_pool[TARN_STAT_ACTIVE][TARN_STAT_ALL].current +
                           stats.by_pool[TARN_STAT_INACTIVE_SPLIT][TARN_STAT_ALL].current;
    const int64_t more = 65536 - blocks;

    counters->blocks.out.current[TN_SMALL] += more; /* as if there were so many */
    assert_true(look_again(&rig, &record, 2, true));
    assert_int_equal(record.rows_time_ns, 2);
    counters->split.current[TN_SMALL]++;
    assert_true(look_again(&rig, &record, 3, true));
    assert_int_equal(record.rows_time_ns, 2);
    assert_int_equal(record.row_count, 1);
    assert_int_equal(record.by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL][0], more + 1);
    counters->split.current[TN_SMALL]--;
    counters->blocks.out.current[TN_SMALL] -= more;
    tarn_watch_stop(rig.allocator);
    rig_close(&rig);
}

/* ---- the part that takes requests ---- */

static unsigned added;
static unsigned removed;

static bool take_requests(struct tarn_allocator *allocator, const char *runtime)
{
    (void)allocator;
    (void)runtime;
    added++;
    return true;
}

static void take_no_more(struct tarn_allocator *allocator)
{
    (void)allocator;
    removed++;
}

static void stop_in_a_child(void *context)
{
    struct tarn_allocator *allocator = context;

    tarn_watch_stop(allocator); /* which is the parent's */
    CHILD_REQUIRE(removed == 1);
    CHILD_REQUIRE(!tarn_watch_is_on(allocator));
}

static void requests_are_taken_where_that_is_wanted(void **state)
{
    static const struct tn_control_hook hook = {.added = take_requests, .removed = take_no_more};
    struct tarn_config config;
    struct tarn_allocator *allocator = NULL;
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    tn_watch_source_set_hook(&hook);
    tarn_config_init(&config);
    config.watch = TARN_WATCH_PAGE;
    assert_int_equal(tarn_allocator_create(device, &config, &allocator, NULL), TARN_OK);
    assert_true(tarn_watch_is_on(allocator));
    assert_int_equal(added, 0);
    tarn_watch_stop(allocator);
    assert_int_equal(removed, 1);
    tarn_watch_stop(allocator); /* is not watched */
    tarn_allocator_destroy(allocator);
    assert_int_equal(removed, 1);
    config.watch = TARN_WATCH_CONTROL;
    assert_int_equal(tarn_allocator_create(device, &config, &allocator, NULL), TARN_OK);
    assert_int_equal(added, 1);
    child_run(stop_in_a_child, allocator);
    tarn_allocator_destroy(allocator);
    assert_int_equal(removed, 2);
    tn_watch_source_set_hook(NULL);
    sim_close(device);
}

/* Where the user's folder for running programs is not given, it is looked for. Requests are taken
 * for a program that has the part for it; else it is only watched. */
static void a_folder_need_not_be_given(void **state)
{
    struct tarn_config config;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_watch_start(rig.allocator, NULL, &rig.error), TARN_OK);
    assert_true(tarn_watch_is_on(rig.allocator));
    assert_int_equal(looked(&rig).row_count, 0);
    tarn_watch_stop(rig.allocator);
    assert_false(tarn_watch_is_on(rig.allocator));
    rig_close(&rig);
    struct tarn_device *device = sim_open(GIB);
    struct tarn_allocator *allocator = NULL;

    tarn_config_init(&config);
    config.watch = TARN_WATCH_CONTROL;
    assert_int_equal(tarn_allocator_create(device, &config, &allocator, NULL), TARN_OK);
    assert_true(tarn_watch_is_on(allocator));
    tarn_allocator_destroy(allocator);
    sim_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_have_rows_of_their_own),
        cmocka_unit_test(a_record_has_the_figures_of_pages),
        cmocka_unit_test(small_and_large_segments_have_rows_of_their_own),
        cmocka_unit_test(a_record_has_the_counters),
        cmocka_unit_test(every_engine_has_a_limit_and_counters),
        cmocka_unit_test(rows_stay_until_they_are_renewed),
        cmocka_unit_test(calls_of_the_fast_path_are_seen),
        cmocka_unit_test(many_blocks_are_not_walked),
        cmocka_unit_test(requests_are_taken_where_that_is_wanted),
        cmocka_unit_test(a_folder_need_not_be_given),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
