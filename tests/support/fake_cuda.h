/* SPDX-License-Identifier: MIT */
/*
 * A CUDA driver without a GPU, for tests: a shared library that exports the driver's functions (and
 * NVML's) and carries them out on simulated devices of its own. Its memory can be written and read,
 * work is done at once unless a test blocks a stream, addresses are those of a simulated device.
 * Tests steer it through this table, which the library's function `fake_cuda` returns.
 *
 * It is stricter than it has to be where callers get things wrong: what needs a context fails
 * without one, and what is unsafe during a capture in global mode fails and spoils the capture
 * unless the thread is in relaxed mode.
 */
#ifndef TESTS_SUPPORT_FAKE_CUDA_H
#define TESTS_SUPPORT_FAKE_CUDA_H

#include "device/nvml.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FAKE_CUDA_DEVICES_MAX = 4
};

struct fake_cuda {
    /* As new: CUDA 13.0, one device of 1 GiB, no call counted or planned to fail. */
    void (*reset)(void);
    void (*set_version)(int version);
    void (*set_devices)(int count, uint64_t bytes); /* -1: none, which cuInit does not notice */
    /* Value of a device attribute, for all devices. */
    void (*set_attribute)(int attribute, int value);
    /* Makes cuGetProcAddress not know a function, by its exported name. */
    void (*hide)(const char *exported);
    /* The n-th call from now on of that function (exported name; NULL: of any but cuGetError*)
     * gives `result` and does nothing else. n = 0 ends the plan. */
    void (*fail_nth)(const char *exported, uint64_t n, int result);
    uint64_t (*calls)(const char *exported);
    /* From now on every call gives CUDA_ERROR_DEINITIALIZED, or no longer. */
    void (*shut_down)(bool down);
    /* Edges of graphs carry data: only the functions that give room for it list them. */
    void (*set_edge_data)(bool carry);
    /* Work queued on the stream later waits until unblock. */
    bool (*block)(int device, uint64_t stream);
    bool (*unblock)(int device, uint64_t stream);
    /* That stream is one of that device's, whatever device asks. */
    void (*claim_stream)(uint64_t stream, int device);
    /* The context that this thread has current, how many it pushed, and its capture mode. */
    void *(*context)(void);
    int (*depth)(void);
    int (*mode)(void);
    int (*retained)(int device);
    bool (*spoiled)(void); /* a capture, since the reset */
    /* Bytes in use and things alive, of a device. */
    uint64_t (*used_bytes)(int device);
    uint64_t (*alive)(int device);
    void (*set_release_threshold)(uint64_t bytes);
    uint64_t (*release_threshold)(void);
    /* What NVML lists; and the result of each of these three functions. */
    void (*set_processes)(const struct tn_nvml_process *processes, unsigned count);
    void (*set_nvml_results)(int init, int handle, int processes);
    /* What it says of the GPU's memory, and with which result. */
    void (*set_nvml_memory)(const struct tn_nvml_memory *memory, int result);
};

typedef const struct fake_cuda *fake_cuda_function(void);

/* The function that cuGetProcAddress gives of those in fake_cuda_more.c; NULL: none. */
void *fake_cuda_more_find(const char *name, int version, uint64_t flags);

#endif
