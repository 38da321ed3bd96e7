/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "alloc/pool/free_set.h"
#include "alloc/pool/pool.h"
#include "alloc/pool/segment_map.h"
#include "tarn/host.h"

#define KIB ((uint64_t)1 << 10)
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

static _Alignas(TN_CACHE_LINE) struct tn_block blocks[MANY]; /* as those of slabs */
static bool inside[MANY];                                    /* in the set */
static struct tn_block *sorted[MANY]; /* the model: blocks in the set, in order */
static size_t sorted_count;

/* As pool.h does. */
static void set_insert(struct tn_free_set *set, struct tn_block *block)
{
    if (!tn_free_set_try_insert(set, block)) {
        tn_free_set_insert_slow(set, block);
    }
}

enum {
    SEGMENTS = 50,
    PIECES = MANY / SEGMENTS, /* blocks of each */
    SLOTS = 4 * SEGMENTS      /* where segments can be */
};

static const uint64_t piece_size = 64 * MIB;

static struct tn_segment_map map;
static struct tn_segment segments[SEGMENTS];
static bool by_age; /* the order of the model */

/* Segment i has the blocks from i * PIECES on. */
static uint64_t block_number(const struct tn_block *block)
{
    return by_age ? segments[(block - blocks) / PIECES].number : 0;
}

/* Of the first block that is not before (size, number of the segment, address). */
static size_t model_index(uint64_t size, uint64_t number, uint64_t address)
{
    size_t at = 0;

    for (; at < sorted_count; at++) {
        const struct tn_block *block = sorted[at];
        const uint64_t other = block_number(block);

        if (block->size > size ||
            (block->size == size &&
             (other > number || (other == number && block->address >= address)))) {
            break;
        }
    }
    return at;
}

static size_t model_index_of(const struct tn_block *block)
{
    return model_index(block->size, block_number(block), block->address);
}

static void model_insert(struct tn_block *block)
{
    const size_t at = model_index_of(block);

    for (size_t i = sorted_count; i > at; i--) {
        sorted[i] = sorted[i - 1];
    }
    sorted[at] = block;
    sorted_count++;
}

static void model_remove(const struct tn_block *block)
{
    size_t at = model_index_of(block);

    assert_ptr_equal(sorted[at], block);
    for (sorted_count--; at < sorted_count; at++) {
        sorted[at] = sorted[at + 1];
    }
}

