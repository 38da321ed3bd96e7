/* SPDX-License-Identifier: MIT */
/*
 * Captures work into a graph, which is up to CUDA and not the allocator. A program built with CUDA
 * calls cudaStreamBeginCapture and so on; here the driver's functions are looked up at run time, so
 * that the example builds everywhere. A simulated device records the capture and runs nothing.
 */
#ifndef EXAMPLE_CAPTURE_H
#define EXAMPLE_CAPTURE_H

#include "example.h"

#include <tarn/sim.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

struct graph {
    void *executable; /* the driver's, NULL on a simulated device */
};

static inline bool is_simulated(const struct tarn_device *device)
{
    struct tarn_device_info info = {.struct_size = sizeof info};

    tarn_device_get_info(device, &info);
    return strcmp(info.backend, "sim") == 0;
}

/* Calls a function of the driver with arguments of the size of a pointer. */
static inline void drive(const char *name, uint64_t a, uint64_t b, uint64_t c)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    void *symbol = driver ? dlsym(driver, name) : NULL;
    int (*function)(uint64_t, uint64_t, uint64_t);

    EXPECT(symbol != NULL);
    memcpy(&function, &symbol, sizeof function);
    const int result = function(a, b, c);

    if (result != 0) {
        (void)fprintf(stderr, "%s: CUDA error %d\n", name, result);
        exit(1);
    }
}

/* The driver's functions need a current context. CUDA's runtime sets it; the allocator's calls
 * leave none. */
static inline void make_current(const struct tarn_device *device)
{
    struct tarn_device_info info = {.struct_size = sizeof info};
    void *context = NULL;

    tarn_device_get_info(device, &info);
    drive("cuDevicePrimaryCtxRetain", (uint64_t)(uintptr_t)&context, (uint64_t)info.ordinal, 0);
    drive("cuCtxSetCurrent", (uint64_t)(uintptr_t)context, 0, 0);
}

static inline void capture_begin(struct tarn_device *device, tarn_stream stream)
{
    enum {
        THREAD_LOCAL_MODE = 1
    };

    if (is_simulated(device)) {
        EXPECT(tarn_sim_set_capturing(device, stream, true) == TARN_OK);
    } else {
        make_current(device);
        drive("cuStreamBeginCapture_v2", stream, THREAD_LOCAL_MODE, 0);
    }
}

static inline struct graph capture_end(struct tarn_device *device, tarn_stream stream)
{
    struct graph graph = {NULL};
    void *captured = NULL;

    if (is_simulated(device)) {
        EXPECT(tarn_sim_set_capturing(device, stream, false) == TARN_OK);
        return graph;
    }
    drive("cuStreamEndCapture", stream, (uint64_t)(uintptr_t)&captured, 0);
    drive("cuGraphInstantiateWithFlags", (uint64_t)(uintptr_t)&graph.executable,
          (uint64_t)(uintptr_t)captured, 0);
    drive("cuGraphDestroy", (uint64_t)(uintptr_t)captured, 0, 0);
    return graph;
}

static inline void graph_launch(struct graph graph, tarn_stream stream)
{
    if (graph.executable) {
        drive("cuGraphLaunch", (uint64_t)(uintptr_t)graph.executable, stream, 0);
    }
}

static inline void graph_destroy(struct graph graph)
{
    if (graph.executable) {
        drive("cuGraphExecDestroy", (uint64_t)(uintptr_t)graph.executable, 0, 0);
    }
}

#endif
