/* SPDX-License-Identifier: MIT */
#include "tarn_adapter.h"

#include "tarn/graph_pool.h"
#include "tarn/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The one that was opened last. */
static struct bench_tarn *opened;

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

/* The last stream is the one that is routed; those from the second on are waited for. */
static void check(enum tarn_status status)
{
    if (status) {
        (void)fprintf(stderr, "bench: %s\n", tarn_status_text(status));
        exit(1);
    }
}

static bool is_routed(void *context, tarn_stream stream)
{
    const struct bench_tarn *tarn = context;

    return stream == tarn->measured.streams[BENCH_THREADS_MAX - 1];
}

static const struct tarn_pool_id routed_pool = {0, 1};

static void adapter_enter(void *context, enum bench_situation situation, int count)
{
    struct bench_tarn *tarn = opened;
    const uint64_t *streams = tarn->measured.streams;

    (void)context;
    if (situation == BENCH_ROUTED) {
        check(tarn_allocator_begin_pool(tarn->allocator, routed_pool, is_routed, tarn, NULL));
        return;
    }
    for (int i = 1; i <= count; i++) {
        tarn_ptr ptr = 0;

        check(tarn_allocator_alloc(tarn->allocator, 4096, streams[0], &ptr, NULL));
        check(tarn_sim_block_stream(tarn->device, streams[i]));
        check(tarn_allocator_record_stream(tarn->allocator, ptr, streams[i], NULL));
        check(tarn_allocator_free(tarn->allocator, ptr, NULL));
    }
}

static void adapter_leave(void *context, enum bench_situation situation, int count)
{
    struct bench_tarn *tarn = opened;
    const uint64_t *streams = tarn->measured.streams;
    tarn_ptr ptr = 0;

    (void)context;
    if (situation == BENCH_ROUTED) {
        check(tarn_allocator_end_pool(tarn->allocator, routed_pool, NULL));
        check(tarn_allocator_release_pool(tarn->allocator, routed_pool, NULL));
        check(tarn_allocator_empty_cache(tarn->allocator, NULL));
        return;
    }
    for (int i = 1; i <= count; i++) {
        check(tarn_sim_unblock_stream(tarn->device, streams[i]));
    }
    check(tarn_allocator_alloc(tarn->allocator, 4096, streams[0], &ptr, NULL));
    check(tarn_allocator_free(tarn->allocator, ptr, NULL));
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
    opened = tarn;
    tarn->measured = (struct bench_allocator){
        .name = name,
        .context = tarn->allocator,
        .alloc = adapter_alloc,
        .free = adapter_free,
        .enter = adapter_enter,
        .leave = adapter_leave,
    };
    for (uint64_t i = 0; i < BENCH_THREADS_MAX; i++) {
        tarn->measured.streams[i] = 0x1000 + i * 64;
    }
}

void bench_tarn_open_named(struct bench_tarn *tarn, const char *name)
{
    const char *conf = strcmp(name, "tarn-compact") == 0      ? "policy:compact"
                       : strcmp(name, "tarn-expandable") == 0 ? "expandable_segments:True"
                                                              : "";
    struct tarn_config config;
    struct tarn_error error;

    if (tarn_config_parse(conf, &config, &error)) {
        (void)fprintf(stderr, "bench: %s\n", error.text);
        exit(1);
    }
    bench_tarn_open(tarn, name, &config);
}

void bench_tarn_close(struct bench_tarn *tarn)
{
    tarn_allocator_destroy(tarn->allocator);
    tarn_device_close(tarn->device);
}
