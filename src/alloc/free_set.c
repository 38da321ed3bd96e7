/* SPDX-License-Identifier: MIT */
#include "alloc/free_set.h"

#include "base/assertion.h"
#include "base/bits.h"
#include "base/host_mem.h"

#include <string.h>

#define TN_UNIT ((uint64_t)1 << UNIT_SHIFT)

enum {
    UNIT_SHIFT = 9,
    EXACT_LOG2 = 12,
    POWER_LOG2 = 5,
    NO_CLASS = -1
};

static const size_t chunk_bytes = TN_CHUNK_BINS * sizeof(struct tn_bin);

static_assert(TN_EXACT_CLASSES == 1 << EXACT_LOG2, "classes of one size cover 12 bits of units");
static_assert(TN_CLASSES_PER_POWER == 1 << POWER_LOG2, "32 classes a power of two");
static_assert(TN_CHUNKS <= TN_CHUNK_WORDS * 64, "one bit a chunk");

/* Class of a size; classes never decrease as sizes grow. */
static unsigned class_of(uint64_t size)
{
    const uint64_t units = size >> UNIT_SHIFT;

    if (units < TN_EXACT_CLASSES) {
        return (unsigned)units;
    }
    const unsigned log2 = tn_log2_floor(units);
    const unsigned step = (unsigned)(units >> (log2 - POWER_LOG2)) & (TN_CLASSES_PER_POWER - 1);
    const unsigned class = TN_EXACT_CLASSES + (log2 - EXACT_LOG2) * TN_CLASSES_PER_POWER + step;
    const unsigned last = TN_CHUNKS * TN_CHUNK_BINS - 1;

    return class < last ? class : last;
}

static struct tn_bin *set_bin(const struct tn_free_set *set, unsigned class)
{
    return &set->chunks[class / TN_CHUNK_BINS][class % TN_CHUNK_BINS];
}

/* First chunk at or after `chunk` with a bin that is not empty, or NO_CLASS. */
static int set_next_chunk(const struct tn_free_set *set, unsigned chunk)
{
    for (unsigned word = chunk / 64; word < TN_CHUNK_WORDS; word++) {
        const uint64_t mask = word == chunk / 64 ? ~(uint64_t)0 << (chunk % 64) : ~(uint64_t)0;
        const uint64_t bits = set->chunk_bits[word] & mask;

        if (bits) {
            return (int)(word * 64 + tn_lowest_bit(bits));
        }
    }
    return NO_CLASS;
}

