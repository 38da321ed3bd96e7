/* SPDX-License-Identifier: MIT */
#include "export/state_at.h"

#include "analysis/segment_walk.h"
#include "analysis/split_rule.h"

#include <stdlib.h>

struct state {
    struct tn_model_copy *copy;
    const struct tn_timeline *timeline;
    uint64_t entry;
    struct tn_segment_walk walk;
    struct tn_vec lifetimes; /* const struct tn_lifetime *, allocated then, by address */
    struct tn_vec blocks;    /* struct tn_model_block, of the segment at hand */
    size_t next;             /* the next lifetime */
};

/* ---- blocks ---- */

static struct tn_model_block *block_add(struct state *state, uint64_t address, uint64_t size)
{
    struct tn_model_block *block = tn_vec_push(&state->blocks);

    if (!block) {
        (void)tn_copy_note(state->copy, TARN_ERR_HOST_MEMORY);
        return NULL;
    }
    *block = (struct tn_model_block){.address = address,
                                     .size = size,
                                     .stack = TN_STACK_EMPTY,
                                     .state = TN_BLOCK_INACTIVE,
                                     .has_address = true,
                                     .has_requested_size = true};
    return block;
}

/* The bytes up to `end` that no block has: free, or the rest of the block before them. */
static void gap_add(struct state *state, const struct tn_segment_range *range, uint64_t at,
                    uint64_t end)
{
    struct tn_model_block *last =
        state->blocks.count > 0
            ? (struct tn_model_block *)state->blocks.items + state->blocks.count - 1
            : NULL;

    if (at >= end) {
        return;
    }
    if (last && !tn_splits_off(end - at, last->size, range->is_large, TN_SPLIT_UNLIMITED)) {
        last->size += end - at;
    } else {
        (void)block_add(state, at, end - at);
    }
}

static uint64_t lifetime_end(const struct tn_lifetime *lifetime, uint64_t limit)
{
    const uint64_t end = tn_range_end(lifetime->address, tn_split_rounded(lifetime->size));

    return end < limit ? end : limit;
}

static void lifetime_add(struct state *state, const struct tn_lifetime *lifetime, uint64_t end)
{
    struct tn_model_block *block = block_add(state, lifetime->address, end - lifetime->address);
    const bool is_pending = lifetime->requested != TN_NEVER && state->entry != TN_NEVER &&
                            lifetime->requested <= state->entry;

    if (block) {
        block->requested_size = lifetime->size;
        block->state = is_pending ? TN_BLOCK_ACTIVE_PENDING_FREE : TN_BLOCK_ACTIVE_ALLOCATED;
        if (lifetime->stack != TN_STACK_NONE) {
            block->stack = tn_copy_stack(state->copy, lifetime->stack);
        }
    }
}

/* The blocks of [start, end). A file that contradicts itself may have overlapping ones: those that
 * begin inside of another are left out. */
static void blocks_collect(struct state *state, const struct tn_segment_range *range, uint64_t end)
{
    const struct tn_lifetime *const *lifetimes = state->lifetimes.items;
    uint64_t at = range->start;

    state->blocks.count = 0;
    for (; state->next < state->lifetimes.count && lifetimes[state->next]->address < end;
         state->next++) {
        const struct tn_lifetime *lifetime = lifetimes[state->next];

        if (lifetime->address >= at) {
            const uint64_t limit = state->next + 1 < state->lifetimes.count &&
                                           lifetimes[state->next + 1]->address < end &&
                                           lifetimes[state->next + 1]->address > lifetime->address
                                       ? lifetimes[state->next + 1]->address
                                       : end;

            gap_add(state, range, at, lifetime->address);
            at = lifetime_end(lifetime, limit);
            lifetime_add(state, lifetime, at);
        }
    }
    gap_add(state, range, at, end);
}

/* ---- segments ---- */

static struct tn_model_block *blocks_keep(struct state *state)
{
    const struct tn_model_block *from = state->blocks.items;
    struct tn_model_block *kept =
        tn_copy_array(state->copy, state->blocks.count, sizeof(struct tn_model_block));

