/* SPDX-License-Identifier: MIT */
/*
 * Pinned memory that threads allocate, use on streams and free, while one of them blocks and
 * unblocks the streams and empties the cache. Each block says in its first word what it waits for:
 * it must not be handed out before. In some schedules frees fail, a thread of the allocator's own
 * asks for events, or the blocks come from a reserved segment.
 */
#include "schedule/threads.h"
#include "schedule/workload.h"
#include "support/draw.h"
#include "tarn/pinned.h"
#include "tarn/sim.h"

#include <stdlib.h>

#define MIB ((uint64_t)1 << 20)

enum {
    USERS = 3, /* the first also changes the streams */
    LENT = USERS,
    THREADS,
    OPERATIONS = 24,
    OWN = 3,
    STREAMS = 2,  /* streams 1 and 2 can be blocked; */
    CAPTURED = 3, /* this one is being captured */
    TAKEN = 1     /* in the first word of a block: somebody has it */
};

struct scene {
    struct tarn_device *device;
    struct tarn_pinned *pinned;
    uint64_t seed;
    uint64_t blocked[STREAMS + 1];   /* how often that is done, */
    uint64_t unblocked[STREAMS + 1]; /* and how often that has begun */
    uint64_t forgets_begun;          /* of graphs */
    uint64_t forgets_done;
    unsigned users_left;
    bool over;
    const char *wrong;
};

struct own {
    uint64_t *memory; /* NULL: none */
    bool uses[CAPTURED + 1];
};

static void expect(struct scene *scene, bool holds, const char *otherwise)
{
    if (!holds && !scene->wrong) {
        scene->wrong = otherwise;
    }
}

/* ---- what a block waits for: 16 bits for each stream, of which the last stands for graphs ---- */

static uint64_t waits_for(const struct scene *scene, const struct own *own)
{
    uint64_t word = 0;

    if (own->uses[CAPTURED]) {
        return (scene->forgets_done + 1) << 16 * CAPTURED;
    }
    for (int i = 1; i <= STREAMS; i++) {
        word |= own->uses[i] ? scene->blocked[i] << 16 * i : 0;
    }
    return word;
}

static bool has_happened(const struct scene *scene, uint64_t word)
{
    for (int i = 1; i <= STREAMS; i++) {
        if ((word >> 16 * i & 0xffff) > scene->unblocked[i]) {
            return false;
        }
    }
    return word >> 16 * CAPTURED <= scene->forgets_begun;
}

/* ---- the threads ---- */

static void take(struct scene *scene, struct own *own, uint64_t random)
{
    void *memory = NULL;
    const uint64_t size = (uint64_t)4096 << random % 2;

    *own = (struct own){.memory = NULL};
    expect(scene, tarn_pinned_alloc(scene->pinned, size, &memory, NULL) == TARN_OK,
           "an allocation failed");
    if (memory) {
        own->memory = memory;
        expect(scene, *own->memory != TAKEN, "two threads have the same block");
        expect(scene, has_happened(scene, *own->memory), "a block was handed out too early");
        *own->memory = TAKEN;
    }
}

/* A free that failed can be tried again. */
static void give(struct scene *scene, struct own *own)
{
    expect(scene, *own->memory == TAKEN, "somebody else has changed a block");
    const uint64_t waits = waits_for(scene, own);

    *own->memory = waits;
    if (tarn_pinned_free(scene->pinned, own->memory, NULL) != TARN_OK) {
        expect(scene, *own->memory == waits, "a free failed, but the block was handed out");
        expect(scene, tarn_pinned_free(scene->pinned, own->memory, NULL) == TARN_OK,
               "a free failed twice");
    }
    own->memory = NULL;
}

static void use(struct scene *scene, struct own *own, uint64_t random)
{
    const unsigned stream = random % 16 == 0 ? CAPTURED : 1 + random % STREAMS;

    own->uses[stream] = true;
    expect(scene,
           tarn_pinned_record_stream(scene->pinned, own->memory, NULL, stream, NULL) == TARN_OK,
           "a use was refused");
}

static void operate(struct scene *scene, struct own *own, uint64_t random)
{
    if (!own->memory) {
        take(scene, own, random >> 8);
    } else if (random % 2) {
        use(scene, own, random >> 8);
    } else {
        give(scene, own);
    }
}

static void unblock(struct scene *scene, unsigned stream)
{
    scene->unblocked[stream]++;
    expect(scene, tarn_sim_unblock_stream(scene->device, stream) == TARN_OK,
           "a stream was not blocked");
}

static void forget_graphs(struct scene *scene)
{
    scene->forgets_begun++;
    tarn_pinned_forget_graphs(scene->pinned);
    scene->forgets_done = scene->forgets_begun;
}

