/* SPDX-License-Identifier: MIT */
#include "alloc/pool/free_set.h"

#include "base/assertion.h"
#include "base/bits.h"
#include "base/host_mem.h"

#include <string.h>

enum {
    CHUNK_LOG2 = 6,
    NO_CLASS = -1
};

static const size_t chunk_bytes = TN_CHUNK_BINS * sizeof(struct tn_bin);

static_assert(TN_CHUNK_BINS == 1 << CHUNK_LOG2, "a class is the first seven bits of a size");
static_assert(TN_CHUNKS < 64, "one bit a chunk");

/* Class of a size (> 0); classes never decrease as sizes grow. */
static inline unsigned class_of(uint64_t size)
{
    const uint64_t units = size / TN_MIN_BLOCK_SIZE;
    const unsigned dropped = tn_log2_floor(units | TN_CHUNK_BINS) - CHUNK_LOG2; /* low bits */

    return dropped * TN_CHUNK_BINS + (unsigned)(units >> dropped);
}

static struct tn_bin *set_bin(const struct tn_free_set *set, unsigned class)
{
    return &set->chunks[class / TN_CHUNK_BINS][class % TN_CHUNK_BINS];
}

/* First class at or after `class` whose bin is not empty, or NO_CLASS. */
static inline int set_next_class(const struct tn_free_set *set, unsigned class)
{
    const unsigned chunk = class / TN_CHUNK_BINS;

    if (chunk >= TN_CHUNKS) {
        return NO_CLASS;
    }
    const uint64_t bits = set->bin_bits[chunk] & ~(uint64_t)0 << class % TN_CHUNK_BINS;

    if (bits) {
        return (int)(chunk * TN_CHUNK_BINS + tn_lowest_bit(bits));
    }
    const uint64_t above = set->chunk_bits & ~(uint64_t)1 << chunk;

    if (!above) {
        return NO_CLASS;
    }
    const unsigned next = tn_lowest_bit(above);

    return (int)(next * TN_CHUNK_BINS + tn_lowest_bit(set->bin_bits[next]));
}

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

static void chunk_fini(struct tn_bin *chunk)
{
    for (unsigned i = 0; chunk && i < TN_CHUNK_BINS; i++) {
        tn_bin_fini(&chunk[i]);
    }
    tn_host_free(chunk, chunk_bytes);
}

struct tn_free_set *tn_free_set_create(struct tn_pool *pool, tarn_stream stream)
{
    struct tn_free_set *set = tn_host_alloc_zero(sizeof *set);

    if (set) {
        set->pool = pool;
        set->stream = stream;
        set->recent.holes = TN_RECENT_ALL;
    }
    return set;
}

void tn_free_set_destroy(struct tn_free_set *set)
{
    if (!set) {
        return;
    }
    for (unsigned chunk = 0; chunk < TN_CHUNKS; chunk++) {
        chunk_fini(set->chunks[chunk]);
    }
    tn_host_free(set->unmapped, set->unmapped_capacity * sizeof(struct tn_block *));
    tn_host_free(set, sizeof *set);
}

/* ---- bins ---- */

static inline bool bins_insert(struct tn_free_set *set, struct tn_block *block)
{
    const unsigned class = class_of(block->size);
    const unsigned chunk = class / TN_CHUNK_BINS;

    if (tn_unlikely(!set->chunks[chunk])) {
        set->chunks[chunk] = tn_host_alloc_zero(chunk_bytes);
        if (!set->chunks[chunk]) {
            return false;
        }
    }
    if (!tn_bin_insert(set_bin(set, class), block)) {
        return false;
    }
    set->bin_bits[chunk] |= (uint64_t)1 << (class % TN_CHUNK_BINS);
    set->chunk_bits |= (uint64_t)1 << chunk;
    return true;
}

static inline void bins_remove(struct tn_free_set *set, const struct tn_block *block)
{
    const unsigned class = class_of(block->size);
    const unsigned chunk = class / TN_CHUNK_BINS;
    struct tn_bin *bin = set_bin(set, class);

    tn_bin_remove(bin, block);
    if (bin->count == 0) {
        set->bin_bits[chunk] &= ~((uint64_t)1 << (class % TN_CHUNK_BINS));
        if (set->bin_bits[chunk] == 0) {
            set->chunk_bits &= ~((uint64_t)1 << chunk);
        }
    }
}

/* Smallest block of the classes from `class` on. */
static struct tn_block *bins_min_from(const struct tn_free_set *set, unsigned class)
{
    const int found = set_next_class(set, class);

