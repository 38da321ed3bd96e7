/* SPDX-License-Identifier: MIT */
#include "alloc/pool/expandable.h"

#include "alloc/config/size_class.h"
#include "alloc/pool/heap.h"
#include "base/host_mem.h"
#include "base/os_process.h"

#include <string.h>

static uint64_t expandable_page_size(const struct tn_heap *heap, const struct tn_free_set *set)
{
    return set->pool->is_small || heap->config.policy == TARN_POLICY_COMPACT
               ? TN_SMALL_BUFFER
               : heap->config.large_segment_size;
}

uint64_t tn_expandable_range_size(const struct tn_heap *heap, const struct tn_free_set *set)
{
    const uint64_t page_size = expandable_page_size(heap, set);
    const uint64_t total = heap->device->total_memory;

    return tn_pages_up(total + total / 8, page_size) * page_size;
}

enum tarn_status tn_expandable_create(struct tn_heap *heap, struct tn_free_set *set,
                                      struct tn_block **block_out, struct tarn_error *error)
{
    const uint64_t page_size = expandable_page_size(heap, set);
    const uint64_t size = tn_expandable_range_size(heap, set);
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
    tn_heap_add_segment(heap, segment);
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
    tn_host_free(expandable->times, expandable->times_count * sizeof *expandable->times);
    tn_host_free(expandable->descriptors,
                 expandable->descriptor_count * sizeof *expandable->descriptors);
    tn_host_free(expandable, sizeof *expandable);
}

enum tarn_status tn_expandable_drop(struct tn_heap *heap, struct tn_segment *segment,
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
    tn_segment_map_remove(&heap->segments, segment);
    tn_heap_drop_stack(heap, segment->stack);
    expandable_free(expandable);
    tn_host_free(segment, sizeof *segment);
    return TARN_OK;
}

static bool times_reserve(struct tn_expandable *expandable, uint64_t wanted)
{
    const uint64_t count = expandable->times_count;

    if (wanted <= count) {
        return true;
    }
    uint32_t *moved =
        tn_host_resize(expandable->times, count * sizeof *moved, wanted * sizeof *moved);

    if (!moved) {
        return false;
    }
    memset(&moved[count], 0, (wanted - count) * sizeof *moved);
    expandable->times = moved;
    expandable->times_count = wanted;
    return true;
}

bool tn_expandable_reserve(struct tn_expandable *expandable, uint64_t end)
{
    if (end <= expandable->page_count) {
        return true;
    }
    const uint64_t wanted = end > expandable->page_count * 2 ? end : expandable->page_count * 2;
    tn_page_handle *moved =
        times_reserve(expandable, wanted)
            ? tn_host_resize(expandable->pages, expandable->page_count * sizeof *moved,
                             wanted * sizeof *moved)
            : NULL;

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

/* A page that the device refused to unmap after mapping had failed is there still. */
static enum tarn_status page_remove_old(struct tn_heap *heap, const struct tn_segment *segment,
                                        uint64_t index)
{
    tn_page_handle old = 0;
    const enum tarn_status st = tn_page_unmap(heap, segment, index, &old);

    if (st == TARN_OK) {
        (void)heap->device->ops->page_release(heap->device, old);
    }
    return st;
}

enum tarn_status tn_page_map(struct tn_heap *heap, const struct tn_segment *segment, uint64_t index,
                             tn_page_handle page)
{
    struct tn_expandable *expandable = segment->expandable;
    const uint64_t address = segment->address + index * expandable->page_size;
    enum tarn_status st =
        expandable->pages[index] ? page_remove_old(heap, segment, index) : TARN_OK;

    if (st == TARN_OK) {
        st = heap->device->ops->map(heap->device, address, expandable->page_size, page);
    }

    for (unsigned i = 0; st == TARN_OK && i < heap->peers.count; i++) {
        st = heap->device->ops->va_grant(heap->device, address, expandable->page_size,
                                         heap->peers.ordinals[i]);
        if (st) {
            (void)heap->device->ops->unmap(heap->device, address, expandable->page_size);
        }
    }
    if (st == TARN_OK) {
        expandable->pages[index] = page;
        expandable->times[index]++;
    }
    return st;
}

enum tarn_status tn_page_unmap(struct tn_heap *heap, const struct tn_segment *segment,
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

    for (uint64_t i = 0; i < expandable->page_count; i++) {
        tn_page_handle page;

        if (expandable->pages[i] && tn_page_unmap(heap, segment, i, &page) == TARN_OK) {
            (void)heap->device->ops->page_release(heap->device, page);
        }
    }
    (void)heap->device->ops->va_release(heap->device, segment->address, segment->size);
    expandable_free(expandable);
}
