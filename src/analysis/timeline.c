/* SPDX-License-Identifier: MIT */
#include "analysis/timeline.h"

#include "analysis/lifetime_walk.h"

enum {
    ENTRIES_PER_LIFETIME = 3, /* of most: an allocation, a free and its completion */
    ENTRIES_AHEAD = 16 /* whose blocks are looked up early, as they are not in a near cache */
};

/* While the trace is read. */
struct reading {
    struct tn_timeline *timeline;
    struct tn_lifetime_walk walk;
    uint64_t entry;
};

static struct tn_lifetime *lifetime_at(const struct tn_timeline *timeline, uint64_t number)
{
    return (struct tn_lifetime *)timeline->lifetimes.items + number;
}

/* Room for one more, to be filled; NULL without host memory. Not tn_vec_push, which is a call: a
 * trace has very many. */
static struct tn_lifetime *lifetime_push(struct tn_timeline *timeline)
{
    if (timeline->lifetimes.count == timeline->lifetimes.capacity &&
        !tn_vec_reserve(&timeline->lifetimes, 1)) {
        return NULL;
    }
    return lifetime_at(timeline, timeline->lifetimes.count++);
}

static void lifetime_count(struct tn_timeline *timeline, const struct tn_lifetime *lifetime)
{
    timeline->before_count += lifetime->start == TN_NEVER;
    timeline->empty_stacks += lifetime->stack == TN_STACK_EMPTY;
}

static bool lifetime_add(struct tn_timeline *timeline, const struct tn_lifetime *lifetime)
{
    struct tn_lifetime *added = lifetime_push(timeline);

    if (added) {
        *added = *lifetime;
        lifetime_count(timeline, added);
    }
    return added != NULL;
}

static uint32_t metadata_of(const struct reading *reading, const struct tn_trace_entry *entry)
{
    return tn_model_extra(reading->timeline->model, entry->extra)->user_metadata;
}

/* A lifetime that begins with the entry. If a free first mentions a block from before, the
 * entry's stack is that of the free. In place and field by field: to read a struct right after its
 * fields were written waits for them, which took a third of the time that a trace takes. */
static bool lifetime_begin(const struct reading *reading, const struct tn_trace_entry *entry)
{
    const bool is_alloc = entry->action == TN_TRACE_ALLOC;
    struct tn_lifetime *lifetime = lifetime_push(reading->timeline);

    if (!lifetime) {
        return false;
    }
    lifetime->address = entry->address;
    lifetime->size = entry->size;
    lifetime->stream = entry->stream;
    lifetime->start = is_alloc ? reading->entry : TN_NEVER;
    lifetime->requested = TN_NEVER;
    lifetime->end = TN_NEVER;
    lifetime->stack = is_alloc ? entry->stack : TN_STACK_NONE;
    lifetime->extra = is_alloc ? entry->extra : TN_EXTRA_NONE;
    lifetime->metadata = is_alloc ? metadata_of(reading, entry) : TN_STRING_NONE;
    lifetime->pool_stream = 0;
    lifetime->annotation = 0;
    lifetime->category = 0;
    lifetime_count(reading->timeline, lifetime);
    return true;
}

/* Updates the lifetime from the entry. */
static void lifetime_read(const struct reading *reading, const struct tn_trace_entry *entry,
                          struct tn_lifetime *lifetime)
{
    if (entry->action == TN_TRACE_FREE_REQUESTED) {
        lifetime->requested = reading->entry;
    } else if (entry->action == TN_TRACE_FREE_COMPLETED) {
        lifetime->end = reading->entry;
    } else if (entry->action == TN_TRACE_ANNOTATE) {
        lifetime->metadata = metadata_of(reading, entry);
    }
}

/* An entry about a block. */
static bool block_read(struct reading *reading, const struct tn_trace_entry *entry)
{
    struct tn_timeline *timeline = reading->timeline;
    struct tn_lifetime_step step;

    if (!tn_lifetime_walk_step(&reading->walk, entry, &step) ||
        (step.is_new && !lifetime_begin(reading, entry))) {
        return false;
    }
    if (step.ended != TN_LIFETIME_NONE) {
        lifetime_at(timeline, step.ended)->end = reading->entry;
        timeline->doubled_allocs++;
    }
    if (step.lifetime != TN_LIFETIME_NONE) {
        lifetime_read(reading, entry, lifetime_at(timeline, step.lifetime));
    } else if (entry->action != TN_TRACE_ANNOTATE) {
        timeline->unknown_frees++;
    }
    return true;
}

