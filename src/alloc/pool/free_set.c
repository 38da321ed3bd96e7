/* SPDX-License-Identifier: MIT */
#include "alloc/pool/free_set.h"

#include "base/assertion.h"
#include "base/bits.h"
#include "base/host_mem.h"

#include <string.h>

enum {
    CLASSES = TN_CHUNKS * TN_CHUNK_BINS,
    NO_CLASS = -1
};

static const size_t chunk_bytes = TN_CHUNK_BINS * sizeof(struct tn_bin);

static_assert(TN_CHUNK_BINS == 1 << TN_CLASSES_LOG2, "a class is the first seven bits of a size");
static_assert(TN_CHUNKS < 64, "one bit per chunk");

/* Last class at or before `class` whose bin is not empty, or NO_CLASS. Rare paths only. */
static int set_prev_class(const struct tn_free_set *set, int class)
{
    while (class >= 0) {
        const int chunk = class / TN_CHUNK_BINS;
        const uint64_t bits =
            set->bin_bits[chunk] & (~(uint64_t)0 >> (TN_CHUNK_BINS - 1 - class % TN_CHUNK_BINS));

        if (bits) {
            return chunk * TN_CHUNK_BINS + (int)tn_log2_floor(bits);
        }
        class = chunk * TN_CHUNK_BINS - 1;
    }
    return NO_CLASS;
}

static struct tn_bin *chunk_create(void)
{
    return tn_host_alloc_zero(chunk_bytes); /* aligned to cache lines, as bins are */
}

static void chunk_destroy(struct tn_bin *chunk, struct tn_leaf_store *leaves)
{
    for (unsigned i = 0; chunk && i < TN_CHUNK_BINS; i++) {
        if (tn_bin_has_leaves(&chunk[i])) {
            tn_bin_fini(&chunk[i], leaves);
        }
    }
    tn_host_free(chunk, chunk_bytes);
}

/* ---- sorted lists ---- */

/* Whether the block comes before another in the list's order. */
static bool list_is_before(const struct tn_block_list *list, const struct tn_block *block,
                           uint64_t size, uint64_t address)
{
    return list->is_by_size ? tn_block_is_below(block, size, address) : block->address < address;
}

