/* SPDX-License-Identifier: MIT */
#include "alloc/engine/oom.h"

#include "alloc/pool/best_fit.h"
#include "base/probe.h"
#include "base/size_text.h"
#include "device/process.h"

#include <stdio.h>

#define DOCUMENTATION                                                                              \
    "https://docs.pytorch.org/docs/stable/notes/cuda.html"                                         \
    "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf"

/* Free bytes of all private pools; PyTorch's text calls them allocated. */
static uint64_t private_free_bytes(const struct tn_heap *heap)
{
    uint64_t bytes = 0;

    for (const struct tn_private_pool *p = heap->private_pools.first; p; p = p->next) {
        bytes += tn_pool_free_bytes(&p->small) + tn_pool_free_bytes(&p->large);
    }
    return bytes;
}

static void oom_write_message(const struct tarn_oom *oom, struct tarn_error *error)
{
    char allowed[64] = "";
    char private_part[128] = "";

    if (oom->limit != TARN_SIZE_UNLIMITED) {
        (void)snprintf(allowed, sizeof allowed, "%s allowed; ",
                       tn_size_text_message(oom->limit).text);
    }
    if (oom->private_free > 0) {
        (void)snprintf(private_part, sizeof private_part,
                       "with %s allocated in private pools (e.g., CUDA Graphs), ",
                       tn_size_text_message(oom->private_free).text);
    }
    (void)tn_fail(error, TARN_ERR_OUT_OF_MEMORY,
                  "CUDA out of memory. Tried to allocate %s. GPU %d has a total capacity of %s of "
                  "which %s is "
                  "free. %s%sOf the allocated memory %s is allocated by PyTorch, %sand %s is "
                  "reserved by PyTorch "
                  "but unallocated. If reserved but unallocated memory is large try setting "
                  "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
                  "documentation "
                  "for Memory Management  (" DOCUMENTATION ")",
                  tn_size_text_message(oom->segment_size).text, oom->device,
                  tn_size_text_message(oom->device_total).text,
                  tn_size_text_message(oom->device_free).text, oom->processes, allowed,
                  tn_size_text_message(oom->allocated + oom->private_free).text, private_part,
                  tn_size_text_message(oom->reserved - oom->allocated - oom->private_free).text);
}

enum tarn_status tn_oom_report(struct tn_heap *heap, const struct tn_request *request,
                               char *processes, struct tarn_oom *oom_out, struct tarn_error *error)
{
    struct tarn_oom oom = {
        .struct_size = sizeof oom,
        .device = heap->device->ordinal,
        .requested = request->requested,
        .rounded = request->size,
        .segment_size = request->segment_size,
        .stream = request->stream,
        .limit = heap->limit,
        .device_total = heap->device->total_memory,
        .processes = processes,
        .rejected = request->rejected,
    };

    /* Slow, and under the lock, so that the message describes one moment; everything else has
     * failed anyway. */
    tn_processes_describe(heap->device, processes, TN_OOM_PROCESSES_MAX);
    (void)heap->device->ops->memory_info(heap->device, &oom.device_free, &oom.device_total);
    tn_heap_emit(heap, TARN_ACTION_OOM, oom.device_free, request->size, request->stream,
                 request->pool, request->stack);
    if (request->rejected) {
        heap->shard.counters.totals.num_oom_rejections++;
    } else {
        heap->shard.counters.totals.num_ooms++;
    }
    oom.allocated = (uint64_t)tn_counter_all(&heap->shard.counters.bytes.out);
    oom.reserved = (uint64_t)tn_counter_all(&heap->shard.counters.reserved);
    oom.private_free = private_free_bytes(heap);
    oom_write_message(&oom, error);
    TN_PROBE4(oom, oom.requested, oom.device, oom.device_free, oom.reserved);
    *oom_out = oom;
    return TARN_ERR_OUT_OF_MEMORY;
}

enum tarn_status tn_oom_absurd(struct tarn_error *error)
{
    return tn_fail(error, TARN_ERR_OUT_OF_MEMORY,
                   "CUDA out of memory. Tried to allocate more than 1EB memory.");
}
