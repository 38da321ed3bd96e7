/* SPDX-License-Identifier: MIT */
/*
 * Snapshots of an allocator that others use meanwhile. A sink of the workload's own logs all
 * events; so for each snapshot there must be a place in this log, reached during the call, where
 * the last events and the segments and blocks are those of the snapshot. The history keeps few
 * events, and another thread clears it, changes its size, switches it off and on or takes snapshots
 * too.
 */
#include "alloc/engine/allocator.h"
#include "alloc/engine/engine.h"
#include "history/history.h"
#include "schedule/workload.h"
#include "support/draw.h"
#include "tarn/allocator.h"
#include "tarn/capture.h"
#include "tarn/history.h"
#include "tarn/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

enum {
    THREADS = 4, /* two workers, one that takes snapshots, one that disturbs */
    WORKERS = 2,
    OPERATIONS = 16, /* of a worker */
    OWN = 4,
    SNAPSHOTS = 2,
    DISTURBANCES = 6,
    NUMBERS = 64 * THREADS, /* of operations, each with a text, a stack and a size of its own */
    LOG_MAX = 2048,
    LIVE_MAX = 64,
    SEGMENTS_MAX = 64,
    BLOCKS_MAX = 256,
    ENTRIES_MIN = 3,
    ENTRIES_MAX = 40,
    ROOM_MIN = 8 /* for that many events a copy has room, whatever happens */
};

enum disturbance {
    SNAPSHOTS_TOO,
    CLEARS,
    SIZES,
    SWITCHES,
    DISTURBANCES_COUNT
};

struct logged {
    struct tarn_trace_event event; /* without its texts */
    unsigned number;               /* of the operation, by its text */
};

/* A block as the events have it. */
struct live {
    uint64_t address;
    uint64_t size;
    bool allocated; /* otherwise its free was requested */
    unsigned number;
};

struct scene {
    struct tarn_device *device;
    struct tarn_allocator *allocator;
    struct tarn_history *history;
    uint64_t seed;
    enum disturbance disturbance;
    uint64_t max_entries;
    size_t cleared_after;  /* the last clearing came at this place of the log or later, */
    size_t cleared_before; /* at this place at the latest; SIZE_MAX: it is going on */
    int stacks[NUMBERS];   /* references to the stack of each operation */
    struct logged log[LOG_MAX];
    size_t logged;
    const char *wrong;
};

struct seen_segment {
    struct tarn_segment_info info;
    size_t first_block;
    size_t blocks;
};

struct seen_block {
    struct tarn_block_info info;
    uint64_t stack;
};

struct seen {
    struct scene *scene;
    size_t began; /* place in the log */
    size_t ended;
    size_t cleared_after; /* at the beginning */
    struct seen_segment segments[SEGMENTS_MAX];
    size_t segment_count;
    struct seen_block blocks[BLOCKS_MAX];
    size_t block_count;
    struct logged events[ENTRIES_MAX];
    size_t event_count;
    int64_t time_us;
};

static _Thread_local unsigned this_number;

static void expect(struct scene *scene, bool holds, const char *otherwise)
{
    if (!holds && !scene->wrong) {
        scene->wrong = otherwise;
    }
}

/* ---- what is called ---- */

static unsigned number_of(const char *text)
{
    return (unsigned)strtoul(text, NULL, 10);
}

static void log_event(void *context, const struct tarn_trace_event *event)
{
    struct scene *scene = context;

    if (scene->logged == LOG_MAX) {
        abort();
    }
    scene->log[scene->logged++] =
        (struct logged){.event = *event, .number = number_of(event->user_metadata)};
}

static uint64_t capture_stack(void *context)
{
    struct scene *scene = context;

    scene->stacks[this_number]++;
    return this_number; /* 0: none */
}

static void release_stack(void *context, uint64_t stack)
{
    struct scene *scene = context;

    expect(scene, stack < NUMBERS && scene->stacks[stack] > 0, "a stack was released twice");
    scene->stacks[stack % NUMBERS]--;
}

static void expect_stack(struct scene *scene, uint64_t stack)
{
    expect(scene, stack < NUMBERS && (stack == 0 || scene->stacks[stack] > 0),
           "a snapshot has a stack that is gone");
}