/* Index of the first block at or after (size, address). */
static uint32_t list_index(const struct tn_block_list *list, uint64_t size, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = list->count;

    while (low < high) {
        const uint32_t middle = (low + high) / 2;

        if (list_is_before(list, list->blocks[middle], size, address)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool list_has(const struct tn_block_list *list, const struct tn_block *block)
{
    const uint32_t at = list_index(list, block->size, block->address);

    return at < list->count && list->blocks[at] == block;
}

static bool list_reserve(struct tn_block_list *list, uint32_t more)
{
    if (list->count + more <= list->capacity) {
        return true;
    }
    const uint32_t wanted = (list->count + more) * 2;
    struct tn_block **moved =
        tn_host_resize(list->blocks, list->capacity * sizeof(struct tn_block *),
                       wanted * sizeof(struct tn_block *));

    if (!moved) {
        return false;
    }
    list->blocks = moved;
    list->capacity = wanted;
    return true;
}

static void list_insert(struct tn_block_list *list, struct tn_block *block)
{
    const uint32_t at = list_index(list, block->size, block->address);

    tn_assert(list->count < list->capacity);
    memmove(&list->blocks[at + 1], &list->blocks[at],
            (list->count - at) * sizeof(struct tn_block *));
    list->blocks[at] = block;
    list->count++;
}

static void list_remove(struct tn_block_list *list, const struct tn_block *block)
{
    const uint32_t at = list_index(list, block->size, block->address);

    tn_assert(at < list->count && list->blocks[at] == block);
    list->count--;
    memmove(&list->blocks[at], &list->blocks[at + 1],
            (list->count - at) * sizeof(struct tn_block *));
}

static void list_fini(struct tn_block_list *list)
{
    tn_host_free(list->blocks, list->capacity * sizeof(struct tn_block *));
}

/* ---- sets ---- */

struct tn_free_set *tn_free_set_create(struct tn_pool *pool, tarn_stream stream)
{
    struct tn_free_set *set = tn_host_alloc_zero(sizeof *set);

    if (set) {
        set->pool = pool;
        set->stream = stream;
        set->far.is_by_size = true;
    }
    return set;
}

void tn_free_set_destroy(struct tn_free_set *set)
{
    if (!set) {
        return;
    }
    for (unsigned chunk = 0; chunk < TN_CHUNKS; chunk++) {
        chunk_destroy(set->chunks[chunk], &set->leaves);
    }
    tn_leaf_store_trim(&set->leaves);
    list_fini(&set->unmapped);
    list_fini(&set->far);
    tn_host_free(set, sizeof *set);
}

/* ---- blocks that bins cannot hold ---- */

static bool far_insert(struct tn_free_set *set, struct tn_block *block)
{
    if (!list_reserve(&set->far, 1)) {
        return false;
    }
    list_insert(&set->far, block);
    block->slot = TN_SLOT_FAR;
    set->outside++;
    return true;
}

/* First of them at or after (size, address). */
static struct tn_block *far_from(const struct tn_free_set *set, uint64_t size, uint64_t address)
{
    const uint32_t at = list_index(&set->far, size, address);

    return at < set->far.count ? set->far.blocks[at] : NULL;
}

/* Last of them before (size, address). */
static struct tn_block *far_before(const struct tn_free_set *set, uint64_t size, uint64_t address)
{
    const uint32_t at = list_index(&set->far, size, address);

    return at > 0 ? set->far.blocks[at - 1] : NULL;
}

/* ---- bins ---- */

/* False when host memory is missing. */
static bool bins_insert(struct tn_free_set *set, struct tn_block *block)
{
    const unsigned class = tn_free_set_class(block->size);
    const unsigned chunk = class / TN_CHUNK_BINS;

    if (!set->chunks[chunk]) {
        set->chunks[chunk] = chunk_create();
    }
    if (!set->chunks[chunk] ||
        !tn_bin_insert_slow(tn_free_set_bin(set, class), &set->leaves, block)) {
        return false;
    }
    tn_free_set_mark(set, class);
    return true;
}

/* Where (size, address) would be among blocks that bins can hold. */
static inline void bins_clamp(uint64_t *size, uint64_t *address)
{
    if (tn_unlikely(*address >= TN_BIN_ADDRESS_END)) {
        *size += TN_MIN_BLOCK_SIZE;
        *address = 0;
    }
}

/* First block at or after (size, address). */
static inline struct tn_block *bins_from(const struct tn_free_set *set, uint64_t size,
                                         uint64_t address)
{
    bins_clamp(&size, &address);
    if (tn_unlikely(size >= TN_BIN_SIZE_END)) {
        return NULL;
    }
    const unsigned class = tn_free_set_class(size);
    struct tn_block *found = tn_free_set_has_class(set, class)
                                 ? tn_bin_find_from(tn_free_set_bin(set, class), size, address)
                                 : NULL;

    if (found || class + 1 == CLASSES) {
        return found;
    }
    const struct tn_bin *bin = tn_free_set_next_bin(set, class + 1);

    return bin ? bin->first : NULL;
}

/* Last block of the classes up to `class`. Rare paths only. */
static struct tn_block *bins_max_to(const struct tn_free_set *set, int class)
{
    const int found = set_prev_class(set, class);

    return found < 0 ? NULL : tn_bin_max(tn_free_set_bin(set, (unsigned)found));
}

/* Last block before (size, address). */
static struct tn_block *bins_before(const struct tn_free_set *set, uint64_t size, uint64_t address)
{
    bins_clamp(&size, &address);
    if (size >= TN_BIN_SIZE_END) {
        return bins_max_to(set, CLASSES - 1);
    }
    const unsigned own = tn_free_set_class(size);
    struct tn_block *found = tn_free_set_has_class(set, own)
                                 ? tn_bin_find_before(tn_free_set_bin(set, own), size, address)
                                 : NULL;

    return found ? found : bins_max_to(set, (int)own - 1);
}

/* ---- blocks that wait for host memory ---- */

static TN_COLD void linked_insert(struct tn_free_set *set, struct tn_block *block)
{
    tn_linked_add(&set->linked, block);
    block->slot = TN_SLOT_LINKED;
    set->outside++;
}

TN_COLD void tn_free_set_settle_slow(struct tn_free_set *set)
{
    struct tn_linked list = set->linked;

    set->linked.first = NULL;
    while (list.first) {
        struct tn_block *block = list.first;

        tn_linked_remove(&list, block, *set->find_count);
        block->slot = 0;
        set->outside--;
        if (!tn_free_set_try_insert(set, block)) {
            tn_free_set_insert_slow(set, block);
        }
    }
}

int64_t tn_free_set_base(const struct tn_block *block)
{
    return tn_likely(block->slot != TN_SLOT_LINKED)
               ? block->u.gc_base
               : tn_linked_base(block, *block->set->find_count);
}

/* ---- all of them ---- */

TN_NOINLINE void tn_free_set_remove_outside(struct tn_free_set *set, struct tn_block *block)
{
    if (block->slot == TN_SLOT_FAR) {
        list_remove(&set->far, block);
    } else {
        tn_linked_remove(&set->linked, block, *set->find_count);
    }
    block->slot = 0;
    set->outside--;
}

static struct tn_block *lower(struct tn_block *block, struct tn_block *other)
{
    return !other || (block && tn_block_is_below(block, other->size, other->address)) ? block
                                                                                      : other;
}

static struct tn_block *higher(struct tn_block *block, struct tn_block *other)
{
    return !other || (block && tn_block_is_below(other, block->size, block->address)) ? block
                                                                                      : other;
}

/* First block outside of bins at or after (size, address). */
static struct tn_block *outside_from(const struct tn_free_set *set, uint64_t size, uint64_t address)
{
    return lower(far_from(set, size, address), tn_linked_from(&set->linked, size, address));
}

/* Last one before (size, address). */
static struct tn_block *outside_before(const struct tn_free_set *set, uint64_t size,
                                       uint64_t address)
{
    return higher(far_before(set, size, address), tn_linked_before(&set->linked, size, address));
}

/* First block at or after (size, address). */
static inline struct tn_block *set_from(const struct tn_free_set *set, uint64_t size,
                                        uint64_t address)
{
    struct tn_block *block = bins_from(set, size, address);

    return tn_likely(set->outside == 0) ? block : lower(block, outside_from(set, size, address));
}

TN_NOINLINE void tn_free_set_insert_slow(struct tn_free_set *set, struct tn_block *block)
{
    if (tn_bin_can_hold(block->size, block->address) ? !bins_insert(set, block)
                                                     : !far_insert(set, block)) {
        linked_insert(set, block);
    }
}

TN_NOINLINE struct tn_block *tn_free_set_find_slow(const struct tn_free_set *set, uint64_t size)
{
    return set_from(set, size, 0);
}

struct tn_block *tn_free_set_next(const struct tn_free_set *set, const struct tn_block *block)
{
    return set_from(set, block->size, block->address + TN_MIN_BLOCK_SIZE);
}

struct tn_block *tn_free_set_prev(const struct tn_free_set *set, const struct tn_block *block)
{
    return higher(bins_before(set, block->size, block->address),
                  outside_before(set, block->size, block->address));
}

struct tn_block *tn_free_set_first(const struct tn_free_set *set)
{
    return set_from(set, TN_MIN_BLOCK_SIZE, 0);
}

struct tn_block *tn_free_set_last(const struct tn_free_set *set)
{
    return higher(bins_before(set, UINT64_MAX, 0), outside_before(set, UINT64_MAX, UINT64_MAX));
}

uint64_t tn_free_set_outside(const struct tn_free_set *set)
{
    return set->far.count + tn_linked_count(&set->linked);
}

uint64_t tn_free_set_count(const struct tn_free_set *set)
{
    uint64_t count = tn_free_set_outside(set);

    for (unsigned chunk = 0; chunk < TN_CHUNKS; chunk++) {
        for (uint64_t bits = set->bin_bits[chunk]; bits != 0; bits &= bits - 1) {
            count += tn_bin_count(&set->chunks[chunk][tn_lowest_bit(bits)]);
        }
    }
    return count;
}

bool tn_free_set_has(const struct tn_free_set *set, const struct tn_block *block)
{
    if (block->slot == TN_SLOT_LINKED) {
        return tn_linked_has(&set->linked, block);
    }
    if (!tn_bin_can_hold(block->size, block->address)) {
        return block->slot == TN_SLOT_FAR && list_has(&set->far, block);
    }
    const unsigned class = tn_free_set_class(block->size);

    return set->chunk_bits >> class / TN_CHUNK_BINS & 1 && tn_free_set_has_class(set, class) &&
           tn_bin_has(tn_free_set_bin(set, class), block);
}

/* ---- unmapped ranges ---- */

bool tn_free_set_reserve_unmapped(struct tn_free_set *set, uint32_t more)
{
    return list_reserve(&set->unmapped, more);
}

void tn_free_set_insert_unmapped(struct tn_free_set *set, struct tn_block *block)
{
    list_insert(&set->unmapped, block);
}

void tn_free_set_remove_unmapped(struct tn_free_set *set, const struct tn_block *block)
{
    list_remove(&set->unmapped, block);
}

bool tn_free_set_has_unmapped(const struct tn_free_set *set, const struct tn_block *block)
{
    return list_has(&set->unmapped, block);
}

struct tn_block *tn_free_set_find_unmapped(const struct tn_free_set *set, uint64_t address)
{
    const uint32_t behind = list_index(&set->unmapped, 0, address + 1);
    struct tn_block *block = behind > 0 ? set->unmapped.blocks[behind - 1] : NULL;

    return block && address - block->address < block->size ? block : NULL;
}

/* ---- host memory ---- */

static void chunk_trim(struct tn_bin *chunk, struct tn_leaf_store *leaves)
{
    for (unsigned i = 0; i < TN_CHUNK_BINS; i++) {
        if (!chunk[i].first) {
            tn_bin_fini(&chunk[i], leaves);
        }
    }
}

void tn_free_set_trim(struct tn_free_set *set)
{
    for (unsigned chunk = 0; chunk < TN_CHUNKS; chunk++) {
        if (set->bin_bits[chunk] == 0) {
            chunk_destroy(set->chunks[chunk], &set->leaves);
            set->chunks[chunk] = NULL;
        } else {
            chunk_trim(set->chunks[chunk], &set->leaves);
        }
    }
    tn_leaf_store_trim(&set->leaves);
}

size_t tn_free_set_memory(const struct tn_free_set *set)
{
    size_t bytes = sizeof *set +
                   (set->unmapped.capacity + set->far.capacity) * sizeof(struct tn_block *) +
                   tn_leaf_store_memory(&set->leaves);

    for (unsigned chunk = 0; chunk < TN_CHUNKS; chunk++) {
        bytes += set->chunks[chunk] ? chunk_bytes : 0;
        for (unsigned i = 0; set->chunks[chunk] && i < TN_CHUNK_BINS; i++) {
            bytes += tn_bin_memory(&set->chunks[chunk][i]);
        }
    }
    return bytes;
}
