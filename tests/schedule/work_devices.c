/* SPDX-License-Identifier: MIT */
/*
 * Threads that share a table of devices. Two of them open the devices by their first calls,
 * allocate, hand blocks to each other and free without saying of which device; each routes its
 * stream to a private pool now and then, or captures it. The third changes what goes for all
 * devices: settings, recording, a sink, whether memory is cached. Afterwards every block is back,
 * each device's counters are those of the calls, no pool has memory, and what goes for all devices
 * goes for each.
 */
#include "schedule/workload.h"
#include "support/draw.h"
#include "tarn/devices.h"
#include "tarn/graph_pool.h"
#include "tarn/sim.h"

#include <stdlib.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

enum {
    THREADS = 3, /* the first changes settings */
    DEVICES = 2,
    ROUNDS = 8,
    OPERATIONS = 20,
    OWN = 3,
    OFFERS = 2
};

struct block {
    tarn_ptr ptr; /* 0: none */
    int device;
};

struct scene {
    struct tarn_devices *devices;
    struct tarn_device *device[DEVICES];
    struct block offers[OFFERS];
    uint64_t seed;
    int64_t allocated[DEVICES];
    int64_t received[DEVICES]; /* allocations that the sink was told less frees */
    bool was_off;              /* caching: such allocations are not counted */
    bool is_watched;           /* the sink was added */
    const char *wrong;
};

struct worker {
    struct scene *scene;
    uint64_t random;
    unsigned thread;
    int routed; /* device whose pool gets what this thread asks for; -1: none */
    int routes; /* uses of that pool, which are to be released */
    struct block own[OWN];
};

static void expect(struct scene *scene, bool holds, const char *otherwise)
{
    if (!holds && !scene->wrong) {
        scene->wrong = otherwise;
    }
}

/* ---- what goes for all devices ---- */

static void on_event(void *context, const struct tarn_trace_event *event)
{
    struct scene *scene = context;

    scene->received[event->device] += event->action == TARN_ACTION_ALLOC;
    scene->received[event->device] -= event->action == TARN_ACTION_FREE_COMPLETED;
}

static void record(struct scene *scene, uint64_t how)
{
    const struct tarn_recording recording = {.struct_size = sizeof recording,
                                             .level = TARN_CONTEXT_NEVER,
                                             .stack_source = TARN_STACK_NONE,
                                             .clear = how % 2,
                                             .max_entries = 8};

    expect(scene, tarn_devices_record(scene->devices, how % 4 ? &recording : NULL, NULL) == TARN_OK,
           "a recording was refused");
    expect(scene, tarn_devices_is_recording(scene->devices) == (how % 4 != 0),
           "it does not record as it should");
}

static void govern(struct scene *scene)
{
    const struct tarn_sink sink = {.context = scene, .receive = on_event};
    uint64_t random = scene->seed;
    bool enabled = true;

    for (int i = 0; i < ROUNDS; i++) {
        schedule_yield((uintptr_t)__builtin_return_address(0));
        switch (draw(&random) % 5) {
        case 0:
            expect(scene,
                   tarn_devices_configure(scene->devices, "garbage_collection_threshold:0.6",
                                          NULL) == TARN_OK,
                   "settings were refused");
            break;
        case 1:
            record(scene, draw(&random));
            break;
        case 2:
            enabled = !enabled;
            scene->was_off = true;
            expect(scene, tarn_devices_set_enabled(scene->devices, enabled, NULL) == TARN_OK,
                   "caching was not switched");
            break;
        case 3: /* once */
            expect(scene, tarn_devices_add_sink(scene->devices, &sink, NULL) == TARN_OK,
                   "a sink was refused");
            scene->is_watched = true;
            break;
        default:
            expect(scene,
                   tarn_devices_empty_pool(scene->devices, (struct tarn_pool_id){0, 0}, NULL) ==
                       TARN_OK,
                   "emptying the caches failed");
            break;
        }
    }
}

