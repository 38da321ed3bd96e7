/* SPDX-License-Identifier: MIT */
/*
 * Running out of memory: what is recorded, and the message, word for word PyTorch's. The message is
 * written into the caller's fixed buffer; nothing here needs host memory.
 */
#ifndef TN_ALLOC_ENGINE_OOM_H
#define TN_ALLOC_ENGINE_OOM_H

#include "alloc/engine/callback_list.h"
#include "alloc/pool/core.h"
#include "tarn/allocator.h"
#include "tarn/status.h"

struct tn_heap;
struct tn_request;

enum {
    TN_OOM_PROCESSES_MAX = 1024 /* bytes of the sentences about processes, with their NUL */
};

/* What is known under the lock: the request, the limit, the counters. */
struct tarn_oom tn_oom_describe(struct tn_heap *heap, const struct tn_request *request);

/* Under the lock: counts the failure and sends the event. */
void tn_oom_count(struct tn_heap *heap, const struct tn_request *request);

/* Without the lock, because it takes milliseconds: adds what the device and the driver know.
 * `processes` is room for TN_OOM_PROCESSES_MAX bytes, which *oom borrows. */
void tn_oom_complete(struct tarn_device *device, struct tarn_oom *oom, char *processes);

/* Without the lock: the message, by the writer if it has a function, else PyTorch's. Returns
 * TARN_ERR_OUT_OF_MEMORY. */
enum tarn_status tn_oom_write(const struct tarn_oom *oom, const struct tn_callback *writer,
                              struct tarn_error *error);

/* A request of 1 EiB or more: refused before anything else happens. */
enum tarn_status tn_oom_absurd(struct tarn_error *error);

#endif
