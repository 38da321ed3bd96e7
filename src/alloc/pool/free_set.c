/* SPDX-License-Identifier: MIT */
#include "alloc/pool/free_set.h"

#include "alloc/pool/segment_map.h"
#include "base/assertion.h"
#include "base/bits.h"
#include "base/host_mem.h"

#include <string.h>

static const size_t chunk_bytes = TN_CHUNK_BINS * sizeof(struct tn_bin);

static_assert(TN_CHUNK_BINS == 1 << TN_CLASSES_LOG2, "a class is the first seven bits of a size");
static_assert(TN_CHUNKS < 64, "one bit per chunk");
static_assert(TN_SEGMENT_MAP_END == TN_BIN_PLACE_END, "segments are packed before keys end");

/* Last class at or before `class` whose bin is not empty, -1 if there is none. Rare paths only. */
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
    return -1;
}

static struct tn_bin *chunk_create(void)
{
    return tn_host_alloc_zero(chunk_bytes); /* aligned to cache lines, as bins are */
}

static void chunk_destroy(struct tn_bin *chunk, struct tn_leaf_store *leaves)
{
    for (unsigned i = 0; chunk && i < TN_CHUNK_BINS; i++) {
        if (tn_bin_has_leaf(&chunk[i])) {
            tn_bin_fini(&chunk[i], leaves);
        }
    }
    tn_host_free(chunk, chunk_bytes);
}

/* ---- sorted lists ---- */

/* The block's place by age, or its address if the order is none of ages. */
static inline uint64_t place_of(const struct tn_segment_map *by_age, const struct tn_block *block)
{
    return tn_likely(!by_age) ? block->address : tn_segment_map_place(by_age, block->address);
}

TN_NOINLINE uint64_t tn_free_set_place_by_age(const struct tn_free_set *set,
                                              const struct tn_block *block)
{
    return tn_segment_map_place(set->by_age, block->address);
}

/* The order of a list: (size, place), or just addresses if `is_by_size` is false. */
struct list_order {
    const struct tn_segment_map *by_age;
    bool is_by_size;
};

static const struct list_order by_address = {.is_by_size = false};

/* That of the set, which lists of its free blocks have. */
static inline struct list_order set_order(const struct tn_free_set *set)
{
    return (struct list_order){.by_age = set->by_age, .is_by_size = true};
}

/* Whether the block comes before (size, place). */
static bool order_is_before(struct list_order order, const struct tn_block *block, uint64_t size,
                            uint64_t place)
{
    return order.is_by_size && block->size != size ? block->size < size
                                                   : place_of(order.by_age, block) < place;
}

