/* SPDX-License-Identifier: MIT */
#include "replay/start_state.h"

#include "alloc/config/size_class.h"
#include "analysis/address_map.h"
#include "analysis/layout.h"
#include "base/assertion.h"
#include "base/errinfo.h"

struct rebuild {
    struct tn_program *program;
    struct tn_timeline timeline;
    struct tn_layout layout;
    struct tn_map finals;    /* address of a block in use in the snapshot -> its state */
    uint64_t unknown_allocs; /* allocations in the trace whose block is missing afterwards */
    uint64_t unknown_bytes;  /* of these */
    uint64_t private_count;  /* initial segments of private pools */
    uint64_t private_bytes;
    uint64_t impossible; /* blocks and segments that no allocator could have had */
};

/* ---- the end of the trace ---- */

static bool finals_read(struct rebuild *r, const struct tn_trace_source *source)
{
    for (size_t i = 0; i < source->segment_count; i++) {
        const struct tn_model_segment *segment = &source->segments[i];

        for (size_t k = 0; tn_source_has(source, i) && k < segment->block_count; k++) {
            const struct tn_model_block *block = &segment->blocks[k];

            if (block->state != TN_BLOCK_INACTIVE &&
                !tn_address_put(&r->finals, block->address, block->state)) {
                return false;
            }
        }
    }
    return true;
}

/* Whether a block of the trace has no known end: neither a free nor a place in the snapshot. */
static bool lifetime_is_left(const struct rebuild *r, const struct tn_lifetime *lifetime)
{
    if (lifetime->start == TN_NEVER || lifetime->requested != TN_NEVER) {
        return false;
    }
    if (lifetime->end == TN_NEVER) {
        return !tn_address_find(&r->finals, lifetime->address);
    }
    return tn_trace_at(r->timeline.model, r->timeline.trace, lifetime->end)->action ==
           TN_TRACE_ALLOC; /* at its address */
}

static void lifetimes_count(struct rebuild *r)
{
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(&r->timeline);

    for (size_t i = 0; i < r->timeline.lifetimes.count; i++) {
        if (lifetime_is_left(r, &lifetimes[i])) {
            r->unknown_allocs++;
            r->unknown_bytes += lifetimes[i].size;
        }
    }
}

/* ---- the beginning ---- */

/* Whether an allocator could have had it: files are untrusted. Expandable segments have pages. */
static bool piece_fits(const struct tn_layout_piece *piece)
{
    const uint64_t unit = piece->is_expandable ? TN_SMALL_BUFFER : TN_MIN_BLOCK_SIZE;

    return piece->address % unit == 0 && piece->row.reserved % unit == 0;
}

static bool block_fits(uint64_t address, uint64_t end)
{
    return end > address && address % TN_MIN_BLOCK_SIZE == 0 && end % TN_MIN_BLOCK_SIZE == 0;
}

/* Whether a block from before the trace was freed by then, but not completely. */
static bool is_waiting(const struct rebuild *r, const struct tn_lifetime *lifetime)
{
    const uint64_t *state = tn_address_find(&r->finals, lifetime->address);

    if (lifetime->requested != TN_NEVER) {
        return false;
    }
    /* What neither ends nor begins in the trace is in the snapshot. */
    return lifetime->end != TN_NEVER ||
           (tn_always(state) && *state == TN_BLOCK_ACTIVE_PENDING_FREE);
}

/* Adds the blocks of a piece. One that begins inside of another, in a file that contradicts itself,
 * is left out. */
static bool blocks_add(struct rebuild *r, const struct tn_layout_piece *piece,
                       struct tn_start_segment *start)
{
    const struct tn_layout_block *blocks = r->layout.blocks.items;
    uint64_t at = piece->address;

    for (size_t i = piece->first; i < piece->first + piece->count; i++) {
        const struct tn_lifetime *lifetime = blocks[i].lifetime;
        const uint64_t size = blocks[i].end - lifetime->address;
        const struct tn_start_block known = {
            .address = lifetime->address,
            .size = size,
            .requested = lifetime->size < size ? lifetime->size : size,
            .slot = TN_NO_SLOT,
            .waiting = is_waiting(r, lifetime),
        };

        if (lifetime->address < at || !block_fits(lifetime->address, blocks[i].end)) {
            r->impossible++;
            continue;
        }
        if (!tn_vec_add(&r->program->start_blocks, &known)) {
            return false;
        }
        at = blocks[i].end;
        start->block_count++;
    }
    return true;
}

