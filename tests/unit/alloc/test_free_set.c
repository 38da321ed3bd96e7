/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <stdlib.h>

#include "alloc/pool/free_set.h"
#include "alloc/pool/pool.h"
#include "tarn/host.h"

#define MIB ((uint64_t)1 << 20)

enum {
    MANY = 1500
};

static uint64_t random_state;

static uint64_t random_below(uint64_t bound)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 20) % bound;
}

static struct tn_block blocks[MANY];
static struct tn_block *sorted[MANY]; /* the model: blocks in the set, in order */
static size_t sorted_count;

static size_t model_index(uint64_t size, uint64_t address)
{
    size_t at = 0;

    while (at < sorted_count && (sorted[at]->size < size ||
                                 (sorted[at]->size == size && sorted[at]->address < address))) {
        at++;
    }
    return at;
}

static void model_insert(struct tn_block *block)
{
    const size_t at = model_index(block->size, block->address);

    for (size_t i = sorted_count; i > at; i--) {
        sorted[i] = sorted[i - 1];
    }
    sorted[at] = block;
    sorted_count++;
}

static void model_remove(const struct tn_block *block)
{
    size_t at = model_index(block->size, block->address);

    assert_ptr_equal(sorted[at], block);
    for (sorted_count--; at < sorted_count; at++) {
        sorted[at] = sorted[at + 1];
    }
}

/* From now on blocks go into their bins at once. The set keeps none as recent. */
static void set_backs_off(struct tn_free_set *set)
{
    assert_int_equal(tn_recent_count(&set->recent), 0);
    set->recent.backoff.left = UINT32_MAX;
    set->recent.holes = 0;
}

static void set_equals(const struct tn_free_set *set)
{
    const struct tn_block *block = tn_free_set_first(set);

    assert_int_equal(set->count, sorted_count);
    for (size_t i = 0; i < sorted_count; i++) {
        assert_ptr_equal(block, sorted[i]);
        assert_true(tn_free_set_has(set, block));
        assert_ptr_equal(tn_free_set_prev(set, block), i > 0 ? sorted[i - 1] : NULL);
        block = tn_free_set_next(set, block);
    }
    assert_null(block);
    assert_ptr_equal(tn_free_set_last(set), sorted_count ? sorted[sorted_count - 1] : NULL);
}

static void find_equals(const struct tn_free_set *set, uint64_t size)
{
    const size_t at = model_index(size, 0);

    assert_ptr_equal(tn_free_set_find(set, size), at < sorted_count ? sorted[at] : NULL);
}

/* Sizes of every kind: small ones, both sides of where classes of one size end, every power. */
static uint64_t random_size(void)
{
    switch (random_below(5)) {
    case 0:
        return 512 * (1 + random_below(16));
    case 1:
        return 512 * (1 + random_below(4096));
    case 2:
        return 512 * (120 + random_below(16));
    case 3:
        return 2 * MIB * (1 + random_below(40));
    default:
        return ((uint64_t)512 << random_below(54)) + 512 * random_below(3);
    }
}

static void random_blocks_equal_a_sorted_list(void **state)
{
    static bool inside[MANY];
    const uint64_t live = tarn_host_usage().live_bytes;
    struct tn_free_set *set = tn_free_set_create(NULL, 0);

    (void)state;
    random_state = 1;
    for (uint64_t i = 0; i < MANY; i++) {
        blocks[i] = (struct tn_block){.address = 512 * (i + 1), .size = random_size()};
    }
    for (uint64_t step = 0; step < 30000; step++) {
        const uint64_t i = random_below(MANY);
        const bool growing = (step / 5000) % 2 == 0;

        if (!inside[i] && (growing || random_below(8) == 0)) {
            assert_true(tn_free_set_insert(set, &blocks[i]));
            model_insert(&blocks[i]);
            inside[i] = true;
        } else if (inside[i] && (!growing || random_below(8) == 0)) {
            tn_free_set_remove(set, &blocks[i]);
            model_remove(&blocks[i]);
            inside[i] = false;
            assert_false(tn_free_set_has(set, &blocks[i]));
        }
        find_equals(set, random_size());
        if (step % 1000 == 0) {
            set_equals(set);
        }
        if (step % 4999 == 0) {
            tn_free_set_trim(set);
        }
    }
    for (uint64_t i = 0; i < MANY; i++) {
        if (inside[i]) {
            tn_free_set_remove(set, &blocks[i]);
            model_remove(&blocks[i]);
        }
    }
    set_equals(set);
    tn_free_set_destroy(set);
    assert_int_equal(tarn_host_usage().live_bytes, live);
}

