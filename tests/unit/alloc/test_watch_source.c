/* SPDX-License-Identifier: MIT */
/* What an allocator publishes about itself, without a reader: rows, and how it starts. */
#include "support/test.h"

#include "support/rig.h"
#include "support/temp.h"
#include "tarn/pages.h"
#include "tarn/watch.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static bool any_stream(void *context, tarn_stream stream)
{
    (void)context;
    (void)stream;
    return true;
}

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
    const struct tn_page_record record = looked(&rig);

    tarn_allocator_get_page_stats(rig.allocator, &pages);
    assert_true(pages.created > 0 && pages.requests > 0 && pages.request_ns > 0);
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
        cmocka_unit_test(a_folder_need_not_be_given),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
