/* SPDX-License-Identifier: MIT */
#include "alloc/pool/expandable.h"

#include "alloc/config/size_class.h"
#include "alloc/pool/heap.h"
#include "alloc/pool/segment.h"
#include "base/host_mem.h"
#include "base/os_process.h"

#include <string.h>

/* Pages created for one allocation and not yet mapped. */
struct new_pages {
    tn_page_handle *pages;
    uint64_t count;
    uint64_t capacity;
};

static uint64_t pages_up(uint64_t bytes, uint64_t page_size)
{
    return (bytes + page_size - 1) / page_size;
}

static uint64_t expandable_page_size(const struct tn_heap *heap, const struct tn_free_set *set)
{
    return set->pool->is_small ? TN_SMALL_BUFFER : heap->config.large_segment_size;
}

/* Bytes of a new range: 9/8 of the device's memory, so that some of it can be mapped further up
 * while unmapped holes lie below. */
static uint64_t expandable_range_size(const struct tn_heap *heap, const struct tn_free_set *set)
{
    const uint64_t page_size = expandable_page_size(heap, set);
    const uint64_t total = heap->device->total_memory;

    return pages_up(total + total / 8, page_size) * page_size;
}

/* A new range: one unmapped block, in the set's unmapped ranges. */
static enum tarn_status expandable_create(struct tn_heap *heap, struct tn_free_set *set,
                                          struct tn_block **block_out, struct tarn_error *error)
{
    const uint64_t page_size = expandable_page_size(heap, set);
    const uint64_t size = expandable_range_size(heap, set);
    struct tn_segment *segment = tn_host_alloc_zero(sizeof *segment);
    struct tn_expandable *expandable = tn_host_alloc_zero(sizeof *expandable);
    struct tn_block *block = tn_block_create(&heap->heads);
    enum tarn_status st = TARN_ERR_HOST_MEMORY;

    if (!segment || !expandable || !block || !tn_free_set_reserve_unmapped(set, 2)) {
        (void)tn_fail_memory(error);
        goto out;
    }
    st = heap->device->ops->va_reserve(heap->device, size, &segment->address);
    if (st) {
        (void)tn_heap_device_failed(heap, st, "reserving addresses", error);
        goto out;
    }
    expandable->page_size = page_size;
    segment->size = size;
    segment->expandable = expandable;
    segment->first = block;
    block->address = segment->address;
    block->size = size;
    block->set = set;
    block->expandable = true;
    tn_tree_insert(&heap->segments, &segment->node);
    tn_free_set_insert_unmapped(set, block);
    if (set->pool->owner) {
        set->pool->owner->segment_count++;
    }
    *block_out = block;
    return TARN_OK;
out:
    if (block) {
        tn_block_destroy(block);
    }
    tn_host_free(expandable, sizeof *expandable);
    tn_host_free(segment, sizeof *segment);
    return st;
}

static void expandable_free(struct tn_expandable *expandable)
{
    tn_host_free(expandable->pages, expandable->page_count * sizeof *expandable->pages);
    tn_host_free(expandable->descriptors,
                 expandable->descriptor_count * sizeof *expandable->descriptors);
    tn_host_free(expandable, sizeof *expandable);
}

/* Gives back a range in which nothing is mapped; `block` is all of it, in the unmapped ranges. */
static enum tarn_status expandable_drop(struct tn_heap *heap, struct tn_segment *segment,
                                        struct tn_block *block, struct tarn_error *error)
{
    struct tn_expandable *expandable = segment->expandable;
    const enum tarn_status st =
        heap->device->ops->va_release(heap->device, segment->address, segment->size);

    tn_assert(!block->mapped && block->size == segment->size && segment->first == block);
    if (st) {
        return tn_heap_device_failed(heap, st, "releasing addresses", error);
    }
    if (block->set->pool->owner) {
        block->set->pool->owner->segment_count--;
    }
    tn_free_set_remove_unmapped(block->set, block);
    tn_block_destroy(block);
    tn_tree_remove(&heap->segments, &segment->node);
    tn_heap_drop_stack(heap, segment->stack);
    expandable_free(expandable);
    tn_host_free(segment, sizeof *segment);
    return TARN_OK;
}

/* Whether contiguous idle blocks, mapped or not, give `size` bytes from `block` on. */
static bool block_has_room(const struct tn_block *block, uint64_t size)
{
    uint64_t bytes = 0;

    while (bytes < size && block && tn_block_is_idle(block)) {
        bytes += block->size;
        block = block->next;
    }
    return bytes >= size;
}