/* Index of the first block at or after (size, place). */
static uint32_t list_index(const struct tn_block_list *list, struct list_order order, uint64_t size,
                           uint64_t place)
{
    uint32_t low = 0;
    uint32_t high = list->count;

    while (low < high) {
        const uint32_t middle = (low + high) / 2;

        if (order_is_before(order, list->blocks[middle], size, place)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static uint32_t list_index_of(const struct tn_block_list *list, struct list_order order,
                              const struct tn_block *block)
{
    return list_index(list, order, block->size, place_of(order.by_age, block));
}

static bool list_has(const struct tn_block_list *list, struct list_order order,
                     const struct tn_block *block)
{
    const uint32_t at = list_index_of(list, order, block);

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

static void list_insert(struct tn_block_list *list, struct list_order order, struct tn_block *block)
{
    const uint32_t at = list_index_of(list, order, block);

    tn_assert(list->count < list->capacity);
    memmove(&list->blocks[at + 1], &list->blocks[at],
            (list->count - at) * sizeof(struct tn_block *));
    list->blocks[at] = block;
    list->count++;
}

static void list_remove(struct tn_block_list *list, struct list_order order,
                        const struct tn_block *block)
{
    const uint32_t at = list_index_of(list, order, block);

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

struct tn_free_set *tn_free_set_create(struct tn_pool *pool, tarn_stream stream,
                                       const struct tn_segment_map *by_age)
{
    struct tn_free_set *set = tn_host_alloc_zero(sizeof *set);

    if (set) {
        set->pool = pool;
        set->stream = stream;
        set->by_age = by_age;
    }
    return set;
}

/* The memory of the bins and of the list beside them. */
static void set_fini_blocks(struct tn_free_set *set)
{
    for (unsigned chunk = 0; chunk < TN_CHUNKS; chunk++) {
        chunk_destroy(set->chunks[chunk], &set->leaves);
    }
    tn_leaf_store_trim(&set->leaves);
    list_fini(&set->far);
}

void tn_free_set_destroy(struct tn_free_set *set)
{
    set_fini_blocks(set);
    list_fini(&set->unmapped);
    tn_host_free(set, sizeof *set);
}

/* ---- blocks that bins cannot hold ---- */

static bool far_insert(struct tn_free_set *set, struct tn_block *block)
{
    if (!list_reserve(&set->far, 1)) {
        return false;
    }
    list_insert(&set->far, set_order(set), block);
    block->slot = TN_SLOT_FAR;
    set->outside++;
    return true;
}

/* First of them at or after (size, place). */
static struct tn_block *far_from(const struct tn_free_set *set, uint64_t size, uint64_t place)
{
    const uint32_t at = list_index(&set->far, set_order(set), size, place);

    return at < set->far.count ? set->far.blocks[at] : NULL;
}

/* Last of them before (size, place). */
static struct tn_block *far_before(const struct tn_free_set *set, uint64_t size, uint64_t place)
{
    const uint32_t at = list_index(&set->far, set_order(set), size, place);

    return at > 0 ? set->far.blocks[at - 1] : NULL;
}

/* ---- bins ---- */

/* False when host memory is missing. */
static bool bins_insert(struct tn_free_set *set, struct tn_block *block, uint64_t place)
{
    const unsigned class = tn_free_set_class(block->size);
    const unsigned chunk = class / TN_CHUNK_BINS;

    if (!set->chunks[chunk]) {
        set->chunks[chunk] = chunk_create();
    }
    if (!set->chunks[chunk] ||
        !tn_bin_insert_slow(tn_free_set_bin(set, class), &set->leaves, block, place)) {
        return false;
    }
    tn_free_set_mark(set, class);
    return true;
}

/* Where (size, place) would be among blocks that bins can hold. */
static inline void bins_clamp(uint64_t *size, uint64_t *place)
{
    if (tn_unlikely(*place >= TN_BIN_PLACE_END)) {
        *size += TN_MIN_BLOCK_SIZE;
        *place = 0;
    }
}

/* First block at or after (size, place). */
static inline struct tn_block *bins_from(const struct tn_free_set *set, uint64_t size,
                                         uint64_t place)
{
    bins_clamp(&size, &place);
    if (tn_unlikely(size >= TN_BIN_SIZE_END)) {
        return NULL;
    }
    const unsigned class = tn_free_set_class(size);
    struct tn_block *found = tn_free_set_has_class(set, class)
                                 ? tn_bin_find_from(tn_free_set_bin(set, class), size, place)
                                 : NULL;

    if (found || class + 1 == TN_NO_CLASS) {
        return found;
    }
    const unsigned next = tn_free_set_next_class(set, class + 1);

    return next == TN_NO_CLASS ? NULL : tn_free_set_bin(set, next)->first;
}

/* Last block of the classes up to `class`. Rare paths only. */
static struct tn_block *bins_max_to(const struct tn_free_set *set, int class)
{
    const int found = set_prev_class(set, class);

    return found < 0 ? NULL : tn_bin_max(tn_free_set_bin(set, (unsigned)found));
}

/* Last block before (size, place). */
static struct tn_block *bins_before(const struct tn_free_set *set, uint64_t size, uint64_t place)
{
    bins_clamp(&size, &place);
    if (size >= TN_BIN_SIZE_END) {
        return bins_max_to(set, TN_NO_CLASS - 1);
    }
    const unsigned own = tn_free_set_class(size);
    struct tn_block *found = tn_free_set_has_class(set, own)
                                 ? tn_bin_find_before(tn_free_set_bin(set, own), size, place)
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
        list_remove(&set->far, set_order(set), block);
    } else {
        tn_linked_remove(&set->linked, block, *set->find_count);
    }
    block->slot = 0;
    set->outside--;
}

static bool set_is_before(const struct tn_free_set *set, const struct tn_block *block,
                          const struct tn_block *other)
{
    return order_is_before(set_order(set), block, other->size, tn_free_set_place(set, other));
}

static struct tn_block *lower(const struct tn_free_set *set, struct tn_block *block,
                              struct tn_block *other)
{
    return !other || (block && set_is_before(set, block, other)) ? block : other;
}

static struct tn_block *higher(const struct tn_free_set *set, struct tn_block *block,
                               struct tn_block *other)
{
    return !other || (block && set_is_before(set, other, block)) ? block : other;
}

/* First linked block at or after (size, place). */
static struct tn_block *linked_from(const struct tn_free_set *set, uint64_t size, uint64_t place)
{
    struct tn_block *found = NULL;

    for (struct tn_block *b = set->linked.first; b; b = tn_linked_next(b)) {
        if (!order_is_before(set_order(set), b, size, place)) {
            found = lower(set, b, found);
        }
    }
    return found;
}

/* Last one before (size, place). */
static struct tn_block *linked_before(const struct tn_free_set *set, uint64_t size, uint64_t place)
{
    struct tn_block *found = NULL;

    for (struct tn_block *b = set->linked.first; b; b = tn_linked_next(b)) {
        if (order_is_before(set_order(set), b, size, place)) {
            found = higher(set, b, found);
        }
    }
    return found;
}

/* First block outside of bins at or after (size, place). */
static struct tn_block *outside_from(const struct tn_free_set *set, uint64_t size, uint64_t place)
{
    return lower(set, far_from(set, size, place), linked_from(set, size, place));
}

/* Last one before (size, place). */
static struct tn_block *outside_before(const struct tn_free_set *set, uint64_t size, uint64_t place)
{
    return higher(set, far_before(set, size, place), linked_before(set, size, place));
}

/* First block at or after (size, place). */
static inline struct tn_block *set_from(const struct tn_free_set *set, uint64_t size,
                                        uint64_t place)
{
    struct tn_block *block = bins_from(set, size, place);

    return tn_likely(set->outside == 0) ? block : lower(set, block, outside_from(set, size, place));
}

TN_NOINLINE void tn_free_set_insert_slow(struct tn_free_set *set, struct tn_block *block)
{
    const uint64_t place = tn_free_set_place(set, block);

    if (tn_bin_can_hold(block->size, place) ? !bins_insert(set, block, place)
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
    return set_from(set, block->size, tn_free_set_place(set, block) + TN_MIN_BLOCK_SIZE);
}

struct tn_block *tn_free_set_prev(const struct tn_free_set *set, const struct tn_block *block)
{
    const uint64_t at = tn_free_set_place(set, block);

    return higher(set, bins_before(set, block->size, at), outside_before(set, block->size, at));
}

struct tn_block *tn_free_set_first(const struct tn_free_set *set)
{
    return set_from(set, TN_MIN_BLOCK_SIZE, 0);
}

struct tn_block *tn_free_set_last(const struct tn_free_set *set)
{
    return higher(set, bins_before(set, UINT64_MAX, 0),
                  outside_before(set, UINT64_MAX, UINT64_MAX));
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
    if (block->slot == TN_SLOT_FAR) {
        return list_has(&set->far, set_order(set), block);
    }
    const uint64_t place = tn_free_set_place(set, block);

    if (!tn_bin_can_hold(block->size, place)) {
        return false;
    }
    const unsigned class = tn_free_set_class(block->size);

    return set->chunk_bits >> class / TN_CHUNK_BINS & 1 && tn_free_set_has_class(set, class) &&
           tn_bin_has(tn_free_set_bin(set, class), block, place);
}

/* ---- another order ---- */

void tn_free_set_reorder(struct tn_free_set *set, const struct tn_segment_map *by_age)
{
    struct tn_free_set old = *set;
    struct tn_block *block;

    set->by_age = by_age;
    set->chunk_bits = 0;
    memset(set->bin_bits, 0, sizeof set->bin_bits);
    memset(set->chunks, 0, sizeof set->chunks);
    set->leaves = (struct tn_leaf_store){0};
    set->far = (struct tn_block_list){0};
    set->linked.first = NULL;
    set->outside = 0;
    while ((block = tn_free_set_first(&old)) != NULL) {
        tn_free_set_remove(&old, block);
        tn_free_set_insert_slow(set, block);
    }
    set_fini_blocks(&old);
}

void tn_free_set_rekey(struct tn_free_set *set)
{
    for (unsigned chunk = 0; chunk < TN_CHUNKS; chunk++) {
        for (uint64_t bits = set->bin_bits[chunk]; bits != 0; bits &= bits - 1) {
            tn_bin_rekey(&set->chunks[chunk][tn_lowest_bit(bits)], set->by_age);
        }
    }
}

/* ---- unmapped ranges ---- */

bool tn_free_set_reserve_unmapped(struct tn_free_set *set, uint32_t more)
{
    return list_reserve(&set->unmapped, more);
}

void tn_free_set_insert_unmapped(struct tn_free_set *set, struct tn_block *block)
{
    list_insert(&set->unmapped, by_address, block);
}

void tn_free_set_remove_unmapped(struct tn_free_set *set, const struct tn_block *block)
{
    list_remove(&set->unmapped, by_address, block);
}

bool tn_free_set_has_unmapped(const struct tn_free_set *set, const struct tn_block *block)
{
    return list_has(&set->unmapped, by_address, block);
}

struct tn_block *tn_free_set_find_unmapped(const struct tn_free_set *set, uint64_t address)
{
    const uint32_t behind = list_index(&set->unmapped, by_address, 0, address + 1);
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
