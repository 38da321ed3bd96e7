/* SPDX-License-Identifier: MIT */
#include "alloc/pool/mapping.h"

#include "alloc/pool/heap.h"
#include "base/host_mem.h"
#include "base/probe.h"

void tn_new_pages_release(struct tn_heap *heap, struct tn_new_pages *fresh)
{
    while (fresh->count > 0) {
        (void)heap->device->ops->page_release(heap->device, fresh->pages[--fresh->count]);
    }
    tn_host_free(fresh->pages, fresh->capacity * sizeof *fresh->pages);
    *fresh = (struct tn_new_pages){0};
}

enum tarn_status tn_new_pages_create(struct tn_heap *heap, struct tn_new_pages *fresh,
                                     uint64_t count, uint64_t page_size, struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    *fresh = (struct tn_new_pages){.pages = tn_host_alloc(count * sizeof *fresh->pages)};
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
        tn_new_pages_release(heap, fresh);
    }
    return st;
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
    piece_out->end = piece_out->begin + tn_pages_up(wanted, page_size);
    *have += (piece_out->end - piece_out->begin) * page_size;
    *at = block->next;
    return true;
}

uint64_t tn_mapping_missing(const struct tn_segment *segment, struct tn_block *block, uint64_t size,
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

/* Maps the pages of all pieces from `block` on, or none of them. */
static enum tarn_status pieces_map(struct tn_heap *heap, const struct tn_segment *segment,
                                   struct tn_block *block, uint64_t size,
                                   struct tn_new_pages *fresh, struct tarn_error *error)
{
    struct tn_block *at = block;
    uint64_t have = 0;
    uint64_t mapped = 0;
    struct piece piece;
    enum tarn_status st = TARN_OK;

    while (st == TARN_OK && piece_next(segment, size, &at, &have, &piece)) {
        for (uint64_t i = piece.begin; st == TARN_OK && i < piece.end; i++) {
            st = tn_page_map(heap, segment, i, fresh->pages[fresh->count - 1]);
            fresh->count -= st == TARN_OK;
            mapped += st == TARN_OK;
        }
    }
    if (st == TARN_OK) {
        return TARN_OK;
    }
    (void)tn_heap_device_failed(heap, st, "mapping memory", error);
    have = 0;
    while (mapped > 0) {
        const bool more = piece_next(segment, size, &block, &have, &piece);

        if (tn_never(!more)) { /* what was mapped is in pieces */
            break;
        }
        for (uint64_t i = piece.begin; mapped > 0 && i < piece.end; i++, mapped--) {
            tn_page_handle page;

            if (tn_page_unmap(heap, segment, i, &page) == TARN_OK) {
                fresh->pages[fresh->count++] = page;
            }
        }
    }
    return st;
}

static void count_map(struct tn_heap *heap, const struct tn_pool *pool, uint64_t size)
{
    tn_heap_count_reserved(heap, pool, (int64_t)size);
    heap->shard.counters.totals.num_device_alloc++;
}

static void count_unmap(struct tn_heap *heap, const struct tn_pool *pool, uint64_t size)
{
    tn_heap_count_reserved(heap, pool, -(int64_t)size);
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
    count_map(heap, set->pool, bytes);
    tn_heap_emit(heap, TARN_ACTION_SEGMENT_MAP, address, bytes, set->stream, set->pool, stack);
    TN_PROBE4(map, address, heap->device->ordinal, bytes, set->stream);
    if (segment->address == block->address && (block->was_split || !segment->stack)) {
        tn_heap_drop_stack(heap, segment->stack);
        segment->stack = tn_heap_keep_stack(heap, stack);
        block->was_split = false;
    }
    return block;
}

enum tarn_status tn_mapping_add(struct tn_heap *heap, struct tn_segment *segment,
                                struct tn_block *block, uint64_t size, uint64_t stack,
                                struct tn_new_pages *fresh, struct tn_block **block_out,
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

        const bool more = piece_next(segment, size, &at, &have, &piece);

        if (tn_never(!more)) { /* the pages of all pieces are there */
            break;
        }
        block = piece_adopt(heap, segment, &piece, stack);
    }
    *block_out = block;
    return TARN_OK;
}

/* The part [address, address + size) of a free block in no set becomes unmapped; what is left
 * before and behind it is inserted again. There must be two spare nodes. Returns the unmapped
 * block, merged. */
static struct tn_block *block_split_unmapped(struct tn_heap *heap, struct tn_block *block,
                                             uint64_t address, uint64_t size)
{
    const uint64_t before = address - block->address;
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
    middle->mapped = false;
    middle = tn_heap_coalesce(&heap->shard, middle, &merged, &merged_bytes);
    tn_free_set_insert_unmapped(middle->set, middle);
    return middle;
}

struct tn_block *tn_mapping_forget(struct tn_heap *heap, const struct tn_segment *segment,
                                   struct tn_block *block, uint64_t begin, uint64_t end)
{
    const uint64_t page_size = segment->expandable->page_size;

    tn_pool_remove(block);
    return block_split_unmapped(heap, block, segment->address + begin * page_size,
                                (end - begin) * page_size);
}

void tn_mapping_tell(struct tn_heap *heap, enum tarn_action action,
                     const struct tn_segment *segment, const struct tn_free_set *set,
                     uint64_t begin, uint64_t end, uint64_t stack)
{
    const uint64_t page_size = segment->expandable->page_size;

    tn_heap_emit(heap, action, segment->address + begin * page_size, (end - begin) * page_size,
                 set->stream, set->pool, stack ? stack : segment->stack);
}

struct tn_block *tn_mapping_remove(struct tn_heap *heap, const struct tn_segment *segment,
                                   struct tn_block *block, uint64_t begin, uint64_t end)
{
    const uint64_t address = segment->address + begin * segment->expandable->page_size;
    const uint64_t size = (end - begin) * segment->expandable->page_size;
    const struct tn_free_set *set = block->set;

    block = tn_mapping_forget(heap, segment, block, begin, end);
    count_unmap(heap, set->pool, size);
    TN_PROBE4(unmap, address, heap->device->ordinal, size, set->stream);
    return block;
}
