/* SPDX-License-Identifier: MIT */
#include "tarn_adapter.h"

#include "tarn/sim.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t adapter_alloc(void *context, uint64_t size, uint64_t stream)
{
    tarn_ptr ptr = 0;

    if (tarn_allocator_alloc(context, size, stream, &ptr, NULL)) {
        (void)fprintf(stderr, "bench: out of simulated memory\n");
        exit(1);
    }
    return ptr;
}

static void adapter_free(void *context, uint64_t ptr, uint64_t stream)
{
    (void)stream;
    if (tarn_allocator_free(context, ptr, NULL)) {
        (void)fprintf(stderr, "bench: a pointer was lost\n");
        exit(1);
    }
}

void bench_tarn_open(struct bench_tarn *tarn, const char *name, const struct tarn_config *config)
{
    const struct tarn_sim_options options = {.struct_size = sizeof options,
                                             .capacity = (uint64_t)1 << 40};
    struct tarn_error error;

    if (tarn_sim_open(&options, &tarn->device, &error) ||
        tarn_allocator_create(tarn->device, config, &tarn->allocator, &error)) {
        (void)fprintf(stderr, "bench: %s: %s\n", name, error.text);
        exit(1);
    }
    tarn->measured = (struct bench_allocator){
        .name = name,
        .context = tarn->allocator,
        .alloc = adapter_alloc,
        .free = adapter_free,
    };
    for (uint64_t i = 0; i < BENCH_THREADS_MAX; i++) {
        tarn->measured.streams[i] = 0x1000 + i * 64;
    }
}

void bench_tarn_open_named(struct bench_tarn *tarn, bool expandable)
{
    struct tarn_config config;
    struct tarn_error error;

    if (tarn_config_parse(expandable ? "expandable_segments:True" : "", &config, &error)) {
        (void)fprintf(stderr, "bench: %s\n", error.text);
        exit(1);
    }
    bench_tarn_open(tarn, expandable ? "tarn-expandable" : "tarn", &config);
}

void bench_tarn_close(struct bench_tarn *tarn)
{
    tarn_allocator_destroy(tarn->allocator);
    tarn_device_close(tarn->device);
}
