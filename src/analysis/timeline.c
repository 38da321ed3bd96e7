/* SPDX-License-Identifier: MIT */
#include "analysis/timeline.h"

#include "analysis/lifetime_walk.h"

enum {
    ENTRIES_PER_LIFETIME = 3, /* of most: an allocation, a free and its completion */
    ENTRIES_PER_HIGHEST = 64, /* of which the most requested bytes are kept */
    ENTRIES_AHEAD = 16        /* whose blocks are looked up early */
};

/* While the trace is read. */
struct reading {
    struct tn_timeline *timeline;
    struct tn_lifetime_walk walk;
    uint64_t requested; /* bytes since the start, modulo 2^64 */
    uint64_t largest;   /* request */
    uint64_t *of_entry; /* where they are kept; NULL: nowhere */
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
    if (lifetime->start == TN_NEVER) {
        timeline->before_count++;
        timeline->start.requested += lifetime->size;
    }
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

/* ---- entries about blocks ---- */

/* Keeps the requested bytes after an entry. */
static void total_keep(const struct reading *reading, uint64_t number)
{
    if (reading->of_entry) {
        reading->of_entry[number] = reading->requested;
    }
}

static uint32_t metadata_of(const struct reading *reading, const struct tn_trace_entry *entry)
{
    return tn_model_extra(reading->timeline->model, entry->extra)->user_metadata;
}

static void request_count(struct reading *reading, const struct tn_trace_entry *entry)
{
    if (entry->size > reading->largest) {
        reading->largest = entry->size;
    }
}

/* In place and field by field: to read a struct right after its fields were written waits for
 * them, which took a third of the time that a trace takes. */
static bool lifetime_begin(struct reading *reading, const struct tn_trace_entry *entry,
                           uint64_t number)
{
    struct tn_lifetime *lifetime = lifetime_push(reading->timeline);

    if (!lifetime) {
        return false;
    }
    lifetime->address = entry->address;
    lifetime->size = entry->size;
    lifetime->stream = entry->stream;
    lifetime->start = number;
    lifetime->requested = TN_NEVER;
    lifetime->end = TN_NEVER;
    lifetime->stack = entry->stack;
    lifetime->extra = entry->extra;
    lifetime->metadata = metadata_of(reading, entry);
    lifetime->pool_stream = 0;
    lifetime->annotation = 0;
    lifetime->category = 0;
    reading->timeline->empty_stacks += entry->stack == TN_STACK_EMPTY;
    reading->requested += entry->size;
    request_count(reading, entry);
    return true;
}

static void lifetime_end(struct reading *reading, struct tn_lifetime *lifetime, uint64_t number)
{
    lifetime->end = number;
    reading->requested -= lifetime->size;
}

static bool alloc_read(struct reading *reading, const struct tn_trace_entry *entry, uint64_t number)
{
    struct tn_lifetime_step step;

    if (!tn_lifetime_walk_alloc(&reading->walk, entry->address, &step) ||
        !lifetime_begin(reading, entry, number)) {
        return false;
    }
    if (step.ended != TN_LIFETIME_NONE) {
        lifetime_end(reading, lifetime_at(reading->timeline, step.ended), number);
        reading->timeline->doubled_allocs++;
    }
    return true;
}

/* A block from before that is first mentioned by its free, whose stack is not that of the block. */
static bool before_add(struct tn_timeline *timeline, const struct tn_trace_entry *entry)
{
    const struct tn_lifetime lifetime = {.address = entry->address,
                                         .size = entry->size,
                                         .stream = entry->stream,
                                         .start = TN_NEVER,
                                         .requested = TN_NEVER,
                                         .end = TN_NEVER,
                                         .stack = TN_STACK_NONE,
                                         .extra = TN_EXTRA_NONE,
                                         .metadata = TN_STRING_NONE};

    return lifetime_add(timeline, &lifetime);
}

/* The lifetime that a free refers to. False without host memory; *lifetime_out NULL: none. */
static inline bool freed_find(struct reading *reading, const struct tn_trace_entry *entry,
                              bool is_completed, struct tn_lifetime **lifetime_out)
{
    struct tn_timeline *timeline = reading->timeline;
    struct tn_lifetime_step step;

    *lifetime_out = NULL;
    if (!tn_lifetime_walk_free(&reading->walk, entry->address, is_completed, &step) ||
        (step.is_new && !before_add(timeline, entry))) {
        return false;
    }
    if (step.lifetime == TN_LIFETIME_NONE) {
        timeline->unknown_frees++;
    } else {
        *lifetime_out = lifetime_at(timeline, step.lifetime);
    }
    return true;
}

static bool request_read(struct reading *reading, const struct tn_trace_entry *entry,
                         uint64_t number)
{
    struct tn_lifetime *lifetime;

    if (!freed_find(reading, entry, false, &lifetime)) {
        return false;
    }
    if (lifetime) {
        lifetime->requested = number;
    }
    return true;
}

static bool completion_read(struct reading *reading, const struct tn_trace_entry *entry,
                            uint64_t number)
{
    struct tn_lifetime *lifetime;

    request_count(reading, entry);
    if (!freed_find(reading, entry, true, &lifetime)) {
        return false;
    }
    if (lifetime) {
        lifetime_end(reading, lifetime, number);
    }
    return true;
}

/* Whether the entry requests a free that the next one completes, as most do. */
static bool is_free(const struct tn_trace_entry *entry, uint64_t left)
{
    return entry->action == TN_TRACE_FREE_REQUESTED && left > 1 &&
           entry[1].action == TN_TRACE_FREE_COMPLETED && entry[1].address == entry->address;
}

/* Both entries with one search. */
static bool free_read(struct reading *reading, const struct tn_trace_entry *entry, uint64_t number)
{
    struct tn_lifetime *lifetime;

    request_count(reading, &entry[1]);
    total_keep(reading, number);
    if (!freed_find(reading, entry, true, &lifetime)) {
        return false;
    }
    if (lifetime) {
        lifetime->requested = number;
        lifetime_end(reading, lifetime, number + 1);
    } else {
        reading->timeline->unknown_frees++; /* the second one */
    }
    return true;
}

static void annotation_read(struct reading *reading, const struct tn_trace_entry *entry)
{
    const uint64_t lifetime = tn_lifetime_walk_at(&reading->walk, entry->address);

    if (lifetime != TN_LIFETIME_NONE) {
        lifetime_at(reading->timeline, lifetime)->metadata = metadata_of(reading, entry);
    }
}

/* ---- other entries ---- */

static bool memory_read(struct tn_timeline *timeline, const struct tn_trace_entry *entry,
                        uint64_t number)
{
    const struct tn_memory_change change = {.entry = number,
                                            .bytes = (uint64_t)tn_reserved_delta(entry)};

    return tn_vec_append(&timeline->memory, &change, 1);
}

static bool other_read(struct reading *reading, const struct tn_trace_entry *entry, uint64_t number)
{
    if (entry->action == TN_TRACE_ANNOTATE) {
        annotation_read(reading, entry);
    } else if (entry->action == TN_TRACE_OOM) {
        return tn_vec_append(&reading->timeline->ooms, &number, 1);
    } else if (tn_trace_takes(entry) || tn_trace_gives_back(entry)) {
        return memory_read(reading->timeline, entry, number);
    }
    return true;
}

static bool entry_read(struct reading *reading, const struct tn_trace_entry *entry, uint64_t number)
{
    if (entry->action == TN_TRACE_ALLOC) {
        return alloc_read(reading, entry, number);
    }
    if (entry->action == TN_TRACE_FREE_REQUESTED) {
        return request_read(reading, entry, number);
    }
    return entry->action == TN_TRACE_FREE_COMPLETED ? completion_read(reading, entry, number)
                                                    : other_read(reading, entry, number);
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

/* ---- totals ---- */

/* Room for a total of each entry. */
static bool requested_make(struct tn_timeline *timeline)
{
    if (!tn_vec_reserve(&timeline->requested, (size_t)timeline->trace->count)) {
        return false;
    }
    timeline->requested.count = (size_t)timeline->trace->count;
    return true;
}

/* Of a part: what every entry adds, then their sums. */
static bool requested_narrow(struct tn_timeline *timeline)
{
    if (!requested_make(timeline)) {
        return false;
    }
    uint64_t *requested = timeline->requested.items;
    uint64_t sum = 0;

    for (size_t i = 0; i < timeline->requested.count; i++) {
        requested[i] = 0;
    }
    for (size_t i = 0; i < timeline->lifetimes.count; i++) {
        const struct tn_lifetime *lifetime = lifetime_at(timeline, i);

        if (lifetime->start != TN_NEVER) {
            requested[lifetime->start] += lifetime->size;
        }
        if (lifetime->end != TN_NEVER) {
            requested[lifetime->end] -= lifetime->size;
        }
    }
    for (size_t i = 0; i < timeline->requested.count; i++) {
        sum += requested[i];
        requested[i] = sum;
    }
    return true;
}

/* Right after an entry. */
static uint64_t requested_at(const struct tn_timeline *timeline, uint64_t entry)
{
    tn_assert(entry != TN_NEVER);
    return timeline->start.requested + ((const uint64_t *)timeline->requested.items)[entry];
}

/* Goes on to right after an entry, which is not before `now`. */
static void time_point_set(const struct tn_timeline *timeline, struct tn_time_point *now,
                           uint64_t entry)
{
    now->entry = entry;
    now->requested = requested_at(timeline, entry);
    if (timeline->whole) {
        now->left_out = requested_at(timeline->whole, entry) - now->requested;
    }
}

/* Adds the next change of memory, if it is before entry `limit`. */
static bool memory_step(const struct tn_timeline *timeline, struct tn_time_point *now,
                        uint64_t limit)
{
    const struct tn_memory_change *changes = timeline->memory.items;

    if (now->memory == timeline->memory.count || changes[now->memory].entry >= limit) {
        return false;
    }
    now->reserved += changes[now->memory++].bytes;
    return true;
}

struct tn_time_point tn_timeline_at(const struct tn_timeline *timeline, uint64_t entry)
{
    struct tn_time_point now = timeline->start;

    if (entry != TN_NEVER && entry >= timeline->first) {
        time_point_set(timeline, &now, entry);
        while (memory_step(timeline, &now, entry + 1)) {
            continue;
        }
    }
    return now;
}

/* Raises a peak to the requested bytes after entries [first, limit), looking at all. */
static void requested_scan(const struct tn_timeline *timeline, struct tn_time_peak *peak,
                           uint64_t first, uint64_t limit)
{
    const uint64_t *requested = timeline->requested.items;
    const uint64_t start = timeline->start.requested;
    uint64_t most = peak->requested;
    uint64_t at = peak->requested_entry;

    for (uint64_t i = first; i < limit; i++) {
        if (start + requested[i] > most) {
            most = start + requested[i];
            at = i;
        }
    }
    peak->requested = most;
    peak->requested_entry = at;
}

/* The same without entries of which none is higher. */
static void requested_raise(const struct tn_timeline *timeline, struct tn_time_peak *peak,
                            uint64_t first, uint64_t limit)
{
    const uint64_t *highest = timeline->highest.items;

    while (first < limit) {
        const uint64_t behind = (first / ENTRIES_PER_HIGHEST + 1) * ENTRIES_PER_HIGHEST;
        const uint64_t end = behind < limit ? behind : limit;

        if (highest[first / ENTRIES_PER_HIGHEST] > peak->requested) {
            requested_scan(timeline, peak, first, end);
        }
        first = end;
    }
}

/* The same for reserved bytes; goes on to right before `limit`. */
static void reserved_raise(const struct tn_timeline *timeline, struct tn_time_peak *peak,
                           struct tn_time_point *now, uint64_t limit)
{
    const struct tn_memory_change *changes = timeline->memory.items;

    while (memory_step(timeline, now, limit)) {
        if (now->reserved > peak->reserved) {
            peak->reserved = now->reserved;
            peak->reserved_entry = changes[now->memory - 1].entry;
        }
    }
}

struct tn_time_peak tn_timeline_follow(const struct tn_timeline *timeline,
                                       struct tn_time_point *now, uint64_t limit)
{
    const uint64_t first = now->entry == TN_NEVER ? 0 : now->entry + 1;
    struct tn_time_peak peak = {now->requested, now->entry, now->reserved, now->entry};

    if (first < limit) {
        requested_raise(timeline, &peak, first, limit);
        reserved_raise(timeline, &peak, now, limit);
        time_point_set(timeline, now, limit - 1);
    }
    return peak;
}

uint64_t tn_timeline_reserved_max(const struct tn_timeline *timeline, uint64_t entry)
{
    struct tn_time_point now = timeline->start;
    uint64_t most = now.reserved;

    while (memory_step(timeline, &now, entry + 1)) { /* none before the first entry */
        most = now.reserved > most ? now.reserved : most;
    }
    return most;
}

static bool highest_make(struct tn_timeline *timeline)
{
    const uint64_t count = timeline->trace->count;

    for (uint64_t i = 0; i < count; i += ENTRIES_PER_HIGHEST) {
        const uint64_t limit = i + ENTRIES_PER_HIGHEST < count ? i + ENTRIES_PER_HIGHEST : count;
        struct tn_time_peak peak = {.requested = 0};

        requested_scan(timeline, &peak, i, limit);
        if (!tn_vec_append(&timeline->highest, &peak.requested, 1)) {
            return false;
        }
    }
    return true;
}

/* The start has all its totals. */
static bool peaks_find(struct tn_timeline *timeline)
{
    if (!highest_make(timeline)) {
        return false;
    }
    struct tn_time_point now = timeline->start;
    const struct tn_time_peak peak = tn_timeline_follow(timeline, &now, timeline->limit);

    timeline->requested_peak = tn_timeline_at(timeline, peak.requested_entry);
    timeline->reserved_peak = tn_timeline_at(timeline, peak.reserved_entry);
    timeline->end = now;
    return true;
}

/* ---- the trace ---- */

/* The table of blocks is not in a near cache. */
static void look_ahead(const struct reading *reading, const struct tn_trace_entry *entry,
                       uint64_t left)
{
    if (left > ENTRIES_AHEAD) {
        tn_address_prefetch(&reading->walk.blocks, entry[ENTRIES_AHEAD].address);
    }
}

/* Entries from `first` on that lie side by side. */
static bool run_read(struct reading *reading, const struct tn_trace_entry *run, uint64_t count,
                     uint64_t first)
{
    for (uint64_t i = 0; i < count; i++) {
        const struct tn_trace_entry *entry = &run[i];
        bool good;

        look_ahead(reading, entry, count - i);
        if (is_free(entry, count - i)) {
            good = free_read(reading, entry, first + i);
            i++;
            look_ahead(reading, &run[i], count - i);
        } else {
            good = entry_read(reading, entry, first + i);
        }
        if (!good) {
            return false;
        }
        total_keep(reading, first + i);
    }
    return true;
}

static bool trace_read(struct reading *reading)
{
    struct tn_timeline *timeline = reading->timeline;
    const struct tn_trace_source source = tn_timeline_source(timeline);
    uint64_t count;

    for (uint64_t first = 0; first < timeline->trace->count; first += count) {
        const struct tn_trace_entry *run =
            tn_trace_run_from(source.model, source.trace, first, &count);

        if (!run_read(reading, run, count, first)) {
            return false;
        }
    }
    return tn_lifetime_walk_survivors(&reading->walk, &source, survivor_read, timeline);
}

static void vecs_init(struct tn_timeline *timeline)
{
    tn_vec_init(&timeline->lifetimes, sizeof(struct tn_lifetime));
    tn_vec_init(&timeline->ooms, sizeof(uint64_t));
    tn_vec_init(&timeline->requested, sizeof(uint64_t));
    tn_vec_init(&timeline->highest, sizeof(uint64_t));
    tn_vec_init(&timeline->memory, sizeof(struct tn_memory_change));
}

/* Room for as many lifetimes as there are likely to be, of blocks that come and go and those that
 * the snapshot has, and for the addresses of these. */
static bool room_make(struct reading *reading, const struct tn_trace_source *source)
{
    const uint64_t entries = source->trace->count;
    uint64_t blocks = 0;

    for (size_t i = 0; i < source->segment_count && blocks < entries; i++) {
        blocks += tn_source_has(source, i) ? source->segments[i].block_count : 0;
    }
    return tn_vec_reserve(&reading->timeline->lifetimes,
                          (size_t)(entries / ENTRIES_PER_LIFETIME + blocks)) &&
           tn_map_reserve(&reading->walk.blocks, blocks < entries ? blocks : entries);
}

static bool timeline_init(struct tn_timeline *timeline, const struct tn_model *model, size_t device,
                          bool has_totals)
{
    struct reading reading = {.timeline = timeline};
    const struct tn_trace_source source = tn_source_of_device(model, device);

    *timeline = (struct tn_timeline){.model = model,
                                     .trace = source.trace,
                                     .device = (int64_t)device,
                                     .limit = source.trace->count,
                                     .start = {.entry = TN_NEVER}};
    vecs_init(timeline);
    bool good = room_make(&reading, &source) && (!has_totals || requested_make(timeline));

    if (good) {
        reading.of_entry = timeline->requested.items;
        good = trace_read(&reading);
        timeline->request_limit = reading.largest + 1; /* readers keep sizes below 2^62 */
    }
    tn_lifetime_walk_fini(&reading.walk);
    if (!good) {
        tn_timeline_fini(timeline);
    }
    return good;
}

bool tn_timeline_init_lifetimes(struct tn_timeline *timeline, const struct tn_model *model,
                                size_t device)
{
    return timeline_init(timeline, model, device, false);
}

bool tn_timeline_init(struct tn_timeline *timeline, const struct tn_model *model, size_t device)
{
    if (!timeline_init(timeline, model, device, true)) {
        return false;
    }
    const struct tn_trace_source source = tn_timeline_source(timeline);

    timeline->start.reserved = tn_source_reserved_before(&source, 0);
    if (!peaks_find(timeline)) {
        tn_timeline_fini(timeline);
        return false;
    }
    return true;
}

void tn_timeline_fini(struct tn_timeline *timeline)
{
    tn_vec_fini(&timeline->memory);
    tn_vec_fini(&timeline->highest);
    tn_vec_fini(&timeline->requested);
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
    const struct tn_memory_change *changes = timeline->memory.items;
    struct tn_time_point start = {.entry = whole.entry, .requested = timeline->start.requested};

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
        !requested_narrow(timeline) || !memory_narrow(timeline, narrowing)) {
        tn_timeline_fini(timeline);
        return false;
    }
    start_narrow(timeline, narrowing);
    if (!peaks_find(timeline)) {
        tn_timeline_fini(timeline);
        return false;
    }
    return true;
}