/* Around every border between classes: one unit below, at, and above. */
static void find_at_every_class_border(bool backs_off)
{
    struct tn_free_set *set = tn_free_set_create(NULL, 0);

    if (backs_off) {
        set_backs_off(set);
    }

    for (unsigned log2 = 9; log2 < 52; log2++) {
        for (uint64_t step = 0; step < 32; step++) {
            const uint64_t border =
                (((uint64_t)1 << log2) + (((uint64_t)1 << log2) / 32) * step) / 512 * 512;

            for (uint64_t size = border > 512 ? border - 512 : 512; size <= border + 512;
                 size += 512) {
                struct tn_block block = {.address = 512, .size = size};

                assert_true(tn_free_set_insert(set, &block));
                assert_ptr_equal(tn_free_set_find(set, size), &block);
                assert_ptr_equal(tn_free_set_find(set, 512), &block);
                assert_null(tn_free_set_find(set, size + 512));
                tn_free_set_remove(set, &block);
            }
        }
    }
    tn_free_set_destroy(set);
}

static void find_is_right_at_every_class_border(void **state)
{
    (void)state;
    find_at_every_class_border(false);
    find_at_every_class_border(true);
}

#if TN_FAST_PATH
/* Of two blocks the better one is found, whichever of them is recent, in every order of classes. */
static void recent_blocks_compete_with_binned_ones(void **state)
{
    const uint64_t too_large = (uint64_t)504 << 30;
    const uint64_t sizes[] = {512,
                              1024,
                              UINT64_C(63) * 512,
                              UINT64_C(64) * 512,
                              UINT64_C(127) * 512,
                              UINT64_C(128) * 512,
                              2 * MIB - 512,
                              2 * MIB,
                              2 * MIB + 512,
                              3 * MIB,
                              5 * MIB,
                              (uint64_t)1 << 33,
                              too_large - 512,
                              too_large,
                              (uint64_t)1 << 41,
                              (uint64_t)1 << 62};
    const size_t count = sizeof sizes / sizeof sizes[0];
    struct tn_free_set *set = tn_free_set_create(NULL, 0);

    (void)state;
    for (size_t i = 0; i < 2 * count * count; i++) {
        const uint64_t place = i % 2 == 0 ? 4096 : 0; /* of equal blocks either may be lower */
        struct tn_block binned = {.address = 2048, .size = sizes[i / 2 % count]};
        struct tn_block recent = {.address = 512 + place, .size = sizes[i / 2 / count]};
        struct tn_block *low =
            tn_block_is_below(&recent, binned.size, binned.address) ? &recent : &binned;
        struct tn_block *high = low == &recent ? &binned : &recent;

        set->recent.backoff.left = 1;
        set->recent.holes = 0;
        assert_true(tn_free_set_insert(set, &binned));
        assert_true(tn_free_set_insert(set, &recent));
        assert_false(tn_block_is_recent(&binned));
        assert_int_equal(tn_block_is_recent(&recent), recent.size < too_large);
        assert_ptr_equal(tn_free_set_find(set, 512), low);
        assert_ptr_equal(tn_free_set_find(set, low->size), low);
        assert_ptr_equal(tn_free_set_find(set, low->size + 512),
                         high->size > low->size ? high : NULL);
        assert_ptr_equal(tn_free_set_first(set), low);
        assert_ptr_equal(tn_free_set_next(set, low), high);
        assert_null(tn_free_set_next(set, high));
        assert_ptr_equal(tn_free_set_last(set), high);
        assert_ptr_equal(tn_free_set_prev(set, high), low);
        assert_null(tn_free_set_prev(set, low));
        tn_free_set_remove(set, &recent);
        tn_free_set_remove(set, &binned);
    }
    tn_free_set_destroy(set);
}

