/* SPDX-License-Identifier: MIT */
#include "alloc/pool/bin.h"

#include "alloc/pool/segment_map.h"
#include "base/host_mem.h"

#include <stdlib.h>
#include <string.h>

enum {
    DIRECTORY_FIRST_CAPACITY = 8
};

/* Leaf i has the keys from bounds[i] on, below bounds[i + 1]. bounds[0] is 0. None is empty, and
 * all have TN_LEAF_SLOTS slots: no memory of theirs is from a store. */
struct tn_directory {
    uint64_t count;
    uint64_t capacity;
    struct tn_leaf *leaves;
    uint64_t *bounds; /* behind the leaves, in one allocation */
};

/* ---- leaves ---- */

static size_t leaf_bytes(uint64_t capacity)
{
    return capacity * (sizeof(uint64_t) + sizeof(struct tn_block *));
}

static uint64_t slots_below(uint64_t capacity)
{
    tn_assert(capacity > 0 && capacity <= TN_LEAF_SLOTS);
    return ~(uint64_t)0 >> (TN_LEAF_SLOTS - capacity);
}

static_assert(TN_LEAF_STORE_PIECE == TN_LEAF_FEW * (sizeof(uint64_t) + sizeof(struct tn_block *)),
              "a piece of the store is a bin's first leaf");

/* A leaf of holes with that memory. */
static struct tn_leaf leaf_of(uint64_t *keys, uint64_t capacity)
{
    for (uint64_t i = 0; keys && i < capacity; i++) {
        keys[i] = TN_BIN_KEY_NONE;
    }
    return (struct tn_leaf){
        .holes = slots_below(capacity),
        .slots = slots_below(capacity),
        .keys = keys,
        .capacity = capacity,
    };
}

/* A leaf that is not a bin's first; `keys` NULL when host memory is missing. */
static struct tn_leaf leaf_create(uint64_t capacity)
{
    return leaf_of(tn_host_alloc_aligned(leaf_bytes(capacity), TN_CACHE_LINE), capacity);
}

static void leaf_destroy(struct tn_leaf *leaf)
{
    tn_host_free(leaf->keys, leaf_bytes(leaf->capacity));
}

/* The same of any leaf that a bin has alone. */
static void leaf_give_back(struct tn_leaf *leaf, struct tn_leaf_store *store)
{
    if (leaf->capacity == TN_LEAF_FEW) {
        tn_leaf_store_give(store, leaf->keys);
    } else {
        leaf_destroy(leaf);
    }
}

static uint64_t leaf_count(const struct tn_leaf *leaf)
{
    return (uint64_t)__builtin_popcountll(leaf->slots & ~leaf->holes);
}

/* Doubles the slots; false when host memory is missing. */
static bool leaf_grow(struct tn_leaf *leaf, struct tn_leaf_store *store)
{
    struct tn_leaf grown = leaf->capacity > 0 ? leaf_create(2 * leaf->capacity)
                                              : leaf_of(tn_leaf_store_take(store), TN_LEAF_FEW);

    if (!grown.keys) {
        return false;
    }
    if (leaf->capacity > 0) { /* it is full */
        memcpy(grown.keys, leaf->keys, leaf->capacity * sizeof *leaf->keys);
        memcpy(tn_leaf_blocks(&grown), tn_leaf_blocks(leaf),
               leaf->capacity * sizeof(struct tn_block *));
        grown.holes &= ~slots_below(leaf->capacity);
        leaf_give_back(leaf, store);
    }
    *leaf = grown;
    return true;
}

/* The least key at or above `from`, TN_BIN_KEY_NONE if there is none. */
#if defined(__SSE2__)
/* Keys below `from` become TN_BIN_KEY_NONE. */
static inline __m128d pair_from(__m128d keys, __m128d from)
{
    const __m128d none = _mm_castsi128_pd(_mm_set1_epi64x((long long)TN_BIN_KEY_NONE));
    const __m128d is_below = _mm_cmplt_pd(keys, from);

    return _mm_or_pd(_mm_andnot_pd(is_below, keys), _mm_and_pd(is_below, none));
}

