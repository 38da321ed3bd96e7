/* SPDX-License-Identifier: MIT */
#include "snapshot/profile_model.h"

#include "base/assertion.h"
#include "base/map.h"

#include <string.h>

void tn_profile_init(struct tn_profile *profile, struct tn_model *model)
{
    *profile = (struct tn_profile){.model = model};
    tn_vec_init(&profile->events, sizeof(struct tn_profile_event));
    tn_vec_init(&profile->slices, sizeof(struct tn_profile_slice));
}

void tn_profile_fini(struct tn_profile *profile)
{
    tn_vec_fini(&profile->events);
    tn_vec_fini(&profile->slices);
}

void *tn_profile_push(struct tn_profile *profile, struct tn_vec *vec)
{
    return tn_budget_charge(&profile->model->budget, 2 * vec->item_size) ? tn_vec_push(vec) : NULL;
}

static int compare(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

/* ---- stacks ---- */

/* By thread; enclosing slices come first. */
static int slice_compare(const void *left, const void *right)
{
    const struct tn_profile_slice *a = left;
    const struct tn_profile_slice *b = right;
    int order = compare(a->thread, b->thread);

    order = order ? order : compare(a->begin_ns, b->begin_ns);
    return order ? order : compare(b->end_ns, a->end_ns);
}

static int event_compare_thread(const void *left, const void *right)
{
    const struct tn_profile_event *a = left;
    const struct tn_profile_event *b = right;
    int order = compare(a->thread, b->thread);

    order = order ? order : compare(a->time_ns, b->time_ns);
    return order ? order : compare((int64_t)a->order, (int64_t)b->order);
}

/* Merges the slices and events of all threads. */
struct sweep {
    struct tn_profile *profile;
    struct tn_vec open;   /* const struct tn_profile_slice *, outermost first */
    struct tn_vec frames; /* uint32_t, of the current stack */
    size_t next;          /* slice */
    uint32_t max_frames;
    uint32_t stack; /* of the open slices, unless has_changed */
    bool has_changed;
};

static void open_drop(struct sweep *sweep, int64_t thread, int64_t time_ns)
{
    const struct tn_profile_slice *const *open = sweep->open.items;

    while (sweep->open.count > 0 && (open[sweep->open.count - 1]->thread != thread ||
                                     open[sweep->open.count - 1]->end_ns < time_ns)) {
        sweep->open.count--;
        sweep->has_changed = true;
    }
}

/* Opens slices that began before the event, and closes those that ended. */
static bool sweep_to(struct sweep *sweep, const struct tn_profile_event *event)
{
    const struct tn_profile_slice *slices = sweep->profile->slices.items;

    for (; sweep->next < sweep->profile->slices.count; sweep->next++) {
        const struct tn_profile_slice *slice = &slices[sweep->next];

        if (slice->thread > event->thread ||
            (slice->thread == event->thread && slice->begin_ns > event->time_ns)) {
            break;
        }
        /* What takes time was not called by a slice that ended when it began. */
        open_drop(sweep, slice->thread, slice->begin_ns + (slice->end_ns > slice->begin_ns));
        if (!tn_vec_add(&sweep->open, &slice)) {
            return false;
        }
        sweep->has_changed = true;
    }
    open_drop(sweep, event->thread, event->time_ns);
    return true;
}

/* Builds the stack of the open slices. */
static bool stack_make(struct sweep *sweep)
{
    const struct tn_profile_slice *const *open = sweep->open.items;

    sweep->frames.count = 0;
    for (size_t i = sweep->open.count; i > 0 && sweep->frames.count < sweep->max_frames; i--) {
        if (!tn_vec_add(&sweep->frames, &open[i - 1]->frame)) {
            return false;
        }
    }
    sweep->stack = TN_STACK_EMPTY;
    sweep->has_changed = false;
    return sweep->frames.count == 0 ||
           tn_model_add_stack(sweep->profile->model, sweep->frames.items, sweep->frames.count,
                              &sweep->stack) == TARN_OK;
}

/* Charges the stack for each event, which becomes one or two entries. */
static bool event_set_stack(struct sweep *sweep, struct tn_profile_event *event)
{
    struct tn_model *model = sweep->profile->model;

    if (sweep->has_changed && !stack_make(sweep)) {
        return false;
    }
    event->stack = sweep->stack;
    return tn_model_charge_written(model, tn_model_stack(model, event->stack).written) == TARN_OK;
}

static bool stacks_make(struct tn_profile *profile, uint32_t max_frames)
{
    struct tn_profile_event *events = profile->events.items;
    struct sweep sweep = {.profile = profile, .max_frames = max_frames, .stack = TN_STACK_EMPTY};
    bool good = true;

    tn_vec_init(&sweep.open, sizeof(const struct tn_profile_slice *));
    tn_vec_init(&sweep.frames, sizeof(uint32_t));
    tn_vec_sort(&profile->slices, slice_compare);
    tn_vec_sort(&profile->events, event_compare_thread);
    for (size_t i = 0; good && i < profile->events.count; i++) {
        good = sweep_to(&sweep, &events[i]) && event_set_stack(&sweep, &events[i]);
    }
    tn_vec_fini(&sweep.open);
    tn_vec_fini(&sweep.frames);
    return good;
}

/* ---- traces ---- */

static int event_compare_time(const void *left, const void *right)
{
    const struct tn_profile_event *a = left;
    const struct tn_profile_event *b = right;
    const int order = compare(a->time_ns, b->time_ns);

    return order ? order : compare((int64_t)a->order, (int64_t)b->order);
}

/* A block not freed. */
struct rest {
    uint64_t address;
    uint64_t size;
    uint32_t stack;
};

/* A device being built. */
struct device {
    struct tn_profile *profile;
    int32_t source;       /* device of the events */
    int32_t number;       /* of the model */
    struct tn_map live;   /* address to number of `blocks` + 1 */
    struct tn_vec blocks; /* struct rest; size 0: was freed */
    uint64_t start;       /* of all addresses */
    uint64_t end;
};

static int64_t time_us(const struct tn_profile *profile, const struct tn_profile_event *event)
{
    int64_t ns;

    return __builtin_add_overflow(event->time_ns, profile->base_ns, &ns) ? 0 : ns / 1000;
}

static bool entry_add(const struct device *device, const struct tn_profile_event *event,
                      enum tn_trace_action action, uint64_t size)
{
    const struct tn_trace_entry entry = {.address = event->address,
                                         .size = size,
                                         .time_us = time_us(device->profile, event),
                                         .stack = event->stack,
                                         .action = (uint32_t)action & 0x1f};
    uint64_t number;

    return tn_model_add_entry(device->profile->model, &entry, &number) == TARN_OK;
}

static void range_grow(struct device *device, uint64_t address, uint64_t size)
{
    const uint64_t end = address + size; /* below 2^57 and 2^62 */

    device->start = address < device->start ? address : device->start;
    device->end = end > device->end ? end : device->end;
}

static bool free_add(struct device *device, const struct tn_profile_event *event, uint64_t size)
{
    uint64_t number;

    if (tn_map_take(&device->live, event->address, &number)) {
        struct rest *rest = (struct rest *)device->blocks.items + (number - 1);

        size = rest->size;
        rest->size = 0;
    }
    return entry_add(device, event, TN_TRACE_FREE_REQUESTED, size) &&
           entry_add(device, event, TN_TRACE_FREE_COMPLETED, size);
}

static bool alloc_add(struct device *device, const struct tn_profile_event *event, uint64_t size)
{
    const struct rest rest = {event->address, size, event->stack};

    /* The free of the previous block at this address is missing. */
    if (tn_map_find(&device->live, event->address) && !free_add(device, event, size)) {
        return false;
    }
    if (!tn_vec_add(&device->blocks, &rest) || !tn_map_reserve(&device->live, 1)) {
        return false;
    }
    tn_map_insert(&device->live, event->address, device->blocks.count);
    return entry_add(device, event, TN_TRACE_ALLOC, size);
}

static bool entries_add(struct device *device)
{
    const struct tn_profile_event *events = device->profile->events.items;

    for (size_t i = 0; i < device->profile->events.count; i++) {
        const struct tn_profile_event *event = &events[i];
        const uint64_t size = (uint64_t)(event->bytes < 0 ? -event->bytes : event->bytes);

        if (event->device != device->source) {
            continue;
        }
        range_grow(device, event->address, size);
        if (!(event->bytes > 0 ? alloc_add(device, event, size) : free_add(device, event, size))) {
            return false;
        }
    }
    return true;
}

/* ---- segments ---- */

static int rest_compare(const void *left, const void *right)
{
    const struct rest *a = left;
    const struct rest *b = right;

    return a->address < b->address ? -1 : a->address > b->address;
}

/* Keeps the blocks in use, by address, without overlaps. */
static void rests_sort(struct device *device)
{
    struct rest *rests = device->blocks.items;
    uint64_t end = 0;
    size_t kept = 0;

    tn_vec_sort(&device->blocks, rest_compare);
    for (size_t i = 0; i < device->blocks.count; i++) {
        tn_assert(rests[i].size <= device->end - rests[i].address); /* range_grow had it */
        if (rests[i].size > 0 && rests[i].address >= end) {
            end = rests[i].address + rests[i].size;
            rests[kept++] = rests[i];
        }
    }
    device->blocks.count = kept;
}

static struct tn_model_block block_of(uint64_t address, uint64_t size, const struct rest *rest)
{
    return (struct tn_model_block){
        .address = address,
        .size = size,
        .requested_size = rest ? size : 0,
        .stack = rest ? rest->stack : TN_STACK_EMPTY,
        .state = rest ? TN_BLOCK_ACTIVE_ALLOCATED : TN_BLOCK_INACTIVE,
        .has_address = true,
        .has_requested_size = true,
    };
}

/* Builds the one segment that spans all addresses, with free blocks in the gaps. */
static bool segment_fill(struct device *device, struct tn_model_segment *segment)
{
    struct tn_model *model = device->profile->model;
    struct tn_model_block *blocks;
    uint64_t at = device->start;
    size_t count = 0;
    uint64_t used = 0;

    rests_sort(device);
    blocks = tn_arena_alloc_array(&model->arena, 2 * device->blocks.count + 1, sizeof *blocks);
    if (!blocks) {
        return false;
    }
    for (size_t i = 0; i < device->blocks.count; i++) {
        const struct rest *rest = (const struct rest *)device->blocks.items + i;

        if (rest->address > at) {
            blocks[count++] = block_of(at, rest->address - at, NULL);
        }
        blocks[count++] = block_of(rest->address, rest->size, rest);
        used += rest->size;
        at = rest->address + rest->size;
    }
    if (device->end > at) {
        blocks[count++] = block_of(at, device->end - at, NULL);
    }
    *segment = (struct tn_model_segment){.address = device->start,
                                         .total_size = device->end - device->start,
                                         .allocated_size = used,
                                         .active_size = used,
                                         .requested_size = used,
                                         .device = device->number,
                                         .stack = TN_STACK_EMPTY,
                                         .is_large = true,
                                         .blocks = blocks,
                                         .block_count = count};
    return true;
}

static bool device_build(struct tn_profile *profile, int32_t source, int32_t number,
                         struct tn_trace *trace, struct tn_model_segment *segment)
{
    struct device device = {
        .profile = profile, .source = source, .number = number, .start = UINT64_MAX};
    bool good;

    tn_vec_init(&device.blocks, sizeof(struct rest));
    trace->first = profile->model->entries.count;
    good = entries_add(&device);
    trace->count = profile->model->entries.count - trace->first;
    if (good && trace->count > 0) {
        good = segment_fill(&device, segment);
    }
    tn_map_fini(&device.live);
    tn_vec_fini(&device.blocks);
    return good;
}

static int32_t gpu_count(const struct tn_profile *profile)
{
    const struct tn_profile_event *events = profile->events.items;
    int32_t count = 0;

    for (size_t i = 0; i < profile->events.count; i++) {
        count = events[i].device >= count ? events[i].device + 1 : count;
    }
    return count;
}

bool tn_profile_build(struct tn_profile *profile, uint32_t max_frames)
{
    struct tn_model *model = profile->model;
    const size_t count = (size_t)gpu_count(profile) + 1; /* the last is the CPU */
    struct tn_trace *traces = tn_arena_alloc_array(&model->arena, count, sizeof *traces);
    struct tn_model_segment *segments =
        tn_arena_alloc_array(&model->arena, count, sizeof *segments);

    if (!traces || !segments || !stacks_make(profile, max_frames)) {
        return false;
    }
    tn_vec_sort(&profile->events, event_compare_time);
    for (size_t i = 0; i < count; i++) {
        const int32_t source = i + 1 == count ? TN_PROFILE_CPU : (int32_t)i;

        if (!device_build(profile, source, (int32_t)i, &traces[i],
                          &segments[model->segment_count])) {
            return false;
        }
        model->segment_count += traces[i].count > 0;
    }
    model->segments = segments;
    model->traces = traces;
    model->trace_count = count;
    model->has_traces = true;
    return true;
}