/* Every inserted block is recent; the one whose turn it is goes to its bin. */
static void slots_of_recent_blocks_take_turns(void **state)
{
    struct tn_free_set *set = tn_free_set_create(NULL, 0);
    uint64_t recent = 0;

    (void)state;
    for (uint64_t i = 0; i < 5 * (uint64_t)TN_RECENT; i++) {
        blocks[i] = (struct tn_block){.address = 512 * (i + 1), .size = 512 * (1 + i % 3)};
        assert_true(tn_free_set_insert(set, &blocks[i]));
        assert_true(tn_block_is_recent(&blocks[i]));
        assert_int_equal(tn_block_is_recent(&blocks[i >= TN_RECENT ? i - TN_RECENT : 0]),
                         i < TN_RECENT);
    }
    for (uint64_t i = 0; i < 5 * (uint64_t)TN_RECENT; i++) {
        recent += tn_block_is_recent(&blocks[i]);
        assert_true(tn_free_set_has(set, &blocks[i]));
    }
    assert_int_equal(recent, TN_RECENT);
    tn_free_set_destroy(set);
}

/* Inserts blocks until one goes to its bin at once; none leaves. */
static uint64_t insert_until_backoff(struct tn_free_set *set, uint64_t *inserted)
{
    uint64_t count = 0;

    while (set->recent.backoff.left == 0) {
        struct tn_block *block = &blocks[*inserted % MANY];

        if (*inserted >= MANY) {
            tn_free_set_remove(set, block);
        }
        assert_true(tn_free_set_insert(set, block));
        *inserted += 1;
        count++;
    }
    return count;
}

/* Where none of them leaves recent, blocks go to their bins at once, for longer and longer; the
 * backoff is over when it pays. */
static void a_set_in_which_it_does_not_pay_backs_off(void **state)
{
    struct tn_free_set *set = tn_free_set_create(NULL, 0);
    uint32_t backoff = TN_BACKOFF_MIN;
    uint64_t inserted = 0;

    (void)state;
    for (uint64_t i = 0; i < MANY; i++) {
        blocks[i] = (struct tn_block){.address = 512 * (i + 1), .size = 512 * (1 + i % 7)};
    }
    for (int i = 0; i < 7; i++) {
        assert_in_range(insert_until_backoff(set, &inserted), TN_RECENT_TRIES,
                        TN_RECENT_TRIES + (uint64_t)TN_RECENT);
        assert_int_equal(set->recent.backoff.left, backoff);
        assert_int_equal(tn_recent_count(&set->recent), 0);
        for (uint64_t k = 0; k < MANY; k++) {
            assert_int_equal(tn_free_set_has(set, &blocks[k]), inserted > k);
            assert_false(tn_block_is_recent(&blocks[k]));
        }
        for (uint32_t k = 0; k < backoff; k++) {
            assert_ptr_equal(tn_free_set_find(set, 512), tn_free_set_first(set));
            tn_free_set_remove(set, &blocks[0]);
            assert_true(tn_free_set_insert(set, &blocks[0]));
            assert_false(tn_block_is_recent(&blocks[0]));
        }
        assert_int_equal(set->recent.backoff.left, 0);
        backoff = backoff < TN_BACKOFF_MAX ? 2 * backoff : backoff;
    }
    assert_int_equal(backoff, TN_BACKOFF_MAX);
    for (uint64_t k = 0; k < 40000; k++) { /* each block leaves recent, or the next does */
        tn_free_set_remove(set, &blocks[k % 4]);
        assert_true(tn_free_set_insert(set, &blocks[k % 4]));
        assert_int_equal(set->recent.backoff.left, 0);
    }
    tn_free_set_destroy(set);
}

