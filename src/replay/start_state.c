/* SPDX-License-Identifier: MIT */
#include "replay/start_state.h"

#include "alloc/config/size_class.h"
#include "analysis/lifetime_walk.h"
#include "analysis/split_rule.h"
#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/map.h"

#include <stdlib.h>

/* A block in use before the first entry. */
struct known_block {
    uint64_t address;
    uint64_t size; /* 0: unknown, derived from the request */
    uint64_t requested;
    uint64_t order; /* in which the trace mentions them */
    bool waiting;
};

/* A lifetime of the trace. */
struct known_lifetime {
    uint64_t size;  /* of the request */
    uint64_t block; /* number of the block, if it predates the trace; else TN_NEVER */
    bool is_left;   /* allocated in the trace, with an unknown end */
};

/* A segment at the current position of the walk. */
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
    struct tn_lifetime_walk walk; /* values of `freed`: number of the block that a lost free
                                     implies, TN_LIFETIME_NONE: none */
    struct tn_vec lifetimes;      /* struct known_lifetime */
    struct tn_vec blocks;         /* struct known_block */
    struct tn_vec segments;       /* struct known_segment */
    struct tn_map segment_at;     /* address to index + 1 */
    uint64_t unknown_allocs;      /* allocations in the trace whose block is missing afterwards */
    uint64_t unknown_bytes;       /* of these */
    uint64_t private_count;       /* initial segments of private pools */
    uint64_t private_bytes;
    uint64_t impossible; /* blocks and segments that no allocator could have had */
    bool no_memory;
};

static void rebuild_add_block(struct rebuild *r, struct known_block block)
{
    block.order = r->blocks.count;
    r->no_memory = !tn_vec_add(&r->blocks, &block) || r->no_memory;
}

/* Whether an allocator could have had it: files are untrusted. */
static bool segment_fits(const struct known_segment *segment)
{
    return segment->size > 0 && segment->size % TN_MIN_BLOCK_SIZE == 0 &&
           segment->address % TN_MIN_BLOCK_SIZE == 0 &&
           segment->size <= UINT64_MAX - segment->address;
}

static void rebuild_add_segment(struct rebuild *r, const struct known_segment *segment)
{
    uint64_t old;

    if (segment->address == 0) {
        return;
    }
    if (!segment_fits(segment)) {
        r->impossible++;
        return;
    }
    if (!tn_vec_add(&r->segments, segment) || !tn_map_reserve(&r->segment_at, 1)) {
        r->no_memory = true;
        return;
    }
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

/* Removes pages that the entry mapped. A range mapped at once may have been unmapped in pieces, and
 * a final segment may span several. */
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
}

/* ---- blocks ---- */

/* A block known from its free, which does not record the block's size. */
static void add_freed_block(struct rebuild *r, const struct tn_trace_entry *entry)
{
    rebuild_add_block(r, (struct known_block){.address = entry->address,
                                              .requested = entry->size,
                                              .waiting = entry->action == TN_TRACE_FREE_COMPLETED});
}

static void note_lifetime(struct rebuild *r, const struct tn_trace_entry *entry)
{
    const bool is_alloc = entry->action == TN_TRACE_ALLOC;
    const struct known_lifetime known = {
        .size = entry->size, .block = is_alloc ? TN_NEVER : r->blocks.count, .is_left = is_alloc};

    r->no_memory = !tn_vec_add(&r->lifetimes, &known) || r->no_memory;
    if (!is_alloc) {
        add_freed_block(r, entry);
    }
}

/* A second free of an address implies another block there, whose allocation is missing. */
static void note_lost_free(struct rebuild *r, const struct tn_trace_entry *entry)
{
    uint64_t *block = tn_address_find(&r->walk.freed, entry->address);
    const uint64_t number = r->blocks.count;

    if (*block == TN_LIFETIME_NONE) {
        add_freed_block(r, entry);
    }
    if (entry->action == TN_TRACE_FREE_COMPLETED) {
        *block = TN_LIFETIME_NONE;
    } else if (*block == TN_LIFETIME_NONE) {
        *block = number;
    }
}

static void read_entry(struct rebuild *r, const struct tn_trace_entry *entry)
{
    const bool is_free =
        entry->action == TN_TRACE_FREE_REQUESTED || entry->action == TN_TRACE_FREE_COMPLETED;
    struct tn_lifetime_step step;

    if (entry->action != TN_TRACE_ALLOC && !is_free) {
        return;
    }
    if (!tn_lifetime_walk_step(&r->walk, entry, &step)) {
        r->no_memory = true;
    } else if (step.is_new) {
        note_lifetime(r, entry);
    } else if (step.lifetime == TN_LIFETIME_NONE) {
        note_lost_free(r, entry);
    } else {
        ((struct known_lifetime *)r->lifetimes.items)[step.lifetime].is_left = false;
    }
}