/* Adds a segment and its blocks to the program. */
static bool segment_add(struct rebuild *r, const struct tn_layout_piece *piece)
{
    const bool is_private = piece->row.pool.id[0] != 0 || piece->row.pool.id[1] != 0;
    struct tn_start_segment *start;

    if (piece->address == 0 || !piece_fits(piece)) {
        r->impossible += piece->address != 0;
        return true;
    }
    start = tn_vec_push(&r->program->start_segments);
    if (!start) {
        return false;
    }
    r->private_count += is_private;
    r->private_bytes += is_private ? piece->row.reserved : 0;
    *start = (struct tn_start_segment){
        .address = piece->address,
        .size = piece->row.reserved,
        .stream = piece->row.stream,
        .is_large = piece->row.is_large,
        .is_expandable = piece->is_expandable,
        .first_block = r->program->start_blocks.count,
    };
    return blocks_add(r, piece, start);
}

static bool segments_add(struct rebuild *r)
{
    for (size_t i = 0; i < r->layout.pieces.count; i++) {
        if (!segment_add(r, (const struct tn_layout_piece *)r->layout.pieces.items + i)) {
            return false;
        }
    }
    return true;
}

static void rebuild_note(struct rebuild *r)
{
    struct tn_program *program = r->program;
    const size_t segments = program->start_segments.count;
    const uint64_t bytes = tn_program_reserved_at_start(program);

    program->complete = segments == 0;
    if (segments > 0) {
        tn_program_note(program,
                        "the trace begins mid-run: %zu segments (%llu bytes) and %zu blocks "
                        "existed before its first event; they were rebuilt from the final "
                        "segments, and peaks are those of the recorded part",
                        segments, (unsigned long long)bytes, program->start_blocks.count);
    }
    if (r->impossible > 0) {
        tn_program_note(program,
                        "%llu segments or blocks contradict others or have an impossible size; "
                        "they were ignored",
                        (unsigned long long)r->impossible);
    }
    if (r->unknown_allocs > 0) {
        tn_program_note(
            program,
            "%llu allocations of the trace (%llu bytes) are neither freed in it nor in the final "
            "segments; their blocks count as used until their address is allocated again",
            (unsigned long long)r->unknown_allocs, (unsigned long long)r->unknown_bytes);
    }
    if (r->private_count > 0) {
        tn_program_note(
            program,
            "%llu segments of private pools (%llu bytes) existed before the trace: when their "
            "pools were in use is unknown, so their free memory counts as the default pool's",
            (unsigned long long)r->private_count, (unsigned long long)r->private_bytes);
    }
}

static bool layout_read(struct rebuild *r)
{
    struct tn_layout_walk walk;

    if (!tn_layout_walk_init(&walk, &r->timeline)) {
        return false;
    }
    const bool good = tn_layout_collect(&r->layout, &walk, TN_NEVER);

    r->impossible += walk.segments.overlaps;
    tn_layout_walk_fini(&walk);
    return good;
}

static bool rebuild_run(struct rebuild *r, const struct tn_trace_source *source)
{
    if (!finals_read(r, source) || !layout_read(r)) {
        return false;
    }
    lifetimes_count(r);
    const bool good = segments_add(r);

    if (good) {
        rebuild_note(r);
    }
    tn_layout_fini(&r->layout);
    return good;
}

enum tarn_status tn_start_state_rebuild(struct tn_program *program,
                                        const struct tn_trace_source *source,
                                        struct tarn_error *error)
{
    struct rebuild r = {.program = program};

    if (!tn_timeline_init_lifetimes(&r.timeline, source->model, (size_t)source->device)) {
        return tn_fail_memory(error);
    }
    const bool good = rebuild_run(&r, source);

    tn_map_fini(&r.finals);
    tn_timeline_fini(&r.timeline);
    return good ? TARN_OK : tn_fail_memory(error);
}
