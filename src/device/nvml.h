/* SPDX-License-Identifier: MIT */
/*
 * Which processes use a GPU, from NVIDIA's management library, opened at run time when it is first
 * asked. Without the library, or when it fails, nothing is known: PyTorch's message does without
 * that part then, and so does ours.
 *
 * Thread-safe. Locks: `lock` (TN_LOCK_DEVICE) guards opening; a question takes milliseconds the
 * first time and tens of microseconds later.
 */
#ifndef TN_DEVICE_NVML_H
#define TN_DEVICE_NVML_H

#include "base/lock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* nvmlProcessInfo_t as of its second version. */
struct tn_nvml_process {
    unsigned pid;
    unsigned long long used; /* bytes; TN_NVML_UNKNOWN = not known */
    unsigned gpu_instance;
    unsigned compute_instance;
};

#define TN_NVML_UNKNOWN (~0ULL)

enum {
    TN_NVML_SUCCESS = 0,
    TN_NVML_INSUFFICIENT_SIZE = 7
};

struct tn_nvml {
    struct tn_lock lock;
    const char *path;
    bool tried;
    bool open;
    int (*init)(void);
    int (*get_handle)(const char *bus_id, void **device);
    int (*get_processes)(void *device, unsigned *count, struct tn_nvml_process *processes);
};

/* `path` NULL is the installed library, libnvidia-ml.so.1; else it outlives the struct. */
void tn_nvml_init(struct tn_nvml *nvml, const char *path);
void tn_nvml_fini(struct tn_nvml *nvml);

/* Writes what PyTorch's out-of-memory message says about processes that use the GPU at that PCI
 * address: a sentence and a blank for each, our own worded differently. Whole sentences only, as
 * many as fit into `size` bytes (at least 1); "" when nothing is known. */
void tn_nvml_processes(struct tn_nvml *nvml, const char *bus_id, char *text, size_t size);

#endif
