/* SPDX-License-Identifier: MIT */
/*
 * Threads that share an allocator under settings that the seed draws: they allocate, hand blocks to
 * each other, record streams, free and flush, with little memory. Afterwards every block is back,
 * the counters are those of the calls, and the allocator's own check finds nothing.
 */
#include "alloc/engine/allocator.h"
#include "alloc/engine/engine.h"
#include "schedule/workload.h"
#include "support/draw.h"
#include "tarn/allocator.h"
#include "tarn/sim.h"

#include <stdlib.h>
#include <string.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

enum {
    THREADS = 3,
    OPERATIONS = 24, /* of each thread */
    OWN = 4,
    OFFERS = 4
};

struct shared {
    struct tarn_device *device;
    struct tarn_allocator *allocator;
    uint64_t seed;
    bool own_streams;
    bool counts; /* what backend:cudaMallocAsync leaves at 0 */
    tarn_ptr offers[OFFERS];
    int64_t allocated;
    int64_t ooms;
    const char *wrong;
};

struct worker {
    struct shared *shared;
    uint64_t random;
    tarn_stream stream;
    tarn_ptr own[OWN];
};

static void expect(struct shared *shared, bool holds, const char *otherwise)
{
    if (!holds && !shared->wrong) {
        shared->wrong = otherwise;
    }
}

/* ---- settings ---- */

static void draw_config(struct tarn_config *config, uint64_t *random)
{
    const uint64_t kind = draw(random) % 4;

    config->expandable_segments = kind == 1;
    config->release_lock_on_device_alloc = kind == 2;
    config->policy = kind == 3 ? TARN_POLICY_COMPACT : TARN_POLICY_EXACT;
    config->garbage_collection_threshold = draw(random) % 2 ? 0.5 : 0.0;
}

static void *shared_open(uint64_t seed, enum tarn_backend backend, bool own_streams)
{
    struct shared *shared = calloc(1, sizeof *shared);
    uint64_t random = seed;
    struct tarn_config config;
    const struct tarn_sim_options options = {.struct_size = sizeof options,
                                             .capacity = (16 + draw(&random) % 64) * 2 * MIB};

    tarn_config_init(&config);
    config.backend = backend;
    if (backend == TARN_BACKEND_NATIVE) {
        draw_config(&config, &random);
    }
    shared->seed = seed;
    shared->own_streams = own_streams;
    shared->counts = backend == TARN_BACKEND_NATIVE;
    if (tarn_sim_open(&options, &shared->device, NULL) != TARN_OK ||
        tarn_allocator_create(shared->device, &config, &shared->allocator, NULL) != TARN_OK) {
        abort();
    }
    return shared;
}

static void *allocator_open(uint64_t seed)
{
    return shared_open(seed, TARN_BACKEND_NATIVE, false);
}

/* Where the driver has the memory. */
static void *async_open(uint64_t seed)
{
    return shared_open(seed, TARN_BACKEND_ASYNC, seed % 2);
}

/* Caches open at the first sign of contention, and the locks lean soon. */
static void *caches_open(uint64_t seed)
{
    struct shared *shared = shared_open(seed, TARN_BACKEND_NATIVE, true);
#if TN_FAST_PATH
    struct tn_engine *engine = tn_allocator_engine(shared->allocator);

    engine->fast.caches.calls_left = UINT32_MAX;
    engine->heap.lock.needed = 4;
#endif
    return shared;
}

/* ---- operations ---- */

static uint64_t draw_size(uint64_t *random)
{
    switch (draw(random) % 8) {
    case 0:
        return 8 + draw(random) % (5 * MIB);
    case 1:
        return MIB;
    default:
        return 8 + draw(random) % (16 * KIB);
    }
}

static void do_alloc(struct worker *worker, tarn_ptr *ptr)
{
    struct shared *shared = worker->shared;
    const enum tarn_status st = tarn_allocator_alloc(shared->allocator, draw_size(&worker->random),
                                                     worker->stream, ptr, NULL);

    shared->allocated += st == TARN_OK;
    shared->ooms += st == TARN_ERR_OUT_OF_MEMORY;
    *ptr = st == TARN_OK ? *ptr : 0;
    expect(shared, st == TARN_OK || st == TARN_ERR_OUT_OF_MEMORY, "an allocation failed");
}

static void do_free(struct worker *worker, tarn_ptr *ptr)
{
    expect(worker->shared, tarn_allocator_free(worker->shared->allocator, *ptr, NULL) == TARN_OK,
           "a free failed");
    *ptr = 0;
}

static void do_exchange(struct worker *worker, tarn_ptr *ptr)
{
    tarn_ptr *offer = &worker->shared->offers[draw(&worker->random) % OFFERS];
    const tarn_ptr taken = *offer;

    *offer = *ptr;
    *ptr = taken;
    if (taken && draw(&worker->random) % 2) {
        expect(worker->shared,
               tarn_allocator_record_stream(worker->shared->allocator, taken, worker->stream,
                                            NULL) == TARN_OK,
               "recording a stream failed");
    }
}