static bool memory_read(struct reading *reading, const struct tn_trace_entry *entry)
{
    const struct tn_memory_change change = {.entry = reading->entry,
                                            .bytes = (uint64_t)tn_reserved_delta(entry)};

    return tn_vec_append(&reading->timeline->memory, &change, 1);
}

static bool entry_read(struct reading *reading, const struct tn_trace_entry *entry)
{
    switch (entry->action) {
    case TN_TRACE_ALLOC:
    case TN_TRACE_FREE_REQUESTED:
    case TN_TRACE_FREE_COMPLETED:
    case TN_TRACE_ANNOTATE:
        return block_read(reading, entry);
    case TN_TRACE_OOM:
        return tn_vec_append(&reading->timeline->ooms, &reading->entry, 1);
    default:
        return (!tn_trace_takes(entry) && !tn_trace_gives_back(entry)) ||
               memory_read(reading, entry);
    }
}

static bool survivor_read(void *context, const struct tn_model_segment *segment,
                          const struct tn_model_block *block)
{
    const struct tn_lifetime lifetime = {.address = block->address,
                                         .size = block->requested_size,
                                         .stream = segment->stream,
                                         .start = TN_NEVER,
                                         .requested = TN_NEVER,
                                         .end = TN_NEVER,
                                         .stack = block->stack};

    return lifetime_add(context, &lifetime);
}

/* Bytes before the first entry. Readers keep all sizes of a file below 2^62 together. */
static void start_set(struct tn_timeline *timeline)
{
    const struct tn_trace_source source = tn_timeline_source(timeline);
    uint64_t requested = 0;
    uint64_t found = 0;

    for (size_t i = 0; found < timeline->before_count; i++) {
        const struct tn_lifetime *lifetime = lifetime_at(timeline, i);

        found += lifetime->start == TN_NEVER;
        requested += lifetime->start == TN_NEVER ? lifetime->size : 0;
    }
    timeline->start = (struct tn_time_point){.entry = TN_NEVER,
                                             .requested = requested,
                                             .reserved = tn_source_reserved_before(&source, 0)};
}

/* A zero for each entry. */
static bool zeros_fill(struct tn_vec *vec, uint64_t count)
{
    if (!tn_vec_reserve(vec, (size_t)count)) {
        return false;
    }
    for (uint64_t i = 0; i < count; i++) {
        ((uint64_t *)vec->items)[i] = 0;
    }
    vec->count = (size_t)count;
    return true;
}

/* What every entry adds to the requested bytes. */
static bool deltas_fill(struct tn_timeline *timeline)
{
    if (!zeros_fill(&timeline->deltas, timeline->trace->count)) {
        return false;
    }
    uint64_t *deltas = timeline->deltas.items;

    for (size_t i = 0; i < timeline->lifetimes.count; i++) {
        const struct tn_lifetime *lifetime = lifetime_at(timeline, i);

        if (lifetime->start != TN_NEVER) {
            deltas[lifetime->start] += lifetime->size;
        }
        if (lifetime->end != TN_NEVER) {
            deltas[lifetime->end] -= lifetime->size;
        }
    }
    return true;
}

void tn_timeline_step(const struct tn_timeline *timeline, struct tn_time_point *now, uint64_t entry)
{
    const uint64_t delta = ((const uint64_t *)timeline->deltas.items)[entry];
    const struct tn_memory_change *changes = timeline->memory.items;

    now->entry = entry;
    now->requested += delta;
    if (timeline->whole) {
        now->left_out += ((const uint64_t *)timeline->whole->deltas.items)[entry] - delta;
    }
    if (now->memory < timeline->memory.count && changes[now->memory].entry == entry) {
        now->reserved += changes[now->memory++].bytes;
    }
}

