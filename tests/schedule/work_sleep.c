/* SPDX-License-Identifier: MIT */
/*
 * A pool sleeps and wakes while others allocate from it, free into it and use up what the device
 * has left. What is kept has its contents again afterwards; a request finds the pool awake or is
 * told that it sleeps, as it is; every free works; and nothing is left in the end.
 */
#include "schedule/workload.h"
#include "support/draw.h"
#include "tarn/allocator.h"
#include "tarn/pool.h"
#include "tarn/sim.h"
#include "tarn/sleep.h"

#include <stdlib.h>
#include <string.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

enum {
    THREADS = 3, /* the first sends the pool to sleep and wakes it */
    ROUNDS = 4,
    OPERATIONS = 20,
    OWN = 3,
    KEPT = 2
};

/* What the first thread does with the pool. Only it writes this, around its calls. */
enum phase {
    AWAKE,
    CHANGING,
    ASLEEP
};

struct kept {
    tarn_ptr ptr;
    uint64_t size;
};

struct scene {
    struct tarn_device *device;
    struct tarn_allocator *allocator;
    struct tarn_pool *pool;
    struct kept kept[KEPT];
    bool is_backed; /* seldom, as the kernel takes its time; else nothing is kept */
    enum phase phase;
    uint64_t changes; /* of the phase */
    uint64_t sleeps;
    uint64_t wakes;
    uint64_t seed;
    const char *wrong;
};

struct worker {
    struct scene *scene;
    uint64_t random;
    tarn_ptr own[OWN];
};

static void expect(struct scene *scene, bool holds, const char *otherwise)
{
    if (!holds && !scene->wrong) {
        scene->wrong = otherwise;
    }
}

/* ---- contents ---- */

/* A word here and there. */
static void mark(struct scene *scene, const struct kept *kept)
{
    for (uint64_t at = 0; at < kept->size; at += 256 * KIB) {
        uint64_t *word = tarn_sim_host_memory(scene->device, kept->ptr + at, sizeof *word);

        if (word) {
            *word = kept->ptr + at;
        }
    }
}

static bool is_marked(const struct scene *scene, const struct kept *kept)
{
    for (uint64_t at = 0; at < kept->size; at += 256 * KIB) {
        const uint64_t *word = tarn_sim_host_memory(scene->device, kept->ptr + at, sizeof *word);

        if (!word || *word != kept->ptr + at) {
            return false;
        }
    }
    return true;
}

static void mark_kept(struct scene *scene)
{
    for (int i = 0; i < KEPT; i++) {
        mark(scene, &scene->kept[i]);
    }
}

static void check_kept(struct scene *scene)
{
    for (int i = 0; i < KEPT && scene->is_backed; i++) {
        expect(scene, is_marked(scene, &scene->kept[i]), "contents were lost");
    }
}

/* ---- the first thread ---- */

static void enter(struct scene *scene, enum phase phase)
{
    scene->phase = phase;
    scene->changes++;
}

static bool fall_asleep(struct scene *scene, bool discard)
{
    const struct tarn_sleep_options options = {
        .struct_size = sizeof options, .discard = discard, .keep_host = scene->seed % 2};

    enter(scene, CHANGING);
    const enum tarn_status st =
        tarn_allocator_sleep(scene->allocator, tarn_pool_get_id(scene->pool), &options, NULL);

    expect(scene, st == TARN_OK, "the pool did not sleep");
    scene->sleeps += st == TARN_OK;
    enter(scene, st == TARN_OK ? ASLEEP : AWAKE);
    return st == TARN_OK;
}

/* Others may have what the pool needs, but they end. */
static void wake(struct scene *scene)
{
    enum tarn_status st;

    enter(scene, CHANGING);
    while ((st = tarn_allocator_wake(scene->allocator, tarn_pool_get_id(scene->pool), NULL)) ==
           TARN_ERR_OUT_OF_MEMORY) {
        schedule_yield((uintptr_t)__builtin_return_address(0));
    }
    expect(scene, st == TARN_OK, "the pool did not wake");
    scene->wakes += st == TARN_OK;
    enter(scene, AWAKE);
}

static void sleep_and_wake(struct scene *scene)
{
    uint64_t random = scene->seed;

    for (int i = 0; i < ROUNDS; i++) {
        const bool discard = !scene->is_backed || draw(&random) % 4 == 0;

        if (!fall_asleep(scene, discard)) {
            return;
        }
        schedule_yield((uintptr_t)__builtin_return_address(0));
        wake(scene);
        if (discard) {
            mark_kept(scene);
        } else {
            check_kept(scene);
        }
        schedule_yield((uintptr_t)__builtin_return_address(0));
    }
}

/* ---- the others ---- */