    return found < 0 ? NULL : tn_bin_min(set_bin(set, (unsigned)found));
}

/* First block at or after (size, address). */
static struct tn_block *bins_from(const struct tn_free_set *set, uint64_t size, uint64_t address)
{
    const unsigned own = class_of(size);
    struct tn_block *found = set->chunks[own / TN_CHUNK_BINS]
                                 ? tn_bin_find_from(set_bin(set, own), size, address)
                                 : NULL;

    return found ? found : bins_min_from(set, own + 1);
}

/* Last block before (size, address). */
static struct tn_block *bins_before(const struct tn_free_set *set, uint64_t size, uint64_t address)
{
    const unsigned own = class_of(size);
    struct tn_block *found = set->chunks[own / TN_CHUNK_BINS]
                                 ? tn_bin_find_before(set_bin(set, own), size, address)
                                 : NULL;

    if (found) {
        return found;
    }
    const int class = set_prev_class(set, (int)own - 1);

    return class < 0 ? NULL : tn_bin_max(set_bin(set, (unsigned)class));
}

/* ---- recently freed blocks ---- */

/* Puts a recently freed block into its bin. */
static bool recent_evict(struct tn_free_set *set, struct tn_block *block)
{
    if (!bins_insert(set, block)) {
        return false;
    }
    tn_recent_remove(&set->recent, block);
    set->recent.reused--;
    return true;
}

/* Puts all of them into their bins; false when host memory is missing for one. */
static bool recent_evict_all(struct tn_free_set *set)
{
    for (unsigned i = 0; i < TN_RECENT; i++) {
        if (set->recent.keys[i] != 0 && !recent_evict(set, set->recent.blocks[i])) {
            return false;
        }
    }
    set->recent.holes = 0;
    return true;
}

/* Backs off if keeping blocks has not paid; not while they cannot be evicted: then it looks again
 * later. */
static void recent_judge(struct tn_free_set *set)
{
    struct tn_recently_freed *recent = &set->recent;
    const bool pays = recent->reused >= recent->evicted || !TN_FAST_HAS(TN_PART_BACKOFF);

    if (pays || recent_evict_all(set)) {
        tn_backoff_update(&recent->backoff, pays);
    }
    recent->evicted = 0;
    recent->reused = 0;
}

/* True while blocks go to their bins at once; one less. */
static bool recent_backs_off(struct tn_recently_freed *recent)
{
    if (tn_likely(recent->backoff.left == 0)) {
        return false;
    }
    recent->backoff.left--;
    if (recent->backoff.left == 0) {
        recent->holes = TN_RECENT_ALL;
    }
    return true;
}

/* Keeps a block that can be kept; there is no hole. */
static bool recent_replace(struct tn_free_set *set, struct tn_block *block)
{
    if (!recent_evict(set, tn_recent_next_evicted(&set->recent))) {
        return false;
    }
    set->recent.next++;
    tn_recent_insert(&set->recent, block);
    if (tn_unlikely(++set->recent.evicted == TN_RECENT_TRIES)) {
        recent_judge(set);
    }
    return true;
}

/* ---- both ---- */

bool tn_free_set_insert_slow(struct tn_free_set *set, struct tn_block *block)
{
    const bool to_bin = recent_backs_off(&set->recent) || !tn_recent_can_be(block->size);

    if (!(to_bin ? bins_insert(set, block) : recent_replace(set, block))) {
        return false;
    }
    set->count++;
    return true;
}

