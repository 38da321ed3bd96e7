/* SPDX-License-Identifier: MIT */
#include "export/state_at.h"

#include "analysis/layout.h"
#include "base/assertion.h"

struct state {
    struct tn_model_copy *copy;
    const struct tn_timeline *timeline;
    uint64_t entry;
    struct tn_layout layout;
    struct tn_vec blocks; /* struct tn_model_block, of the segment at hand */
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

/* The blocks of a piece, and free ones between them. */
static void blocks_collect(struct state *state, const struct tn_layout_piece *piece)
{
    const struct tn_layout_block *blocks = state->layout.blocks.items;
    const uint64_t end = piece->address + piece->row.reserved;
    uint64_t at = piece->address;

    state->blocks.count = 0;
    for (size_t i = piece->first; i < piece->first + piece->count; i++) {
        const uint64_t address = blocks[i].lifetime->address;

        if (address > at) {
            (void)block_add(state, at, address - at);
        }
        if (tn_always(address >= at)) { /* a block of a layout ends where the next one begins */
            lifetime_add(state, blocks[i].lifetime, blocks[i].end);
            at = blocks[i].end;
        }
    }
    if (end > at) {
        (void)block_add(state, at, end - at);
    }
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

static void segment_add(struct state *state, const struct tn_layout_piece *piece,
                        struct tn_vec *segments)
{
    struct tn_model_segment *segment = tn_vec_push(segments);

    blocks_collect(state, piece);
    if (!segment) {
        (void)tn_copy_note(state->copy, TARN_ERR_HOST_MEMORY);
        return;
    }
    *segment = (struct tn_model_segment){
        .address = piece->address,
        .total_size = piece->row.reserved,
        .stream = piece->row.stream,
        .pool = piece->row.pool,
        .device = (int32_t)state->timeline->device,
        .stack = segment_stack(state, piece->address),
        .is_large = piece->row.is_large,
        .is_expandable = piece->is_expandable,
        .blocks = blocks_keep(state),
        .block_count = state->blocks.count,
    };
    if (segment->blocks) {
        sums_fill(segment);
    }
}

void tn_state_segments(struct tn_model_copy *copy, const struct tn_timeline *timeline,
                       uint64_t entry, struct tn_vec *segments)
{
    struct state state = {.copy = copy, .timeline = timeline, .entry = entry};

    if (!tn_layout_collect_at(&state.layout, timeline, entry)) {
        (void)tn_copy_note(state.copy, TARN_ERR_HOST_MEMORY);
        return;
    }
    tn_vec_init(&state.blocks, sizeof(struct tn_model_block));
    for (size_t i = 0; i < state.layout.pieces.count && copy->status == TARN_OK; i++) {
        segment_add(&state, (const struct tn_layout_piece *)state.layout.pieces.items + i,
                    segments);
    }
    tn_vec_fini(&state.blocks);
    tn_layout_fini(&state.layout);
}