static void set_equals(const struct tn_free_set *set)
{
    const struct tn_block *block = tn_free_set_first(set);

    assert_int_equal(tn_free_set_count(set), sorted_count);
    assert_int_equal(tn_free_set_outside(set), set->outside);
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
    const size_t at = model_index(size, 0, 0);

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
    const uint64_t live = tarn_host_get_usage().live_bytes;
    struct tn_free_set *set = tn_free_set_create(NULL, 0, NULL);

    (void)state;
    random_state = 1;
    for (uint64_t i = 0; i < MANY; i++) {
        blocks[i] = (struct tn_block){.address = 512 * (i + 1), .size = random_size()};
        inside[i] = false;
    }
    for (uint64_t step = 0; step < 30000; step++) {
        const uint64_t i = random_below(MANY);
        const bool growing = (step / 5000) % 2 == 0;

        if (!inside[i] && (growing || random_below(8) == 0)) {
            set_insert(set, &blocks[i]);
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
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
}

/* Around every border between classes: one unit below, at, and above. */
static void find_is_right_at_every_class_border(void **state)
{
    struct tn_free_set *set = tn_free_set_create(NULL, 0, NULL);

    (void)state;
    for (unsigned log2 = 9; log2 < 52; log2++) {
        for (uint64_t step = 0; step < 32; step++) {
            const uint64_t border =
                (((uint64_t)1 << log2) + (((uint64_t)1 << log2) / 32) * step) / 512 * 512;

            for (uint64_t size = border > 512 ? border - 512 : 512; size <= border + 512;
                 size += 512) {
                struct tn_block block = {.address = 512, .size = size};

                set_insert(set, &block);
                assert_ptr_equal(tn_free_set_find(set, size), &block);
                assert_ptr_equal(tn_free_set_find(set, 512), &block);
                assert_null(tn_free_set_find(set, size + 512));
                tn_free_set_remove(set, &block);
            }
        }
    }
    tn_free_set_destroy(set);
}

/* Blocks that bins cannot hold, too large or at addresses too high, are in one order with the
 * others. */
static void blocks_that_bins_cannot_hold_are_found_in_order(void **state)
{
    const uint64_t sizes[] = {
        512, 1024, MIB, TN_BIN_SIZE_END - 512, TN_BIN_SIZE_END, 2 * TN_BIN_SIZE_END};
    const uint64_t addresses[] = {512, TN_BIN_PLACE_END - 512, TN_BIN_PLACE_END,
                                  TN_BIN_PLACE_END + 512};
    const size_t size_count = sizeof sizes / sizeof sizes[0];
    const size_t count = size_count * sizeof addresses / sizeof addresses[0];
    struct tn_free_set *set = tn_free_set_create(NULL, 0, NULL);

    (void)state;
    for (uint64_t i = 0; i < count; i++) {
        blocks[i] =
            (struct tn_block){.address = addresses[i / size_count], .size = sizes[i % size_count]};
        set_insert(set, &blocks[i]);
        model_insert(&blocks[i]);
        set_equals(set);
    }
    for (uint64_t i = 0; i < size_count; i++) {
        find_equals(set, sizes[i]);
        find_equals(set, sizes[i] + 512);
    }
    assert_int_equal(set->far.count, 16);
    for (uint64_t i = 0; i < count; i++) {
        tn_free_set_remove(set, &blocks[(i * 7) % count]);
        model_remove(&blocks[(i * 7) % count]);
        set_equals(set);
    }
    tn_free_set_destroy(set);
}

/* What no bin can hold may be there, for all that is known in constant time. */
static void an_empty_set_reaches_what_bins_hold(void **state)
{
    struct tn_free_set *set = tn_free_set_create(NULL, 0, NULL);

    (void)state;
    assert_non_null(set);
    for (int again = 0; again < 2; again++) { /* nor does another order add anything */
        assert_false(tn_free_set_may_reach(set, 512));
        assert_false(tn_free_set_may_reach(set, TN_BIN_SIZE_END - 512));
        assert_true(tn_free_set_may_reach(set, TN_BIN_SIZE_END));
        tn_free_set_reorder(set, NULL);
    }
    tn_free_set_destroy(set);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* No size above the largest block, whatever power of two it is of; and any, as long as a block
 * waits for host memory, whose size is not looked at. */
static void a_set_reaches_its_largest_block(void **state)
{
    struct tn_block small = {.address = 4096, .size = 512};
    struct tn_block large = {.address = 8192, .size = 20 * MIB};
    struct tn_pool pool;

    (void)state;
    tn_pool_init(&pool, false, NULL, NULL);
    struct tn_free_set *set = tn_pool_get_set(&pool, 0);

    assert_non_null(set);
    small.set = set;
    large.set = set;
    set_insert(set, &small);
    assert_true(tn_free_set_may_reach(set, 512));
    for (uint64_t size = 64 * KIB; size < TN_BIN_SIZE_END; size *= 2) {
        assert_false(tn_free_set_may_reach(set, size));
    }
    tarn_host_fail_nth(1);
    set_insert(set, &large);
    tarn_host_fail_nth(0);
    assert_int_equal(tn_linked_count(&set->linked), 1);
    assert_true(tn_free_set_may_reach(set, 20 * MIB));
    tn_free_set_remove(set, &large);
    assert_false(tn_free_set_may_reach(set, 20 * MIB));
    tn_free_set_remove(set, &small);
    tn_pool_fini(&pool);
}

/* Best fit: the smallest block that is large enough, of equal ones the lowest. */
static void the_lowest_of_equal_blocks_is_found(void **state)
{
    struct tn_free_set *set = tn_free_set_create(NULL, 0, NULL);
    struct tn_block high = {.address = 4096, .size = 20 * MIB};
    struct tn_block low = {.address = 1024, .size = 20 * MIB};
    struct tn_block larger = {.address = 512, .size = 20 * MIB + 512};

    (void)state;
    set_insert(set, &high);
    set_insert(set, &larger);
    set_insert(set, &low);
    assert_ptr_equal(tn_free_set_find(set, 20 * MIB), &low);
    assert_ptr_equal(tn_free_set_find(set, 20 * MIB - 512), &low);
    assert_ptr_equal(tn_free_set_next(set, &low), &high);
    assert_ptr_equal(tn_free_set_next(set, &high), &larger);
    assert_ptr_equal(tn_free_set_prev(set, &low), NULL);
    assert_ptr_equal(tn_free_set_find(set, 20 * MIB + 512), &larger);
    assert_null(tn_free_set_find(set, 20 * MIB + 1024));
    tn_free_set_destroy(set);
}

static bool taken[SLOTS];
static uint64_t slot_of[SEGMENTS];

/* Puts the segment at a random place where none is, as the newest. */
static void segment_move(uint64_t i)
{
    struct tn_segment *segment = &segments[i];

    if (segment->number != 0) {
        tn_segment_map_remove(&map, segment);
        taken[slot_of[i]] = false;
    }
    do {
        slot_of[i] = random_below(SLOTS);
    } while (taken[slot_of[i]]);
    taken[slot_of[i]] = true;
    segment->address = (slot_of[i] + 1) * PIECES * piece_size;
    segment->size = PIECES * piece_size;
    tn_segment_map_insert(&map, segment);
    for (uint64_t k = 0; k < PIECES; k++) {
        blocks[i * PIECES + k].address = segment->address + k * piece_size;
    }
}

static void segments_make(void)
{
    tn_segment_map_init(&map);
    memset(taken, 0, sizeof taken);
    for (uint64_t i = 0; i < SEGMENTS; i++) {
        segments[i] = (struct tn_segment){0};
        segment_move(i);
    }
}

static void toggle(struct tn_free_set *set, uint64_t i)
{
    if (!inside[i]) {
        set_insert(set, &blocks[i]);
        model_insert(&blocks[i]);
    } else {
        tn_free_set_remove(set, &blocks[i]);
        model_remove(&blocks[i]);
    }
    inside[i] = !inside[i];
}

/* The segment goes back and a new one comes, mostly below older ones. */
static void segment_renew(struct tn_free_set *set, uint64_t i)
{
    for (uint64_t k = i * PIECES; k < (i + 1) * PIECES; k++) {
        if (inside[k]) {
            toggle(set, k);
        }
    }
    segment_move(i);
}

/* Another order, and the model's blocks in it. */
static void order_change(struct tn_free_set *set)
{
    by_age = !by_age;
    tn_free_set_reorder(set, by_age ? &map : NULL);
    sorted_count = 0;
    for (uint64_t i = 0; i < MANY; i++) {
        if (inside[i]) {
            model_insert(&blocks[i]);
        }
    }
    set_equals(set);
}

/* Few sizes, so that most blocks have hundreds of equals; the last ones are too large for bins. */
static void blocks_are_ordered_by_the_age_of_their_segments(void **state)
{
    static const uint64_t sizes[] = {512, 512, 512, 4096, MIB, 2 * TN_BIN_SIZE_END};
    const uint64_t live = tarn_host_get_usage().live_bytes;

    (void)state;
    for (uint64_t kinds = 1; kinds <= sizeof sizes / sizeof sizes[0]; kinds += 5) {
        random_state = 7 + kinds;
        by_age = true;
        for (uint64_t i = 0; i < MANY; i++) {
            blocks[i] = (struct tn_block){.size = sizes[random_below(kinds)]};
            inside[i] = false;
        }
        segments_make();
        struct tn_free_set *set = tn_free_set_create(NULL, 0, &map);

        for (uint64_t step = 0; step < 20000; step++) {
            const uint64_t i = random_below(MANY);
            const bool growing = (step / 4000) % 2 == 0;

            if (inside[i] != growing || random_below(8) == 0) {
                toggle(set, i);
            }
            find_equals(set, sizes[random_below(kinds)]);
            if (step % 100 == 0) {
                segment_renew(set, random_below(SEGMENTS));
            }
            if (step % 701 == 0) { /* what packing does to the places and their keys */
                tn_segment_map_pack(&map);
                if (by_age) {
                    tn_free_set_rekey(set);
                }
            }
            if (step % 1000 == 0) {
                set_equals(set);
            }
            if (step % 2700 == 2699) {
                order_change(set);
            }
        }
        for (uint64_t i = 0; i < MANY; i++) {
            if (inside[i]) {
                toggle(set, i);
            }
        }
        set_equals(set);
        tn_free_set_destroy(set);
        assert_int_equal(tarn_host_get_usage().live_bytes, live);
    }
    by_age = false;
}

static void another_order_needs_no_host_memory(void **state)
{
    struct tn_pool pool;

    (void)state;
    tn_pool_init(&pool, false, NULL, NULL);
    struct tn_free_set *set = tn_pool_get_set(&pool, 0);

    assert_non_null(set);
    random_state = 8;
    by_age = true;
    for (uint64_t n = 1; n < 40; n += 3) {
        for (uint64_t i = 0; i < MANY; i++) {
            blocks[i] = (struct tn_block){.size = 512, .set = set, .u.gc_base = (int64_t)i};
            inside[i] = false;
        }
        pool.find_count = MANY;
        segments_make();
        for (uint64_t i = 0; i < MANY; i++) {
            set_insert(set, &blocks[i]);
        }
        tarn_host_fail_nth(n);
        tn_free_set_reorder(set, &map);
        tarn_host_fail_nth(0);
        assert_true(tn_linked_count(&set->linked) > 0);
        sorted_count = 0;
        for (uint64_t i = 0; i < MANY; i++) {
            model_insert(&blocks[i]);
            assert_int_equal(tn_free_set_base(&blocks[i]), i);
        }
        set_equals(set);
        tn_free_set_settle(set);
        assert_int_equal(tn_linked_count(&set->linked), 0);
        set_equals(set);
        for (uint64_t i = 0; i < MANY; i++) {
            tn_free_set_remove(set, &blocks[i]);
        }
        tn_free_set_reorder(set, NULL);
        sorted_count = 0;
    }
    by_age = false;
    tn_pool_fini(&pool);
}

/* Blocks that one order keeps in bins and the other does not: high addresses are in no bin, their
 * places by age are. */
static void another_order_leaves_nothing_behind(void **state)
{
    struct tn_segment segment = {.address = 2 * TN_BIN_PLACE_END, .size = 64 * MIB};
    struct tn_block small = {.address = segment.address, .size = 512};
    struct tn_block large = {.address = segment.address + 8 * MIB, .size = 20 * MIB};
    struct tn_segment_map places;
    struct tn_pool pool;

    (void)state;
    tn_pool_init(&pool, false, NULL, NULL);
    tn_segment_map_init(&places);
    tn_segment_map_insert(&places, &segment);
    struct tn_free_set *set = tn_pool_get_set(&pool, 0);

    assert_non_null(set);
    small.set = set;
    large.set = set;
    tn_free_set_reorder(set, &places);
    tarn_host_fail_nth(1);
    set_insert(set, &small); /* at the first place of all */
    tarn_host_fail_nth(0);
    set_insert(set, &large);
    assert_int_equal(set->outside, 1);
    for (int by_address = 1; by_address >= 0; by_address--) {
        assert_ptr_equal(tn_free_set_first(set), &small);
        assert_ptr_equal(tn_free_set_next(set, &small), &large);
        assert_null(tn_free_set_next(set, &large));
        assert_ptr_equal(tn_free_set_last(set), &large);
        assert_ptr_equal(tn_free_set_prev(set, &large), &small);
        tn_free_set_reorder(set, by_address ? NULL : &places);
        assert_int_equal(tn_linked_count(&set->linked), 0);
        assert_int_equal(set->outside, by_address ? 2 : 0);
        assert_int_equal(tn_free_set_count(set), 2);
        assert_ptr_equal(tn_free_set_find(set, 1024), &large);
        assert_null(tn_free_set_find(set, 21 * MIB));
    }
    tn_free_set_remove(set, &small);
    tn_free_set_remove(set, &large);
    tn_pool_fini(&pool);
}

/* For checkers: both levels of the bitmaps must show a block. */
static void a_block_that_no_search_would_find_is_not_in_the_set(void **state)
{
    struct tn_free_set *set = tn_free_set_create(NULL, 0, NULL);
    struct tn_block block = {.address = 4096, .size = 20 * MIB};

    (void)state;
    set_insert(set, &block);
    assert_true(tn_free_set_has(set, &block));
    const uint64_t chunk_bits = set->chunk_bits;
    uint64_t bin_bits[TN_CHUNKS];

    set->chunk_bits = 0;
    assert_false(tn_free_set_has(set, &block));
    set->chunk_bits = chunk_bits;
    memcpy(bin_bits, set->bin_bits, sizeof bin_bits);
    memset(set->bin_bits, 0, sizeof bin_bits);
    assert_false(tn_free_set_has(set, &block));
    memcpy(set->bin_bits, bin_bits, sizeof bin_bits);
    tn_free_set_remove(set, &block);
    tn_free_set_destroy(set);
}

static void unmapped_ranges_are_kept_by_address(void **state)
{
    struct tn_free_set *set = tn_free_set_create(NULL, 0, NULL);
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
        assert_int_equal(set->unmapped.count, count);
        assert_int_equal(tn_free_set_has_unmapped(set, &blocks[i]), inside[i]);
    }
    for (uint32_t i = 1; i < set->unmapped.count; i++) {
        assert_true(set->unmapped.blocks[i - 1]->address < set->unmapped.blocks[i]->address);
    }
    assert_int_equal(tn_free_set_count(set), 0);
    tn_free_set_destroy(set);
}

static void an_unmapped_range_is_found_by_any_of_its_addresses(void **state)
{
    struct tn_block low = {.address = 4 * MIB, .size = 2 * MIB};
    struct tn_block high = {.address = 8 * MIB, .size = 6 * MIB};
    struct tn_block behind = {.address = 14 * MIB, .size = 2 * MIB}; /* of the next segment */
    struct tn_free_set *set = tn_free_set_create(NULL, 0, NULL);

    (void)state;
    assert_null(tn_free_set_find_unmapped(set, 4 * MIB));
    assert_true(tn_free_set_reserve_unmapped(set, 3));
    tn_free_set_insert_unmapped(set, &high);
    tn_free_set_insert_unmapped(set, &low);
    assert_null(tn_free_set_find_unmapped(set, 4 * MIB - 1));
    assert_ptr_equal(tn_free_set_find_unmapped(set, 4 * MIB), &low);
    assert_ptr_equal(tn_free_set_find_unmapped(set, 6 * MIB - 1), &low);
    assert_null(tn_free_set_find_unmapped(set, 6 * MIB));
    assert_ptr_equal(tn_free_set_find_unmapped(set, 10 * MIB), &high);
    assert_null(tn_free_set_find_unmapped(set, 14 * MIB));
    tn_free_set_insert_unmapped(set, &behind);
    assert_ptr_equal(tn_free_set_find_unmapped(set, 14 * MIB - 1), &high);
    assert_ptr_equal(tn_free_set_find_unmapped(set, 14 * MIB), &behind);
    tn_free_set_destroy(set);
}

static void trimming_gives_memory_back(void **state)
{
    struct tn_free_set *set = tn_free_set_create(NULL, 0, NULL);
    const size_t bare = tn_free_set_memory(set);
    const uint64_t live = tarn_host_get_usage().live_bytes;

    (void)state;
    for (uint64_t i = 0; i < MANY; i++) {
        blocks[i] = (struct tn_block){.address = 512 * (i + 1), .size = 512 * (1 + i % 300)};
        set_insert(set, &blocks[i]);
    }
    assert_int_equal(tn_free_set_memory(set) - bare, tarn_host_get_usage().live_bytes - live);
    for (uint64_t i = 1; i < MANY; i++) {
        tn_free_set_remove(set, &blocks[i]);
    }
    tn_free_set_trim(set);
    assert_ptr_equal(tn_free_set_find(set, 512), &blocks[0]);
    assert_ptr_equal(tn_free_set_first(set), tn_free_set_last(set));
    tn_free_set_remove(set, &blocks[0]);
    tn_free_set_trim(set);
    assert_int_equal(tn_free_set_memory(set), bare);
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
    assert_null(tn_free_set_first(set));
    set_insert(set, &blocks[5]); /* works as before */
    assert_ptr_equal(tn_free_set_find(set, 512), &blocks[5]);
    tn_free_set_destroy(set);
}

/* Of a chunk that is still needed every other class, the first and the last one too. */
static void trimming_gives_back_what_single_classes_hold(void **state)
{
    enum {
        COUNT = 40
    };
    struct tn_block last = {.address = 2 * MIB, .size = 512 * (uint64_t)(TN_CHUNK_BINS + 6)};
    struct tn_free_set *set = tn_free_set_create(NULL, 0, NULL);
    const size_t bare = tn_free_set_memory(set);

    (void)state;
    set_insert(set, &last);
    for (uint64_t i = 0; i < UINT64_C(2) * COUNT; i++) {
        blocks[i] = (struct tn_block){
            .address = 512 * (i + 1),
            .size = 512 * (uint64_t)(i < COUNT ? TN_CHUNK_BINS : 2 * TN_CHUNK_BINS - 1)};
        set_insert(set, &blocks[i]);
    }
    for (uint64_t i = 0; i < UINT64_C(2) * COUNT; i++) {
        tn_free_set_remove(set, &blocks[i]);
    }
    tn_free_set_trim(set);
    assert_int_equal(tn_free_set_memory(set), bare + TN_CHUNK_BINS * sizeof(struct tn_bin));
    assert_ptr_equal(tn_free_set_first(set), &last);
    tn_free_set_remove(set, &last);
    tn_free_set_destroy(set);
}

static void memory_is_what_the_host_gave(void **state)
{
    const uint64_t live = tarn_host_get_usage().live_bytes;
    struct tn_free_set *set = tn_free_set_create(NULL, 0, NULL);

    (void)state;
    for (uint64_t i = 0; i < 20; i++) {
        blocks[i] = (struct tn_block){.address = 512 * (i + 1), .size = TN_BIN_SIZE_END << i % 2};
        set_insert(set, &blocks[i]); /* no bin holds it */
        assert_int_equal(tn_free_set_memory(set), tarn_host_get_usage().live_bytes - live);
    }
    assert_true(tn_free_set_reserve_unmapped(set, 100));
    assert_int_equal(tn_free_set_memory(set), tarn_host_get_usage().live_bytes - live);
    tn_free_set_destroy(set);
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
}

/* Most insertions' first or second allocation fails: for a chunk, a leaf, a larger leaf, a
 * directory or the list of blocks that bins cannot hold. */
static void without_host_memory_the_order_is_the_same(void **state)
{
    const uint64_t live = tarn_host_get_usage().live_bytes;
    struct tn_pool pool;

    (void)state;
    tn_pool_init(&pool, false, NULL, NULL);
    tarn_host_fail_nth(1);
    assert_null(tn_free_set_create(&pool, 0, NULL));
    struct tn_free_set *set = tn_pool_get_set(&pool, 0);

    assert_non_null(set);
    random_state = 3;
    for (uint64_t i = 0; i < MANY; i++) {
        blocks[i] = (struct tn_block){.address = 512 * (i + 1),
                                      .size = i % 100 == 99 ? TN_BIN_SIZE_END + 512 * i
                                                            : 512 * (1 + random_below(300)),
                                      .set = set,
                                      .u.gc_base = (int64_t)i};
        pool.find_count = (int64_t)i;
        tarn_host_fail_nth(i % 4 == 0 ? 0 : 1 + i % 2);
        set_insert(set, &blocks[i]);
        tarn_host_fail_nth(0);
        model_insert(&blocks[i]);
        if (i % 50 == 0) {
            set_equals(set);
        }
        assert_int_equal(tn_free_set_base(&blocks[i]), i);
    }
    assert_int_equal(tn_free_set_outside(set), set->outside);
    assert_in_range(tn_linked_count(&set->linked), 10, MANY - 1);
    set_equals(set);
    for (uint64_t i = 0; i < MANY; i += 3) { /* linked ones as well */
        tn_free_set_remove(set, &blocks[i]);
        model_remove(&blocks[i]);
    }
    set_equals(set);
    pool.find_count += 1000000;
    tn_free_set_settle(set);
    assert_int_equal(tn_linked_count(&set->linked), 0);
    set_equals(set);
    for (uint64_t i = 0; i < MANY; i++) {
        if (i % 3 != 0) {
            assert_int_equal(tn_free_set_base(&blocks[i]), i);
            tn_free_set_remove(set, &blocks[i]);
            model_remove(&blocks[i]);
        }
    }
    assert_int_equal(set->outside, 0);
    tn_free_set_trim(set);
    for (uint64_t i = 0; i < 2; i++) {
        blocks[i] = (struct tn_block){.address = 512, .size = MIB << i, .set = set};
        tarn_host_fail_nth(1);
        set_insert(set, &blocks[i]);
    }
    assert_int_equal(tn_linked_count(&set->linked), 2);
    tarn_host_fail_nth(1);
    tn_free_set_settle(set); /* as far as it goes */
    assert_int_equal(tn_linked_count(&set->linked), 1);
    assert_int_equal(tn_free_set_count(set), 2);
    assert_ptr_equal(tn_free_set_find(set, 512), &blocks[0]);
    assert_ptr_equal(tn_free_set_find(set, MIB + 512), &blocks[1]);
    tn_free_set_remove(set, &blocks[0]);
    tn_free_set_remove(set, &blocks[1]);
    assert_null(tn_free_set_first(set));
    tarn_host_fail_nth(1);
    assert_false(tn_free_set_reserve_unmapped(set, 1));
    assert_int_equal(set->unmapped.capacity, 0);
    tarn_host_fail_nth(0);
    tn_pool_fini(&pool);
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_blocks_equal_a_sorted_list),
        cmocka_unit_test(find_is_right_at_every_class_border),
        cmocka_unit_test(blocks_that_bins_cannot_hold_are_found_in_order),
        cmocka_unit_test(an_empty_set_reaches_what_bins_hold),
        cmocka_unit_test(a_set_reaches_its_largest_block),
        cmocka_unit_test(the_lowest_of_equal_blocks_is_found),
        cmocka_unit_test(blocks_are_ordered_by_the_age_of_their_segments),
        cmocka_unit_test(another_order_needs_no_host_memory),
        cmocka_unit_test(another_order_leaves_nothing_behind),
        cmocka_unit_test(a_block_that_no_search_would_find_is_not_in_the_set),
        cmocka_unit_test(unmapped_ranges_are_kept_by_address),
        cmocka_unit_test(an_unmapped_range_is_found_by_any_of_its_addresses),
        cmocka_unit_test(trimming_gives_memory_back),
        cmocka_unit_test(trimming_gives_back_what_single_classes_hold),
        cmocka_unit_test(memory_is_what_the_host_gave),
        cmocka_unit_test(without_host_memory_the_order_is_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