static void change(struct scene *scene, uint64_t random)
{
    const unsigned stream = 1 + random / 8 % STREAMS;

    switch (random % 8) {
    case 0:
        expect(scene, tarn_pinned_empty_cache(scene->pinned, NULL) == TARN_OK,
               "the cache was not emptied");
        break;
    case 1:
        forget_graphs(scene);
        break;
    default:
        if (scene->blocked[stream] > scene->unblocked[stream]) {
            unblock(scene, stream);
        } else {
            expect(scene, tarn_sim_block_stream(scene->device, stream) == TARN_OK,
                   "a stream was not blocked");
            scene->blocked[stream]++;
        }
    }
}

static void check(struct scene *scene)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    expect(scene, tarn_pinned_check(scene->pinned, &findings) == 0, "the checker found something");
}

/* When all have freed what they had: the allocator gives back all but what a failure has lost. */
static void end(struct scene *scene)
{
    struct tarn_pinned_stats stats = {.struct_size = sizeof stats};

    for (unsigned i = 1; i <= STREAMS; i++) {
        while (scene->blocked[i] > scene->unblocked[i]) {
            unblock(scene, i);
        }
    }
    forget_graphs(scene);
    do { /* the allocator's own thread may still have an event in its hands */
        schedule_yield((uintptr_t)__builtin_return_address(0));
        expect(scene, tarn_pinned_empty_cache(scene->pinned, NULL) == TARN_OK,
               "the cache was not emptied");
        tarn_pinned_get_stats(scene->pinned, &stats);
    } while (stats.active_requests.current > stats.lost_blocks);
    check(scene);
    expect(scene, stats.active_requests.current == stats.lost_blocks, "blocks are lost");
    expect(scene, stats.graph_blocks == 0, "graphs have blocks that were forgotten");
    tarn_pinned_destroy(scene->pinned);
    scene->over = true;
}

static void work(void *context, unsigned thread)
{
    struct scene *scene = context;
    uint64_t random = scene->seed * SCHEDULE_THREADS_MAX + thread;
    struct own own[OWN] = {{.memory = NULL}};

    if (thread == LENT) {
        schedule_lend_thread(&scene->over);
        return;
    }
    for (int i = 0; i < OPERATIONS; i++) {
        if (thread == 0) {
            change(scene, draw(&random));
        }
        operate(scene, &own[draw(&random) % OWN], draw(&random));
    }
    for (int i = 0; i < OWN; i++) {
        if (own[i].memory) {
            give(scene, &own[i]);
        }
    }
    check(scene);
    if (--scene->users_left == 0) {
        end(scene);
    }
}

/* ---- before and afterwards ---- */

static struct tarn_config draw_config(uint64_t seed)
{
    struct tarn_config config;

    tarn_config_init(&config);
    config.pinned_use_background_threads = seed % 2;
    config.pinned_use_host_register = seed / 2 % 4 == 0;
    config.pinned_num_register_threads = 2;
    config.pinned_free_catch_all = seed / 8 % 4 == 0;
    config.pinned_reserve_segment_size = seed / 32 % 4 == 0 ? MIB : 0;
    return config;
}

static void *scene_open(uint64_t seed)
{
    struct scene *scene = calloc(1, sizeof *scene);
    const struct tarn_sim_options options = {.struct_size = sizeof options, .capacity = 64 * MIB};
    const struct tarn_config config = draw_config(seed);

    scene->seed = seed;
    scene->users_left = USERS;
    if (tarn_sim_open(&options, &scene->device, NULL) != TARN_OK ||
        tarn_pinned_create(scene->device, &config, &scene->pinned, NULL) != TARN_OK ||
        tarn_sim_set_capturing(scene->device, CAPTURED, true) != TARN_OK) {
        abort();
    }
    if (seed / 4 % 2) {
        tarn_sim_fail_nth(scene->device, TARN_SIM_EVENT_RECORD, 1 + seed / 128 % 8,
                          TARN_ERR_DEVICE);
    }
    return scene;
}

static const char *scene_close(void *context)
{
    struct scene *scene = context;
    struct tarn_sim_counters counters = {.struct_size = sizeof counters};

    tarn_sim_get_counters(scene->device, &counters);
    expect(scene, counters.live_host == 0, "pinned memory leaks");
    expect(scene, counters.live_events == 0, "events leak");
    const char *wrong = scene->wrong;

    tarn_device_close(scene->device);
    free(scene);
    return wrong;
}

const struct workload workload_pinned = {
    .name = "pinned", .threads = THREADS, .open = scene_open, .body = work, .close = scene_close};
