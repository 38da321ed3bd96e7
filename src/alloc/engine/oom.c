/* SPDX-License-Identifier: MIT */
#include "alloc/engine/oom.h"

#include "alloc/pool/asleep.h"
#include "alloc/pool/best_fit.h"
#include "base/size_text.h"
#include "device/process.h"
#include "tarn/request.h"

#include <stdio.h>

#define DOCUMENTATION                                                                              \
    "https://docs.pytorch.org/docs/stable/notes/cuda.html"                                         \
    "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf"

/* Fills in what is allocated, and free in private pools, which PyTorch's text calls allocated.
 * Pages that sleep are not reserved, so they count as neither; what such a pool still has on the
 * device counts as allocated. */
static void count_used(const struct tn_heap *heap, struct tarn_oom *oom)
{
    oom->allocated = (uint64_t)tn_counter_all(&heap->shard.counters.bytes.out);
    for (const struct tn_private_pool *p = heap->private_pools.first; p; p = p->next) {
        const uint64_t bytes = tn_pool_free_bytes(&p->small) + tn_pool_free_bytes(&p->large);

        if (p->sleeps) {
            oom->allocated += bytes - tn_asleep_bytes(p->asleep);
        } else {
            oom->private_free += bytes;
        }
    }
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

struct tarn_oom tn_oom_describe(struct tn_heap *heap, const struct tn_request *request)
{
    const struct tn_private_pool *owner = request->pool->owner;
    struct tarn_oom oom = {
        .struct_size = sizeof(struct tarn_oom),
        .device = heap->device->ordinal,
        .requested = request->requested,
        .rounded = request->size,
        .segment_size = request->segment_size,
        .stream = request->stream,
        .limit = owner && owner->limit < heap->limit ? owner->limit : heap->limit,
        .device_total = heap->device->total_memory,
        .reserved = (uint64_t)tn_counter_all(&heap->shard.counters.reserved),
        .processes = "",
        .rejected = request->rejected,
    };

    count_used(heap, &oom);
    return oom;
}

void tn_oom_count(struct tn_heap *heap, const struct tn_request *request)
{
    uint64_t free_bytes = 0;
    uint64_t total;

    if (tn_heap_has_sinks(heap)) { /* the event has it */
        (void)heap->device->ops->memory_info(heap->device, &free_bytes, &total);
    }
    tn_heap_emit(heap, TARN_ACTION_OOM, free_bytes, request->size, request->stream, request->pool,
                 request->stack);
    if (request->rejected) {
        heap->shard.counters.totals.num_oom_rejections++;
    } else {
        heap->shard.counters.totals.num_ooms++;
    }
}

void tn_oom_complete(struct tarn_device *device, struct tarn_oom *oom, char *processes)
{
    tn_processes_describe(device, processes, TN_OOM_PROCESSES_MAX);
    oom->processes = processes;
    (void)device->ops->memory_info(device, &oom->device_free, &oom->device_total);
}

enum tarn_status tn_oom_write(const struct tarn_oom *oom, const struct tn_callback *writer,
                              struct tarn_error *error)
{
    if (error && writer->call) {
        (void)tn_fail(error, TARN_ERR_OUT_OF_MEMORY, "%s",
                      tarn_status_text(TARN_ERR_OUT_OF_MEMORY));
        ((tarn_oom_writer)writer->call)(writer->context, oom, error->text, sizeof error->text);
        error->text[sizeof error->text - 1] = '\0';
    } else {
        oom_write_message(oom, error);
    }
    return TARN_ERR_OUT_OF_MEMORY;
}

enum tarn_status tn_oom_absurd(struct tarn_error *error)
{
    return tn_fail(error, TARN_ERR_OUT_OF_MEMORY,
                   "CUDA out of memory. Tried to allocate more than 1EB memory.");
}