/* ---- the other threads ---- */

static tarn_stream stream_of(unsigned thread)
{
    return 0x1000 * (tarn_stream)thread;
}

static struct tarn_pool_id pool_of(unsigned thread)
{
    return (struct tarn_pool_id){0, thread};
}

static bool is_mine(void *context, tarn_stream stream)
{
    const struct worker *worker = context;

    return stream == stream_of(worker->thread);
}

static void do_alloc(struct worker *worker, struct block *block)
{
    struct scene *scene = worker->scene;
    const uint64_t size = draw(&worker->random) % 4 ? 8 * KIB : 3 * MIB;

    block->device = (int)(draw(&worker->random) % DEVICES);
    expect(scene,
           tarn_devices_alloc(scene->devices, block->device, size, stream_of(worker->thread),
                              &block->ptr, NULL) == TARN_OK,
           "an allocation failed");
    scene->allocated[block->device] += block->ptr != 0;
}

static void do_free(struct worker *worker, struct block *block)
{
    struct scene *scene = worker->scene;
    struct tarn_allocator *owner = NULL;

    expect(scene,
           tarn_devices_find_owner(scene->devices, block->ptr, &owner, NULL) == TARN_OK &&
               owner == tarn_devices_find(scene->devices, block->device),
           "a block is said to be of another device");
    expect(scene, tarn_devices_free(scene->devices, block->ptr, NULL) == TARN_OK, "a free failed");
    block->ptr = 0;
}

static void do_exchange(struct worker *worker, struct block *block)
{
    struct block *offer = &worker->scene->offers[draw(&worker->random) % OFFERS];
    const struct block taken = *offer;

    *offer = *block;
    *block = taken;
}

static void end_route(struct worker *worker)
{
    expect(worker->scene,
           tarn_devices_end_pool(worker->scene->devices, worker->routed, pool_of(worker->thread),
                                 NULL) == TARN_OK,
           "a routing was not ended");
    worker->routed = -1;
}

/* Into the pool of this thread on the first device, or back. */
static void do_route(struct worker *worker)
{
    const struct tarn_pool_route route = {.struct_size = sizeof route,
                                          .is_capture = draw(&worker->random) % 2,
                                          .context = worker,
                                          .accepts = is_mine};

    if (worker->routed >= 0) {
        end_route(worker);
        return;
    }
    worker->routed = 0;
    worker->routes++;
    expect(worker->scene,
           tarn_devices_begin_pool(worker->scene->devices, 0, pool_of(worker->thread), &route,
                                   NULL) == TARN_OK,
           "a routing was refused");
}

static void leave(struct worker *worker)
{
    for (int i = 0; i < OWN; i++) {
        if (worker->own[i].ptr) {
            do_free(worker, &worker->own[i]);
        }
    }
    if (worker->routed >= 0) {
        end_route(worker);
    }
    for (int i = 0; i < worker->routes; i++) {
        expect(worker->scene,
               tarn_allocator_release_pool(tarn_devices_find(worker->scene->devices, 0),
                                           pool_of(worker->thread), NULL) == TARN_OK,
               "a pool was not released");
    }
}

/* Of a device that may not be open yet, while recording begins and ends. */
static void do_annotate(struct worker *worker)
{
    const struct tarn_annotation_field fields[] = {{"name", "step"}, {"stage", "START"}};

    tarn_devices_annotate(worker->scene->devices, (int)(draw(&worker->random) % DEVICES), fields,
                          2);
}

