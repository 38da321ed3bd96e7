/* SPDX-License-Identifier: MIT */
#include "alloc/pool/growth.h"

#include "alloc/pool/heap.h"
#include "alloc/pool/mapping.h"
#include "alloc/pool/segment.h"

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
    if (size > tn_expandable_range_size(heap, set)) {
        return tn_fail(error, TARN_ERR_OUT_OF_MEMORY, "more than the device's memory");
    }
    return tn_expandable_create(heap, set, block_out, error);
}

enum tarn_status tn_expandable_alloc(struct tn_heap *heap, struct tn_free_set *set, uint64_t size,
                                     uint64_t stack, struct tn_block **block_out,
                                     struct tarn_error *error)
{
    struct tn_new_pages fresh = {0};
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
    const uint64_t pages = tn_mapping_missing(segment, block, size, &end);

    if (!tn_expandable_reserve(segment->expandable, end)) {
        return tn_fail_memory(error);
    }
    st = tn_new_pages_create(heap, &fresh, pages, segment->expandable->page_size, error);
    if (st == TARN_OK) {
        st = tn_mapping_add(heap, segment, block, size, stack, &fresh, &block, error);
    }
    if (st == TARN_OK) {
        tn_pool_remove(block);
        *block_out = block;
    }
    tn_new_pages_release(heap, &fresh);
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

        *status_out = tn_page_unmap(heap, segment, at, &page);
        if (*status_out) {
            break;
        }
        (void)heap->device->ops->page_release(heap->device, page);
        at++;
    }
    return at - begin;
}

enum tarn_status tn_expandable_unmap(struct tn_heap *heap, struct tn_block *block, uint64_t bytes,
                                     uint64_t stack, struct tarn_error *error)
{
    struct tn_segment *segment = tn_segment_find(heap, block->address);
    struct tn_free_set *set = block->set;
    const uint64_t page_size = segment->expandable->page_size;
    const uint64_t first = tn_pages_up(block->address - segment->address, page_size);
    const uint64_t end = (block->address + block->size - segment->address) / page_size;
    enum tarn_status st;

    if (first >= end) {
        return TARN_OK;
    }
    const uint64_t begin =
        bytes < (end - first) * page_size ? end - tn_pages_up(bytes, page_size) : first;

    if (!tn_heap_reserve_spares(heap, &heap->shard, 2) || !tn_free_set_reserve_unmapped(set, 1)) {
        return tn_fail_memory(error);
    }
    /* Unlike a plain free, unmapping does not wait for work on the memory. */
    st = heap->device->ops->stream_wait(heap->device, set->stream);
    if (st) {
        return tn_heap_device_failed(heap, st, "waiting for a stream", error);
    }
    tn_mapping_tell(heap, TARN_ACTION_SEGMENT_UNMAP, segment, set, begin, end, stack);
    const uint64_t gone = pages_unmap(heap, segment, begin, end, &st);

    if (gone > 0) {
        block = tn_mapping_remove(heap, segment, block, begin, begin + gone);
    }
    if (st) {
        tn_mapping_tell(heap, TARN_ACTION_SEGMENT_MAP, segment, set, begin + gone, end, stack);
        return tn_heap_device_failed(heap, st, "unmapping memory", error);
    }
    return tn_block_is_split(block) || segment->expandable->retiring > 0
               ? TARN_OK
               : tn_expandable_drop(heap, segment, block, error);
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
            tn_assert(s->expandable->retiring == 0); /* all old addresses were given up before */
            st = tn_expandable_drop(heap, s, s->first, error);
        }
    }
    return st;
}