static void see_segment(void *context, const struct tarn_segment_info *segment, uint64_t stack)
{
    struct seen *seen = context;

    if (seen->segment_count == 0) { /* no lock is held: what was copied must stay */
        schedule_yield((uintptr_t)__builtin_return_address(0));
    }
    expect_stack(seen->scene, stack);
    if (seen->segment_count == SEGMENTS_MAX) {
        abort();
    }
    seen->segments[seen->segment_count++] =
        (struct seen_segment){.info = *segment, .first_block = seen->block_count};
}

static void see_block(void *context, const struct tarn_block_info *block, uint64_t stack)
{
    struct seen *seen = context;

    expect_stack(seen->scene, stack);
    if (seen->block_count == BLOCKS_MAX) {
        abort();
    }
    seen->blocks[seen->block_count++] = (struct seen_block){.info = *block, .stack = stack};
    seen->segments[seen->segment_count - 1].blocks++;
}

/* While a sink is switched on, an operation may have no stack yet: a free then shows the stack of
 * the allocation, and memory that goes back to the device the one that it came with. */
static bool stack_fits(const struct scene *scene, enum tarn_action action, uint64_t stack,
                       unsigned number)
{
    if (scene->disturbance != SWITCHES) {
        return stack == number;
    }
    return stack == 0 || stack == number || action != TARN_ACTION_ALLOC;
}

static void see_event(void *context, const struct tarn_history_entry *entry, uint64_t stack)
{
    struct seen *seen = context;
    struct scene *scene = seen->scene;
    const unsigned number = number_of(entry->event.user_metadata);

    expect_stack(scene, stack);
    expect(scene, stack_fits(scene, entry->event.action, stack, number),
           "an event has the stack of another");
    expect(scene, entry->time_us >= seen->time_us, "events are not in the order of time");
    seen->time_us = entry->time_us;
    if (seen->event_count == ENTRIES_MAX) {
        expect(scene, false, "a snapshot has more events than the history keeps");
        return;
    }
    seen->events[seen->event_count++] = (struct logged){.event = entry->event, .number = number};
}

/* ---- what a snapshot says of itself ---- */

static void check_segment(struct seen *seen, const struct seen_segment *segment)
{
    uint64_t address = segment->info.address;
    uint64_t allocated = 0;
    uint64_t active = 0;
    uint64_t requested = 0;

    for (size_t i = 0; i < segment->blocks; i++) {
        const struct tarn_block_info *block = &seen->blocks[segment->first_block + i].info;

        expect(seen->scene, block->address == address, "blocks do not tile their segment");
        address += block->size;
        allocated += block->allocated ? block->size : 0;
        active += block->active ? block->size : 0;
        requested += block->active ? block->requested_size : 0;
    }
    expect(seen->scene, address == segment->info.address + segment->info.total_size,
           "blocks end before or after their segment");
    expect(seen->scene,
           allocated == segment->info.allocated_size && active == segment->info.active_size &&
               requested == segment->info.requested_size,
           "the sums of a segment are not those of its blocks");
}

static void check_segments(struct seen *seen)
{
    uint64_t end = 0;

    for (size_t i = 0; i < seen->segment_count; i++) {
        const struct tarn_segment_info *info = &seen->segments[i].info;

        expect(seen->scene, info->address >= end, "segments overlap");
        end = info->address + info->total_size;
        check_segment(seen, &seen->segments[i]);
    }
}

/* ---- against the log ---- */

/* The state that the first events of the log lead to. */
struct state {
    struct live blocks[LIVE_MAX];
    size_t count;
    uint64_t reserved;
};

static struct live *state_find(struct state *state, uint64_t address)
{
    for (size_t i = 0; i < state->count; i++) {
        if (state->blocks[i].address == address) {
            return &state->blocks[i];
        }
    }
    return NULL;
}

static void state_add(struct state *state, const struct logged *logged)
{
    if (state->count == LIVE_MAX) {
        abort();
    }
    state->blocks[state->count++] = (struct live){.address = logged->event.address,
                                                  .size = logged->event.size,
                                                  .allocated = true,
                                                  .number = logged->number};
}