/* A block in use at the end: it predates the trace, or the trace mentions it. */
static void read_final_block(struct rebuild *r, const struct tn_model_block *block)
{
    const uint64_t lifetime = tn_lifetime_walk_at(&r->walk, block->address);
    const uint64_t *freed = tn_address_find(&r->walk.freed, block->address);
    uint64_t known = freed ? *freed : TN_NEVER;

    if (block->state == TN_BLOCK_INACTIVE) {
        return;
    }
    if (lifetime != TN_LIFETIME_NONE) {
        struct known_lifetime *lifetimes = r->lifetimes.items;

        tn_assert(lifetimes);
        lifetimes[lifetime].is_left = false;
        known = lifetimes[lifetime].block;
    }
    if (known != TN_NEVER) {
        struct known_block *blocks = r->blocks.items;

        tn_assert(blocks);
        blocks[known].size = block->size;
    } else if (lifetime == TN_LIFETIME_NONE) {
        rebuild_add_block(
            r, (struct known_block){.address = block->address,
                                    .size = block->size,
                                    .requested = block->requested_size,
                                    .waiting = block->state == TN_BLOCK_ACTIVE_PENDING_FREE});
    }
}

/* Finds the blocks that predate the trace, and the ends of the others. */
static void read_blocks(struct rebuild *r, const struct tn_trace_source *source)
{
    for (uint64_t i = 0; i < source->trace->count && !r->no_memory; i++) {
        read_entry(r, tn_source_entry(source, i));
    }
    for (size_t i = 0; i < source->segment_count && !r->no_memory; i++) {
        const struct tn_model_segment *segment = &source->segments[i];

        for (size_t k = 0; tn_source_has(source, i) && k < segment->block_count; k++) {
            read_final_block(r, &segment->blocks[k]);
        }
    }
    for (size_t i = 0; i < r->lifetimes.count; i++) {
        const struct known_lifetime *known = (const struct known_lifetime *)r->lifetimes.items + i;

        r->unknown_allocs += known->is_left;
        r->unknown_bytes += known->is_left ? known->size : 0;
    }
}

/* ---- undoing entries ---- */

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
    if (entry->action == TN_TRACE_SEGMENT_ALLOC) {
        rebuild_drop_segment(r, entry->address);
    } else if (entry->action == TN_TRACE_SEGMENT_MAP) {
        rebuild_drop_pages(r, entry);
    } else if (tn_trace_gives_back(entry)) {
        undo_segment_free(r, entry, entry->action == TN_TRACE_SEGMENT_UNMAP);
    }
}

/* ---- the beginning ---- */

static int known_block_compare(const void *a, const void *b)
{
    const struct known_block *x = a;
    const struct known_block *y = b;

    if (x->address != y->address) {
        return x->address < y->address ? -1 : 1;
    }
    return x->order > y->order ? -1 : 1; /* the first one mentioned counts */
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

/* Bytes of a block whose size is not recorded. The large pool has no free blocks of 1 MiB or less
 * (a remainder that small is not split off), so a gap of that size before the next block belongs to
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

/* Whether the block's position is possible: files are untrusted. */
static bool block_fits(const struct known_block *block, const struct known_segment *segment,
                       uint64_t size)
{
    return size > 0 && size % TN_MIN_BLOCK_SIZE == 0 &&
           (block->address - segment->address) % TN_MIN_BLOCK_SIZE == 0;
}

/* Adds a segment and its blocks to the program. `*next` walks the sorted blocks. */
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
        const struct tn_start_block known = {
            .address = block->address,
            .size = size,
            .requested = block->requested < size ? block->requested : size,
            .slot = TN_NO_SLOT,
            .waiting = block->waiting,
        };
        if (!tn_vec_add(&program->start_blocks, &known)) {
            return false;
        }
        start->block_count++;
    }
    return true;
}

/* Of overlapping segments, which contradict each other, the lower one is kept. */
static bool rebuild_finish(struct rebuild *r)
{
    const struct known_segment *segments = r->segments.items;
    uint64_t end = 0; /* of the last segment kept */
    size_t next = 0;

    tn_vec_sort(&r->blocks, known_block_compare);
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

enum tarn_status tn_start_state_rebuild(struct tn_program *program,
                                        const struct tn_trace_source *source,
                                        struct tarn_error *error)
{
    struct rebuild r = {.program = program};

    tn_vec_init(&r.lifetimes, sizeof(struct known_lifetime));
    tn_vec_init(&r.blocks, sizeof(struct known_block));
    tn_vec_init(&r.segments, sizeof(struct known_segment));
    read_blocks(&r, source);
    for (size_t i = 0; i < source->segment_count; i++) {
        if (tn_source_has(source, i)) {
            take_final_segment(&r, &source->segments[i]);
        }
    }
    for (uint64_t i = source->trace->count; i > 0; i--) {
        undo_entry(&r, tn_source_entry(source, i - 1));
    }
    const bool good = !r.no_memory && rebuild_finish(&r);

    if (good) {
        rebuild_note(&r);
    }
    tn_vec_fini(&r.lifetimes);
    tn_vec_fini(&r.blocks);
    tn_vec_fini(&r.segments);
    tn_lifetime_walk_fini(&r.walk);
    tn_map_fini(&r.segment_at);
    return good ? TARN_OK : tn_fail_memory(error);
}