static uint64_t leaf_least_from(const struct tn_leaf *leaf, uint64_t from)
{
    const __m128d wanted = _mm_castsi128_pd(_mm_set1_epi64x((long long)from));
    __m128d least = pair_from(tn_leaf_pair(leaf, 0), wanted);
    __m128d other = pair_from(tn_leaf_pair(leaf, 2), wanted);

    for (uint64_t i = 4; i < leaf->capacity; i += 4) {
        least = _mm_min_pd(least, pair_from(tn_leaf_pair(leaf, i), wanted));
        other = _mm_min_pd(other, pair_from(tn_leaf_pair(leaf, i + 2), wanted));
    }
    return tn_leaf_pair_least(_mm_min_pd(least, other));
}
#else
static uint64_t leaf_least_from(const struct tn_leaf *leaf, uint64_t from)
{
    uint64_t least = TN_BIN_KEY_NONE;

    for (uint64_t i = 0; i < leaf->capacity; i++) {
        least = leaf->keys[i] >= from && leaf->keys[i] < least ? leaf->keys[i] : least;
    }
    return least;
}
#endif

/* The largest key below `before`, TN_BIN_KEY_NONE if there is none. Rare paths only. */
static uint64_t leaf_largest_before(const struct tn_leaf *leaf, uint64_t before)
{
    uint64_t largest = 0;

    for (uint64_t i = 0; i < leaf->capacity; i++) {
        largest = leaf->keys[i] < before && leaf->keys[i] > largest ? leaf->keys[i] : largest;
    }
    return largest > 0 ? largest : TN_BIN_KEY_NONE;
}

/* NULL for TN_BIN_KEY_NONE. */
static struct tn_block *leaf_block(const struct tn_leaf *leaf, uint64_t key)
{
    return key == TN_BIN_KEY_NONE ? NULL : tn_leaf_blocks(leaf)[tn_bin_key_slot(key)];
}

/* ---- directories ---- */

static size_t directory_bytes(uint64_t capacity)
{
    return sizeof(struct tn_directory) + capacity * (sizeof(struct tn_leaf) + sizeof(uint64_t));
}

static struct tn_directory *directory_create(uint64_t capacity)
{
    struct tn_directory *directory = tn_host_alloc(directory_bytes(capacity));

    if (directory) {
        directory->count = 0;
        directory->capacity = capacity;
        directory->leaves = (struct tn_leaf *)(void *)(directory + 1);
        directory->bounds = (uint64_t *)(void *)(directory->leaves + capacity);
    }
    return directory;
}

static void directory_destroy(struct tn_directory *directory)
{
    tn_host_free(directory, directory ? directory_bytes(directory->capacity) : 0);
}

static bool directory_grow(struct tn_directory **directory_inout)
{
    struct tn_directory *old = *directory_inout;
    struct tn_directory *grown =
        directory_create(old ? 2 * old->capacity : DIRECTORY_FIRST_CAPACITY);

    if (!grown) {
        return false;
    }
    if (old) {
        memcpy(grown->leaves, old->leaves, old->count * sizeof *old->leaves);
        memcpy(grown->bounds, old->bounds, old->count * sizeof *old->bounds);
        grown->count = old->count;
        directory_destroy(old);
    }
    *directory_inout = grown;
    return true;
}

/* Index of the leaf that has this key, or would have it. */
static uint64_t directory_index(const struct tn_directory *directory, uint64_t key)
{
    uint64_t low = 0;
    uint64_t count = directory->count;

    while (count > 1) {
        const uint64_t half = count / 2;

        low = directory->bounds[low + half] <= key ? low + half : low;
        count -= half;
    }
    return low;
}

/* There is room. */
static void directory_insert(struct tn_directory *directory, uint64_t at, struct tn_leaf leaf,
                             uint64_t bound)
{
    const uint64_t moved = directory->count - at;

    memmove(&directory->leaves[at + 1], &directory->leaves[at], moved * sizeof leaf);
    memmove(&directory->bounds[at + 1], &directory->bounds[at], moved * sizeof bound);
    directory->leaves[at] = leaf;
    directory->bounds[at] = bound;
    directory->count++;
}

static void directory_remove(struct tn_directory *directory, uint64_t at)
{
    leaf_destroy(&directory->leaves[at]);
    directory->count--;
    const uint64_t moved = directory->count - at;

    memmove(&directory->leaves[at], &directory->leaves[at + 1], moved * sizeof(struct tn_leaf));
    memmove(&directory->bounds[at], &directory->bounds[at + 1], moved * sizeof(uint64_t));
    directory->bounds[0] = 0;
}