static void look(struct shared *shared)
{
    struct tarn_stats stats = {.struct_size = sizeof stats};

    tarn_allocator_get_stats(shared->allocator, &stats);
    const struct tarn_stat *bytes = &stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL];
    const struct tarn_stat *reserved = &stats.by_pool[TARN_STAT_RESERVED_BYTES][TARN_STAT_ALL];

    expect(shared, bytes->current >= 0 && bytes->peak >= bytes->current, "a peak is too low");
    expect(shared, !shared->counts || bytes->allocated - bytes->freed == bytes->current,
           "bytes were lost");
    expect(shared, bytes->current <= reserved->current, "more is allocated than reserved");
}

static void do_rare(struct worker *worker)
{
    struct shared *shared = worker->shared;

    switch (draw(&worker->random) % 5) {
    case 0:
        expect(shared, tarn_allocator_empty_cache(shared->allocator, NULL) == TARN_OK,
               "emptying the cache failed");
        break;
    case 1:
        expect(shared, tarn_sim_enqueue_ns(shared->device, worker->stream, 50) == TARN_OK,
               "queueing work failed");
        break;
    case 2:
        tarn_sim_advance_ns(shared->device, 40);
        break;
    case 3:
        tarn_allocator_reset_peak_stats(shared->allocator);
        break;
    default:
        look(shared);
        break;
    }
}

/* One each, or two threads share the default stream. */
static tarn_stream stream_of(const struct shared *shared, unsigned thread)
{
    return shared->own_streams ? 0x1000 * (thread + 1) : 0x1000 * (thread / 2);
}

static void work(void *context, unsigned thread)
{
    struct shared *shared = context;
    struct worker worker = {.shared = shared,
                            .random = shared->seed * SCHEDULE_THREADS_MAX + thread,
                            .stream = stream_of(shared, thread)};

    for (int i = 0; i < OPERATIONS; i++) {
        tarn_ptr *ptr = &worker.own[draw(&worker.random) % OWN];
        const uint64_t what = draw(&worker.random) % 16;

        if (what == 0) {
            do_rare(&worker);
        } else if (what < 4) {
            do_exchange(&worker, ptr);
        } else if (*ptr) {
            do_free(&worker, ptr);
        } else {
            do_alloc(&worker, ptr);
        }
    }
    for (int i = 0; i < OWN; i++) {
        if (worker.own[i]) {
            do_free(&worker, &worker.own[i]);
        }
    }
}

/* ---- afterwards ---- */

static void free_offers(struct shared *shared)
{
    for (int i = 0; i < OFFERS; i++) {
        if (shared->offers[i]) {
            expect(shared,
                   tarn_allocator_free(shared->allocator, shared->offers[i], NULL) == TARN_OK,
                   "a free failed");
        }
    }
}

static const char *shared_check(struct shared *shared)
{
    const char *finding = workload_finding(shared->allocator);
    struct tarn_stats stats = {.struct_size = sizeof stats};

    if (finding) {
        return finding;
    }
    expect(shared, tarn_allocator_empty_cache(shared->allocator, NULL) == TARN_OK,
           "emptying the cache failed");
    tarn_allocator_get_stats(shared->allocator, &stats);
    struct tarn_stat(*by_pool)[TARN_STAT_POOLS] = stats.by_pool;

    expect(shared, by_pool[TARN_STAT_ALLOCATION][0].current == 0, "blocks are left");
    expect(shared, by_pool[TARN_STAT_ACTIVE][0].current == 0, "blocks are left active");
    expect(shared, by_pool[TARN_STAT_RESERVED_BYTES][0].current == 0, "memory is left");
    expect(shared,
           !shared->counts || by_pool[TARN_STAT_ALLOCATION][0].allocated == shared->allocated,
           "allocations were lost");
    expect(shared, !shared->counts || stats.num_ooms == shared->ooms, "failures were lost");
    return shared->wrong;
}

static const char *shared_close(void *context)
{
    struct shared *shared = context;
    struct tarn_sim_counters counters = {.struct_size = sizeof counters};

    free_offers(shared);
    const char *wrong = shared_check(shared);

    tarn_allocator_destroy(shared->allocator);
    tarn_sim_get_counters(shared->device, &counters);
    if (!wrong && (counters.used_bytes > 0 || counters.live_events > 0)) {
        wrong = "the device has memory or events left";
    }
    tarn_device_close(shared->device);
    free(shared);
    return wrong;
}

const struct workload workload_allocator = {.name = "allocator",
                                            .threads = THREADS,
                                            .open = allocator_open,
                                            .body = work,
                                            .close = shared_close};
const struct workload workload_async = {
    .name = "async", .threads = THREADS, .open = async_open, .body = work, .close = shared_close};
const struct workload workload_stream_caches = {.name = "stream_caches",
                                                .threads = THREADS,
                                                .open = caches_open,
                                                .body = work,
                                                .close = shared_close};
