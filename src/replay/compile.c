/* SPDX-License-Identifier: MIT */
#include "replay/compile.h"

#include "alloc/config/size_class.h"
#include "analysis/address_map.h"
#include "analysis/pool_stream.h"
#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/id_table.h"
#include "base/map.h"
#include "replay/limit.h"
#include "replay/span.h"
#include "replay/start_state.h"

#include <stdlib.h>
#include <string.h>

/* A forward pass over the trace. */
struct compile {
    struct tn_program *program;
    struct tn_trace_source source;
    const struct tn_model *model;
    const struct tn_trace *trace;
    const struct tarn_config *config; /* of the recorded run */
    struct tn_map live;               /* address to slot + 1: allocated */
    struct tn_map waiting;            /* address to operation + 1: freed, not completed */
    struct tn_map start_waiting;  /* address to slot + 1: freed before the trace, not completed */
    struct tn_vec queues;         /* uint64_t: entry of the latest free of each queue, descending */
    struct tn_budget pool_budget; /* no limit */
    struct tn_id_table pool_places; /* places in `pools` of the program */
    bool too_many_pools;
    bool flushing; /* the previous entry released a segment */
    uint64_t reserved;
    struct tn_entry_pools entry_pools;
    struct tn_map since; /* final segment of a private pool to the entry that allocated it */
    uint64_t unknown_frees;
    uint64_t unknown_free_bytes;
    uint64_t actions[TN_TRACE_ACTION_COUNT]; /* number of entries */
    struct tn_vec last_uses;                 /* uint64_t: last request of each pool, by index */
    struct tn_vec free_slots;                /* uint32_t */
    uint64_t implied_frees;                  /* added because their address was allocated again */
    struct tn_spans spans;                   /* live blocks, if no frees were recorded */
    struct tn_op nowhere;                    /* written to if memory runs out */
    uint32_t last_alloc_ms;                  /* time of the latest request */
    bool no_memory;
};

