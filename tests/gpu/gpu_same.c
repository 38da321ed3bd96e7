/* SPDX-License-Identifier: MIT */
/*
 * The same random program on a GPU and on a simulated device that gives the addresses that the GPU
 * gave: every pointer, status and counter must be the same. The simulated device is held against
 * PyTorch's recorded decisions elsewhere; this carries the proof over to the real driver.
 *
 * The GPU goes first. Its events tell where segments began and pages were mapped, and the simulated
 * device is asked for addresses in the same order. All streams are waited for between two steps, so
 * that events are complete at the same time on both.
 */
#include "gpu/gpu_case.h"

#include "support/share.h"
#include "tarn/sim.h"

#include <stdlib.h>
#include <string.h>

enum {
    LIVE_MAX = 200,
    STEPS = 3000,
    STREAMS = 3,
    EVENTS_MAX = 16384 /* of one step: a segment of a full device can be mapped in one */
};

/* What one allocator reported during the current step. */
struct reports {
    size_t segments;
    size_t maps;
    tarn_ptr segment[EVENTS_MAX];
    tarn_ptr map[EVENTS_MAX];
};

struct twins {
    const struct gpu *gpu;
    struct tarn_device *sim;
    struct tarn_allocator *on_gpu;
    struct tarn_allocator *on_sim;
    struct reports told_gpu;
    struct reports told_sim;
    tarn_stream streams[STREAMS];
    tarn_ptr live[LIVE_MAX];
    size_t count;
    uint64_t random;
    uint64_t refused; /* allocations, for want of memory */
};

static void receive(void *context, const struct tarn_trace_event *event)
{
    struct reports *told = context;

    if (event->action == TARN_ACTION_SEGMENT_ALLOC && told->segments < EVENTS_MAX) {
        told->segment[told->segments++] = event->address;
    } else if (event->action == TARN_ACTION_SEGMENT_MAP && told->maps < EVENTS_MAX) {
        told->map[told->maps++] = event->address;
    }
}

/* Where the GPU's next one was. */
static tarn_ptr next_address(void *context, bool reservation, uint64_t size)
{
    const struct twins *twins = context;
    const struct reports *gpu = &twins->told_gpu;

    (void)size;
    if (reservation) {
        return twins->told_sim.maps < gpu->maps ? gpu->map[twins->told_sim.maps] : 0;
    }
    return twins->told_sim.segments < gpu->segments ? gpu->segment[twins->told_sim.segments] : 0;
}

static uint64_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static bool step_alloc(struct twins *twins)
{
    const uint64_t size =
        1 + random_next(&twins->random) % ((uint64_t)2 << random_next(&twins->random) % 26);
    const tarn_stream stream = twins->streams[random_next(&twins->random) % STREAMS];
    struct tarn_error error = {.status = TARN_OK};
    tarn_ptr real = 0;
    tarn_ptr simulated = 0;
    const enum tarn_status st = tarn_allocator_alloc(twins->on_gpu, size, stream, &real, &error);

    if (st != TARN_OK && st != TARN_ERR_OUT_OF_MEMORY) {
        return gpu_status_ok(__FILE__, __LINE__, "an allocation", st, &error);
    }
    if (!CHECK(tarn_allocator_alloc(twins->on_sim, size, stream, &simulated, &error) == st) ||
        !CHECK(real == simulated)) {
        return false;
    }
    if (st == TARN_OK) {
        twins->live[twins->count++] = real;
    }
    twins->refused += st != TARN_OK;
    return true;
}

static bool step_free(struct twins *twins)
{
    const size_t at = random_next(&twins->random) % twins->count;
    const tarn_stream other = twins->streams[random_next(&twins->random) % STREAMS];
    const tarn_ptr ptr = twins->live[at];
    struct tarn_error error = {.status = TARN_OK};

    twins->live[at] = twins->live[--twins->count];
    if (random_next(&twins->random) % 3 == 0 &&
        (!TARN(tarn_allocator_record_stream(twins->on_gpu, ptr, other, &error)) ||
         !TARN(tarn_allocator_record_stream(twins->on_sim, ptr, other, &error)))) {
        return false;
    }
    return TARN(tarn_allocator_free(twins->on_gpu, ptr, &error)) &&
           TARN(tarn_allocator_free(twins->on_sim, ptr, &error));
}

static bool step_clean(struct twins *twins)
{
    struct tarn_error error = {.status = TARN_OK};

    return TARN(tarn_allocator_empty_cache(twins->on_gpu, &error)) &&
           TARN(tarn_allocator_empty_cache(twins->on_sim, &error));
}