/* First place with room, by address: an unmapped range, or the free block just below it. A new
 * range when there is none; a request that would not fit into one is more than the device has. */
static enum tarn_status expandable_find(struct tn_heap *heap, struct tn_free_set *set,
                                        uint64_t size, struct tn_block **block_out,
                                        struct tarn_error *error)
{
    for (uint32_t i = 0; i < set->unmapped.count; i++) {
        struct tn_block *block = set->unmapped.blocks[i];

        if (block->prev && tn_block_is_idle(block->prev)) {
            block = block->prev;
        }
        if (block_has_room(block, size)) {
            *block_out = block;
            return TARN_OK;
        }
    }
    if (size > expandable_range_size(heap, set)) {
        return tn_fail(error, TARN_ERR_OUT_OF_MEMORY, "more than the device's memory");
    }
    return expandable_create(heap, set, block_out, error);
}

/* One unmapped block, or the front of one, that an allocation maps. */
struct piece {
    struct tn_block *block;
    uint64_t begin; /* pages of the segment */
    uint64_t end;
};

/* Walks the pieces that give `size` bytes from some block on. Start with *at = that block and *have
 * = 0; false when there is no further piece. Only the last piece can be less than its block. */
static bool piece_next(const struct tn_segment *segment, uint64_t size, struct tn_block **at,
                       uint64_t *have, struct piece *piece_out)
{
    const uint64_t page_size = segment->expandable->page_size;

    for (; *have < size && (*at)->mapped; *at = (*at)->next) {
        *have += (*at)->size;
    }
    if (*have >= size) {
        return false;
    }
    const uint64_t missing = size - *have;
    struct tn_block *block = *at;
    const uint64_t wanted = missing < block->size ? missing : block->size;

    piece_out->block = block;
    piece_out->begin = (block->address - segment->address) / page_size;
    piece_out->end = piece_out->begin + pages_up(wanted, page_size);
    *have += (piece_out->end - piece_out->begin) * page_size;
    *at = block->next;
    return true;
}

/* Pages in all pieces, and the end of the last one. */
static uint64_t count_pages(const struct tn_segment *segment, struct tn_block *block, uint64_t size,
                            uint64_t *end_out)
{
    struct piece piece;
    uint64_t have = 0;
    uint64_t pages = 0;

    *end_out = 0;
    while (piece_next(segment, size, &block, &have, &piece)) {
        pages += piece.end - piece.begin;
        *end_out = piece.end;
    }
    return pages;
}

static void new_pages_release(struct tn_heap *heap, struct new_pages *fresh)
{
    while (fresh->count > 0) {
        (void)heap->device->ops->page_release(heap->device, fresh->pages[--fresh->count]);
    }
    tn_host_free(fresh->pages, fresh->capacity * sizeof *fresh->pages);
    *fresh = (struct new_pages){0};
}

static enum tarn_status new_pages_create(struct tn_heap *heap, struct new_pages *fresh,
                                         uint64_t count, uint64_t page_size,
                                         struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    *fresh = (struct new_pages){.pages = tn_host_alloc(count * sizeof *fresh->pages)};
    fresh->capacity = fresh->pages ? count : 0;
    if (!fresh->pages && count > 0) {
        return tn_fail_memory(error);
    }
    while (st == TARN_OK && fresh->count < count) {
        st = heap->device->ops->page_create(heap->device, page_size, &fresh->pages[fresh->count]);
        fresh->count += st == TARN_OK;
    }
    if (st) {
        (void)tn_heap_device_failed(heap, st, "creating memory pages", error);
        new_pages_release(heap, fresh);
    }
    return st;
}

/* Room in `pages` for indices below `end`. */
static bool expandable_reserve(struct tn_expandable *expandable, uint64_t end)
{
    if (end <= expandable->page_count) {
        return true;
    }
    const uint64_t wanted = end > expandable->page_count * 2 ? end : expandable->page_count * 2;
    tn_page_handle *moved = tn_host_resize(
        expandable->pages, expandable->page_count * sizeof *moved, wanted * sizeof *moved);

    if (!moved) {
        return false;
    }
    memset(&moved[expandable->page_count], 0, (wanted - expandable->page_count) * sizeof *moved);
    expandable->pages = moved;
    expandable->page_count = wanted;
    return true;
}

/* Other processes can no longer fetch the page; those that did keep it. */
static void page_unshare(struct tn_expandable *expandable, uint64_t index)
{
    if (index < expandable->descriptor_count) {
        tn_os_descriptor_close(expandable->descriptors[index]);
        expandable->descriptors[index] = -1;
    }
}

