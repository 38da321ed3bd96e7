/* SPDX-License-Identifier: MIT */
#include "replay/start_state.h"

#include "alloc/config/size_class.h"
#include "analysis/split_rule.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/map.h"
#include "replay/limit.h"

#include <stdlib.h>

/* A block in use, or a segment, at the point of the trace that the walk has reached. */
struct known_block {
    uint64_t address;
    uint64_t size; /* 0: not known, follows from the request */
    uint64_t requested;
    bool waiting;
    bool gone; /* its allocation was undone */
};

struct known_segment {
    uint64_t address;
    uint64_t size;
    tarn_stream stream;
    bool is_large;
    bool is_expandable;
    bool is_private; /* of a captured graph's pool, or a MemPool */
    bool gone;
};

struct rebuild {
    struct tn_program *program;
    struct tn_vec blocks;   /* struct known_block */
    struct tn_vec segments; /* struct known_segment */
    struct tn_map block_at; /* address to index + 1 */
    struct tn_map segment_at;
    uint64_t unknown_allocs; /* allocations in the trace whose block is not there afterwards */
    uint64_t unknown_bytes;  /* of these */
    uint64_t private_count;  /* segments of private pools that were there at the beginning */
    uint64_t private_bytes;
    uint64_t impossible; /* blocks and segments that no allocator can have had */
    bool no_memory;
};

static struct known_block *rebuild_find_block(const struct rebuild *r, uint64_t address)
{
    const uint64_t *index = tn_map_find(&r->block_at, address);

    return index ? (struct known_block *)r->blocks.items + (*index - 1) : NULL;
}

static void rebuild_add_block(struct rebuild *r, const struct known_block *block)
{
    struct known_block *added = block->address ? tn_vec_push(&r->blocks) : NULL;
    uint64_t old;

    if (!added || !tn_map_reserve(&r->block_at, 1)) {
        r->no_memory = r->no_memory || block->address != 0;
        return;
    }
    *added = *block;
    (void)tn_map_take(&r->block_at, block->address, &old);
    tn_map_insert(&r->block_at, block->address, r->blocks.count);
}

static void rebuild_drop_block(struct rebuild *r, uint64_t address, uint64_t size)
{
    uint64_t index;

    if (tn_map_take(&r->block_at, address, &index)) {
        ((struct known_block *)r->blocks.items)[index - 1].gone = true;
    } else {
        r->unknown_allocs++;
        r->unknown_bytes += size;
    }
}

/* Whether an allocator can have had it: files from outside say anything. */
static bool segment_fits(const struct known_segment *segment)
{
    return segment->size > 0 && segment->size % TN_MIN_BLOCK_SIZE == 0 &&
           segment->address % TN_MIN_BLOCK_SIZE == 0 &&
           segment->size <= UINT64_MAX - segment->address;
}

static void rebuild_add_segment(struct rebuild *r, const struct known_segment *segment)
{
    struct known_segment *added;
    uint64_t old;

    if (segment->address == 0) {
        return;
    }
    if (!segment_fits(segment)) {
        r->impossible++;
        return;
    }
    added = tn_vec_push(&r->segments);
    if (!added || !tn_map_reserve(&r->segment_at, 1)) {
        r->no_memory = true;
        return;
    }
    *added = *segment;
    (void)tn_map_take(&r->segment_at, segment->address, &old);
    tn_map_insert(&r->segment_at, segment->address, r->segments.count);
}

static void rebuild_drop_segment(struct rebuild *r, uint64_t address)
{
    uint64_t index;

    if (tn_map_take(&r->segment_at, address, &index)) {
        ((struct known_segment *)r->segments.items)[index - 1].gone = true;
    }
}

/* Pages that were mapped are not known of any more. What was mapped at once may have been unmapped
 * in pieces, and the final segments run over both. */
static void rebuild_drop_pages(struct rebuild *r, const struct tn_trace_entry *entry)
{
    const size_t count = r->segments.count;
    const uint64_t end =
        entry->size > UINT64_MAX - entry->address ? UINT64_MAX : entry->address + entry->size;

    for (size_t i = 0; i < count; i++) {
        struct known_segment *segment = &((struct known_segment *)r->segments.items)[i];
        struct known_segment behind = *segment;

        if (segment->gone || !segment->is_expandable || segment->address >= end ||
            entry->address >= segment->address + segment->size) {
            continue;
        }
        if (segment->address < entry->address) {
            segment->size = entry->address - segment->address;
        } else {
            rebuild_drop_segment(r, segment->address);
        }
        if (behind.address + behind.size > end) {
            behind.size = behind.address + behind.size - end;
            behind.address = end;
            rebuild_add_segment(r, &behind);
        }
    }
}

/* ---- the end of the trace ---- */