static void state_apply(struct scene *scene, struct state *state, const struct logged *logged)
{
    struct live *live = state_find(state, logged->event.address);

    switch ((int)logged->event.action) {
    case TARN_ACTION_ALLOC:
        expect(scene, !live, "an address was given out twice");
        state_add(state, logged);
        break;
    case TARN_ACTION_FREE_REQUESTED:
    case TARN_ACTION_FREE_COMPLETED:
        expect(scene, live && live->size == logged->event.size, "a free has no allocation");
        if (live && logged->event.action == TARN_ACTION_FREE_REQUESTED) {
            live->allocated = false;
        } else if (live) {
            *live = state->blocks[--state->count];
        }
        break;
    case TARN_ACTION_SEGMENT_ALLOC:
    case TARN_ACTION_SEGMENT_MAP:
        state->reserved += logged->event.size;
        break;
    case TARN_ACTION_SEGMENT_FREE:
    case TARN_ACTION_SEGMENT_UNMAP:
        state->reserved -= logged->event.size;
        break;
    default:
        break;
    }
}

/* Each active block of the snapshot is one of the state, with the stack of its allocation. */
static bool has_blocks(const struct seen *seen, struct state *state)
{
    size_t found = 0;

    for (size_t i = 0; i < seen->block_count; i++) {
        const struct tarn_block_info *block = &seen->blocks[i].info;
        const uint64_t stack = seen->blocks[i].stack;
        const struct live *live = state_find(state, block->address);

        if (!block->active) {
            continue;
        }
        if (!live || live->size != block->requested_size || live->allocated != block->allocated ||
            (stack != live->number && (stack != 0 || seen->scene->disturbance != SWITCHES))) {
            return false;
        }
        found++;
    }
    return found == state->count;
}

static bool has_state(const struct seen *seen, struct state *state)
{
    uint64_t reserved = 0;

    for (size_t i = 0; i < seen->segment_count; i++) {
        reserved += seen->segments[i].info.total_size;
    }
    return reserved == state->reserved && has_blocks(seen, state);
}

