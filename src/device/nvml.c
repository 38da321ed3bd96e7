/* SPDX-License-Identifier: MIT */
#include "device/nvml.h"

#include "base/dl.h"
#include "base/host_mem.h"

#include <stdio.h>

enum {
    PROCESSES_USUAL = 16, /* this many need no host memory, which may be exhausted now */
    PROCESSES_MAX = 65536,
    TRIES_MAX = 4 /* processes may start between two queries */
};

/* A list of processes, on the stack while it is short. */
struct list {
    struct tn_nvml_process usual[PROCESSES_USUAL];
    struct tn_nvml_process *processes;
    unsigned room;
    unsigned count;
};

void tn_nvml_init(struct tn_nvml *nvml, const char *path)
{
    *nvml = (struct tn_nvml){.path = path ? path : "libnvidia-ml.so.1"};
    tn_lock_init(&nvml->lock, TN_LOCK_DEVICE);
}

void tn_nvml_fini(struct tn_nvml *nvml)
{
    tn_lock_fini(&nvml->lock);
}

static enum tarn_status nvml_open_locked(struct tn_nvml *nvml)
{
    char why[1];
    void *library = tn_dl_open(nvml->path, why, sizeof why);

    if (!library || !tn_dl_find(library, "nvmlInit_v2", &nvml->init) ||
        !tn_dl_find(library, "nvmlDeviceGetHandleByPciBusId_v2", &nvml->get_handle) ||
        (!tn_dl_find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml->get_processes) &&
         !tn_dl_find(library, "nvmlDeviceGetComputeRunningProcesses_v2", &nvml->get_processes))) {
        return TARN_ERR_NOT_FOUND;
    }
    if (!tn_dl_find(library, "nvmlDeviceGetIndex", &nvml->get_index)) {
        nvml->get_index = NULL;
    }
    if (!tn_dl_find(library, "nvmlDeviceGetMemoryInfo", &nvml->get_memory)) {
        nvml->get_memory = NULL;
    }
    switch (nvml->init()) {
    case TN_NVML_SUCCESS:
        return TARN_OK;
    case TN_NVML_DRIVER_NOT_LOADED:
        return TARN_ERR_NOT_READY;
    default:
        return TARN_ERR_DEVICE;
    }
}

static enum tarn_status nvml_open(struct tn_nvml *nvml)
{
    tn_lock_acquire(&nvml->lock);
    if (!nvml->tried) {
        nvml->tried = true;
        nvml->opened = nvml_open_locked(nvml);
    }
    const enum tarn_status opened = nvml->opened;

    tn_lock_release(&nvml->lock);
    return opened;
}

static void say_not_open(const struct tn_nvml *nvml, enum tarn_status opened, char *why,
                         size_t size)
{
    if (opened == TARN_ERR_NOT_FOUND) {
        (void)snprintf(why, size, "%s cannot be loaded: it comes with the NVIDIA driver",
                       nvml->path);
    } else if (opened == TARN_ERR_NOT_READY) {
        (void)snprintf(why, size, "NVML finds no NVIDIA driver: is its kernel module loaded?");
    } else {
        (void)snprintf(why, size, "nvmlInit failed");
    }
}

static void list_fini(struct list *list)
{
    tn_host_free(list->processes == list->usual ? NULL : list->processes,
                 list->room * sizeof *list->processes);
}

/* Reserves space for `count`; false when host memory runs out. */
static bool list_grow(struct list *list, unsigned count)
{
    struct tn_nvml_process *more =
        count <= PROCESSES_MAX ? tn_host_alloc(count * sizeof *more) : NULL;

    if (!more) {
        return false;
    }
    list_fini(list);
    list->processes = more;
    list->room = count;
    return true;
}

/* Repeats the query until the list is large enough. */
static enum tarn_status list_fill(struct list *list, struct tn_nvml *nvml, void *device, char *why,
                                  size_t size)
{
    int result = TN_NVML_INSUFFICIENT_SIZE;

    for (unsigned tries = 0; result == TN_NVML_INSUFFICIENT_SIZE && tries < TRIES_MAX; tries++) {
        if (list->count > list->room && !list_grow(list, list->count)) {
            (void)snprintf(why, size, "no host memory for a list of %u processes", list->count);
            return TARN_ERR_HOST_MEMORY;
        }
        list->count = list->room;
        result = nvml->get_processes(device, &list->count, list->processes);
    }
    if (result != TN_NVML_SUCCESS) {
        (void)snprintf(why, size, "nvmlDeviceGetComputeRunningProcesses: error %d", result);
        return TARN_ERR_DEVICE;
    }
    return TARN_OK;
}

static void list_show(const struct list *list, tarn_process_visitor visit, void *context)
{
    const unsigned count = list->count < list->room ? list->count : list->room;

    for (unsigned i = 0; i < count; i++) {
        const uint64_t used = list->processes[i].used;

        visit(context, list->processes[i].pid,
              used == TN_NVML_UNKNOWN ? TARN_PROCESS_BYTES_UNKNOWN : used);
    }
}

enum tarn_status tn_nvml_processes(struct tn_nvml *nvml, const char *bus_id,
                                   tarn_process_visitor visit, void *context, int *number_out,
                                   char *why, size_t size)
{
    struct list list;
    unsigned index = 0;
    void *device = NULL;
    enum tarn_status st = nvml_open(nvml);

    if (st) {
        say_not_open(nvml, st, why, size);
        return st;
    }
    const int result = nvml->get_handle(bus_id, &device);

    if (result != TN_NVML_SUCCESS) {
        (void)snprintf(why, size, "nvmlDeviceGetHandleByPciBusId: error %d", result);
        return TARN_ERR_DEVICE;
    }
    list.processes = list.usual;
    list.room = PROCESSES_USUAL;
    list.count = PROCESSES_USUAL;
    st = list_fill(&list, nvml, device, why, size);
    if (st == TARN_OK) {
        if (nvml->get_index && nvml->get_index(device, &index) == TN_NVML_SUCCESS) {
            *number_out = (int)index;
        }
        list_show(&list, visit, context);
    }
    list_fini(&list);
    return st;
}

bool tn_nvml_memory(struct tn_nvml *nvml, const char *bus_id, uint64_t *free_out,
                    uint64_t *total_out)
{
    struct tn_nvml_memory memory = {0};
    void *device = NULL;

    if (nvml_open(nvml) || !nvml->get_memory ||
        nvml->get_handle(bus_id, &device) != TN_NVML_SUCCESS ||
        nvml->get_memory(device, &memory) != TN_NVML_SUCCESS) {
        return false;
    }
    *free_out = memory.free;
    *total_out = memory.total;
    return true;
}
