/* SPDX-License-Identifier: MIT */
/* What is known about a block and about sizes; the cache of one stream. */
#include "support/test.h"

#include "alloc/config/size_class.h"
#include "support/rig.h"
#include "tarn/block.h"
#include "tarn/host.h"
#include "tarn/pool.h"

static const char *const settings[] = {"", "expandable_segments:True", "policy:compact",
                                       "rules:2.14"};

#define SETTINGS (sizeof settings / sizeof settings[0])

static void a_block_is_described(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct tarn_block block = {.struct_size = sizeof block};
        struct tarn_pool *pool = NULL;
        tarn_ptr in_pool = 0;
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        const tarn_ptr first = rig_alloc(&rig, 30 * MIB, 7);
        const tarn_ptr ptr = rig_alloc(&rig, 3 * MIB - 100, 7);

        assert_int_equal(tarn_pool_create(rig.allocator, NULL, &pool, &rig.error), TARN_OK);
        assert_int_equal(tarn_pool_alloc(pool, 1000, 0, &in_pool, &rig.error), TARN_OK);
        assert_int_equal(tarn_allocator_find_block(rig.allocator, ptr, &block, &rig.error),
                         TARN_OK);
        assert_int_equal(block.address, ptr);
        assert_int_equal(block.size, 3 * MIB);
        assert_int_equal(block.requested, 3 * MIB - 100);
        assert_int_equal(block.stream, 7);
        assert_int_equal(block.pool.second, 0);
        assert_true(block.is_large);
        assert_int_equal(block.is_expandable, i == 1 || i == 2);
        assert_true(block.segment <= ptr && ptr - block.segment < block.segment_size);
        assert_int_equal(tarn_allocator_find_block(rig.allocator, in_pool, &block, NULL), TARN_OK);
        assert_int_equal(block.pool.second, tarn_pool_get_id(pool).second);
        assert_false(block.is_large);
        block.struct_size = 0;
        assert_int_equal(tarn_allocator_find_block(rig.allocator, ptr, &block, &rig.error),
                         TARN_ERR_INVALID_ARGUMENT);
        block.struct_size = sizeof block;
        rig_free(&rig, ptr);
        assert_int_equal(tarn_allocator_find_block(rig.allocator, ptr, &block, &rig.error),
                         TARN_ERR_INVALID_POINTER);
        rig_free(&rig, first);
        rig_free(&rig, in_pool);
        tarn_pool_destroy(pool);
        rig_close(&rig);
    }
}

static void has_user_data(const struct rig *rig, tarn_ptr ptr, void *user, uint64_t tag)
{
    struct tarn_block block = {.struct_size = sizeof block};

    assert_int_equal(tarn_allocator_find_block(rig->allocator, ptr, &block, NULL), TARN_OK);
    assert_ptr_equal(block.user, user);
    assert_int_equal(block.user_tag, tag);
}

static void attach(struct rig *rig, tarn_ptr ptr, void *user, uint64_t tag)
{
    assert_int_equal(tarn_allocator_set_user_data(rig->allocator, ptr, user, tag, &rig->error),
                     TARN_OK);
    rig_check(rig);
}

static bool sum_tags(void *context, const struct tarn_block_info *block)
{
    *(uint64_t *)context += block->user_tag;
    return true;
}

static uint64_t tags_of(struct rig *rig)
{
    uint64_t sum = 0;
    const struct tarn_walker walker = {.context = &sum, .block = sum_tags};

    assert_int_equal(tarn_allocator_walk(rig->allocator, &walker), TARN_OK);
    return sum;
}