/* Unmaps the page with that index; its handle goes to `page_out`. */
static enum tarn_status page_unmap(struct tn_heap *heap, const struct tn_segment *segment,
                                   uint64_t index, tn_page_handle *page_out)
{
    struct tn_expandable *expandable = segment->expandable;
    const enum tarn_status st = heap->device->ops->unmap(
        heap->device, segment->address + index * expandable->page_size, expandable->page_size);

    if (st == TARN_OK) {
        *page_out = expandable->pages[index];
        expandable->pages[index] = 0;
        page_unshare(expandable, index);
    }
    return st;
}

/* Maps one of the fresh pages at that index and gives the peers access. On failure nothing
 * changed. */
static enum tarn_status page_map(struct tn_heap *heap, const struct tn_segment *segment,
                                 uint64_t index, struct new_pages *fresh)
{
    struct tn_expandable *expandable = segment->expandable;
    const uint64_t address = segment->address + index * expandable->page_size;
    const tn_page_handle page = fresh->pages[fresh->count - 1];
    enum tarn_status st =
        heap->device->ops->map(heap->device, address, expandable->page_size, page);

    for (unsigned i = 0; st == TARN_OK && i < heap->peer_count; i++) {
        st = heap->device->ops->va_grant(heap->device, address, expandable->page_size,
                                         heap->peers[i]);
        if (st) {
            (void)heap->device->ops->unmap(heap->device, address, expandable->page_size);
        }
    }
    if (st == TARN_OK) {
        expandable->pages[index] = page;
        fresh->count--;
    }
    return st;
}

/* Maps the pages of all pieces from `block` on, or none of them. */
static enum tarn_status pieces_map(struct tn_heap *heap, const struct tn_segment *segment,
                                   struct tn_block *block, uint64_t size, struct new_pages *fresh,
                                   struct tarn_error *error)
{
    struct tn_block *at = block;
    uint64_t have = 0;
    uint64_t mapped = 0;
    struct piece piece;
    enum tarn_status st = TARN_OK;

    while (st == TARN_OK && piece_next(segment, size, &at, &have, &piece)) {
        for (uint64_t i = piece.begin; st == TARN_OK && i < piece.end; i++) {
            st = page_map(heap, segment, i, fresh);
            mapped += st == TARN_OK;
        }
    }
    if (st == TARN_OK) {
        return TARN_OK;
    }
    (void)tn_heap_device_failed(heap, st, "mapping memory", error);
    have = 0;
    while (mapped > 0 && piece_next(segment, size, &block, &have, &piece)) {
        for (uint64_t i = piece.begin; mapped > 0 && i < piece.end; i++, mapped--) {
            tn_page_handle page;

            if (page_unmap(heap, segment, i, &page) == TARN_OK) {
                fresh->pages[fresh->count++] = page;
            }
        }
    }
    return st;
}

static void count_map(struct tn_heap *heap, bool small, uint64_t size)
{
    heap->reserved += size;
    tn_counter_increase(&heap->shard.counters.reserved, tn_counter_pool(small), size);
    heap->shard.counters.totals.num_device_alloc++;
}

static void count_unmap(struct tn_heap *heap, bool small, uint64_t size)
{
    heap->reserved -= size;
    tn_counter_decrease(&heap->shard.counters.reserved, tn_counter_pool(small), size);
    heap->shard.counters.totals.num_device_free++;
}

/* The pages of a piece are mapped: its block becomes a free block, merged with its free neighbours.
 * Returns the node of the result. There must be a spare node. */
static struct tn_block *piece_adopt(struct tn_heap *heap, struct tn_segment *segment,
                                    const struct piece *piece, uint64_t stack)
{
    const uint64_t bytes = (piece->end - piece->begin) * segment->expandable->page_size;
    struct tn_block *block = piece->block;
    struct tn_free_set *set = block->set;
    const uint64_t address = block->address;
    uint32_t merged;
    uint64_t merged_bytes;

    tn_assert(!block->mapped && bytes <= block->size);
    tn_free_set_remove_unmapped(set, block);
    if (bytes < block->size) {
        struct tn_block *remainder = tn_shard_take_spare(&heap->shard);

        tn_block_split(block, bytes, remainder);
        remainder->requested_size = 0;
        tn_free_set_insert_unmapped(set, remainder);
    }
    block->mapped = true;
    block = tn_heap_coalesce(&heap->shard, block, &merged, &merged_bytes);
    tn_pool_insert(block);
    count_map(heap, set->pool->is_small, bytes);
    tn_heap_emit(heap, TARN_ACTION_SEGMENT_MAP, address, bytes, set->stream, set->pool, stack);
    if (!segment->stack && segment->address == block->address) {
        segment->stack = tn_heap_keep_stack(heap, stack);
    }
    return block;
}