static void work(void *context, unsigned thread)
{
    struct scene *scene = context;
    struct worker worker = {.scene = scene,
                            .random = scene->seed * SCHEDULE_THREADS_MAX + thread,
                            .thread = thread,
                            .routed = -1};

    if (thread == 0) {
        govern(scene);
        return;
    }
    for (int i = 0; i < OPERATIONS; i++) {
        struct block *block = &worker.own[draw(&worker.random) % OWN];
        const uint64_t what = draw(&worker.random) % 16;

        if (what == 0) {
            do_route(&worker);
        } else if (what == 15) {
            do_annotate(&worker);
        } else if (what < 4) {
            do_exchange(&worker, block);
        } else if (block->ptr) {
            do_free(&worker, block);
        } else {
            do_alloc(&worker, block);
        }
    }
    leave(&worker);
}

/* ---- before and afterwards ---- */

static void *scene_open(uint64_t seed)
{
    static const char *const confs[] = {"max_split_size_mb:64", "expandable_segments:True",
                                        "rules:2.14", "policy:compact"};
    struct tarn_sim_options options = {.struct_size = sizeof options, .capacity = 512 * MIB};
    struct scene *scene = calloc(1, sizeof *scene);

    if (!scene || tarn_devices_create(&scene->devices, NULL) != TARN_OK ||
        tarn_devices_configure(scene->devices, confs[seed % (sizeof confs / sizeof *confs)],
                               NULL) != TARN_OK) {
        abort();
    }
    scene->seed = seed;
    for (int i = 0; i < DEVICES; i++) {
        options.ordinal = i;
        options.base_address = (uint64_t)(i + 1) << 40; /* as of different GPUs */
        if (tarn_sim_open(&options, &scene->device[i], NULL) != TARN_OK ||
            tarn_devices_use(scene->devices, i, scene->device[i], NULL) != TARN_OK) {
            abort();
        }
    }
    return scene;
}

static void check_device(struct scene *scene, int number)
{
    struct tarn_allocator *allocator = tarn_devices_find(scene->devices, number);
    struct tarn_stats stats = {.struct_size = sizeof stats};

    if (!allocator) { /* nobody needed it */
        return;
    }
    scene->wrong = scene->wrong ? scene->wrong : workload_finding(allocator);
    /* What goes for all goes for those that were opened at the same time. */
    expect(scene, tarn_allocator_is_enabled(allocator) == tarn_devices_is_enabled(scene->devices),
           "a device caches as the others do not");
    expect(scene,
           !scene->is_watched || tarn_allocator_switch_sink(allocator, scene, true,
                                                            TARN_CONTEXT_NEVER, NULL) == TARN_OK,
           "a device lacks the sink");
    tarn_allocator_get_stats(allocator, &stats);
    expect(scene, stats.by_pool[TARN_STAT_ALLOCATION][0].current == 0, "blocks are left");
    expect(scene, stats.by_pool[TARN_STAT_RESERVED_BYTES][0].current == 0, "memory is left");
    expect(scene,
           scene->was_off ||
               stats.by_pool[TARN_STAT_ALLOCATION][0].allocated == scene->allocated[number],
           "allocations were lost");
    /* It may have come when blocks were allocated already, and misses nothing afterwards. */
    expect(scene, scene->received[number] <= 0, "a free was not told to the sink");
}

static const char *scene_close(void *context)
{
    struct scene *scene = context;

    for (int i = 0; i < OFFERS; i++) {
        if (scene->offers[i].ptr) {
            expect(scene, tarn_devices_free(scene->devices, scene->offers[i].ptr, NULL) == TARN_OK,
                   "a free failed");
        }
    }
    expect(scene,
           tarn_devices_empty_pool(scene->devices, (struct tarn_pool_id){0, 0}, NULL) == TARN_OK,
           "emptying the caches failed");
    for (int i = 0; i < DEVICES; i++) {
        check_device(scene, i);
    }
    const char *wrong = scene->wrong;

    tarn_devices_destroy(scene->devices);
    for (int i = 0; i < DEVICES; i++) {
        tarn_device_close(scene->device[i]);
    }
    free(scene);
    return wrong;
}

const struct workload workload_devices = {
    .name = "devices", .threads = THREADS, .open = scene_open, .body = work, .close = scene_close};
