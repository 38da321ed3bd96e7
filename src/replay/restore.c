/* SPDX-License-Identifier: MIT */
#include "replay/restore.h"

#include "alloc/engine/rebuild_layout.h"

static bool add_piece(struct tn_vec *pieces, struct tn_layout_block piece)
{
    return piece.size == 0 || tn_vec_add(pieces, &piece);
}

/* Pieces of a segment: its blocks and the free memory between them. */
static enum tarn_status start_pieces(const struct tn_start_segment *segment,
                                     const struct tn_start_block *blocks, struct tn_vec *pieces)
{
    uint64_t at = segment->address;
    bool added = true;

    for (uint64_t i = 0; i < segment->block_count && added; i++) {
        tn_assert(blocks && blocks[i].address >= at);
        added = add_piece(pieces, (struct tn_layout_block){.size = blocks[i].address - at}) &&
                add_piece(pieces, (struct tn_layout_block){.size = blocks[i].size,
                                                           .requested = blocks[i].requested,
                                                           .allocated = true});
        at = blocks[i].address + blocks[i].size;
    }
    added =
        added &&
        add_piece(pieces, (struct tn_layout_block){.size = segment->address + segment->size - at});
    return added ? TARN_OK : TARN_ERR_HOST_MEMORY;
}

/* Number of segments from `first` on that are parts of one expandable segment. */
static size_t range_length(const struct tn_start_segment *first, size_t count)
{
    size_t length = 1;

    while (length < count && first->is_expandable && first[length].is_expandable &&
           first[length].stream == first->stream && first[length].is_large == first->is_large &&
           first[length].address - first[length - 1].address <= TN_RANGE_GAP) {
        length++;
    }
    return length;
}

/* Pieces of all segments of a range and of the unmapped gaps between them. */
static enum tarn_status range_pieces(const struct tn_program *program,
                                     const struct tn_start_segment *first, size_t length,
                                     struct tn_vec *pieces)
{
    const struct tn_start_block *blocks = program->start_blocks.items;
    uint64_t at = first->address;
    enum tarn_status st = TARN_OK;

    pieces->count = 0;
    for (size_t i = 0; i < length && st == TARN_OK; i++) {
        const struct tn_layout_block hole = {.size = first[i].address - at, .unmapped = true};

        st = add_piece(pieces, hole) ? TARN_OK : TARN_ERR_HOST_MEMORY;
        st = st ? st
                : start_pieces(&first[i], blocks ? blocks + first[i].first_block : NULL, pieces);
        at = first[i].address + first[i].size;
    }
    return st;
}

/* Restores segments and blocks at their recorded addresses, or at those the device chooses. */
static enum tarn_status start_range(struct tn_runner *runner, const struct tn_start_segment *first,
                                    size_t length, struct tn_vec *pieces, struct tarn_error *error)
{
    const struct tn_start_segment *last = &first[length - 1];
    const struct tn_layout_segment range = {.size = last->address + last->size - first->address,
                                            .stream = first->stream,
                                            .is_small = !first->is_large,
                                            .expandable = first->is_expandable};
    uint64_t address = 0;
    enum tarn_status st = range_pieces(runner->program, first, length, pieces);

    if (st) {
        return tn_fail_memory(error);
    }
    runner->start_address = runner->keeps_addresses ? first->address : 0;
    st = range.expandable ? TARN_OK : tn_runner_script_segment(runner, first->address, error);
    st = st ? st
            : tn_rebuild_segment(runner->engine, &range, pieces->items, pieces->count, &address,
                                 error);
    runner->start_address = 0;
    for (size_t i = 0; st == TARN_OK && i < length; i++) {
        const struct tn_start_block *blocks = runner->program->start_blocks.items;

        for (uint64_t k = 0; k < first[i].block_count; k++) {
            const struct tn_start_block *block = &blocks[first[i].first_block + k];

            tn_assert(runner->ptrs && blocks);
            runner->ptrs[block->slot] = block->address - first->address + address;
        }
    }
    return st;
}

/* Allocates the blocks again, under settings with other kinds of segments. */
static enum tarn_status start_allocate(struct tn_runner *runner,
                                       const struct tn_start_segment *first, size_t length,
                                       struct tarn_error *error)
{
    const struct tn_start_block *blocks = runner->program->start_blocks.items;
    const struct tn_start_segment *last = &first[length - 1];
    enum tarn_status st = TARN_OK;

    for (uint64_t i = first->first_block;
         st == TARN_OK && i < last->first_block + last->block_count; i++) {
        tn_assert(runner->ptrs && blocks);
        st = tarn_allocator_alloc(runner->allocator, blocks[i].requested ? blocks[i].requested : 1,
                                  first->stream, &runner->ptrs[blocks[i].slot], error);
    }
    return st;
}

/* Whether the run has segments of the recorded kind. */
static bool starts_alike(const struct tn_runner *runner, const struct tn_start_segment *segment)
{
    return runner->engine &&
           runner->engine->heap.config.expandable_segments == segment->is_expandable;
}

enum tarn_status tn_restore_start(struct tn_runner *runner, struct tarn_error *error)
{
    const struct tn_program *program = runner->program;
    const struct tn_start_segment *segments = program->start_segments.items;
    const size_t count = program->start_segments.count;
    struct tn_vec pieces;
    enum tarn_status st = TARN_OK;
    size_t length;

    tn_vec_init(&pieces, sizeof(struct tn_layout_block));
    for (size_t i = 0; st == TARN_OK && i < count; i += length) {
        const bool alike = starts_alike(runner, &segments[i]);

        length = alike ? range_length(&segments[i], count - i) : 1;
        st = alike ? start_range(runner, &segments[i], length, &pieces, error) : TARN_OK;
        if (!alike || (st == TARN_ERR_OUT_OF_MEMORY && length > 1)) { /* holes are mapped first */
            st = start_allocate(runner, &segments[i], length, error);
        }
    }
    tn_vec_fini(&pieces);
    tarn_allocator_reset_accumulated_stats(runner->allocator);
    tarn_allocator_reset_peak_stats(runner->allocator);
    return st;
}
