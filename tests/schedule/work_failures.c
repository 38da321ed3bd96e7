/* SPDX-License-Identifier: MIT */
/*
 * Observers of failures, pressure callbacks and memory callbacks come and go while requests fail.
 * Of a request that fails, an observer that was there all the time is told once, one that was gone
 * before not at all; what a callback frees is not lost; and an observer's own request that fails
 * calls no observer.
 */
#include "schedule/workload.h"
#include "support/draw.h"
#include "tarn/allocator.h"
#include "tarn/pressure.h"
#include "tarn/sim.h"

#include <stdlib.h>
#include <string.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

enum {
    THREADS = 3, /* the first adds and removes */
    ROUNDS = 10,
    OPERATIONS = 16,
    OWN = 3,
    SPARE = 2 /* blocks that callbacks give up */
};

enum kind {
    OBSERVER,
    PRESSURE,
    MEMORY
};

enum {
    OBSERVERS = 2,
    LISTENERS = OBSERVERS + 2
};

static const enum kind kinds[LISTENERS] = {OBSERVER, OBSERVER, PRESSURE, MEMORY};

/* Of each one registration at a time. `since` and `until` are readings of a clock that every
 * change moves on; until is 0 while it is there. */
struct listener {
    struct scene *scene;
    enum kind kind;
    unsigned number;
    uint64_t since;
    uint64_t until;
};

struct worker {
    struct scene *scene;
    uint64_t random;
    uint64_t began; /* its present request; UINT64_MAX: there is none */
    unsigned calls[LISTENERS];
    bool is_asking; /* from within an observer */
    tarn_ptr own[OWN];
};

struct scene {
    struct tarn_device *device;
    struct tarn_allocator *allocator;
    struct listener listeners[LISTENERS];
    struct worker workers[THREADS];
    tarn_ptr spare[SPARE];
    uint64_t clock;
    int64_t allocated;
    int64_t failed;
    uint64_t seed;
    const char *wrong;
};

static _Thread_local struct worker *this_worker;

static void expect(struct scene *scene, bool holds, const char *otherwise)
{
    if (!holds && !scene->wrong) {
        scene->wrong = otherwise;
    }
}

static enum tarn_status allocate(struct scene *scene, uint64_t size, tarn_ptr *ptr)
{
    const enum tarn_status st = tarn_allocator_alloc(scene->allocator, size, 0, ptr, NULL);

    *ptr = st == TARN_OK ? *ptr : 0;
    scene->allocated += st == TARN_OK;
    scene->failed += st == TARN_ERR_OUT_OF_MEMORY;
    return st;
}

static void release(struct scene *scene, tarn_ptr ptr)
{
    expect(scene, tarn_allocator_free(scene->allocator, ptr, NULL) == TARN_OK, "a free failed");
}

/* ---- what is called ---- */

static void called(struct listener *listener)
{
    struct worker *worker = this_worker;

    expect(listener->scene, !worker->is_asking || listener->kind != OBSERVER,
           "an observer's request called observers");
    expect(listener->scene, listener->until == 0 || listener->until > worker->began,
           "a request called what was gone before it");
    worker->calls[listener->number]++;
}

static uint64_t give_up(struct scene *scene)
{
    for (int i = 0; i < SPARE; i++) {
        const tarn_ptr ptr = scene->spare[i];

        scene->spare[i] = 0;
        if (ptr) {
            release(scene, ptr);
            return 3 * MIB;
        }
    }
    return 0;
}

/* May use the allocator. */
static void observe(void *context, const struct tarn_oom *oom)
{
    struct listener *listener = context;
    tarn_ptr ptr = 0;

    (void)oom;
    called(listener);
    this_worker->is_asking = true;
    if (allocate(listener->scene, 512 * MIB, &ptr) == TARN_OK) {
        listener->scene->wrong = "there is no such memory";
    }
    this_worker->is_asking = false;
}

static uint64_t make_room(void *context, const struct tarn_pressure *pressure)
{
    struct listener *listener = context;

    (void)pressure;
    called(listener);
    return give_up(listener->scene);
}

static bool free_some(void *context, struct tarn_allocator *allocator, uint64_t size,
                      tarn_stream stream)
{
    struct listener *listener = context;

    (void)allocator;
    (void)size;
    (void)stream;
    called(listener);
    return give_up(listener->scene) > 0;
}

/* ---- the first thread ---- */

static void add(struct listener *listener)
{
    struct tarn_allocator *allocator = listener->scene->allocator;
    enum tarn_status st;

    listener->until = 0;
    if (listener->kind == OBSERVER) {
        st = tarn_allocator_add_oom_observer(allocator, observe, listener);
    } else if (listener->kind == PRESSURE) {
        st = tarn_allocator_add_pressure_callback(allocator, make_room, listener);
    } else {
        st = tarn_allocator_add_memory_callback(allocator, free_some, listener);
    }
    expect(listener->scene, st == TARN_OK, "nothing was added");
    listener->since = ++listener->scene->clock;
}

static void take_away(struct listener *listener)
{
    struct tarn_allocator *allocator = listener->scene->allocator;
    enum tarn_status st;

    listener->since = 0;
    if (listener->kind == OBSERVER) {
        st = tarn_allocator_remove_oom_observer(allocator, observe, listener);
    } else if (listener->kind == PRESSURE) {
        st = tarn_allocator_remove_pressure_callback(allocator, make_room, listener);
    } else {
        st = tarn_allocator_remove_memory_callback(allocator, free_some, listener);
    }
    expect(listener->scene, st == TARN_OK, "nothing was removed");
    listener->until = ++listener->scene->clock;
}