static void data_stays_with_its_block(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        for (int round = 0; round < 3; round++) { /* the undo log serves the later ones */
            const tarn_ptr a = rig_alloc(&rig, MIB, 7);
            const tarn_ptr b = rig_alloc(&rig, 3 * MIB, 7);

            has_user_data(&rig, a, NULL, 0);
            attach(&rig, a, &rig, 40);
            attach(&rig, b, NULL, 2);
            has_user_data(&rig, a, &rig, 40);
            has_user_data(&rig, b, NULL, 2);
            assert_int_equal(tags_of(&rig), 42);
            attach(&rig, b, NULL, 0);
            has_user_data(&rig, b, NULL, 0);
            rig_free(&rig, b);
            rig_free(&rig, a);
            assert_int_equal(tags_of(&rig), 0);
            rig_check(&rig);
        }
        assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE_BYTES), 0);
        rig_empty_cache(&rig);
        assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 0);
        rig_close(&rig);
    }
}

/* What belonged to a block that was freed is not that of the next with a use by a stream. */
static void data_goes_with_its_block(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        const tarn_ptr with = rig_alloc(&rig, MIB, 5);
        const tarn_ptr without = rig_alloc(&rig, MIB, 5);

        attach(&rig, with, &rig, 9);
        rig_free(&rig, with);
        rig_record(&rig, without, 6);
        has_user_data(&rig, without, NULL, 0);
        rig_free(&rig, without);
        rig_close(&rig);
    }
}

static void data_and_uses_share_a_record(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr ptr = rig_alloc(&rig, 40 * MIB, 5);

    attach(&rig, ptr, &rig, 1);
    rig_record(&rig, ptr, 6);
    attach(&rig, ptr, NULL, 0); /* the use stays */
    attach(&rig, ptr, &rig, 2);
    assert_int_equal(tarn_sim_block_stream(rig.device, 6), TARN_OK);
    rig_free(&rig, ptr);
    rig_check(&rig);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE_BYTES), 40 * MIB);
    assert_int_equal(tags_of(&rig), 0);
    assert_int_equal(tarn_sim_unblock_stream(rig.device, 6), TARN_OK);
    rig_empty_cache(&rig);
    has_user_data(&rig, rig_alloc(&rig, 40 * MIB, 5), NULL, 0);
    rig_close(&rig);
}

static void data_that_cannot_be_kept_changes_nothing(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr ptr = rig_alloc(&rig, MIB, 0);

    tarn_host_fail_nth(1);
    assert_int_equal(tarn_allocator_set_user_data(rig.allocator, ptr, &rig, 1, &rig.error),
                     TARN_ERR_HOST_MEMORY);
    has_user_data(&rig, ptr, NULL, 0);
    assert_int_equal(tarn_allocator_set_user_data(rig.allocator, ptr + 512, &rig, 1, &rig.error),
                     TARN_ERR_INVALID_POINTER);
    attach(&rig, ptr, &rig, 1);
    rig_free(&rig, ptr);
    rig_close(&rig);
}

static void sizes_are_what_the_allocator_makes_of_them(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "roundup_power2_divisions:4");
    for (uint64_t size = 1; size < 64 * MIB; size = size * 3 + 1) {
        const tarn_ptr ptr = rig_alloc(&rig, size, 0);
        const uint64_t good = tarn_allocator_good_size(rig.allocator, size);

        assert_true(good >= size);
        assert_int_equal(tarn_allocator_good_size(rig.allocator, good), good);
        assert_true(tarn_allocator_usable_size(rig.allocator, ptr) >= good);
        rig_free(&rig, ptr);
        rig_empty_cache(&rig);
    }
    assert_int_equal(tarn_allocator_good_size(rig.allocator, 0), 512);
    assert_int_equal(tarn_allocator_good_size(rig.allocator, 33 * MIB), 40 * MIB);
    assert_true(tarn_allocator_good_size(rig.allocator, UINT64_MAX) == UINT64_MAX);
    /* What is too much to ask for is no better when rounded. */
    assert_int_equal(tarn_allocator_good_size(rig.allocator, TN_MAX_REQUEST), TN_MAX_REQUEST);
    assert_true(tarn_allocator_good_size(rig.allocator, TN_MAX_REQUEST - 1) >= TN_MAX_REQUEST - 1);
    assert_int_equal(tarn_allocator_usable_size(rig.allocator, 0x1234), 0);
    rig_close(&rig);
}