static void peaks_find(struct tn_timeline *timeline)
{
    struct tn_time_point now = timeline->start;

    timeline->requested_peak = now;
    timeline->reserved_peak = now;
    for (uint64_t i = timeline->first; i < timeline->limit; i++) {
        tn_timeline_step(timeline, &now, i);
        if (now.requested > timeline->requested_peak.requested) {
            timeline->requested_peak = now;
        }
        if (now.reserved > timeline->reserved_peak.reserved) {
            timeline->reserved_peak = now;
        }
    }
    timeline->end = now;
}

struct tn_time_point tn_timeline_at(const struct tn_timeline *timeline, uint64_t entry)
{
    struct tn_time_point now = timeline->start;

    for (uint64_t i = timeline->first; entry != TN_NEVER && i <= entry; i++) {
        tn_timeline_step(timeline, &now, i);
    }
    return now;
}

uint64_t tn_timeline_reserved_max(const struct tn_timeline *timeline, uint64_t entry)
{
    struct tn_time_point now = timeline->start;
    uint64_t most = now.reserved;

    for (uint64_t i = timeline->first; entry != TN_NEVER && i <= entry; i++) {
        tn_timeline_step(timeline, &now, i);
        most = now.reserved > most ? now.reserved : most;
    }
    return most;
}

/* Entries that lie side by side. */
static bool run_read(struct reading *reading, const struct tn_trace_entry *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, reading->entry++) {
        if (i + ENTRIES_AHEAD < count) {
            tn_address_prefetch(&reading->walk.blocks, run[i + ENTRIES_AHEAD].address);
        }
        if (!entry_read(reading, &run[i])) {
            return false;
        }
    }
    return true;
}

static bool trace_read(struct reading *reading)
{
    struct tn_timeline *timeline = reading->timeline;
    const struct tn_trace_source source = tn_timeline_source(timeline);

    while (reading->entry < timeline->trace->count) {
        uint64_t count;
        const struct tn_trace_entry *run =
            tn_trace_run_from(source.model, source.trace, reading->entry, &count);

        if (!run_read(reading, run, count)) {
            return false;
        }
    }
    return tn_lifetime_walk_survivors(&reading->walk, &source, survivor_read, timeline);
}

static void vecs_init(struct tn_timeline *timeline)
{
    tn_vec_init(&timeline->lifetimes, sizeof(struct tn_lifetime));
    tn_vec_init(&timeline->ooms, sizeof(uint64_t));
    tn_vec_init(&timeline->deltas, sizeof(uint64_t));
    tn_vec_init(&timeline->memory, sizeof(struct tn_memory_change));
}

bool tn_timeline_init_lifetimes(struct tn_timeline *timeline, const struct tn_model *model,
                                size_t device)
{
    struct reading reading = {.timeline = timeline};
    const struct tn_trace_source source = tn_source_of_device(model, device);

    *timeline = (struct tn_timeline){.model = model,
                                     .trace = source.trace,
                                     .device = (int64_t)device,
                                     .limit = source.trace->count};
    vecs_init(timeline);
    const bool good =
        tn_vec_reserve(&timeline->lifetimes, timeline->trace->count / ENTRIES_PER_LIFETIME) &&
        trace_read(&reading);

    tn_lifetime_walk_fini(&reading.walk);
    if (!good) {
        tn_timeline_fini(timeline);
    }
    return good;
}

bool tn_timeline_init(struct tn_timeline *timeline, const struct tn_model *model, size_t device)
{
    if (!tn_timeline_init_lifetimes(timeline, model, device)) {
        return false;
    }
    if (!deltas_fill(timeline)) {
        tn_timeline_fini(timeline);
        return false;
    }
    start_set(timeline);
    peaks_find(timeline);
    return true;
}

void tn_timeline_fini(struct tn_timeline *timeline)
{
    tn_vec_fini(&timeline->memory);
    tn_vec_fini(&timeline->deltas);
    tn_vec_fini(&timeline->ooms);
    tn_vec_fini(&timeline->lifetimes);
}

/* ---- a part of it ---- */

