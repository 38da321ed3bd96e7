/* SPDX-License-Identifier: MIT */
/* Returning cached memory until a target is reached: what goes, in which order, and no more. */
#include "support/any_stream.h"
#include "support/test.h"

#include "support/rig.h"
#include "tarn/pages.h"

static uint64_t trim(struct rig *rig, uint64_t target)
{
    uint64_t reserved = 0;

    assert_int_equal(tarn_allocator_trim(rig->allocator, target, &reserved, &rig->error), TARN_OK);
    assert_int_equal(reserved, rig_now(rig, TARN_STAT_RESERVED_BYTES));
    rig_check(rig);
    return reserved;
}

/* Frees blocks of these sizes, in MiB, each of which has a segment of its own. */
static void leave_free(struct rig *rig, const uint64_t *sizes, int count)
{
    tarn_ptr ptrs[8];

    for (int i = 0; i < count; i++) {
        ptrs[i] = rig_alloc(rig, sizes[i] * MIB, 0);
    }
    for (int i = 0; i < count; i++) {
        rig_free(rig, ptrs[i]);
    }
}

static void the_largest_segments_go_first(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    leave_free(&rig, (uint64_t[]){30, 100, 50}, 3);
    assert_int_equal(trim(&rig, 180 * MIB), 180 * MIB); /* no more is reserved */
    assert_int_equal(trim(&rig, 179 * MIB), 80 * MIB);
    assert_int_equal(trim(&rig, 31 * MIB), 30 * MIB);
    assert_int_equal(trim(&rig, 0), 0);
    rig_close(&rig);
}

static void what_is_allocated_stays(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    (void)rig_alloc(&rig, 30 * MIB, 0);
    const tarn_ptr small = rig_alloc(&rig, 512, 0);

    leave_free(&rig, (uint64_t[]){40}, 1);
    assert_int_equal(trim(&rig, 0), 32 * MIB);
    rig_free(&rig, small);
    assert_int_equal(trim(&rig, 0), 30 * MIB);
    rig_close(&rig);
}

static void expandable_segments_lose_no_more_pages_than_needed(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "expandable_segments:True");
    leave_free(&rig, (uint64_t[]){100}, 1);
    assert_int_equal(trim(&rig, 70 * MIB), 60 * MIB); /* pages of 20 MiB */
    assert_int_equal(trim(&rig, 60 * MIB), 60 * MIB);
    assert_int_equal(trim(&rig, 1), 0);
    rig_close(&rig);
}

static void pages_of_the_compact_policy_are_returned_one_by_one(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact");
    leave_free(&rig, (uint64_t[]){30, 100, 50}, 3);
    assert_int_equal(trim(&rig, 131 * MIB), 130 * MIB);
    const tarn_ptr kept = rig_alloc(&rig, 100 * MIB, 0);

    assert_int_equal(trim(&rig, 7), 100 * MIB);
    rig_free(&rig, kept);
    rig_close(&rig);
}

static void pending_frees_are_waited_for_only_if_needed(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr used = rig_alloc(&rig, 30 * MIB, 0);

    leave_free(&rig, (uint64_t[]){100}, 1);
    rig_record(&rig, used, 1);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    rig_free(&rig, used);
    assert_int_equal(trim(&rig, 50 * MIB), 30 * MIB);
    assert_int_equal(rig_stats(&rig).num_sync_all_streams, 0);
    assert_int_equal(trim(&rig, 20 * MIB), 0);
    assert_int_equal(rig_stats(&rig).num_sync_all_streams, 1);
    rig_close(&rig);
}

/* Pages that moved stay mapped at their old addresses until their stream has come by. */
static void nothing_is_waited_for_where_no_more_is_reserved(void **state)
{
    struct tarn_page_stats pages = {.struct_size = sizeof pages};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact");
    const tarn_ptr hole = rig_alloc(&rig, 30 * MIB, 1);

    (void)rig_alloc(&rig, 2 * MIB, 1);
    rig_free(&rig, hole);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    (void)rig_alloc(&rig, 40 * MIB, 1);
    assert_int_equal(trim(&rig, 42 * MIB), 42 * MIB);
    tarn_allocator_get_page_stats(rig.allocator, &pages);
    assert_int_equal(pages.retired, 15);
    assert_int_equal(trim(&rig, 42 * MIB - 1), 42 * MIB);
    tarn_allocator_get_page_stats(rig.allocator, &pages);
    assert_int_equal(pages.retired, 0);
    rig_close(&rig);
}

static void nothing_is_returned_during_a_capture(void **state)
{
    const struct tarn_pool_id id = {0, 1};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    leave_free(&rig, (uint64_t[]){100}, 1);
    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, id, any_stream, NULL, NULL), TARN_OK);
    rig_free(&rig, rig_alloc(&rig, 30 * MIB, 0));
    assert_int_equal(trim(&rig, 0), 130 * MIB);
    assert_int_equal(tarn_allocator_end_pool(rig.allocator, id, NULL), TARN_OK);
    assert_int_equal(trim(&rig, 0), 30 * MIB); /* somebody may still use the pool */
    assert_int_equal(tarn_allocator_release_pool(rig.allocator, id, NULL), TARN_OK);
    assert_int_equal(trim(&rig, 0), 0);
    rig_close(&rig);
}

static void the_driver_s_pool_is_trimmed(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "backend:cudaMallocAsync");
    rig_free(&rig, rig_alloc(&rig, 100 * MIB, 0));
    assert_true(rig_now(&rig, TARN_STAT_RESERVED_BYTES) >= (int64_t)(100 * MIB));
    assert_int_equal(trim(&rig, 0), 0);
    rig_close(&rig);
}

static void a_failing_device_leaves_the_rest(void **state)
{
    struct rig rig;
    uint64_t reserved = 0;

    (void)state;
    rig_open(&rig, GIB, "expandable_segments:True");
    leave_free(&rig, (uint64_t[]){100}, 1);
    rig_free(&rig, rig_alloc(&rig, 100 * MIB, 1));
    tarn_sim_fail_nth(rig.device, TARN_SIM_UNMAP, 3, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_trim(rig.allocator, 0, &reserved, &rig.error), TARN_ERR_DEVICE);
    assert_int_equal(reserved, 160 * MIB); /* the other stream's is not tried either */
    assert_int_equal(trim(&rig, 0), 0);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_segments_go_first),
        cmocka_unit_test(what_is_allocated_stays),
        cmocka_unit_test(expandable_segments_lose_no_more_pages_than_needed),
        cmocka_unit_test(pages_of_the_compact_policy_are_returned_one_by_one),
        cmocka_unit_test(pending_frees_are_waited_for_only_if_needed),
        cmocka_unit_test(nothing_is_waited_for_where_no_more_is_reserved),
        cmocka_unit_test(nothing_is_returned_during_a_capture),
        cmocka_unit_test(the_driver_s_pool_is_trimmed),
        cmocka_unit_test(a_failing_device_leaves_the_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