static bool steps_run(struct twins *twins)
{
    const struct gpu *gpu = twins->gpu;
    bool right = true;

    for (uint64_t step = 0; right && step < test_part(STEPS); step++) {
        const uint64_t pick = random_next(&twins->random) % 100;

        twins->told_gpu.segments = twins->told_gpu.maps = 0;
        twins->told_sim.segments = twins->told_sim.maps = 0;
        if (pick == 0) {
            right = step_clean(twins);
        } else if (twins->count < LIVE_MAX && pick < 60) {
            right = step_alloc(twins);
        } else if (twins->count > 0) {
            right = step_free(twins);
        }
        right = DRIVER(cuCtxSynchronize()) && right;
        if (!right) {
            (void)printf("    in step %llu\n", (unsigned long long)step);
        }
    }
    return right;
}

static bool counters_are_equal(const struct twins *twins)
{
    struct tarn_stats real = {.struct_size = sizeof real};
    struct tarn_stats simulated = {.struct_size = sizeof simulated};

    tarn_allocator_get_stats(twins->on_gpu, &real);
    tarn_allocator_get_stats(twins->on_sim, &simulated);
    return CHECK(memcmp(real.by_pool, simulated.by_pool, sizeof real.by_pool) == 0) &&
           CHECK(real.num_alloc_retries == simulated.num_alloc_retries) &&
           CHECK(real.num_ooms == simulated.num_ooms) &&
           CHECK(real.num_sync_all_streams == simulated.num_sync_all_streams) &&
           CHECK(real.num_device_alloc == simulated.num_device_alloc) &&
           CHECK(real.num_device_free == simulated.num_device_free) &&
           CHECK(real.oversize_segments.peak == simulated.oversize_segments.peak);
}

/* A limit that is met now and then, so that memory is given back and tried again. */
static bool limit_set(struct twins *twins)
{
    const double fraction = 700.0 * (double)MIB / (double)twins->gpu->device->total_memory;
    struct tarn_error error = {.status = TARN_OK};

    return TARN(tarn_allocator_set_memory_fraction(twins->on_gpu, fraction, &error)) &&
           TARN(tarn_allocator_set_memory_fraction(twins->on_sim, fraction, &error));
}

static bool twins_make(struct twins *twins, const char *settings)
{
    const struct gpu *gpu = twins->gpu;
    const struct tarn_sim_options options = {.struct_size = sizeof options,
                                             .capacity = gpu->device->total_memory};
    struct gpu simulated = *gpu;
    const struct tarn_sink real_sink = {.context = &twins->told_gpu, .receive = receive};
    const struct tarn_sink sim_sink = {.context = &twins->told_sim, .receive = receive};
    struct tarn_error error = {.status = TARN_OK};

    if (!TARN(tarn_sim_open(&options, &twins->sim, &error))) {
        return false;
    }
    tarn_sim_set_address_oracle(twins->sim, next_address, twins);
    simulated.device = twins->sim;
    twins->on_gpu = gpu_allocator(gpu, settings);
    twins->on_sim = gpu_allocator(&simulated, settings);
    for (int i = 1; i < STREAMS; i++) {
        if (!DRIVER(cuStreamCreate(&twins->streams[i], TN_CU_STREAM_NON_BLOCKING))) {
            return false;
        }
    }
    return twins->on_gpu && twins->on_sim &&
           TARN(tarn_allocator_add_sink(twins->on_gpu, &real_sink, &error)) &&
           TARN(tarn_allocator_add_sink(twins->on_sim, &sim_sink, &error));
}

static bool twins_end(struct twins *twins)
{
    const struct gpu *gpu = twins->gpu;
    bool right = true;

    tarn_allocator_destroy(twins->on_gpu);
    tarn_allocator_destroy(twins->on_sim);
    tarn_device_close(twins->sim);
    for (int i = 1; i < STREAMS; i++) {
        right = (!twins->streams[i] || DRIVER(cuStreamDestroy_v2(twins->streams[i]))) && right;
    }
    return right;
}

bool gpu_decisions_are_the_same(struct gpu *gpu)
{
    static const char *const settings[] = {"", "expandable_segments:True",
                                           "max_split_size_mb:20,garbage_collection_threshold:0.6",
                                           "roundup_power2_divisions:4,expandable_segments:True"};
    struct twins *twins = malloc(sizeof *twins);
    uint64_t refused = 0;
    bool right = CHECK(twins);

    for (size_t i = 0; right && i < sizeof settings / sizeof *settings; i++) {
        memset(twins, 0, sizeof *twins);
        twins->gpu = gpu;
        twins->random = i + 1;
        right = twins_make(twins, settings[i]) && limit_set(twins) && steps_run(twins) &&
                counters_are_equal(twins);
        right = twins_end(twins) && right;
        refused += twins->refused;
        if (!right) {
            (void)printf("    with settings \"%s\"\n", settings[i]);
        }
    }
    (void)snprintf(gpu->note, sizeof gpu->note, "%llu steps, %llu refused, all the same",
                   (unsigned long long)(test_part(STEPS) * sizeof settings / sizeof *settings),
                   (unsigned long long)refused);
    free(twins);
    return right;
}