/* One takes from the pool, the other from what it leaves when it sleeps. */
static void do_alloc(struct worker *worker, unsigned thread, tarn_ptr *ptr)
{
    struct scene *scene = worker->scene;
    const uint64_t size = draw(&worker->random) % 4 ? 8 * KIB : 3 * MIB;
    const enum phase before = scene->phase;
    const uint64_t changes = scene->changes;
    const enum tarn_status st =
        thread == 1 ? tarn_pool_alloc(scene->pool, size, 0, ptr, NULL)
                    : tarn_allocator_alloc(scene->allocator, size, 0x1000, ptr, NULL);
    const bool same = scene->changes == changes;

    *ptr = st == TARN_OK ? *ptr : 0;
    if (thread != 1) {
        expect(scene, st == TARN_OK || st == TARN_ERR_OUT_OF_MEMORY, "an allocation failed");
    } else if (same && before == ASLEEP) {
        expect(scene, st == TARN_ERR_STATE, "memory came from a pool that sleeps");
    } else if (same && before == AWAKE) {
        expect(scene, st == TARN_OK || st == TARN_ERR_OUT_OF_MEMORY, "an awake pool was refused");
    } else {
        expect(scene, st == TARN_OK || st == TARN_ERR_STATE || st == TARN_ERR_OUT_OF_MEMORY,
               "an allocation from the pool failed");
    }
}

static void do_free(struct worker *worker, tarn_ptr *ptr)
{
    struct scene *scene = worker->scene;

    if (draw(&worker->random) % 4 == 0) {
        expect(scene, tarn_allocator_record_stream(scene->allocator, *ptr, 0x2000, NULL) == TARN_OK,
               "recording a stream failed");
        expect(scene, tarn_sim_enqueue_ns(scene->device, 0x2000, 50) == TARN_OK,
               "queueing work failed");
    }
    expect(scene, tarn_allocator_free(scene->allocator, *ptr, NULL) == TARN_OK, "a free failed");
    *ptr = 0;
}

static void work(void *context, unsigned thread)
{
    struct scene *scene = context;
    struct worker worker = {.scene = scene, .random = scene->seed * SCHEDULE_THREADS_MAX + thread};

    if (thread == 0) {
        sleep_and_wake(scene);
        return;
    }
    for (int i = 0; i < OPERATIONS; i++) {
        tarn_ptr *ptr = &worker.own[draw(&worker.random) % OWN];

        if (*ptr) {
            do_free(&worker, ptr);
        } else {
            do_alloc(&worker, thread, ptr);
        }
    }
    for (int i = 0; i < OWN; i++) {
        if (worker.own[i]) {
            do_free(&worker, &worker.own[i]);
        }
    }
}

/* ---- before and afterwards ---- */

static void *scene_open(uint64_t seed)
{
    struct scene *scene = calloc(1, sizeof *scene);
    const bool is_backed = seed % 128 == 5 || seed % 128 == 68; /* of each policy */
    const struct tarn_sim_options options = {.struct_size = sizeof options,
                                             .capacity = (8 + seed % 4 * 4) * 2 * MIB,
                                             .backed = is_backed};
    const struct tarn_pool_options pool = {.struct_size = sizeof pool};
    struct tarn_config config;

    tarn_config_init(&config);
    config.expandable_segments = seed % 2;
    config.policy = seed % 2 ? TARN_POLICY_EXACT : TARN_POLICY_COMPACT;
    config.release_lock_on_device_alloc = seed % 3 == 0;
    scene->seed = seed;
    scene->is_backed = is_backed;
    if (tarn_sim_open(&options, &scene->device, NULL) != TARN_OK ||
        tarn_allocator_create(scene->device, &config, &scene->allocator, NULL) != TARN_OK ||
        tarn_pool_create(scene->allocator, &pool, &scene->pool, NULL) != TARN_OK) {
        abort();
    }
    for (uint64_t i = 0; i < KEPT; i++) {
        scene->kept[i].size = (i + 1) * 700 * KIB;
        if (tarn_pool_alloc(scene->pool, scene->kept[i].size, 0, &scene->kept[i].ptr, NULL) !=
            TARN_OK) {
            abort();
        }
    }
    mark_kept(scene);
    return scene;
}

static void check_sleeps(struct scene *scene)
{
    struct tarn_sleep_stats sleeps = {.struct_size = sizeof sleeps};

    tarn_allocator_get_sleep_stats(scene->allocator, &sleeps);
    expect(scene, sleeps.sleeps == scene->sleeps && sleeps.wakes == scene->wakes,
           "sleeps were miscounted");
    expect(scene, sleeps.pools == 0 && sleeps.bytes == 0, "something still sleeps");
    expect(scene, !tarn_allocator_is_asleep(scene->allocator, tarn_pool_get_id(scene->pool)),
           "the pool still sleeps");
}

static const char *scene_close(void *context)
{
    struct scene *scene = context;
    struct tarn_sim_counters counters = {.struct_size = sizeof counters};

    check_sleeps(scene);
    scene->wrong = scene->wrong ? scene->wrong : workload_finding(scene->allocator);
    for (int i = 0; i < KEPT; i++) {
        expect(scene, tarn_allocator_free(scene->allocator, scene->kept[i].ptr, NULL) == TARN_OK,
               "a free failed");
    }
    tarn_pool_destroy(scene->pool);
    tarn_allocator_destroy(scene->allocator);
    tarn_sim_get_counters(scene->device, &counters);
    expect(scene, counters.used_bytes == 0 && counters.live_events == 0,
           "the device has memory or events left");
    const char *wrong = scene->wrong;

    tarn_device_close(scene->device);
    free(scene);
    return wrong;
}

const struct workload workload_sleep = {
    .name = "sleep", .threads = THREADS, .open = scene_open, .body = work, .close = scene_close};