/* A backoff does not begin while a recent block cannot be put away. */
static void without_host_memory_it_does_not_back_off(void **state)
{
    struct tn_free_set *set = tn_free_set_create(NULL, 0);

    (void)state;
    for (uint64_t i = 0; i < TN_RECENT_TRIES + (uint64_t)TN_RECENT; i++) {
        /* recent blocks at the end: one of a class without a chunk is among them */
        const bool is_last = i + 2 == TN_RECENT_TRIES + (uint64_t)TN_RECENT;

        blocks[i] = (struct tn_block){.address = 512 * (i + 1),
                                      .size = is_last ? (uint64_t)4 << 30 : 512 * (1 + i % 60)};
    }
    for (uint64_t i = 0; i < TN_RECENT_TRIES + (uint64_t)TN_RECENT - 1; i++) {
        assert_true(tn_free_set_insert(set, &blocks[i]));
    }
    assert_int_equal(set->recent.backoff.left, 0);
    set->recent.reused = 0;
    tarn_host_fail_nth(1);
    assert_true(tn_free_set_insert(set, &blocks[TN_RECENT_TRIES + TN_RECENT - 1]));
    tarn_host_fail_nth(0);
    assert_int_equal(set->recent.evicted, 0); /* it has looked */
    assert_int_equal(set->recent.backoff.left, 0);
    assert_in_range(tn_recent_count(&set->recent), 1, TN_RECENT - 1);
    for (uint64_t i = 0; i < TN_RECENT_TRIES + (uint64_t)TN_RECENT; i++) {
        assert_true(tn_free_set_has(set, &blocks[i]));
    }
    tn_free_set_destroy(set);
}
#endif

/* Best fit: the smallest block that is large enough, of equal ones the lowest. */
static void the_lowest_of_equal_blocks_is_found(void **state)
{
    struct tn_free_set *set = tn_free_set_create(NULL, 0);
    struct tn_block high = {.address = 4096, .size = 20 * MIB};
    struct tn_block low = {.address = 1024, .size = 20 * MIB};
    struct tn_block larger = {.address = 512, .size = 20 * MIB + 512};

    (void)state;
    assert_true(tn_free_set_insert(set, &high));
    assert_true(tn_free_set_insert(set, &larger));
    assert_true(tn_free_set_insert(set, &low));
    assert_ptr_equal(tn_free_set_find(set, 20 * MIB), &low);
    assert_ptr_equal(tn_free_set_find(set, 20 * MIB - 512), &low);
    assert_ptr_equal(tn_free_set_next(set, &low), &high);
    assert_ptr_equal(tn_free_set_next(set, &high), &larger);
    assert_ptr_equal(tn_free_set_prev(set, &low), NULL);
    assert_ptr_equal(tn_free_set_find(set, 20 * MIB + 512), &larger);
    assert_null(tn_free_set_find(set, 20 * MIB + 1024));
    tn_free_set_destroy(set);
}

static void unmapped_ranges_are_kept_by_address(void **state)
{
    static bool inside[MANY];
    struct tn_free_set *set = tn_free_set_create(NULL, 0);
    uint32_t count = 0;

    (void)state;
    random_state = 2;
    for (uint64_t i = 0; i < MANY; i++) {
        blocks[i] = (struct tn_block){.address = 2 * MIB * ((i * 7919) % MANY + 1)};
        inside[i] = false;
    }
    for (int step = 0; step < 10000; step++) {
        const uint64_t i = random_below(MANY);

        if (!inside[i]) {
            assert_true(tn_free_set_reserve_unmapped(set, 1));
            tn_free_set_insert_unmapped(set, &blocks[i]);
            count++;
        } else {
            tn_free_set_remove_unmapped(set, &blocks[i]);
            count--;
        }
        inside[i] = !inside[i];
        assert_int_equal(set->unmapped_count, count);
        assert_int_equal(tn_free_set_has_unmapped(set, &blocks[i]), inside[i]);
    }
    for (uint32_t i = 1; i < set->unmapped_count; i++) {
        assert_true(set->unmapped[i - 1]->address < set->unmapped[i]->address);
    }
    assert_int_equal(set->count, 0);
    tn_free_set_destroy(set);
}

static void trimming_gives_memory_back(void **state)
{
    struct tn_free_set *set = tn_free_set_create(NULL, 0);
    const size_t bare = tn_free_set_memory(set);
    const uint64_t live = tarn_host_usage().live_bytes;

    (void)state;
    for (uint64_t i = 0; i < MANY; i++) {
        blocks[i] = (struct tn_block){.address = 512 * (i + 1), .size = 512 * (1 + i % 300)};
        assert_true(tn_free_set_insert(set, &blocks[i]));
    }
    assert_int_equal(tn_free_set_memory(set) - bare, tarn_host_usage().live_bytes - live);
    for (uint64_t i = 1; i < MANY; i++) {
        tn_free_set_remove(set, &blocks[i]);
    }
    tn_free_set_trim(set);
    assert_ptr_equal(tn_free_set_find(set, 512), &blocks[0]);
    assert_ptr_equal(tn_free_set_first(set), tn_free_set_last(set));
    tn_free_set_remove(set, &blocks[0]);
    tn_free_set_trim(set);
    assert_int_equal(tn_free_set_memory(set), bare);
    assert_int_equal(tarn_host_usage().live_bytes, live);
    assert_null(tn_free_set_first(set));
    assert_true(tn_free_set_insert(set, &blocks[5])); /* works as before */
    assert_ptr_equal(tn_free_set_find(set, 512), &blocks[5]);
    tn_free_set_destroy(set);
}

