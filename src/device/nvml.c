/* SPDX-License-Identifier: MIT */
#include "device/nvml.h"

#include "base/dl.h"
#include "base/host_mem.h"
#include "base/size_text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    PROCESSES_USUAL = 16, /* room for so many without host memory: it may be short just now */
    PROCESSES_MAX = 65536,
    TRIES_MAX = 4, /* processes may start between two questions */
    SENTENCE_MAX = 128
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

static bool nvml_open_locked(struct tn_nvml *nvml)
{
    char why[1];
    void *library = tn_dl_open(nvml->path, why, sizeof why);

    return library && tn_dl_find(library, "nvmlInit_v2", &nvml->init) &&
           tn_dl_find(library, "nvmlDeviceGetHandleByPciBusId_v2", &nvml->get_handle) &&
           (tn_dl_find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml->get_processes) ||
            tn_dl_find(library, "nvmlDeviceGetComputeRunningProcesses_v2", &nvml->get_processes)) &&
           nvml->init() == TN_NVML_SUCCESS;
}

static bool nvml_is_open(struct tn_nvml *nvml)
{
    tn_lock_acquire(&nvml->lock);
    if (!nvml->tried) {
        nvml->tried = true;
        nvml->open = nvml_open_locked(nvml);
    }
    const bool open = nvml->open;
    tn_lock_release(&nvml->lock);
    return open;
}

/* Adds a sentence if all of it fits. */
static void sentence_add(char *text, size_t size, const struct tn_nvml_process *process)
{
    char sentence[SENTENCE_MAX];
    const struct tn_size_text used = tn_size_text_message(process->used);
    const size_t length = strlen(text);

    if (process->pid == (unsigned)getpid()) {
        (void)snprintf(sentence, sizeof sentence,
                       "Including non-PyTorch memory, this process has %s memory in use. ",
                       used.text);
    } else {
        (void)snprintf(sentence, sizeof sentence, "Process %u has %s memory in use. ", process->pid,
                       used.text);
    }
    if (strlen(sentence) < size - length) {
        memcpy(text + length, sentence, strlen(sentence) + 1);
    }
}

static void processes_write(const struct tn_nvml_process *processes, unsigned count, char *text,
                            size_t size)
{
    for (unsigned i = 0; i < count; i++) {
        if (processes[i].used != TN_NVML_UNKNOWN) {
            sentence_add(text, size, &processes[i]);
        }
    }
}

void tn_nvml_processes(struct tn_nvml *nvml, const char *bus_id, char *text, size_t size)
{
    struct tn_nvml_process usual[PROCESSES_USUAL];
    struct tn_nvml_process *processes = usual;
    unsigned room = PROCESSES_USUAL;
    unsigned count = room;
    void *device = NULL;
    int result = TN_NVML_INSUFFICIENT_SIZE;

    text[0] = '\0';
    if (!nvml_is_open(nvml) || nvml->get_handle(bus_id, &device) != TN_NVML_SUCCESS) {
        return;
    }
    for (unsigned tries = 0; result == TN_NVML_INSUFFICIENT_SIZE && tries < TRIES_MAX; tries++) {
        if (count > room) {
            struct tn_nvml_process *more =
                count <= PROCESSES_MAX ? tn_host_alloc(count * sizeof *more) : NULL;

            if (!more) {
                break;
            }
            tn_host_free(processes == usual ? NULL : processes, room * sizeof *processes);
            processes = more;
            room = count;
        }
        count = room;
        result = nvml->get_processes(device, &count, processes);
    }
    if (result == TN_NVML_SUCCESS) {
        processes_write(processes, count < room ? count : room, text, size);
    }
    tn_host_free(processes == usual ? NULL : processes, room * sizeof *processes);
}