/* Maps what `block` lacks and makes it one free block of at least `size` bytes. */
static enum tarn_status expandable_extend(struct tn_heap *heap, struct tn_segment *segment,
                                          struct tn_block *block, uint64_t size, uint64_t stack,
                                          struct new_pages *fresh, struct tn_block **block_out,
                                          struct tarn_error *error)
{
    const enum tarn_status st = pieces_map(heap, segment, block, size, fresh, error);

    if (st) {
        return st;
    }
    while (!block->mapped || block->size < size) {
        struct tn_block *at = block;
        uint64_t have = 0;
        struct piece piece;

        if (!piece_next(segment, size, &at, &have, &piece)) {
            break;
        }
        block = piece_adopt(heap, segment, &piece, stack);
    }
    *block_out = block;
    return TARN_OK;
}

enum tarn_status tn_expandable_alloc(struct tn_heap *heap, struct tn_free_set *set, uint64_t size,
                                     uint64_t stack, struct tn_block **block_out,
                                     struct tarn_error *error)
{
    struct new_pages fresh = {0};
    struct tn_block *block = NULL;
    uint64_t end;
    enum tarn_status st =
        tn_heap_reserve_spares(heap, &heap->shard, 2) ? TARN_OK : TARN_ERR_HOST_MEMORY;

    if (st || !tn_free_set_reserve_unmapped(set, 2)) {
        return tn_fail_memory(error);
    }
    st = expandable_find(heap, set, size, &block, error);
    if (st) {
        return st;
    }
    tn_assert(block);
    struct tn_segment *segment = tn_segment_find(heap, block->address);
    const uint64_t pages = count_pages(segment, block, size, &end);

    if (!expandable_reserve(segment->expandable, end)) {
        return tn_fail_memory(error);
    }
    st = new_pages_create(heap, &fresh, pages, segment->expandable->page_size, error);
    if (st == TARN_OK) {
        st = expandable_extend(heap, segment, block, size, stack, &fresh, &block, error);
    }
    if (st == TARN_OK) {
        tn_pool_remove(block);
        *block_out = block;
    }
    new_pages_release(heap, &fresh);
    return st;
}

/* Unmaps and releases pages [begin, end); stops at the first that the device refuses. Returns how
 * many are gone. */
static uint64_t pages_unmap(struct tn_heap *heap, const struct tn_segment *segment, uint64_t begin,
                            uint64_t end, enum tarn_status *status_out)
{
    uint64_t at = begin;

    *status_out = TARN_OK;
    while (at < end) {
        tn_page_handle page;

        *status_out = page_unmap(heap, segment, at, &page);
        if (*status_out) {
            break;
        }
        (void)heap->device->ops->page_release(heap->device, page);
        at++;
    }
    return at - begin;
}

/* The part [address, address + size) of a free block in no set becomes unmapped; what is left
 * before and behind it is inserted again. There must be two spare nodes. Returns the unmapped
 * block, merged. */
static struct tn_block *block_split_unmapped(struct tn_heap *heap, struct tn_block *block,
                                             uint64_t address, uint64_t size)
{
    const uint64_t before = address - block->address;
    const uint64_t requested = block->requested_size;
    struct tn_block *middle = block;
    uint32_t merged;
    uint64_t merged_bytes;

    if (before > 0) {
        middle = tn_shard_take_spare(&heap->shard);
        tn_block_split(block, before, middle);
        block->requested_size = 0;
        tn_pool_insert(block);
    }
    if (middle->size > size) {
        struct tn_block *after = tn_shard_take_spare(&heap->shard);

        tn_block_split(middle, size, after);
        after->requested_size = 0;
        tn_pool_insert(after);
    }
    middle->requested_size = requested;
    middle->mapped = false;
    middle = tn_heap_coalesce(&heap->shard, middle, &merged, &merged_bytes);
    tn_free_set_insert_unmapped(middle->set, middle);
    return middle;
}

enum tarn_status tn_expandable_unmap(struct tn_heap *heap, struct tn_block *block, uint64_t stack,
                                     struct tarn_error *error)
{
    struct tn_segment *segment = tn_segment_find(heap, block->address);
    struct tn_free_set *set = block->set;
    const uint64_t page_size = segment->expandable->page_size;
    const uint64_t begin = pages_up(block->address - segment->address, page_size);
    const uint64_t end = (block->address + block->size - segment->address) / page_size;
    enum tarn_status st;