static void take_final_segment(struct rebuild *r, const struct tn_model_segment *segment)
{
    const struct known_segment known = {
        .address = segment->address,
        .size = segment->total_size,
        .stream = segment->stream,
        .is_large = segment->is_large,
        .is_expandable = segment->is_expandable,
        .is_private = segment->pool.id[0] != 0 || segment->pool.id[1] != 0,
    };

    rebuild_add_segment(r, &known);
    for (size_t i = 0; i < segment->block_count; i++) {
        const struct tn_model_block *block = &segment->blocks[i];

        if (block->state != TN_BLOCK_INACTIVE) {
            const struct known_block used = {
                .address = block->address,
                .size = block->size,
                .requested = block->requested_size,
                .waiting = block->state == TN_BLOCK_ACTIVE_PENDING_FREE,
            };

            rebuild_add_block(r, &used);
        }
    }
}

/* ---- undoing entries ---- */

/* Before its completion the block waited; its extent is not in the entry. */
static void undo_completion(struct rebuild *r, const struct tn_trace_entry *entry)
{
    const struct known_block block = {
        .address = entry->address, .requested = entry->size, .waiting = true};

    rebuild_add_block(r, &block);
}

static void undo_free(struct rebuild *r, const struct tn_trace_entry *entry)
{
    struct known_block *block = rebuild_find_block(r, entry->address);

    if (block) {
        block->waiting = false;
        block->requested = entry->size;
    } else {
        const struct known_block found = {.address = entry->address, .requested = entry->size};

        rebuild_add_block(r, &found);
    }
}

static void undo_segment_free(struct rebuild *r, const struct tn_trace_entry *entry,
                              bool expandable)
{
    const struct known_segment segment = {
        .address = entry->address,
        .size = entry->size,
        .stream = entry->stream,
        .is_large = entry->size != TN_SMALL_BUFFER,
        .is_expandable = expandable,
    };

    rebuild_add_segment(r, &segment);
}

static void undo_entry(struct rebuild *r, const struct tn_trace_entry *entry)
{
    switch ((enum tn_trace_action)entry->action) {
    case TN_TRACE_ALLOC:
        rebuild_drop_block(r, entry->address, entry->size);
        break;
    case TN_TRACE_FREE_REQUESTED:
        undo_free(r, entry);
        break;
    case TN_TRACE_FREE_COMPLETED:
        undo_completion(r, entry);
        break;
    case TN_TRACE_SEGMENT_ALLOC:
        rebuild_drop_segment(r, entry->address);
        break;
    case TN_TRACE_SEGMENT_MAP:
        rebuild_drop_pages(r, entry);
        break;
    case TN_TRACE_SEGMENT_FREE:
        undo_segment_free(r, entry, false);
        break;
    case TN_TRACE_SEGMENT_UNMAP:
        undo_segment_free(r, entry, true);
        break;
    case TN_TRACE_SNAPSHOT:
    case TN_TRACE_OOM:
    case TN_TRACE_ANNOTATE:
    case TN_TRACE_USER_DEFINED:
    case TN_TRACE_OTHER:
    case TN_TRACE_ACTION_COUNT:
        break;
    }
}

/* ---- the beginning ---- */

static int known_block_compare(const void *a, const void *b)
{
    const struct known_block *x = a;
    const struct known_block *y = b;

    return (x->address > y->address) - (x->address < y->address);
}

static int known_segment_compare(const void *a, const void *b)
{
    const struct known_segment *x = a;
    const struct known_segment *y = b;

    if (x->gone != y->gone) {
        return x->gone ? 1 : -1;
    }
    return (x->address > y->address) - (x->address < y->address);
}

/* Bytes of a block whose size is not recorded. In the large pool no free block is 1 MiB or less
 * (a rest that small is not split off), so a gap that small before the next block belongs to
 * this one. */
static uint64_t block_size(const struct known_block *block, const struct known_segment *segment,
                           uint64_t limit)
{
    const uint64_t room = limit - block->address;
    uint64_t size = tn_split_rounded(block->requested);

    if (block->size) {
        size = block->size;
    } else {
        size = size ? size : TN_MIN_BLOCK_SIZE;
        if (segment->is_large && !segment->is_expandable && size <= room &&
            !tn_splits_off(room - size, size, true, TN_SPLIT_UNLIMITED)) {
            size = room;
        }
    }
    return size < room ? size : room;
}

/* Whether a block can be where it is said to be: files from outside say anything. */
static bool block_fits(const struct known_block *block, const struct known_segment *segment,
                       uint64_t size)
{
    return size > 0 && size % TN_MIN_BLOCK_SIZE == 0 &&
           (block->address - segment->address) % TN_MIN_BLOCK_SIZE == 0;
}

