/* SPDX-License-Identifier: MIT */
/*
 * The processes that use a GPU, and its free memory, from NVIDIA's management library, opened at
 * run time on first use.
 *
 * Thread-safe. Locks: `lock` (TN_LOCK_DEVICE) guards opening; the first query takes milliseconds,
 * later ones tens of microseconds.
 */
#ifndef TN_DEVICE_NVML_H
#define TN_DEVICE_NVML_H

#include "base/lock.h"
#include "tarn/device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* nvmlProcessInfo_t as of its second version. */
struct tn_nvml_process {
    unsigned pid;
    unsigned long long used; /* bytes; TN_NVML_UNKNOWN = unknown */
    unsigned gpu_instance;
    unsigned compute_instance;
};

/* nvmlMemory_t */
struct tn_nvml_memory {
    unsigned long long total; /* bytes */
    unsigned long long free;
    unsigned long long used;
};

#define TN_NVML_UNKNOWN (~0ULL)

enum {
    TN_NVML_SUCCESS = 0,
    TN_NVML_INSUFFICIENT_SIZE = 7,
    TN_NVML_DRIVER_NOT_LOADED = 9
};

struct tn_nvml {
    struct tn_lock lock;
    const char *path;
    bool tried;
    enum tarn_status opened; /* TARN_OK once it is open, or why it failed */
    int (*init)(void);
    int (*get_handle)(const char *bus_id, void **device);
    int (*get_index)(void *device, unsigned *index); /* NULL in old libraries */
    int (*get_processes)(void *device, unsigned *count, struct tn_nvml_process *processes);
    int (*get_memory)(void *device, struct tn_nvml_memory *memory); /* NULL if it is not there */
};

/* `path` NULL is the installed library, libnvidia-ml.so.1; else it outlives the struct. */
void tn_nvml_init(struct tn_nvml *nvml, const char *path);
void tn_nvml_fini(struct tn_nvml *nvml);

/* Visits the processes that use the GPU at that PCI address, and stores its NVML index, which no
 * environment variable changes; *number_out is unchanged if the index is unknown.
 * TARN_ERR_NOT_FOUND without the library, TARN_ERR_NOT_READY when it finds no driver,
 * TARN_ERR_DEVICE when it fails, TARN_ERR_HOST_MEMORY for more than sixteen processes; then `why`
 * is a sentence that explains it, and nothing was visited. */
enum tarn_status tn_nvml_processes(struct tn_nvml *nvml, const char *bus_id,
                                   tarn_process_visitor visit, void *context, int *number_out,
                                   char *why, size_t size) TARN_MUST_CHECK;

/* Bytes of that GPU, of all processes. False if they are not known. */
bool tn_nvml_memory(struct tn_nvml *nvml, const char *bus_id, uint64_t *free_out,
                    uint64_t *total_out);

#endif