void tn_free_set_remove_from_bin(struct tn_free_set *set, const struct tn_block *block)
{
    set->count--;
    bins_remove(set, block);
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

/* Best fit in the bins, from the first class on that has a block. Its smallest one will do, unless
 * the class is that of the size, and has smaller ones. */
static inline struct tn_block *bins_find(const struct tn_free_set *set, unsigned class,
                                         uint64_t size)
{
    const struct tn_bin_entry *least = tn_bin_min_entry(set_bin(set, class));

    return tn_likely(least->size >= size) ? least->block : bins_from(set, size, 0);
}

struct tn_block *tn_free_set_find(const struct tn_free_set *set, uint64_t size)
{
    struct tn_block *recent = tn_recent_find(&set->recent, size);
    const int class = set_next_class(set, class_of(size));

    tn_assert(size % TN_MIN_BLOCK_SIZE == 0 && size > 0);
    if (class < 0 || (recent && class_of(recent->size) < (unsigned)class)) {
        return recent;
    }
    return lower(recent, bins_find(set, (unsigned)class, size));
}

struct tn_block *tn_free_set_next(const struct tn_free_set *set, const struct tn_block *block)
{
    const uint64_t address = block->address + TN_MIN_BLOCK_SIZE;

    return lower(tn_recent_from(&set->recent, block->size, address),
                 bins_from(set, block->size, address));
}

struct tn_block *tn_free_set_prev(const struct tn_free_set *set, const struct tn_block *block)
{
    return higher(tn_recent_before(&set->recent, block->size, block->address),
                  bins_before(set, block->size, block->address));
}

struct tn_block *tn_free_set_first(const struct tn_free_set *set)
{
    return lower(tn_recent_find(&set->recent, TN_MIN_BLOCK_SIZE), bins_min_from(set, 0));
}

struct tn_block *tn_free_set_last(const struct tn_free_set *set)
{
    const int class = set_prev_class(set, TN_CHUNKS * TN_CHUNK_BINS - 1);

    return higher(tn_recent_before(&set->recent, UINT64_MAX, 0),
                  class < 0 ? NULL : tn_bin_max(set_bin(set, (unsigned)class)));
}

bool tn_free_set_has(const struct tn_free_set *set, const struct tn_block *block)
{
    const unsigned class = class_of(block->size);

    if (tn_block_is_recent(block)) {
        return tn_recent_has(&set->recent, block);
    }
    return block->slot == TN_SLOT_BIN && set->chunks[class / TN_CHUNK_BINS] &&
           tn_bin_find_from(set_bin(set, class), block->size, block->address) == block;
}

/* Index of the first unmapped range at or above the address. */
static uint32_t unmapped_index(const struct tn_free_set *set, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = set->unmapped_count;

    while (low < high) {
        const uint32_t middle = (low + high) / 2;

        if (set->unmapped[middle]->address < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool tn_free_set_reserve_unmapped(struct tn_free_set *set, uint32_t more)
{
    if (set->unmapped_count + more <= set->unmapped_capacity) {
        return true;
    }
    const uint32_t wanted = (set->unmapped_count + more) * 2;
    struct tn_block **moved =
        tn_host_resize(set->unmapped, set->unmapped_capacity * sizeof(struct tn_block *),
                       wanted * sizeof(struct tn_block *));

    if (!moved) {
        return false;
    }
    set->unmapped = moved;
    set->unmapped_capacity = wanted;
    return true;
}

void tn_free_set_insert_unmapped(struct tn_free_set *set, struct tn_block *block)
{
    const uint32_t at = unmapped_index(set, block->address);

    tn_assert(set->unmapped_count < set->unmapped_capacity);
    memmove(&set->unmapped[at + 1], &set->unmapped[at],
            (set->unmapped_count - at) * sizeof(struct tn_block *));
    set->unmapped[at] = block;
    set->unmapped_count++;
}

void tn_free_set_remove_unmapped(struct tn_free_set *set, const struct tn_block *block)
{
    const uint32_t at = unmapped_index(set, block->address);

    tn_assert(at < set->unmapped_count && set->unmapped[at] == block);
    set->unmapped_count--;
    memmove(&set->unmapped[at], &set->unmapped[at + 1],
            (set->unmapped_count - at) * sizeof(struct tn_block *));
}

bool tn_free_set_has_unmapped(const struct tn_free_set *set, const struct tn_block *block)
{
    const uint32_t at = unmapped_index(set, block->address);

    return at < set->unmapped_count && set->unmapped[at] == block;
}

static void chunk_trim(struct tn_bin *chunk)
{
    for (unsigned i = 0; chunk && i < TN_CHUNK_BINS; i++) {
        if (chunk[i].count == 0) {
            tn_bin_fini(&chunk[i]);
        }
    }
}

void tn_free_set_trim(struct tn_free_set *set)
{
    for (unsigned chunk = 0; chunk < TN_CHUNKS; chunk++) {
        if (set->bin_bits[chunk] == 0) {
            chunk_fini(set->chunks[chunk]);
            set->chunks[chunk] = NULL;
        } else {
            chunk_trim(set->chunks[chunk]);
        }
    }
}

size_t tn_free_set_memory(const struct tn_free_set *set)
{
    size_t bytes = sizeof *set + set->unmapped_capacity * sizeof(struct tn_block *);

    for (unsigned chunk = 0; chunk < TN_CHUNKS; chunk++) {
        bytes += set->chunks[chunk] ? chunk_bytes : 0;
        for (unsigned i = 0; set->chunks[chunk] && i < TN_CHUNK_BINS; i++) {
            bytes += tn_bin_memory(&set->chunks[chunk][i]);
        }
    }
    return bytes;
}