static bool is_same(const struct logged *a, const struct logged *b)
{
    return a->event.action == b->event.action && a->event.address == b->event.address &&
           a->event.size == b->event.size && a->event.stream == b->event.stream &&
           a->event.device == b->event.device && a->number == b->number;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Whether so many events may be kept at this place of the log. */
static bool has_all(const struct seen *seen, size_t end)
{
    const struct scene *scene = seen->scene;
    const size_t cleared_after = least(seen->cleared_after, end);
    const size_t cleared_before = least(scene->cleared_before, end);
    const size_t most = least(end - cleared_after, scene->max_entries);
    size_t fewest = least(end - cleared_before, scene->max_entries);

    if (scene->disturbance == SIZES) {
        return seen->event_count >= least(end, ENTRIES_MIN);
    }
    fewest = least(fewest, ROOM_MIN);
    return seen->event_count >= fewest && seen->event_count <= most;
}

/* Whether the events of the snapshot are the last ones before this place of the log, and all that
 * the history had to keep; of a history that is switched off now and then, some of them. */
static bool has_events(const struct seen *seen, size_t end)
{
    const struct scene *scene = seen->scene;
    size_t left = seen->event_count;

    if (scene->disturbance != SWITCHES && (!has_all(seen, end) || left > end)) {
        return false;
    }
    while (left > 0 && end > 0) {
        end--;
        if (is_same(&seen->events[left - 1], &scene->log[end])) {
            left--;
        } else if (scene->disturbance != SWITCHES) {
            return false;
        }
    }
    return left == 0;
}

static void check_seen(struct seen *seen)
{
    struct scene *scene = seen->scene;
    struct state state = {.count = 0};
    bool has_place_of_events = false;
    bool has_place = false;

    check_segments(seen);
    for (size_t end = 0; end <= seen->ended; end++) {
        if (end >= seen->began && has_events(seen, end)) {
            has_place_of_events = true;
            has_place = has_place || has_state(seen, &state);
        }
        if (end < seen->ended) {
            state_apply(scene, &state, &scene->log[end]);
        }
    }
    expect(scene, has_place_of_events, "the events of a snapshot are not those that happened");
    expect(scene, has_place, "the blocks of a snapshot are not those that its events lead to");
}

/* ---- the threads ---- */

static void take_snapshot(struct scene *scene)
{
    struct seen *seen = calloc(1, sizeof *seen);
    const struct tarn_capture_source source = {scene->allocator, scene->history};
    const struct tarn_capture_visitor visitor = {.struct_size = sizeof visitor,
                                                 .context = seen,
                                                 .segment = see_segment,
                                                 .block = see_block,
                                                 .event = see_event};

    if (!seen) {
        abort();
    }
    seen->scene = scene;
    seen->began = scene->logged;
    seen->cleared_after = scene->cleared_after;
    expect(scene, tarn_capture_visit(&source, NULL, &visitor, NULL) == TARN_OK,
           "a snapshot failed");
    seen->ended = scene->logged;
    if (!scene->wrong) {
        check_seen(seen);
    }
    free(seen);
}

/* An operation begins, with a number that no other has. */
static void begin(struct scene *scene, unsigned number)
{
    char text[16];

    (void)snprintf(text, sizeof text, "%u", number);
    expect(scene, tarn_set_user_metadata(text) == TARN_OK, "a text was refused");
    this_number = number;
}

static void use(struct scene *scene, uint64_t *random, tarn_stream stream, tarn_ptr *ptr)
{
    if (*ptr) {
        expect(scene, tarn_allocator_free(scene->allocator, *ptr, NULL) == TARN_OK,
               "a free failed");
        *ptr = 0;
    } else {
        const uint64_t size = (draw(random) % 4 ? 8 * KIB : 3 * MIB) + this_number;

        expect(scene, tarn_allocator_alloc(scene->allocator, size, stream, ptr, NULL) == TARN_OK,
               "an allocation failed");
    }
}

static void use_often(struct scene *scene, unsigned thread)
{
    uint64_t random = scene->seed * SCHEDULE_THREADS_MAX + thread;
    const tarn_stream stream = scene->seed % 3 ? 0 : 0x1000 * (thread + 1);
    unsigned number = 64 * thread;
    tarn_ptr own[OWN] = {0};

    for (int i = 0; i < OPERATIONS; i++) {
        begin(scene, ++number);
        if (draw(&random) % 16 == 0) {
            expect(scene, tarn_allocator_empty_cache(scene->allocator, NULL) == TARN_OK,
                   "emptying the cache failed");
        } else {
            use(scene, &random, stream, &own[draw(&random) % OWN]);
        }
    }
    for (int i = 0; i < OWN; i++) {
        begin(scene, ++number);
        if (own[i]) {
            use(scene, &random, stream, &own[i]);
        }
    }
}

static void clear(struct scene *scene)
{
    const size_t after = scene->logged;

    scene->cleared_before = SIZE_MAX;
    tarn_history_clear(scene->history);
    scene->cleared_after = after;
    scene->cleared_before = scene->logged;
}

static void disturb(struct scene *scene, uint64_t *random, int round)
{
    const uint64_t entries = ENTRIES_MIN + draw(random) % (ENTRIES_MAX - ENTRIES_MIN);

    switch ((int)scene->disturbance) {
    case CLEARS:
        clear(scene);
        break;
    case SIZES:
        expect(scene, tarn_history_set_max_entries(scene->history, entries, NULL) == TARN_OK,
               "a size was refused");
        break;
    case SWITCHES:
        expect(scene,
               tarn_allocator_switch_sink(scene->allocator, scene->history, round % 2 != 0,
                                          TARN_CONTEXT_ALL, NULL) == TARN_OK,
               "a sink was not switched");
        break;
    default:
        if (round < SNAPSHOTS) {
            take_snapshot(scene);
        }
        break;
    }
}

static void work(void *context, unsigned thread)
{
    struct scene *scene = context;
    uint64_t random = scene->seed;

    if (thread < WORKERS) {
        use_often(scene, thread);
    } else if (thread == WORKERS) {
        for (int i = 0; i < SNAPSHOTS; i++) {
            take_snapshot(scene);
            schedule_yield((uintptr_t)__builtin_return_address(0));
        }
    } else {
        for (int i = 0; i < DISTURBANCES; i++) {
            disturb(scene, &random, i);
            schedule_yield((uintptr_t)__builtin_return_address(0));
        }
    }
}

/* ---- before and afterwards ---- */

static void draw_config(struct tarn_config *config, uint64_t *random)
{
    const uint64_t kind = draw(random) % 4;

    tarn_config_init(config);
    config->expandable_segments = kind == 1;
    config->release_lock_on_device_alloc = kind == 2;
    config->policy = kind == 3 ? TARN_POLICY_COMPACT : TARN_POLICY_EXACT;
}

static void add_sinks(struct scene *scene)
{
    const struct tarn_sink log = {.context = scene, .receive = log_event};
    struct tarn_sink sink;

    tarn_history_get_sink(scene->history, TARN_CONTEXT_ALL, &sink);
    if (tarn_allocator_add_sink(scene->allocator, &sink, NULL) != TARN_OK ||
        tarn_allocator_add_sink(scene->allocator, &log, NULL) != TARN_OK) {
        abort();
    }
}

/* The locks lean soon, and lose their owner when another thread comes. */
static void bias_soon(struct scene *scene)
{
    tn_allocator_engine(scene->allocator)->heap.lock.needed = 4;
    scene->history->lock.needed = 4;
    scene->history->stacks.lock.needed = 4;
    scene->history->extras.lock.needed = 4;
}

static void *scene_open(uint64_t seed)
{
    struct scene *scene = calloc(1, sizeof *scene);
    uint64_t random = seed;
    const struct tarn_sim_options sim = {.struct_size = sizeof sim, .capacity = 256 * MIB};
    const struct tarn_host_frames host = {
        .context = scene, .capture = capture_stack, .release = release_stack};
    struct tarn_history_options options = {.struct_size = sizeof options,
                                           .stack_source = TARN_STACK_NONE,
                                           .max_annotations = 4,
                                           .host = &host};
    struct tarn_config config;

    begin(scene, 0); /* what a process does once would stop a thread in the system's own lock */
    draw_config(&config, &random);
    scene->seed = seed;
    scene->disturbance = (enum disturbance)(draw(&random) % DISTURBANCES_COUNT);
    scene->max_entries = ENTRIES_MIN + draw(&random) % (ENTRIES_MAX - ENTRIES_MIN);
    options.max_entries = scene->max_entries;
    if (tarn_sim_open(&sim, &scene->device, NULL) != TARN_OK ||
        tarn_allocator_create(scene->device, &config, &scene->allocator, NULL) != TARN_OK ||
        tarn_history_create(&options, &scene->history, NULL) != TARN_OK) {
        abort();
    }
    add_sinks(scene);
    if (draw(&random) % 2) {
        bias_soon(scene);
    }
    return scene;
}

static void check_history(struct scene *scene)
{
    struct tarn_history_usage usage = {.struct_size = sizeof usage};

    expect(scene, tarn_allocator_empty_cache(scene->allocator, NULL) == TARN_OK,
           "emptying the cache failed");
    expect(scene, tarn_allocator_remove_sink(scene->allocator, scene->history, NULL) == TARN_OK,
           "a sink was not removed"); /* ranges of addresses that are kept have a stack, too */
    tarn_history_clear(scene->history);
    tarn_history_get_usage(scene->history, &usage);
    expect(scene, usage.stacks == 0 && usage.texts == 0, "stacks or texts are left");
    for (unsigned i = 1; i < NUMBERS; i++) {
        expect(scene, scene->stacks[i] == 0, "a stack was not released");
    }
}

static const char *scene_close(void *context)
{
    struct scene *scene = context;

    this_number = 0;
    scene->wrong = scene->wrong ? scene->wrong : workload_finding(scene->allocator);
    scene->cleared_after = 0;
    take_snapshot(scene);
    check_history(scene);
    tarn_allocator_destroy(scene->allocator);
    tarn_history_destroy(scene->history);
    const char *wrong = scene->wrong;

    tarn_device_close(scene->device);
    free(scene);
    return wrong;
}

const struct workload workload_snapshots = {.name = "snapshots",
                                            .threads = THREADS,
                                            .open = scene_open,
                                            .body = work,
                                            .close = scene_close};