/* First class at or after `class` whose bin is not empty, or NO_CLASS. */
static int set_next_class(const struct tn_free_set *set, unsigned class)
{
    const unsigned chunk = class / TN_CHUNK_BINS;

    if (chunk >= TN_CHUNKS) {
        return NO_CLASS;
    }
    const uint64_t bits = set->bin_bits[chunk] & (~(uint64_t)0 << (class % TN_CHUNK_BINS));

    if (bits) {
        return (int)(chunk * TN_CHUNK_BINS + tn_lowest_bit(bits));
    }
    const int next = chunk + 1 < TN_CHUNKS ? set_next_chunk(set, chunk + 1) : NO_CLASS;

    return next < 0 ? NO_CLASS : next * TN_CHUNK_BINS + (int)tn_lowest_bit(set->bin_bits[next]);
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

struct tn_free_set *tn_free_set_create(struct tn_pool *pool, tarn_stream stream)
{
    struct tn_free_set *set = tn_host_alloc_zero(sizeof *set);

    if (set) {
        set->pool = pool;
        set->stream = stream;
    }
    return set;
}

void tn_free_set_destroy(struct tn_free_set *set)
{
    if (!set) {
        return;
    }
    for (unsigned chunk = 0; chunk < TN_CHUNKS; chunk++) {
        for (unsigned i = 0; set->chunks[chunk] && i < TN_CHUNK_BINS; i++) {
            tn_bin_fini(&set->chunks[chunk][i]);
        }
        tn_host_free(set->chunks[chunk], chunk_bytes);
    }
    tn_host_free(set->unmapped, set->unmapped_capacity * sizeof(struct tn_block *));
    tn_host_free(set, sizeof *set);
}

bool tn_free_set_insert(struct tn_free_set *set, struct tn_block *block)
{
    const unsigned class = class_of(block->size);
    const unsigned chunk = class / TN_CHUNK_BINS;

    tn_assert(block->size % TN_UNIT == 0 && block->size > 0);
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
    set->chunk_bits[chunk / 64] |= (uint64_t)1 << (chunk % 64);
    set->count++;
    return true;
}

void tn_free_set_remove(struct tn_free_set *set, const struct tn_block *block)
{
    const unsigned class = class_of(block->size);
    const unsigned chunk = class / TN_CHUNK_BINS;
    struct tn_bin *bin = set_bin(set, class);

    tn_bin_remove(bin, block);
    set->count--;
    if (bin->count == 0) {
        set->bin_bits[chunk] &= ~((uint64_t)1 << (class % TN_CHUNK_BINS));
        if (set->bin_bits[chunk] == 0) {
            set->chunk_bits[chunk / 64] &= ~((uint64_t)1 << (chunk % 64));
        }
    }
}

struct tn_block *tn_free_set_find(const struct tn_free_set *set, uint64_t size)
{
    const unsigned wanted = class_of(size);

    tn_assert(size % TN_UNIT == 0 && size > 0);
    int class = set_next_class(set, wanted);

    if (class < 0) {
        return NULL;
    }
    if ((unsigned)class != wanted || wanted < TN_EXACT_CLASSES) {
        return tn_bin_min(set_bin(set, (unsigned)class));
    }
    struct tn_block *found = tn_bin_find_from(set_bin(set, wanted), size, 0);

    if (found) {
        return found;
    }
    class = set_next_class(set, wanted + 1);
    return class < 0 ? NULL : tn_bin_min(set_bin(set, (unsigned)class));
}

struct tn_block *tn_free_set_next(const struct tn_free_set *set, const struct tn_block *block)
{
    const unsigned own = class_of(block->size);
    struct tn_block *found = tn_bin_find_from(set_bin(set, own), block->size, block->address + 1);

    if (found) {
        return found;
    }
    const int class = set_next_class(set, own + 1);

    return class < 0 ? NULL : tn_bin_min(set_bin(set, (unsigned)class));
}

struct tn_block *tn_free_set_prev(const struct tn_free_set *set, const struct tn_block *block)
{
    const unsigned own = class_of(block->size);
    struct tn_block *found = tn_bin_find_before(set_bin(set, own), block->size, block->address);

    if (found) {
        return found;
    }
    const int class = set_prev_class(set, (int)own - 1);

    return class < 0 ? NULL : tn_bin_max(set_bin(set, (unsigned)class));
}

struct tn_block *tn_free_set_first(const struct tn_free_set *set)
{
    const int class = set_next_class(set, 0);

    return class < 0 ? NULL : tn_bin_min(set_bin(set, (unsigned)class));
}

struct tn_block *tn_free_set_last(const struct tn_free_set *set)
{
    const int class = set_prev_class(set, TN_CHUNKS * TN_CHUNK_BINS - 1);

    return class < 0 ? NULL : tn_bin_max(set_bin(set, (unsigned)class));
}

bool tn_free_set_has(const struct tn_free_set *set, const struct tn_block *block)
{
    const unsigned class = class_of(block->size);

    return set->chunks[class / TN_CHUNK_BINS] &&
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

void tn_free_set_trim(struct tn_free_set *set)
{
    for (unsigned chunk = 0; chunk < TN_CHUNKS; chunk++) {
        if (set->bin_bits[chunk] == 0) {
            tn_host_free(set->chunks[chunk], chunk_bytes);
            set->chunks[chunk] = NULL;
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
