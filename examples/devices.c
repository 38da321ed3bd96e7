/* SPDX-License-Identifier: MIT */
/*
 * devices [DEVICE DEVICE]: an allocator for each of two GPUs, and memory that goes from one to the
 * other. Without arguments both are simulated; "cuda:0 cuda:1" are GPUs.
 */
#include "example.h"

#include <tarn/allocator.h>
#include <tarn/config.h>
#include <tarn/copy.h>
#include <tarn/sim.h>
#include <tarn/stream.h>

#include <string.h>

enum {
    DEVICES = 2,
    SIZE = 8 << 20
};

struct gpu {
    struct tarn_device *device;
    struct tarn_allocator *allocator;
    tarn_ptr ptr;
};

/* Each device has its own allocator: memory, limits and counters are separate. */
static void open_gpu(struct gpu *gpu, const char *name, int ordinal)
{
    const struct tarn_sim_options options = {.struct_size = sizeof options,
                                             .ordinal = ordinal,
                                             .capacity = (uint64_t)2 << 30,
                                             .base_address = (uint64_t)(ordinal + 1) << 44,
                                             .backed = true};
    struct tarn_config config;
    struct tarn_error error;

    if (name) {
        CHECK(tarn_device_open(name, &gpu->device, &error));
    } else {
        CHECK(tarn_sim_open(&options, &gpu->device, &error));
    }
    CHECK(tarn_config_from_env(&config, &error));
    CHECK(tarn_allocator_create(gpu->device, &config, &gpu->allocator, &error));
    CHECK(tarn_allocator_alloc(gpu->allocator, SIZE, 0, &gpu->ptr, &error));
}

static void close_gpu(struct gpu *gpu)
{
    struct tarn_error error;

    CHECK(tarn_allocator_free(gpu->allocator, gpu->ptr, &error));
    tarn_allocator_destroy(gpu->allocator);
    tarn_device_close(gpu->device);
}

int main(int argc, char **argv)
{
    static char sent[SIZE];
    static char received[SIZE];
    struct gpu gpus[DEVICES];
    struct tarn_error error;
    bool reaches;

    for (int i = 0; i < DEVICES; i++) {
        open_gpu(&gpus[i], argc > i + 1 ? argv[i + 1] : NULL, i);
    }

    /* With peer access the copy goes from GPU to GPU; without it the driver goes through the host,
     * which works as well. Expandable segments are made accessible now and whenever they grow. */
    CHECK(tarn_allocator_reach_peer(gpus[0].allocator, gpus[1].allocator, &reaches, &error));
    memset(sent, 42, SIZE);
    CHECK(tarn_copy_from_host(gpus[0].allocator, gpus[0].ptr, sent, SIZE, 0, &error));
    CHECK(
        tarn_copy(gpus[1].allocator, gpus[1].ptr, gpus[0].allocator, gpus[0].ptr, SIZE, 0, &error));

    /* The copy is on a stream of the source: wait there before the destination is read. */
    CHECK(tarn_stream_wait(gpus[0].device, 0, &error));
    CHECK(tarn_copy_to_host(gpus[1].allocator, received, gpus[1].ptr, SIZE, 0, &error));
    EXPECT(memcmp(sent, received, SIZE) == 0);
    (void)printf("8 MiB went from one device to the other%s\n", reaches ? ", by peer access" : "");

    for (int i = 0; i < DEVICES; i++) {
        close_gpu(&gpus[i]);
    }
    return 0;
}