/* Clips a lifetime at both ends of the part; false when nothing of it is left. */
static bool lifetime_cut(struct tn_lifetime *lifetime, const struct tn_narrowing *narrowing)
{
    if (lifetime->start != TN_NEVER && lifetime->start >= narrowing->limit) {
        return false;
    }
    if (lifetime->end != TN_NEVER && lifetime->end < narrowing->first) {
        return false;
    }
    if (lifetime->start != TN_NEVER && lifetime->start < narrowing->first) {
        lifetime->start = TN_NEVER;
    }
    if (lifetime->requested != TN_NEVER && lifetime->requested >= narrowing->limit) {
        lifetime->requested = TN_NEVER;
    }
    if (lifetime->end != TN_NEVER && lifetime->end >= narrowing->limit) {
        lifetime->end = TN_NEVER;
    }
    return true;
}

static bool lifetimes_narrow(struct tn_timeline *timeline, const struct tn_narrowing *narrowing)
{
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(timeline->whole);

    for (size_t i = 0; i < timeline->whole->lifetimes.count; i++) {
        struct tn_lifetime lifetime = lifetimes[i];

        if (lifetime_cut(&lifetime, narrowing) &&
            (!narrowing->wants || narrowing->wants(narrowing->context, &lifetimes[i])) &&
            !lifetime_add(timeline, &lifetime)) {
            return false;
        }
    }
    return true;
}

static bool ooms_narrow(struct tn_timeline *timeline)
{
    const uint64_t *ooms = timeline->whole->ooms.items;

    for (size_t i = 0; i < timeline->whole->ooms.count; i++) {
        if (ooms[i] >= timeline->first && ooms[i] < timeline->limit &&
            !tn_vec_append(&timeline->ooms, &ooms[i], 1)) {
            return false;
        }
    }
    return true;
}

/* What entries add to the segments that count. */
static bool memory_narrow(struct tn_timeline *timeline, const struct tn_narrowing *narrowing)
{
    const struct tn_memory_change *changes = timeline->whole->memory.items;
    const size_t count = timeline->whole->memory.count;

    timeline->limits_memory = narrowing->wants_memory;
    for (size_t i = 0; i < count && changes[i].entry < timeline->limit; i++) {
        if ((!narrowing->wants_memory ||
             narrowing->wants_memory(narrowing->context, changes[i].entry)) &&
            !tn_vec_append(&timeline->memory, &changes[i], 1)) {
            return false;
        }
    }
    return true;
}

static void start_narrow(struct tn_timeline *timeline, const struct tn_narrowing *narrowing)
{
    const struct tn_time_point whole =
        tn_timeline_at(timeline->whole, tn_timeline_before(timeline));
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(timeline);
    const struct tn_memory_change *changes = timeline->memory.items;
    struct tn_time_point start = {.entry = whole.entry};

    for (size_t i = 0; i < timeline->lifetimes.count; i++) {
        start.requested += lifetimes[i].start == TN_NEVER ? lifetimes[i].size : 0;
    }
    start.reserved =
        narrowing->wants_memory ? narrowing->reserved_before : timeline->whole->start.reserved;
    while (start.memory < timeline->memory.count && changes[start.memory].entry < timeline->first) {
        start.reserved += changes[start.memory++].bytes;
    }
    start.left_out = whole.requested - start.requested;
    timeline->start = start;
}

bool tn_timeline_narrow(struct tn_timeline *timeline, const struct tn_timeline *whole,
                        const struct tn_narrowing *narrowing)
{
    *timeline = (struct tn_timeline){.model = whole->model,
                                     .trace = whole->trace,
                                     .device = whole->device,
                                     .first = narrowing->first,
                                     .limit = narrowing->limit,
                                     .doubled_allocs = whole->doubled_allocs,
                                     .unknown_frees = whole->unknown_frees,
                                     .whole = whole};
    vecs_init(timeline);
    if (!lifetimes_narrow(timeline, narrowing) || !ooms_narrow(timeline) ||
        !deltas_fill(timeline) || !memory_narrow(timeline, narrowing)) {
        tn_timeline_fini(timeline);
        return false;
    }
    start_narrow(timeline, narrowing);
    peaks_find(timeline);
    return true;
}