/* Milliseconds since the first entry; times that go back count as 0. */
static uint32_t compile_time(const struct compile *c, uint64_t entry)
{
    const int64_t first = tn_trace_at(c->model, c->trace, 0)->time_us;
    const int64_t time = tn_trace_at(c->model, c->trace, entry)->time_us;

    if (first == TN_TIME_NONE || time == TN_TIME_NONE || time < first) {
        return 0;
    }
    const int64_t ms = (time - first) / 1000;

    return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

static struct tn_op *compile_add(struct compile *c, enum tn_op_kind kind, uint64_t entry)
{
    struct tn_op *op = tn_vec_push(&c->program->ops);

    if (!op) {
        c->no_memory = true;
        return &c->nowhere;
    }
    op->kind = (uint16_t)kind;
    op->entry = entry;
    op->slot = TN_NO_SLOT;
    op->time_ms = compile_time(c, entry);
    return op;
}

static void compile_set(struct compile *c, struct tn_map *map, uint64_t address, uint32_t slot)
{
    uint64_t old;

    (void)tn_map_take(map, address, &old);
    if (address == 0 || !tn_map_reserve(map, 1)) {
        c->no_memory = c->no_memory || address != 0;
        return;
    }
    tn_map_insert(map, address, (uint64_t)slot + 1);
}

static uint32_t compile_take(struct tn_map *map, uint64_t address)
{
    uint64_t value;

    return tn_map_take(map, address, &value) ? (uint32_t)(value - 1) : TN_NO_SLOT;
}

/* A free slot. Few are live at a time, so reusing them keeps them in the processor's caches. */
static uint32_t compile_new_slot(struct compile *c)
{
    struct tn_vec *unused = &c->free_slots;

    return unused->count > 0 ? ((const uint32_t *)unused->items)[--unused->count]
                             : c->program->slot_count++;
}

static void compile_end_slot(struct compile *c, uint32_t slot)
{
    c->no_memory = !tn_vec_add(&c->free_slots, &slot) || c->no_memory;
}

/* A free that completes immediately. */
static void compile_whole_free(struct compile *c, uint32_t slot, uint64_t index)
{
    compile_add(c, TN_OP_FREE, index)->slot = slot;
    compile_end_slot(c, slot);
}

/* ---- private pools ---- */

static bool pool_is(const void *owner, uint32_t place, const void *key)
{
    const struct compile *c = owner;
    const struct tarn_pool_id *pool = (const struct tarn_pool_id *)c->program->pools.items + place;
    const struct tarn_pool_id *id = key;

    return pool->first == id->first && pool->second == id->second;
}

static uint16_t pool_add(struct compile *c, struct tarn_pool_id id, uint32_t hash)
{
    struct tn_vec *pools = &c->program->pools;

    if (pools->count > UINT16_MAX) {
        c->too_many_pools = true;
        return 0;
    }
    if (!tn_vec_add(pools, &id) ||
        !tn_id_table_add(&c->pool_places, hash, (uint32_t)(pools->count - 1))) {
        c->no_memory = true;
        return 0;
    }
    return (uint16_t)(pools->count - 1);
}

/* Index of a pool in the list; appends a new one. */
static uint16_t pool_place(struct compile *c, struct tarn_pool_id id)
{
    const uint32_t hash = tn_hash_bytes(&id, sizeof id);
    uint32_t place;

    return tn_id_table_find(&c->pool_places, hash, pool_is, c, &id, &place) ? (uint16_t)place
                                                                            : pool_add(c, id, hash);
}

static uint16_t pool_place_of(struct compile *c, struct tn_pool_id id)
{
    return pool_place(c, (struct tarn_pool_id){.first = id.id[0], .second = id.id[1]});
}

/* The final segments of private pools, each with the entry that allocated it: earlier blocks at its
 * address belonged to another segment. */
static void compile_pools(struct compile *c)
{
    if (!tn_entry_pools_init(&c->entry_pools, &c->source)) {
        c->no_memory = true;
        return;
    }
    for (size_t i = 0; i < c->source.segment_count; i++) {
        if (tn_source_has(&c->source, i)) {
            (void)pool_place_of(c, c->source.segments[i].pool);
        }
    }
    for (uint64_t i = 0; c->entry_pools.has_private && i < c->trace->count; i++) {
        const struct tn_trace_entry *entry = tn_trace_at(c->model, c->trace, i);
        const struct tn_segment_range *range =
            entry->action == TN_TRACE_SEGMENT_ALLOC
                ? tn_segment_walk_find(&c->entry_pools.finals, entry->address)
                : NULL;

        if (range && !tn_address_put(&c->since, range->segment, i)) {
            c->no_memory = true;
            return;
        }
    }
}

/* The pool that the entry itself names, in newer files. */
static uint16_t named_pool(struct compile *c, const struct tn_trace_entry *entry)
{
    return pool_place_of(c, tn_model_extra(c->model, entry->extra)->pool);
}

static uint16_t alloc_pool(struct compile *c, const struct tn_trace_entry *entry, uint64_t index)
{
    const struct tn_segment_range *by;
    struct tn_pool_id pool;
    const bool is_known = tn_entry_pool(&c->entry_pools, entry, &pool, &by);
    const uint64_t *since = by ? tn_address_find(&c->since, by->segment) : NULL;

    return is_known && (!since || index >= *since) ? pool_place_of(c, pool) : 0;
}

/* Finds the last request of each pool. */
static void compile_last_uses(struct compile *c)
{
    for (uint64_t i = 0; i < c->trace->count && !c->no_memory; i++) {
        const struct tn_trace_entry *entry = tn_trace_at(c->model, c->trace, i);
        const bool asks = entry->action == TN_TRACE_ALLOC || entry->action == TN_TRACE_OOM;
        const uint16_t pool = asks ? alloc_pool(c, entry, i) : 0;

        while (c->last_uses.count <= pool && !c->no_memory) {
            c->no_memory = !tn_vec_push(&c->last_uses);
        }
        if (asks && !c->no_memory) {
            ((uint64_t *)c->last_uses.items)[pool] = i;
        }
    }
}

static bool pool_is_used_later(const struct compile *c, uint16_t pool, uint64_t index)
{
    return pool < c->last_uses.count && ((const uint64_t *)c->last_uses.items)[pool] > index;
}

/* A pool's segments are released when its last use ends, or because memory is short; if the pool is
 * used afterwards it was the latter. Ends the uses of all other pools that the series of entries
 * starting here releases. */
static void compile_releases(struct compile *c, uint64_t index)
{
    uint16_t last = 0;

    for (uint64_t i = index; i < c->trace->count; i++) {
        const struct tn_trace_entry *entry = tn_trace_at(c->model, c->trace, i);
        const uint16_t pool = tn_trace_gives_back(entry) ? named_pool(c, entry) : 0;

        if (!tn_trace_gives_back(entry)) {
            break;
        }
        if (pool != last && pool != 0 && !pool_is_used_later(c, pool, index)) {
            compile_add(c, TN_OP_RELEASE, index)->pool = pool;
        }
        last = pool;
    }
}

/* ---- missing records ---- */

static void count_actions(struct compile *c)
{
    for (uint64_t i = 0; i < c->trace->count; i++) {
        c->actions[tn_trace_at(c->model, c->trace, i)->action]++;
    }
}

/* Usually the number of operations; malformed traces may have more. */
static size_t operations_bound(const struct compile *c)
{
    return (size_t)(c->actions[TN_TRACE_ALLOC] + c->actions[TN_TRACE_FREE_REQUESTED] +
                    c->actions[TN_TRACE_OOM]);
}

/* Recorded without completions (skip_actions): frees count as complete at once. */
static bool has_no_completions(const struct compile *c)
{
    return c->actions[TN_TRACE_FREE_REQUESTED] > 0 && c->actions[TN_TRACE_FREE_COMPLETED] == 0;
}

/* Recorded without any free. */
static bool has_no_frees(const struct compile *c)
{
    return c->actions[TN_TRACE_FREE_REQUESTED] == 0 && c->actions[TN_TRACE_FREE_COMPLETED] == 0;
}

/* The free of a block whose address is allocated again was not recorded: adds it now. */
static void compile_implied_free(struct compile *c, uint32_t slot, uint64_t index)
{
    c->implied_frees++;
    compile_whole_free(c, slot, index);
}

static void compile_implied_frees(struct compile *c, const struct tn_trace_entry *entry,
                                  uint64_t index)
{
    const uint32_t slot = compile_take(&c->live, entry->address);
    const struct tn_span *span;

    if (!has_no_frees(c)) {
        if (slot != TN_NO_SLOT) {
            compile_implied_free(c, slot, index);
        }
        return;
    }
    while ((span = tn_spans_take(&c->spans, entry->address, entry->size)) != NULL) {
        compile_implied_free(c, span->slot, index);
    }
}

/* Peak of the bytes in use, the largest possible error of any peak. */
static uint64_t live_peak(struct compile *c)
{
    const struct tn_op *ops = c->program->ops.items;
    const struct tn_start_block *blocks = c->program->start_blocks.items;
    const size_t bytes = (size_t)c->program->slot_count * sizeof(uint64_t);
    uint64_t *sizes = tn_host_alloc_zero(bytes); /* by slot */
    uint64_t now = 0;
    uint64_t peak = 0;

    if (!sizes) {
        c->no_memory = true;
        return 0;
    }
    for (size_t i = 0; i < c->program->start_blocks.count; i++) {
        sizes[blocks[i].slot] = blocks[i].size;
        now += blocks[i].size;
    }
    for (size_t i = 0; i < c->program->ops.count; i++) {
        if (ops[i].kind == TN_OP_ALLOC) {
            sizes[ops[i].slot] = ops[i].size;
            now += ops[i].size;
        } else if (ops[i].kind == TN_OP_FREE || ops[i].kind == TN_OP_FREE_WAITS) {
            now -= sizes[ops[i].slot];
        }
        peak = now > peak ? now : peak;
    }
    tn_host_free(sizes, bytes);
    return peak;
}

static void note_frees(struct compile *c)
{
    if (c->unknown_frees > 0) {
        tn_program_note(c->program, "%llu frees of unknown blocks (%llu bytes) were ignored",
                        (unsigned long long)c->unknown_frees,
                        (unsigned long long)c->unknown_free_bytes);
    }
    if (has_no_completions(c)) {
        tn_program_note(c->program,
                        "the trace has no free_completed events: its frees count as completed "
                        "immediately, so peaks lack memory that waited for other streams");
    }
    if (c->implied_frees > 0) {
        tn_program_note(c->program,
                        "%llu frees are missing from the trace: each is assumed when its address "
                        "is allocated again, so peaks are too high; of the peak of %llu bytes in "
                        "use, any part may have been free",
                        (unsigned long long)c->implied_frees, (unsigned long long)live_peak(c));
    }
}

static void note_pools(struct compile *c)
{
    if (c->too_many_pools) {
        tn_program_note(c->program,
                        "the trace has more than %d private pools: requests of the others count "
                        "as the default pool's",
                        UINT16_MAX);
    }
}

static void note_segments(struct compile *c)
{
    const uint64_t known = tn_program_reserved_at_start(c->program);

    if (c->actions[TN_TRACE_SEGMENT_ALLOC] > 0 || c->actions[TN_TRACE_SEGMENT_MAP] > 0) {
        return;
    }
    if (known == 0 && c->program->alloc_count > 0) {
        tn_program_note(c->program, "the trace records no segments: where memory came from and "
                                    "what limited the run is unknown");
    } else if (known > 0 &&
               c->program->start_blocks.count == 0) { /* nothing in use: hardly mid-run */
        tn_program_note(c->program,
                        "the trace records no segments: all %llu bytes of the final ones count as "
                        "reserved from its beginning, which may be too much",
                        (unsigned long long)known);
    }
}

/* ---- entries ---- */

static void compile_alloc(struct compile *c, const struct tn_trace_entry *entry, uint64_t index)
{
    compile_implied_frees(c, entry, index);
    struct tn_op *op = compile_add(c, TN_OP_ALLOC, index);

    op->size = entry->size;
    op->stream = entry->stream;
    op->address = entry->address;
    op->pool = alloc_pool(c, entry, index);
    op->slot = compile_new_slot(c);
    c->last_alloc_ms = op->time_ms;
    c->program->alloc_count++;
    compile_set(c, &c->live, entry->address, op->slot);
    if (has_no_frees(c)) {
        tn_spans_add(&c->spans, entry->address, entry->size, op->slot);
    }
}

/* If the completion is the next entry, both are one operation; otherwise the free waits. */
static void compile_free(struct compile *c, const struct tn_trace_entry *entry, uint64_t index)
{
    const uint32_t slot = compile_take(&c->live, entry->address);
    const struct tn_trace_entry *next =
        index + 1 < c->trace->count ? tn_trace_at(c->model, c->trace, index + 1) : NULL;
    const bool at_once =
        has_no_completions(c) ||
        (next && next->action == TN_TRACE_FREE_COMPLETED && next->address == entry->address);

    if (slot == TN_NO_SLOT) {
        c->unknown_frees++;
        c->unknown_free_bytes += entry->size;
        return;
    }
    if (at_once) {
        compile_whole_free(c, slot, index);
        return;
    }
    struct tn_op *op = compile_add(c, TN_OP_FREE_WAITS, index);

    op->slot = slot;
    op->queue = TN_NO_QUEUE;
    compile_set(c, &c->waiting, entry->address, (uint32_t)(c->program->ops.count - 1));
}

/* The first queue whose frees all precede this one: they also complete before it, because
 * completions are processed in order. Adds a queue if there is none. The queues before it end with
 * later frees, those behind it with earlier ones, so their ends stay in descending order. */
static uint32_t compile_queue(struct compile *c, uint64_t free_index)
{
    uint64_t *last = c->queues.items;
    size_t from = 0;
    size_t to = c->queues.count;

    while (from < to) {
        const size_t middle = from + (to - from) / 2;

        if (last[middle] < free_index) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    if (from < c->queues.count) {
        last[from] = free_index;
    } else if (!tn_vec_add(&c->queues, &free_index)) {
        c->no_memory = true;
    }
    return (uint32_t)from;
}

/* A request after the free did not find it complete: the device was at least that far behind. */
static void compile_lag(struct compile *c, const struct tn_op *free_op)
{
    const uint32_t lag_ms =
        c->last_alloc_ms > free_op->time_ms ? c->last_alloc_ms - free_op->time_ms : 0;

    c->program->lag_ms = lag_ms > c->program->lag_ms ? lag_ms : c->program->lag_ms;
}

static void compile_completion(struct compile *c, const struct tn_trace_entry *entry,
                               uint64_t index)
{
    const uint32_t free_op = compile_take(&c->waiting, entry->address);
    uint32_t slot = compile_take(&c->start_waiting, entry->address);

    if (free_op != TN_NO_SLOT) {
        struct tn_op *op = &((struct tn_op *)c->program->ops.items)[free_op];

        op->queue = compile_queue(c, op->entry);
        slot = op->slot;
        compile_lag(c, op);
    }
    if (slot != TN_NO_SLOT) {
        compile_add(c, TN_OP_COMPLETE, index)->slot = slot;
        compile_end_slot(c, slot);
    } else if (c->actions[TN_TRACE_FREE_REQUESTED] == 0) { /* recorded without free_requested */
        slot = compile_take(&c->live, entry->address);
        if (slot != TN_NO_SLOT) {
            compile_whole_free(c, slot, index);
        }
    }
}

static void compile_address(struct compile *c, struct tn_vec *addresses,
                            const struct tn_trace_entry *entry)
{
    c->no_memory |= !tn_vec_add(addresses, &entry->address);
}

static void compile_oom(struct compile *c, const struct tn_trace_entry *entry, uint64_t index)
{
    struct tn_op *op = compile_add(c, TN_OP_TRY, index);

    op->size = entry->size;
    op->stream = entry->stream;
    op->pool = named_pool(c, entry);
    c->program->oom_count++;
}

static void compile_entry(struct compile *c, uint64_t index)
{
    const struct tn_trace_entry *entry = tn_trace_at(c->model, c->trace, index);

    if (tn_trace_gives_back(entry) && !c->flushing) {
        const bool want =
            tn_limit_gave_back(c->program, c->model, c->trace, index, c->reserved, c->config);

        compile_releases(c, index);
        (void)compile_add(c, want ? TN_OP_FLUSH_WANT : TN_OP_FLUSH, index);
    }
    c->flushing = tn_trace_gives_back(entry);
    c->reserved = tn_reserved_after(c->reserved, tn_reserved_delta(entry));
    switch ((enum tn_trace_action)entry->action) {
    case TN_TRACE_ALLOC:
        compile_alloc(c, entry, index);
        break;
    case TN_TRACE_FREE_REQUESTED:
        compile_free(c, entry, index);
        break;
    case TN_TRACE_FREE_COMPLETED:
        compile_completion(c, entry, index);
        break;
    case TN_TRACE_SEGMENT_ALLOC:
        compile_address(c, &c->program->segment_addresses, entry);
        break;
    case TN_TRACE_SEGMENT_MAP:
        compile_address(c, &c->program->map_addresses, entry);
        break;
    case TN_TRACE_OOM:
        compile_oom(c, entry, index);
        break;
    case TN_TRACE_SEGMENT_FREE:
    case TN_TRACE_SEGMENT_UNMAP:
    case TN_TRACE_SNAPSHOT:
    case TN_TRACE_ANNOTATE:
    case TN_TRACE_USER_DEFINED:
    case TN_TRACE_OTHER:
        break;
    case TN_TRACE_ACTION_COUNT:
        tn_no_case();
        break;
    }
}

/* Blocks of the initial state get the first slots. */
static void compile_start(struct compile *c)
{
    struct tn_start_block *blocks = c->program->start_blocks.items;

    for (size_t i = 0; i < c->program->start_blocks.count; i++) {
        blocks[i].slot = c->program->slot_count++;
        compile_set(c, blocks[i].waiting ? &c->start_waiting : &c->live, blocks[i].address,
                    blocks[i].slot);
    }
}

static int address_compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Each expandable segment reserves 9/8 of the device, so the distance between two is an upper bound
 * of the device's size. Addresses closer together than TN_RANGE_GAP count as one range. */
static uint64_t device_bound(struct compile *c)
{
    const struct tn_vec *map_addresses = &c->program->map_addresses;
    const struct tn_vec *start = &c->program->start_segments;
    const size_t bytes = (map_addresses->count + start->count) * sizeof(uint64_t);
    uint64_t *sorted = tn_host_alloc(bytes);
    size_t count = map_addresses->count;
    uint64_t smallest = 0;

    if (!sorted) {
        c->no_memory = c->no_memory || bytes > 0;
        return TN_DEVICE_BOUND_NONE;
    }
    if (count > 0) {
        memcpy(sorted, map_addresses->items, count * sizeof *sorted);
    }
    for (size_t i = 0; i < start->count; i++) {
        const struct tn_start_segment *segment = (const struct tn_start_segment *)start->items + i;

        if (segment->is_expandable) {
            sorted[count++] = segment->address;
        }
    }
    qsort(sorted, count, sizeof *sorted, address_compare);
    for (size_t i = 1, first = 0; i < count; i++) {
        if (sorted[i] - sorted[i - 1] > TN_RANGE_GAP) {
            const uint64_t size = sorted[i] - sorted[first];

            smallest = smallest == 0 || size < smallest ? size : smallest;
            first = i;
        }
    }
    tn_host_free(sorted, bytes);
    return smallest ? smallest / 9 * 8 - TN_LARGE_BUFFER : TN_DEVICE_BOUND_NONE;
}

/* Blocks of the initial state, which do not overlap, and room for those of the trace. */
static void compile_spans(struct compile *c)
{
    const struct tn_start_block *blocks = c->program->start_blocks.items;
    const size_t count = c->program->start_blocks.count;

    if (!tn_spans_init(&c->spans, has_no_frees(c) ? count + c->trace->count : 0)) {
        c->no_memory = true;
        return;
    }
    for (size_t i = 0; i < count && has_no_frees(c); i++) {
        tn_spans_add(&c->spans, blocks[i].address, blocks[i].size, blocks[i].slot);
    }
}

static enum tarn_status compile_trace(struct compile *c, struct tarn_error *error)
{
    count_actions(c);
    if (!tn_vec_reserve(&c->program->ops, operations_bound(c))) {
        c->no_memory = true;
    }
    compile_start(c);
    compile_spans(c);
    compile_pools(c);
    compile_last_uses(c);
    for (uint64_t i = 0; i < c->trace->count && !c->no_memory; i++) {
        compile_entry(c, i);
    }
    note_frees(c);
    note_pools(c);
    note_segments(c);
    c->program->queue_count = (uint32_t)c->queues.count;
    c->program->device_bound = device_bound(c);
    c->program->entry_count = c->trace->count;
    return c->no_memory ? tn_fail_memory(error) : TARN_OK;
}

enum tarn_status tn_program_compile(struct tn_program *program, const struct tn_model *model,
                                    int device, const struct tarn_config *config,
                                    struct tarn_error *error)
{
    struct compile c = {.program = program, .model = model, .config = config};
    enum tarn_status st;

    tn_program_init(program, device);
    tn_vec_init(&c.queues, sizeof(uint64_t));
    tn_vec_init(&c.free_slots, sizeof(uint32_t));
    tn_vec_init(&c.last_uses, sizeof(uint64_t));
    tn_id_table_init(&c.pool_places, &c.pool_budget);
    if (device < 0 || (size_t)device >= model->trace_count || model->traces[device].count == 0) {
        return tn_fail(error, TARN_ERR_NOT_FOUND,
                       "the snapshot has no trace of device %d: record with "
                       "torch.cuda.memory._record_memory_history() before the run",
                       device);
    }
    c.trace = &model->traces[device];
    c.source = tn_source_of_device(model, (size_t)device);
    st = tn_start_state_rebuild(program, &c.source, error);
    if (st == TARN_OK) {
        tn_limit_find_bounds(program, model, c.trace, config);
        c.reserved = tn_program_reserved_at_start(program);
        (void)pool_place(&c, (struct tarn_pool_id){0});
        st = compile_trace(&c, error);
    }
    tn_map_fini(&c.live);
    tn_map_fini(&c.waiting);
    tn_map_fini(&c.start_waiting);
    tn_vec_fini(&c.queues);
    tn_vec_fini(&c.free_slots);
    tn_vec_fini(&c.last_uses);
    tn_id_table_fini(&c.pool_places);
    tn_spans_fini(&c.spans);
    tn_entry_pools_fini(&c.entry_pools);
    tn_map_fini(&c.since);
    if (st) {
        tn_program_fini(program);
    }
    return st;
}