static void only_that_stream_s_cache_is_released(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct tarn_pool *pool = NULL;
        tarn_ptr ptr = 0;
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        assert_int_equal(tarn_pool_create(rig.allocator, NULL, &pool, &rig.error), TARN_OK);
        assert_int_equal(tarn_pool_alloc(pool, 40 * MIB, 5, &ptr, &rig.error), TARN_OK);
        const tarn_ptr kept = rig_alloc(&rig, 20 * MIB, 5);

        rig_free(&rig, ptr);
        rig_free(&rig, rig_alloc(&rig, 40 * MIB, 5));
        rig_free(&rig, rig_alloc(&rig, 40 * MIB, 6));
        const int64_t before = rig_now(&rig, TARN_STAT_RESERVED_BYTES);

        assert_int_equal(tarn_allocator_release_stream(rig.allocator, 9, &rig.error), TARN_OK);
        assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), before);
        assert_int_equal(tarn_allocator_release_stream(rig.allocator, 5, &rig.error), TARN_OK);
        rig_check(&rig);
        assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 60 * MIB);
        rig_free(&rig, kept);
        tarn_pool_destroy(pool);
        rig_close(&rig);
    }
}

static void frees_that_wait_are_waited_for(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr ptr = rig_alloc(&rig, 40 * MIB, 5);

    rig_record(&rig, ptr, 6);
    assert_int_equal(tarn_sim_block_stream(rig.device, 6), TARN_OK);
    rig_free(&rig, ptr);
    assert_int_equal(tarn_allocator_release_stream(rig.allocator, 5, &rig.error), TARN_OK);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 0);
    rig_close(&rig);
}

static void a_failing_device_leaves_the_rest(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    rig_free(&rig, rig_alloc(&rig, 40 * MIB, 5));
    tarn_sim_fail_nth(rig.device, TARN_SIM_FREE, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_release_stream(rig.allocator, 5, &rig.error), TARN_ERR_DEVICE);
    rig_check(&rig);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 40 * MIB);
    assert_int_equal(tarn_allocator_release_stream(rig.allocator, 5, &rig.error), TARN_OK);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 0);
    rig_close(&rig);
}

static void other_engines_refuse(void **state)
{
    struct tarn_block block = {.struct_size = sizeof block};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "backend:cudaMallocAsync");
    const tarn_ptr ptr = rig_alloc(&rig, MIB, 0);

    assert_int_equal(tarn_allocator_find_block(rig.allocator, ptr, &block, &rig.error),
                     TARN_ERR_NOT_SUPPORTED);
    assert_int_equal(tarn_allocator_release_stream(rig.allocator, 0, &rig.error),
                     TARN_ERR_NOT_SUPPORTED);
    assert_int_equal(tarn_allocator_set_user_data(rig.allocator, ptr, &rig, 1, &rig.error),
                     TARN_ERR_NOT_SUPPORTED);
    assert_true(tarn_allocator_usable_size(rig.allocator, ptr) >= MIB);
    rig_free(&rig, ptr);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_is_described),
        cmocka_unit_test(data_stays_with_its_block),
        cmocka_unit_test(data_goes_with_its_block),
        cmocka_unit_test(data_and_uses_share_a_record),
        cmocka_unit_test(data_that_cannot_be_kept_changes_nothing),
        cmocka_unit_test(sizes_are_what_the_allocator_makes_of_them),
        cmocka_unit_test(only_that_stream_s_cache_is_released),
        cmocka_unit_test(frees_that_wait_are_waited_for),
        cmocka_unit_test(a_failing_device_leaves_the_rest),
        cmocka_unit_test(other_engines_refuse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