static void without_host_memory_nothing_changes(void **state)
{
    const uint64_t live = tarn_host_usage().live_bytes;
    struct tn_block block[TN_BIN_NEAR + 1];

    (void)state;
    for (uint64_t i = 0; i <= TN_BIN_NEAR; i++) {
        block[i] = (struct tn_block){.address = 512 * (i + 1), .size = 512};
    }
    tarn_host_fail_nth(1);
    assert_null(tn_free_set_create(NULL, 0));
    struct tn_free_set *set = tn_free_set_create(NULL, 0);

    set_backs_off(set);
    for (uint64_t i = 0; i <= TN_BIN_NEAR; i++) { /* the first wants a chunk, the last an array */
        if (i == 0 || i == TN_BIN_NEAR) {
            tarn_host_fail_nth(1);
            assert_false(tn_free_set_insert(set, &block[i]));
            assert_int_equal(set->count, i);
            assert_ptr_equal(tn_free_set_first(set), i == 0 ? NULL : &block[0]);
            assert_ptr_equal(tn_free_set_find(set, 512), i == 0 ? NULL : &block[0]);
        }
        assert_true(tn_free_set_insert(set, &block[i]));
    }
    tarn_host_fail_nth(1);
    assert_false(tn_free_set_reserve_unmapped(set, 1));
    assert_int_equal(set->unmapped_capacity, 0);
    tarn_host_fail_nth(0);
    tn_free_set_destroy(set);
    assert_int_equal(tarn_host_usage().live_bytes, live);
}

#if TN_FAST_PATH
/* A recent block that has to leave, and cannot, stays. */
static void without_host_memory_no_recent_block_leaves(void **state)
{
    struct tn_free_set *set = tn_free_set_create(NULL, 0);

    (void)state;
    for (uint64_t i = 0; i <= TN_RECENT; i++) {
        blocks[i] = (struct tn_block){.address = 512 * (i + 1), .size = 512};
    }
    for (uint64_t i = 0; i < TN_RECENT; i++) {
        tarn_host_fail_nth(1);
        assert_true(tn_free_set_insert(set, &blocks[i])); /* needs none */
    }
    tarn_host_fail_nth(1);
    assert_false(tn_free_set_insert(set, &blocks[TN_RECENT]));
    tarn_host_fail_nth(0);
    assert_int_equal(set->count, TN_RECENT);
    for (uint64_t i = 0; i < TN_RECENT; i++) {
        assert_true(tn_block_is_recent(&blocks[i]) && tn_free_set_has(set, &blocks[i]));
    }
    assert_int_equal(blocks[TN_RECENT].slot, TN_SLOT_BIN);
    assert_true(tn_free_set_insert(set, &blocks[TN_RECENT]));
    assert_int_equal(set->count, TN_RECENT + 1);
    tn_free_set_destroy(set);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_blocks_equal_a_sorted_list),
        cmocka_unit_test(find_is_right_at_every_class_border),
        cmocka_unit_test(the_lowest_of_equal_blocks_is_found),
        cmocka_unit_test(unmapped_ranges_are_kept_by_address),
        cmocka_unit_test(trimming_gives_memory_back),
        cmocka_unit_test(without_host_memory_nothing_changes),
#if TN_FAST_PATH
        cmocka_unit_test(recent_blocks_compete_with_binned_ones),
        cmocka_unit_test(slots_of_recent_blocks_take_turns),
        cmocka_unit_test(a_set_in_which_it_does_not_pay_backs_off),
        cmocka_unit_test(without_host_memory_it_does_not_back_off),
        cmocka_unit_test(without_host_memory_no_recent_block_leaves),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
