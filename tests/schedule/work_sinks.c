/* SPDX-License-Identifier: MIT */
/*
 * Sinks that capture come and go while other threads allocate and free. Each counts the references
 * to its stacks, which say whose they are: none may reach another sink, none may be left when a
 * sink has been removed, and none of its functions is called after that.
 */
#include "alloc/engine/allocator.h"
#include "schedule/workload.h"
#include "support/draw.h"
#include "tarn/allocator.h"
#include "tarn/sim.h"

#include <stdlib.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

enum {
    THREADS = 3, /* the first changes the sinks */
    RECEIVERS = 2,
    ROUNDS = 4,
    OPERATIONS = 20,
    OWN = 3
};

struct receiver {
    struct scene *scene;
    uint64_t number;
    uint64_t captured;
    int64_t live; /* references */
    bool attached;
};

struct scene {
    struct tarn_device *device;
    struct tarn_allocator *allocator;
    struct receiver receivers[RECEIVERS];
    uint64_t seed;
    const char *wrong;
};

static void expect(struct scene *scene, bool holds, const char *otherwise)
{
    if (!holds && !scene->wrong) {
        scene->wrong = otherwise;
    }
}

/* ---- the sinks ---- */

static void expect_own(struct receiver *receiver, uint64_t stack)
{
    expect(receiver->scene, receiver->attached, "a sink was called after its removal");
    expect(receiver->scene, stack >> 32 == receiver->number, "a stack reached another sink");
}

static uint64_t receiver_capture(void *context, enum tarn_context_level level)
{
    struct receiver *receiver = context;

    (void)level;
    schedule_point(true, (uintptr_t)__builtin_return_address(0));
    const uint64_t stack = receiver->number << 32 | ++receiver->captured;

    expect_own(receiver, stack);
    receiver->live++;
    return stack;
}

static void receiver_receive(void *context, const struct tarn_trace_event *event)
{
    struct receiver *receiver = context;

    expect_own(receiver, event->stack ? event->stack : receiver->number << 32);
}

static void receiver_retain(void *context, uint64_t stack)
{
    struct receiver *receiver = context;

    expect_own(receiver, stack);
    receiver->live++;
}

static void receiver_release(void *context, uint64_t stack)
{
    struct receiver *receiver = context;

    expect_own(receiver, stack);
    receiver->live--;
    expect(receiver->scene, receiver->live >= 0, "a stack was released twice");
}

static void receiver_add(struct receiver *receiver)
{
    const struct tarn_sink sink = {.context = receiver,
                                   .level = TARN_CONTEXT_ALL,
                                   .capture = receiver_capture,
                                   .receive = receiver_receive,
                                   .retain = receiver_retain,
                                   .release = receiver_release};

    receiver->attached = true;
    expect(receiver->scene,
           tarn_allocator_add_sink(receiver->scene->allocator, &sink, NULL) == TARN_OK,
           "a sink was refused");
}

static void receiver_gone(struct receiver *receiver)
{
    expect(receiver->scene, receiver->live == 0, "a removed sink has stacks left");
    receiver->attached = false;
}

/* One sink is removed, or makes way for the next. */
static void change_sinks(struct scene *scene)
{
    uint64_t random = scene->seed;
    struct receiver *present = &scene->receivers[0];

    receiver_add(present);
    for (int i = 1; i < ROUNDS; i++) {
        struct receiver *next = &scene->receivers[i % RECEIVERS];

        schedule_yield((uintptr_t)__builtin_return_address(0));
        if (draw(&random) % 2) {
            expect(scene, tarn_allocator_remove_sink(scene->allocator, present, NULL) == TARN_OK,
                   "a sink was not removed");
            receiver_gone(present);
            receiver_add(next);
        } else {
            tn_allocator_yield_sink(scene->allocator, present);
            receiver_add(next);
            receiver_gone(present);
        }
        present = next;
    }
}

/* ---- the other threads ---- */

static void use(struct scene *scene, uint64_t *random, tarn_ptr *ptr)
{
    if (*ptr) {
        expect(scene, tarn_allocator_free(scene->allocator, *ptr, NULL) == TARN_OK,
               "a free failed");
        *ptr = 0;
    } else {
        const uint64_t size = draw(random) % 4 ? 8 * KIB : 3 * MIB;

        expect(scene, tarn_allocator_alloc(scene->allocator, size, 0, ptr, NULL) == TARN_OK,
               "an allocation failed");
    }
}

static void work(void *context, unsigned thread)
{
    struct scene *scene = context;
    uint64_t random = scene->seed * SCHEDULE_THREADS_MAX + thread;
    tarn_ptr own[OWN] = {0};

    if (thread == 0) {
        change_sinks(scene);
        return;
    }
    for (int i = 0; i < OPERATIONS; i++) {
        use(scene, &random, &own[draw(&random) % OWN]);
    }
    for (int i = 0; i < OWN; i++) {
        if (own[i]) {
            use(scene, &random, &own[i]);
        }
    }
}

/* ---- before and afterwards ---- */

static void *scene_open(uint64_t seed)
{
    struct scene *scene = calloc(1, sizeof *scene);
    const struct tarn_sim_options options = {.struct_size = sizeof options, .capacity = 256 * MIB};
    struct tarn_config config;

    tarn_config_init(&config);
    config.expandable_segments = seed % 2;
    config.release_lock_on_device_alloc = seed % 4 == 2;
    scene->seed = seed;
    for (unsigned i = 0; i < RECEIVERS; i++) {
        scene->receivers[i] = (struct receiver){.scene = scene, .number = i + 1};
    }
    if (tarn_sim_open(&options, &scene->device, NULL) != TARN_OK ||
        tarn_allocator_create(scene->device, &config, &scene->allocator, NULL) != TARN_OK) {
        abort();
    }
    return scene;
}

static const char *scene_close(void *context)
{
    struct scene *scene = context;

    tarn_allocator_destroy(scene->allocator);
    for (int i = 0; i < RECEIVERS; i++) {
        expect(scene, scene->receivers[i].live == 0, "stacks are left");
    }
    const char *wrong = scene->wrong;

    tarn_device_close(scene->device);
    free(scene);
    return wrong;
}

const struct workload workload_sinks = {
    .name = "sinks", .threads = THREADS, .open = scene_open, .body = work, .close = scene_close};