static int key_compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Moves the upper half of a full leaf to a new one. False when host memory is missing. */
static bool directory_split(struct tn_directory *directory, uint64_t at)
{
    struct tn_leaf *leaf = &directory->leaves[at];
    struct tn_leaf upper = leaf_create(TN_LEAF_SLOTS);
    uint64_t sorted[TN_LEAF_SLOTS];

    if (!upper.keys) {
        return false;
    }
    memcpy(sorted, leaf->keys, sizeof sorted);
    qsort(sorted, TN_LEAF_SLOTS, sizeof sorted[0], key_compare);
    for (unsigned i = TN_LEAF_SLOTS / 2; i < TN_LEAF_SLOTS; i++) {
        const unsigned slot = tn_bin_key_slot(sorted[i]);

        tn_leaf_insert(&upper, sorted[i] - slot, tn_leaf_blocks(leaf)[slot]);
        tn_leaf_remove(leaf, slot);
    }
    directory_insert(directory, at + 1, upper, upper.keys[0]); /* slot 0 has the least of them */
    return true;
}

/* ---- bins ---- */

/* The leaf that has this key, or would have it. */
static const struct tn_leaf *bin_leaf(const struct tn_bin *bin, uint64_t key)
{
    return bin->directory ? &bin->directory->leaves[directory_index(bin->directory, key)]
                          : &bin->leaf;
}

static struct tn_leaf *bin_leaf_to_change(struct tn_bin *bin, uint64_t key)
{
    return bin->directory ? &bin->directory->leaves[directory_index(bin->directory, key)]
                          : &bin->leaf;
}

/* The only leaf becomes the first of a directory. */
static bool bin_add_directory(struct tn_bin *bin)
{
    if (!directory_grow(&bin->directory)) {
        return false;
    }
    directory_insert(bin->directory, 0, bin->leaf, 0);
    bin->leaf = (struct tn_leaf){0};
    return true;
}

/* A single leaf needs no directory. */
static void bin_drop_directory(struct tn_bin *bin)
{
    bin->leaf = bin->directory->leaves[0];
    directory_destroy(bin->directory);
    bin->directory = NULL;
}

static bool bin_split_leaf(struct tn_bin *bin, uint64_t key)
{
    const bool had_directory = bin->directory != NULL;

    if (!had_directory && !bin_add_directory(bin)) {
        return false;
    }
    const bool has_room =
        bin->directory->count < bin->directory->capacity || directory_grow(&bin->directory);

    if (has_room && directory_split(bin->directory, directory_index(bin->directory, key))) {
        return true;
    }
    if (!had_directory) {
        bin_drop_directory(bin);
    }
    return false;
}

void tn_bin_fini(struct tn_bin *bin, struct tn_leaf_store *store)
{
    for (uint64_t i = 0; bin->directory && i < bin->directory->count; i++) {
        leaf_destroy(&bin->directory->leaves[i]);
    }
    directory_destroy(bin->directory);
    leaf_give_back(&bin->leaf, store);
    *bin = (struct tn_bin){0};
}

/* A leaf with a hole for this key; NULL when host memory is missing. */
static struct tn_leaf *bin_reserve(struct tn_bin *bin, struct tn_leaf_store *store, uint64_t key)
{
    struct tn_leaf *leaf = bin_leaf_to_change(bin, key);

    if (leaf->holes != 0) {
        return leaf;
    }
    const bool has_grown =
        leaf->capacity < TN_LEAF_SLOTS ? leaf_grow(leaf, store) : bin_split_leaf(bin, key);

    return has_grown ? bin_leaf_to_change(bin, key) : NULL;
}

TN_NOINLINE bool tn_bin_insert_slow(struct tn_bin *bin, struct tn_leaf_store *store,
                                    struct tn_block *block, uint64_t place)
{
    uint64_t key = tn_bin_key(block->size, place);

    if (!bin->first) {
        tn_bin_insert_only(bin, block, place);
        return true;
    }
    struct tn_leaf *leaf = bin_reserve(bin, store, key > bin->least ? key : bin->least);

    if (!leaf) {
        return false;
    }
    struct tn_block *other = tn_bin_exchange(bin, block, &key);

    tn_leaf_insert(leaf, key, other);
    return true;
}

/* Drops a leaf that has become empty. */
static void bin_drop_leaf(struct tn_bin *bin, const struct tn_leaf *leaf)
{
    directory_remove(bin->directory, (uint64_t)(leaf - bin->directory->leaves));
    if (bin->directory->count == 1) {
        bin_drop_directory(bin);
    }
}

TN_NOINLINE void tn_bin_remove_slow(struct tn_bin *bin, const struct tn_block *block,
                                    uint64_t place)
{
    struct tn_leaf *leaf;
    unsigned slot = block->slot;

    if (block == bin->first) {
        leaf = &bin->directory->leaves[0];
        const uint64_t key = tn_leaf_least(leaf);

        slot = tn_bin_key_slot(key);
        bin->least = key - slot;
        bin->first = tn_leaf_blocks(leaf)[slot];
    } else {
        leaf = bin_leaf_to_change(bin, tn_bin_key(block->size, place));
        tn_assert(slot < leaf->capacity && tn_leaf_blocks(leaf)[slot] == block);
    }
    tn_leaf_remove(leaf, slot);
    if (tn_leaf_is_empty(leaf)) {
        bin_drop_leaf(bin, leaf);
    }
}

