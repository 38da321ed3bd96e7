/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "alloc/pool/pool.h"
#include "tarn/host.h"

enum {
    STREAMS = 40,
    EACH = 5
};

static void a_stream_has_one_set_for_lifetime(void **state)
{
    static const tarn_stream streams[] = {0, 7, UINT64_MAX, 3, 0x55aa00000000, 1, 2};
    const size_t count = sizeof streams / sizeof *streams;
    struct tn_free_set *sets[7];
    struct tn_pool pool;

    (void)state;
    tn_pool_init(&pool, true, NULL, NULL);
    for (size_t i = 0; i < count; i++) {
        sets[i] = tn_pool_get_set(&pool, streams[i]);
        assert_non_null(sets[i]);
        assert_int_equal(sets[i]->stream, streams[i]);
        assert_ptr_equal(sets[i]->pool, &pool);
    }
    assert_int_equal(pool.count, count);
    for (size_t i = count; i > 0; i--) {
        assert_ptr_equal(tn_pool_get_set(&pool, streams[i - 1]), sets[i - 1]);
        assert_ptr_equal(tn_pool_get_set(&pool, streams[i - 1]), sets[i - 1]);
    }
    assert_int_equal(pool.count, count);
    tn_pool_fini(&pool);
}

/* PyTorch's set is ordered by (stream, size, address). */
static void blocks_come_by_stream_size_and_address(void **state)
{
    static struct tn_block blocks[STREAMS][EACH];
    struct tn_pool pool;
    uint64_t bytes = 0;

    (void)state;
    tn_pool_init(&pool, false, NULL, NULL);
    assert_null(tn_pool_first(&pool));
    for (uint64_t i = 0; i < STREAMS; i++) {
        const tarn_stream stream = (i * 17) % STREAMS; /* in no order */

        for (uint64_t k = 0; k < EACH && stream % 3 != 1; k++) { /* some streams have none */
            struct tn_block *block = &blocks[stream][k];

            *block = (struct tn_block){.address = 512 * (1000 - i * EACH - k),
                                       .size = 512 * (1 + (k * 3) % EACH % 3),
                                       .set = tn_pool_get_set(&pool, stream)};
            tn_free_set_insert_slow(block->set, block);
            bytes += block->size;
        }
        assert_non_null(tn_pool_get_set(&pool, stream));
    }
    assert_int_equal(tn_pool_free_bytes(&pool), bytes);
    const struct tn_block *last = NULL;
    uint64_t count = 0;

    for (struct tn_block *b = tn_pool_first(&pool); b; b = tn_pool_next(&pool, b)) {
        if (last) {
            const bool same_stream = last->set->stream == b->set->stream;
            const bool same_size = last->size == b->size;

            assert_true(last->set->stream <= b->set->stream);
            assert_true(!same_stream || last->size <= b->size);
            assert_true(!same_stream || !same_size || last->address < b->address);
        }
        last = b;
        count++;
    }
    assert_int_equal(count, (uint64_t)EACH * 27); /* 13 of 40 streams have none */
    while (tn_pool_first(&pool)) {
        tn_free_set_remove(tn_pool_first(&pool)->set, tn_pool_first(&pool));
    }
    assert_int_equal(tn_pool_free_bytes(&pool), 0);
    tn_pool_fini(&pool);
}

static void memory_is_what_the_host_gave(void **state)
{
    const uint64_t live = tarn_host_get_usage().live_bytes;
    struct tn_block block = {.address = 512, .size = 512};
    struct tn_pool pool;

    (void)state;
    tn_pool_init(&pool, true, NULL, NULL);
    assert_int_equal(tn_pool_memory(&pool), 0);
    for (uint64_t i = 0; i < STREAMS; i++) {
        assert_non_null(tn_pool_get_set(&pool, i));
        assert_int_equal(tn_pool_memory(&pool), tarn_host_get_usage().live_bytes - live);
    }
    const size_t bare = tn_pool_memory(&pool);
    struct tn_free_set *set = tn_pool_get_set(&pool, 3);

    tn_free_set_insert_slow(set, &block);
    assert_true(tn_pool_memory(&pool) > bare);
    tn_free_set_remove(set, &block);
    tn_pool_trim(&pool);
    assert_int_equal(tn_pool_memory(&pool), bare);
    tn_pool_fini(&pool);
    assert_int_equal(tn_pool_memory(&pool), 0);
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
}

/* Of every stream. */
static void linked_blocks_settle_when_the_host_has_memory(void **state)
{
    static struct tn_block blocks[EACH];
    struct tn_pool pool;

    (void)state;
    tn_pool_init(&pool, false, NULL, NULL);
    for (uint64_t i = 0; i < EACH; i++) {
        blocks[i] = (struct tn_block){
            .address = 512 * (i + 1), .size = 512, .set = tn_pool_get_set(&pool, i)};
        tarn_host_fail_nth(1);
        tn_free_set_insert_slow(blocks[i].set, &blocks[i]);
        tarn_host_fail_nth(0);
        assert_int_equal(blocks[i].set->outside, 1);
    }
    tn_pool_settle(&pool);
    for (uint64_t i = 0; i < EACH; i++) {
        assert_int_equal(blocks[i].set->outside, 0);
        assert_ptr_equal(tn_free_set_first(blocks[i].set), &blocks[i]);
        tn_free_set_remove(blocks[i].set, &blocks[i]);
    }
    tn_pool_fini(&pool);
}

static void without_host_memory_nothing_changes(void **state)
{
    struct tn_pool pool;

    (void)state;
    tn_pool_init(&pool, true, NULL, NULL);
    for (uint64_t stream = 0; stream < 9; stream++) {
        const uint32_t count = pool.count;
        struct tn_free_set *set = NULL;

        for (uint64_t n = 1; !set; n++) {
            tarn_host_fail_nth(n);
            set = tn_pool_get_set(&pool, stream * 11 % 9);
            tarn_host_fail_nth(0);
            assert_int_equal(pool.count, count + (set != NULL));
        }
        assert_int_equal(set->stream, stream * 11 % 9);
    }
    tn_pool_fini(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_has_one_set_for_lifetime),
        cmocka_unit_test(blocks_come_by_stream_size_and_address),
        cmocka_unit_test(memory_is_what_the_host_gave),
        cmocka_unit_test(linked_blocks_settle_when_the_host_has_memory),
        cmocka_unit_test(without_host_memory_nothing_changes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