    for (size_t i = 0; kept && i < state->blocks.count; i++) {
        kept[i] = from[i];
    }
    return kept;
}

/* The segment of the snapshot that still begins there has its stack. */
static uint32_t segment_stack(const struct state *state, uint64_t address)
{
    const struct tn_model *model = state->timeline->model;

    for (size_t i = 0; i < model->segment_count; i++) {
        if (model->segments[i].device == state->timeline->device &&
            model->segments[i].address == address && model->segments[i].stack != TN_STACK_NONE) {
            return tn_copy_stack(state->copy, model->segments[i].stack);
        }
    }
    return TN_STACK_EMPTY;
}

static void sums_fill(struct tn_model_segment *segment)
{
    for (size_t i = 0; i < segment->block_count; i++) {
        const struct tn_model_block *block = &segment->blocks[i];

        if (block->state != TN_BLOCK_INACTIVE) {
            segment->active_size += block->size;
            segment->requested_size += block->requested_size;
        }
        if (block->state == TN_BLOCK_ACTIVE_ALLOCATED) {
            segment->allocated_size += block->size;
        }
    }
}

static void segment_add(struct state *state, const struct tn_segment_range *range, uint64_t end,
                        struct tn_vec *segments)
{
    struct tn_model_segment *segment = tn_vec_push(segments);

    blocks_collect(state, range, end);
    if (!segment) {
        (void)tn_copy_note(state->copy, TARN_ERR_HOST_MEMORY);
        return;
    }
    *segment = (struct tn_model_segment){
        .address = range->start,
        .total_size = end - range->start,
        .stream = range->stream,
        .pool = range->pool,
        .device = (int32_t)state->timeline->device,
        .stack = segment_stack(state, range->start),
        .is_large = range->is_large,
        .is_expandable = range->is_expandable,
        .blocks = blocks_keep(state),
        .block_count = state->blocks.count,
    };
    if (segment->blocks) {
        sums_fill(segment);
    }
}

/* Whether the pieces are one mapped range. */
static bool continues(const struct tn_segment_range *a, const struct tn_segment_range *b)
{
    return a->is_expandable && b->is_expandable && a->end == b->start && a->stream == b->stream &&
           a->is_large == b->is_large;
}

static void segments_collect(struct state *state, struct tn_vec *segments)
{
    const struct tn_lifetime *const *lifetimes = state->lifetimes.items;

    for (const struct tn_segment_range *range = tn_segment_walk_first(&state->walk);
         range && state->copy->status == TARN_OK;) {
        const struct tn_segment_range *last = range;
        const struct tn_segment_range *next = tn_segment_walk_next(range);

        for (; next && continues(last, next); next = tn_segment_walk_next(next)) {
            last = next;
        }
        while (state->next < state->lifetimes.count &&
               lifetimes[state->next]->address < range->start) {
            state->next++;
        }
        segment_add(state, range, last->end, segments);
        range = next;
    }
}

void tn_state_segments(struct tn_model_copy *copy, const struct tn_timeline *timeline,
                       uint64_t entry, struct tn_vec *segments)
{
    const struct tn_trace_source source = tn_timeline_source(timeline);
    struct state state = {.copy = copy, .timeline = timeline, .entry = entry};

    tn_vec_init(&state.blocks, sizeof(struct tn_model_block));
    if (!tn_segment_walk_init(&state.walk, &source)) {
        (void)tn_copy_note(state.copy, TARN_ERR_HOST_MEMORY);
        return;
    }
    if (tn_segment_walk_to(&state.walk, entry) &&
        tn_timeline_lifetimes_at(timeline, entry, &state.lifetimes)) {
        segments_collect(&state, segments);
    } else {
        (void)tn_copy_note(state.copy, TARN_ERR_HOST_MEMORY);
    }
    tn_segment_walk_fini(&state.walk);
    tn_vec_fini(&state.lifetimes);
    tn_vec_fini(&state.blocks);
}