/* Whether a request that began before this reading of the clock still goes on. */
static bool has_older_requests(const struct scene *scene, uint64_t reading)
{
    for (int i = 1; i < THREADS; i++) {
        if (scene->workers[i].began < reading) {
            return true;
        }
    }
    return false;
}

static void change_listeners(struct scene *scene)
{
    uint64_t random = scene->seed;

    for (int i = 0; i < ROUNDS; i++) {
        struct listener *listener = &scene->listeners[draw(&random) % LISTENERS];

        if (listener->since > 0) {
            take_away(listener);
        } else if (!has_older_requests(scene, listener->until)) { /* they may still call it */
            add(listener);
        }
        schedule_yield((uintptr_t)__builtin_return_address(0));
    }
}

/* ---- the others ---- */

/* `since`: when the observer that was there when the request began had come, 0 if it was not. */
static void check_calls(const struct worker *worker, enum tarn_status st, unsigned number,
                        uint64_t since)
{
    struct scene *scene = worker->scene;
    const bool was_there = since > 0 && since == scene->listeners[number].since;
    const unsigned calls = worker->calls[number];

    expect(scene, st == TARN_ERR_OUT_OF_MEMORY || calls == 0, "a request failed for observers");
    expect(scene, calls <= 1, "an observer was told twice");
    expect(scene, st != TARN_ERR_OUT_OF_MEMORY || !was_there || calls == 1,
           "an observer was not told");
}

static void ask(struct worker *worker, tarn_ptr *ptr)
{
    struct scene *scene = worker->scene;
    const uint64_t size = draw(&worker->random) % 4 ? 3 * MIB : 8 * KIB;
    uint64_t since[OBSERVERS];

    memset(worker->calls, 0, sizeof worker->calls);
    for (unsigned i = 0; i < OBSERVERS; i++) {
        since[i] = scene->listeners[i].since;
    }
    worker->began = scene->clock;
    const enum tarn_status st = allocate(scene, size, ptr);

    expect(scene, st == TARN_OK || st == TARN_ERR_OUT_OF_MEMORY, "an allocation failed");
    for (unsigned i = 0; i < OBSERVERS; i++) {
        check_calls(worker, st, i, since[i]);
    }
    worker->began = UINT64_MAX;
}

/* To whom callbacks may give it up. */
static void offer(struct scene *scene, tarn_ptr *ptr)
{
    for (int i = 0; i < SPARE && *ptr; i++) {
        if (!scene->spare[i]) {
            scene->spare[i] = *ptr;
            *ptr = 0;
        }
    }
}

static void work(void *context, unsigned thread)
{
    struct scene *scene = context;
    struct worker *worker = &scene->workers[thread];

    if (thread == 0) {
        change_listeners(scene);
        return;
    }
    this_worker = worker;
    for (int i = 0; i < OPERATIONS; i++) {
        tarn_ptr *ptr = &worker->own[draw(&worker->random) % OWN];

        if (*ptr && draw(&worker->random) % 4 == 0) {
            offer(scene, ptr);
        } else if (*ptr) {
            release(scene, *ptr);
            *ptr = 0;
        } else {
            ask(worker, ptr);
        }
    }
    for (int i = 0; i < OWN; i++) {
        if (worker->own[i]) {
            release(scene, worker->own[i]);
        }
    }
}

/* ---- before and afterwards ---- */

static void *scene_open(uint64_t seed)
{
    struct scene *scene = calloc(1, sizeof *scene);
    const struct tarn_sim_options options = {.struct_size = sizeof options,
                                             .capacity = (2 + seed % 4) * 4 * MIB};
    struct tarn_config config;

    tarn_config_init(&config);
    config.expandable_segments = seed % 3 == 1;
    config.policy = seed % 3 == 2 ? TARN_POLICY_COMPACT : TARN_POLICY_EXACT;
    config.release_lock_on_device_alloc = seed % 4 == 0;
    scene->seed = seed;
    for (unsigned i = 0; i < LISTENERS; i++) {
        scene->listeners[i] = (struct listener){.scene = scene, .kind = kinds[i], .number = i};
    }
    for (unsigned i = 0; i < THREADS; i++) {
        scene->workers[i] = (struct worker){
            .scene = scene, .random = seed * SCHEDULE_THREADS_MAX + i, .began = UINT64_MAX};
    }
    if (tarn_sim_open(&options, &scene->device, NULL) != TARN_OK ||
        tarn_allocator_create(scene->device, &config, &scene->allocator, NULL) != TARN_OK) {
        abort();
    }
    return scene;
}

static void check_allocator(struct scene *scene)
{
    struct tarn_stats stats = {.struct_size = sizeof stats};

    scene->wrong = scene->wrong ? scene->wrong : workload_finding(scene->allocator);
    tarn_allocator_get_stats(scene->allocator, &stats);
    expect(scene, stats.by_pool[TARN_STAT_ALLOCATION][0].current == 0, "blocks are left");
    expect(scene, stats.by_pool[TARN_STAT_ALLOCATION][0].allocated == scene->allocated,
           "allocations were lost");
    expect(scene, stats.num_ooms == scene->failed, "failures were lost");
}

static const char *scene_close(void *context)
{
    struct scene *scene = context;

    (void)give_up(scene);
    (void)give_up(scene);
    check_allocator(scene);
    tarn_allocator_destroy(scene->allocator);
    const char *wrong = scene->wrong;

    tarn_device_close(scene->device);
    free(scene);
    return wrong;
}

const struct workload workload_failures = {
    .name = "failures", .threads = THREADS, .open = scene_open, .body = work, .close = scene_close};