static uint64_t block_key(const struct tn_block *block, const struct tn_segment_map *map)
{
    return tn_bin_key(block->size, tn_segment_map_place(map, block->address));
}

static void leaf_rekey(struct tn_leaf *leaf, const struct tn_segment_map *map)
{
    for (uint64_t taken = leaf->slots & ~leaf->holes; taken != 0; taken &= taken - 1) {
        const unsigned slot = tn_lowest_bit(taken);

        leaf->keys[slot] = block_key(tn_leaf_blocks(leaf)[slot], map) + slot;
    }
}

void tn_bin_rekey(struct tn_bin *bin, const struct tn_segment_map *map)
{
    struct tn_directory *directory = bin->directory;

    bin->least = block_key(bin->first, map);
    leaf_rekey(&bin->leaf, map);
    for (uint64_t i = 0; directory && i < directory->count; i++) {
        struct tn_leaf *leaf = &directory->leaves[i];

        leaf_rekey(leaf, map);
        const uint64_t least = tn_leaf_least(leaf); /* none is empty */

        directory->bounds[i] = i == 0 ? 0 : least - tn_bin_key_slot(least);
    }
}

struct tn_block *tn_bin_find_from(const struct tn_bin *bin, uint64_t size, uint64_t place)
{
    const uint64_t from = tn_bin_key(size, place);

    if (bin->least >= from) {
        return bin->first;
    }
    const struct tn_leaf *leaf = bin_leaf(bin, from);

    if (tn_leaf_is_empty(leaf)) {
        return NULL;
    }
    uint64_t key = leaf_least_from(leaf, from);

    if (key == TN_BIN_KEY_NONE && bin->directory &&
        leaf + 1 < bin->directory->leaves + bin->directory->count) {
        leaf++;
        key = tn_leaf_least(leaf);
    }
    return leaf_block(leaf, key);
}

struct tn_block *tn_bin_find_before(const struct tn_bin *bin, uint64_t size, uint64_t place)
{
    const uint64_t before = tn_bin_key(size, place);
    const struct tn_leaf *leaf = bin_leaf(bin, before);
    uint64_t key = leaf_largest_before(leaf, before);

    if (key == TN_BIN_KEY_NONE && bin->directory && leaf > bin->directory->leaves) {
        leaf--;
        key = leaf_largest_before(leaf, TN_BIN_KEY_NONE);
    }
    return key == TN_BIN_KEY_NONE && bin->least < before ? bin->first : leaf_block(leaf, key);
}

struct tn_block *tn_bin_max(const struct tn_bin *bin)
{
    const struct tn_leaf *leaf = bin_leaf(bin, TN_BIN_KEY_NONE);
    struct tn_block *block = leaf_block(leaf, leaf_largest_before(leaf, TN_BIN_KEY_NONE));

    return block ? block : bin->first;
}

bool tn_bin_has(const struct tn_bin *bin, const struct tn_block *block, uint64_t place)
{
    const uint64_t key = tn_bin_key(block->size, place);

    if (block == bin->first) {
        return key == bin->least;
    }
    const struct tn_leaf *leaf = bin_leaf(bin, key);

    return key > bin->least && block->slot < leaf->capacity &&
           leaf->keys[block->slot] == key + block->slot &&
           tn_leaf_blocks(leaf)[block->slot] == block;
}

uint64_t tn_bin_count(const struct tn_bin *bin)
{
    uint64_t count = (bin->first ? 1 : 0) + leaf_count(&bin->leaf);

    for (uint64_t i = 0; bin->directory && i < bin->directory->count; i++) {
        count += leaf_count(&bin->directory->leaves[i]);
    }
    return count;
}

size_t tn_bin_memory(const struct tn_bin *bin)
{
    size_t bytes = bin->leaf.capacity > TN_LEAF_FEW ? leaf_bytes(bin->leaf.capacity) : 0;

    bytes += bin->directory ? directory_bytes(bin->directory->capacity) : 0;

    for (uint64_t i = 0; bin->directory && i < bin->directory->count; i++) {
        bytes += leaf_bytes(bin->directory->leaves[i].capacity);
    }
    return bytes;
}