/* Moves a segment that stayed, and its blocks, to the program. `*next` walks the sorted blocks. */
static bool start_add_segment(struct rebuild *r, const struct known_segment *segment, size_t *next)
{
    const struct known_block *blocks = r->blocks.items;
    struct tn_program *program = r->program;
    struct tn_start_segment *start = tn_vec_push(&program->start_segments);
    const uint64_t end = segment->address + segment->size;

    if (!start) {
        return false;
    }
    r->private_count += segment->is_private;
    r->private_bytes += segment->is_private ? segment->size : 0;
    *start = (struct tn_start_segment){
        .address = segment->address,
        .size = segment->size,
        .stream = segment->stream,
        .is_large = segment->is_large,
        .is_expandable = segment->is_expandable,
        .first_block = program->start_blocks.count,
    };
    while (*next < r->blocks.count && blocks[*next].address < segment->address) {
        (*next)++; /* in no segment */
    }
    for (; *next < r->blocks.count && blocks[*next].address < end; (*next)++) {
        const struct known_block *block = &blocks[*next];
        const bool last = *next + 1 == r->blocks.count || block[1].address >= end;
        const uint64_t size = block_size(block, segment, last ? end : block[1].address);

        if (!block_fits(block, segment, size)) {
            r->impossible++;
            continue;
        }
        struct tn_start_block *added = tn_vec_push(&program->start_blocks);

        if (!added) {
            return false;
        }
        *added = (struct tn_start_block){
            .address = block->address,
            .size = size,
            .requested = block->requested < size ? block->requested : size,
            .slot = TN_NO_SLOT,
            .waiting = block->waiting,
        };
        start->block_count++;
    }
    return true;
}

/* Most blocks of a trace came and went in it: they need not be sorted. */
static void blocks_sort(struct rebuild *r)
{
    struct known_block *blocks = r->blocks.items;
    size_t kept = 0;

    for (size_t i = 0; i < r->blocks.count; i++) {
        if (!blocks[i].gone) {
            blocks[kept++] = blocks[i];
        }
    }
    r->blocks.count = kept;
    if (kept > 1) {
        qsort(blocks, kept, sizeof *blocks, known_block_compare);
    }
}

/* Segments that overlap contradict each other; the lower one stays. */
static bool rebuild_finish(struct rebuild *r)
{
    const struct known_segment *segments = r->segments.items;
    uint64_t end = 0; /* of the last segment that stayed */
    size_t next = 0;

    blocks_sort(r);
    if (r->segments.count > 1) {
        qsort(r->segments.items, r->segments.count, sizeof(struct known_segment),
              known_segment_compare);
    }
    tn_assert(segments || r->segments.count == 0);
    for (size_t i = 0; i < r->segments.count && !segments[i].gone; i++) {
        if (segments[i].address < end) {
            r->impossible++;
        } else if (!start_add_segment(r, &segments[i], &next)) {
            return false;
        } else {
            end = segments[i].address + segments[i].size;
        }
    }
    return true;
}

static void rebuild_note(struct rebuild *r)
{
    struct tn_program *program = r->program;
    const size_t segments = program->start_segments.count;
    const uint64_t bytes = tn_limit_reserved_at_start(program);

    program->complete = segments == 0;
    if (segments > 0) {
        tn_program_note(
            program,
            "the trace begins in mid-run: %zu segments (%llu bytes) and %zu blocks were there "
            "before its first entry; they were rebuilt from the final segments, and peaks are "
            "those of the recorded part",
            segments, (unsigned long long)bytes, program->start_blocks.count);
    }
    if (r->impossible > 0) {
        tn_program_note(program,
                        "%llu segments or blocks contradict others or are of no possible size; "
                        "they were left out",
                        (unsigned long long)r->impossible);
    }
    if (r->unknown_allocs > 0) {
        tn_program_note(
            program,
            "%llu allocations of the trace (%llu bytes) are neither freed in it nor in "
            "the final segments; their blocks count as used until their place is taken again",
            (unsigned long long)r->unknown_allocs, (unsigned long long)r->unknown_bytes);
    }
    if (r->private_count > 0) {
        tn_program_note(program,
                        "%llu segments of private pools (%llu bytes) were there before the trace: "
                        "whose use began where is not known, so what they have free counts as the "
                        "default pool's",
                        (unsigned long long)r->private_count, (unsigned long long)r->private_bytes);
    }
}

enum tarn_status tn_start_state_rebuild(struct tn_program *program, const struct tn_model *model,
                                        const struct tn_trace *trace, struct tarn_error *error)
{
    struct rebuild r = {.program = program};

    tn_vec_init(&r.blocks, sizeof(struct known_block));
    tn_vec_init(&r.segments, sizeof(struct known_segment));
    for (size_t i = 0; i < model->segment_count; i++) {
        if (model->segments[i].device == program->device) {
            take_final_segment(&r, &model->segments[i]);
        }
    }
    for (uint64_t i = trace->count; i > 0; i--) {
        undo_entry(&r, tn_trace_at(model, trace, i - 1));
    }
    const bool good = !r.no_memory && rebuild_finish(&r);

    if (good) {
        rebuild_note(&r);
    }
    tn_vec_fini(&r.blocks);
    tn_vec_fini(&r.segments);
    tn_map_fini(&r.block_at);
    tn_map_fini(&r.segment_at);
    return good ? TARN_OK
                : tn_fail(error, TARN_ERR_HOST_MEMORY,
                          "no host memory to rebuild the trace's start");
}