    if (begin >= end) {
        return TARN_OK;
    }
    if (!tn_heap_reserve_spares(heap, &heap->shard, 2) || !tn_free_set_reserve_unmapped(set, 1)) {
        return tn_fail_memory(error);
    }
    /* Unlike a plain free, unmapping does not wait for work on the memory. */
    st = heap->device->ops->stream_wait(heap->device, set->stream);
    if (st) {
        return tn_heap_device_failed(heap, st, "waiting for a stream", error);
    }
    const uint64_t gone = pages_unmap(heap, segment, begin, end, &st);
    const uint64_t address = segment->address + begin * page_size;

    if (gone > 0) {
        tn_pool_remove(block);
        block = block_split_unmapped(heap, block, address, gone * page_size);
        count_unmap(heap, set->pool->is_small, gone * page_size);
        tn_heap_emit(heap, TARN_ACTION_SEGMENT_UNMAP, address, gone * page_size, set->stream,
                     set->pool, stack ? stack : segment->stack);
    }
    if (st) {
        return tn_heap_device_failed(heap, st, "unmapping memory", error);
    }
    return tn_block_is_split(block) ? TARN_OK : expandable_drop(heap, segment, block, error);
}

enum tarn_status tn_expandable_drop_empty(struct tn_heap *heap, const struct tn_private_pool *owner,
                                          struct tarn_error *error)
{
    struct tn_segment *next;
    enum tarn_status st = TARN_OK;

    for (struct tn_segment *s = tn_segment_first(heap); s && st == TARN_OK; s = next) {
        next = tn_segment_next(s);
        if (s->expandable && s->first->set->pool->owner == owner && !s->first->mapped &&
            s->first->size == s->size) {
            st = expandable_drop(heap, s, s->first, error);
        }
    }
    return st;
}

enum tarn_status tn_expandable_grant(struct tn_heap *heap, const struct tn_segment *segment,
                                     int peer_ordinal, struct tarn_error *error)
{
    const struct tn_expandable *expandable = segment->expandable;
    enum tarn_status st = TARN_OK;

    for (uint64_t i = 0; st == TARN_OK && i < expandable->page_count; i++) {
        if (expandable->pages[i]) {
            st = heap->device->ops->va_grant(heap->device,
                                             segment->address + i * expandable->page_size,
                                             expandable->page_size, peer_ordinal);
        }
    }
    return st ? tn_heap_device_failed(heap, st, "granting a peer access", error) : TARN_OK;
}

/* Room for the descriptors of pages below `end`. */
static bool descriptors_reserve(struct tn_expandable *expandable, uint64_t end)
{
    const uint64_t count = expandable->descriptor_count;

    if (end <= count) {
        return true;
    }
    const uint64_t wanted = expandable->page_count; /* no page lies beyond */
    int *moved =
        tn_host_resize(expandable->descriptors, count * sizeof *moved, wanted * sizeof *moved);

    if (!moved) {
        return false;
    }
    memset(&moved[count], 0xff, (wanted - count) * sizeof *moved); /* -1 each */
    expandable->descriptors = moved;
    expandable->descriptor_count = wanted;
    return true;
}

enum tarn_status tn_expandable_export(struct tn_heap *heap, const struct tn_segment *segment,
                                      uint64_t begin, uint64_t end, const int **descriptors_out,
                                      struct tarn_error *error)
{
    struct tn_expandable *expandable = segment->expandable;
    enum tarn_status st = TARN_OK;

    if (!descriptors_reserve(expandable, end)) {
        return tn_fail_memory(error);
    }
    for (uint64_t i = begin; st == TARN_OK && i < end; i++) {
        if (expandable->descriptors[i] < 0) {
            st = heap->device->ops->page_export(heap->device, expandable->pages[i],
                                                &expandable->descriptors[i]);
        }
    }
    if (st) {
        return tn_heap_device_failed(heap, st, "sharing memory", error);
    }
    *descriptors_out = &expandable->descriptors[begin];
    return TARN_OK;
}

void tn_expandable_destroy(struct tn_heap *heap, struct tn_segment *segment)
{
    struct tn_expandable *expandable = segment->expandable;
    enum tarn_status st;

    for (uint64_t i = 0; i < expandable->page_count; i++) {
        if (expandable->pages[i]) {
            (void)pages_unmap(heap, segment, i, i + 1, &st);
        }
    }
    (void)heap->device->ops->va_release(heap->device, segment->address, segment->size);
    expandable_free(expandable);
}
