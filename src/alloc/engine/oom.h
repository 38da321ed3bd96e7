/* SPDX-License-Identifier: MIT */
/*
 * Running out of memory: what is recorded, and the message, word for word PyTorch's. The message is
 * written into the caller's fixed buffer; nothing here needs host memory.
 */
#ifndef TN_ALLOC_ENGINE_OOM_H
#define TN_ALLOC_ENGINE_OOM_H

#include "alloc/pool/core.h"
#include "tarn/allocator.h"
#include "tarn/status.h"

struct tn_heap;
struct tn_request;

enum {
    TN_OOM_PROCESSES_MAX = 1024 /* bytes of the sentences about processes, with their NUL */
};

/* Under the lock: counts the failure, sends the event, fills in what observers get and the message.
 * `processes` is room for TN_OOM_PROCESSES_MAX bytes, which *oom_out borrows. Returns
 * TARN_ERR_OUT_OF_MEMORY, with the message in `error`. */
enum tarn_status tn_oom_report(struct tn_heap *heap, const struct tn_request *request,
                               char *processes, struct tarn_oom *oom_out, struct tarn_error *error);

/* A request of 1 EiB or more: refused before anything else happens. */
enum tarn_status tn_oom_absurd(struct tarn_error *error);

#endif
