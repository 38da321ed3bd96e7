/* SPDX-License-Identifier: MIT */
#include "alloc/engine/visit.h"

#include "alloc/pool/asleep.h"
#include "alloc/pool/expandable.h"
#include "alloc/pool/segment.h"

/* Sums up the mapped range that begins at `head`. */
static struct tarn_segment_info range_describe(const struct tn_segment *segment,
                                               const struct tn_block *head)
{
    const struct tn_pool *pool = head->set->pool;
    struct tarn_segment_info info = {
        .address = head->address,
        .stream = head->set->stream,
        .stack = head->prev ? 0 : segment->stack,
        .is_large = !pool->is_small,
        .is_expandable = segment->expandable != NULL,
        .was_split = head->was_split,
        .number = segment->number,
    };

    if (pool->owner) {
        info.pool = pool->owner->id;
    }
    for (const struct tn_block *b = head; b && b->mapped; b = b->next) {
        info.total_size += b->size;
        if (b->allocated) {
            info.allocated_size += b->size;
        }
        if (tn_block_is_active(b)) {
            info.active_size += b->size;
            info.requested_size += b->requested_size;
        }
    }
    return info;
}

static bool show_block(const struct tn_engine *engine, const struct tarn_walker *walker,
                       const struct tn_block *block)
{
    uint64_t tag = 0;
    void *user = tn_stream_use_user(&engine->waits, block, &tag);
    const struct tarn_block_info info = {
        .address = block->address,
        .size = block->size,
        .requested_size = block->requested_size,
        .stack = tn_block_is_active(block) ? block->u.stack : 0,
        .allocated = block->allocated,
        .active = tn_block_is_active(block),
        .user = user,
        .user_tag = tag,
    };

    return !walker->block || walker->block(walker->context, &info);
}

/* Shows the mapped range at `head`; *next_out is what follows it. */
static bool show_range(const struct tn_engine *engine, const struct tn_segment *segment,
                       const struct tn_block *head, const struct tarn_walker *walker,
                       const struct tn_block **next_out)
{
    const struct tn_block *block = head;

    if (walker->segment) {
        const struct tarn_segment_info info = range_describe(segment, head);

        if (!walker->segment(walker->context, &info)) {
            return false;
        }
    }
    for (; block && block->mapped; block = block->next) {
        if (!show_block(engine, walker, block)) {
            return false;
        }
    }
    *next_out = block;
    return true;
}

/* Shows the mapped ranges of a segment, unless they are away; false when the walker stopped. */
static bool show_segment(const struct tn_engine *engine, const struct tn_segment *segment,
                         const struct tarn_walker *walker)
{
    const struct tn_private_pool *owner = segment->first->set->pool->owner;
    const struct tn_block *block = segment->first;

    if (owner && owner->sleeps && !owner->asleep->is_moving) {
        return true;
    }
    while (block) {
        if (!block->mapped) {
            block = block->next;
        } else if (!show_range(engine, segment, block, walker, &block)) {
            return false;
        }
    }
    return true;
}

static bool segment_is_of(const struct tn_segment *segment, struct tarn_pool_id id)
{
    const struct tn_private_pool *owner = segment->first->set->pool->owner;

    return owner ? tn_pool_id_equal(owner->id, id) : id.first == 0 && id.second == 0;
}

void tn_visit(const struct tn_engine *engine, const struct tarn_walker *walker)
{
    const struct tn_segment *segment = tn_segment_first(&engine->heap);

    while (segment && show_segment(engine, segment, walker)) {
        segment = tn_segment_next(segment);
    }
}

static bool sum_range(void *context, const struct tarn_segment_info *range)
{
    struct tarn_segment_info *sum = context;
    const struct tarn_segment_info before = *sum;

    *sum = *range;
    sum->total_size += before.total_size;
    sum->allocated_size += before.allocated_size;
    sum->active_size += before.active_size;
    sum->requested_size += before.requested_size;
    return true;
}

size_t tn_visit_expandable(const struct tn_engine *engine, struct tarn_segment_info *segments_out,
                           size_t room)
{
    size_t count = 0;

    for (const struct tn_segment *s = engine->heap.segments.oldest; s; s = s->newer) {
        struct tarn_segment_info sum = {0};
        const struct tarn_walker walker = {.context = &sum, .segment = sum_range};

        if (s->expandable) {
            (void)show_segment(engine, s, &walker);
        }
        if (sum.total_size > 0) {
            if (count < room) {
                segments_out[count] = sum;
            }
            count++;
        }
    }
    return count;
}

void tn_visit_pool(const struct tn_engine *engine, struct tarn_pool_id id,
                   const struct tarn_walker *walker)
{
    const struct tn_segment *segment = tn_segment_first(&engine->heap);

    while (segment && (!segment_is_of(segment, id) || show_segment(engine, segment, walker))) {
        segment = tn_segment_next(segment);
    }
}

/* False when the visitor stopped. */
static bool show_pages(const struct tn_segment *segment, tn_page_visitor visitor, void *context)
{
    const struct tn_expandable *expandable = segment->expandable;
    bool more = true;

    for (uint64_t i = 0; expandable && more && i < expandable->page_count; i++) {
        const struct tn_page_info info = {.address = segment->address + i * expandable->page_size,
                                          .size = expandable->page_size,
                                          .handle = expandable->pages[i],
                                          .times = expandable->times[i]};

        more = info.handle == 0 || visitor(context, &info);
    }
    return more;
}

void tn_visit_pages(const struct tn_engine *engine, const struct tarn_pool_id *id,
                    tn_page_visitor visitor, void *context)
{
    const struct tn_segment *segment =
        tn_compact_is_on(&engine->heap) ? tn_segment_first(&engine->heap) : NULL;

    while (segment &&
           ((id && !segment_is_of(segment, *id)) || show_pages(segment, visitor, context))) {
        segment = tn_segment_next(segment);
    }
}

void tn_visit_mark_snapshot(struct tn_engine *engine)
{
    tn_heap_emit(&engine->heap, TARN_ACTION_SNAPSHOT, 0,
                 (uint64_t)tn_counters_active_bytes(&engine->heap.shard.counters), 0, NULL, 0);
}
