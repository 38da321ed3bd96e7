/* SPDX-License-Identifier: MIT */
/* Implements tarn/copy.h. */
#include "tarn/copy.h"

#include "alloc/engine/allocator.h"

static enum tarn_status copy_queue(struct tarn_device *device, const struct tn_copy *copy,
                                   tarn_stream stream, struct tarn_error *error)
{
    const enum tarn_status st = device->ops->copy(device, copy, stream);

    return st ? tn_device_failed(device, st, "copying memory", error) : TARN_OK;
}

enum tarn_status tarn_copy(struct tarn_allocator *destination, tarn_ptr to,
                           struct tarn_allocator *source, tarn_ptr from, uint64_t size,
                           tarn_stream stream, struct tarn_error *error)
{
    struct tn_copy copy = {
        .to_device = destination->device,
        .to = to,
        .from_device = source->device,
        .from = from,
        .size = size,
    };
    bool reaches = false;

    if (size == 0) {
        return TARN_OK;
    }
    const enum tarn_status st = tarn_allocator_reach_peer(source, destination, &reaches, error);

    if (st) {
        return st;
    }
    copy.by_peer = tarn_allocator_choose_copy(destination, source, reaches) == TARN_COPY_PEER;
    return copy_queue(source->device, &copy, stream, error);
}

/* A copy with the host's memory on one side. */
static enum tarn_status copy_and_wait(struct tarn_device *device, const struct tn_copy *copy,
                                      tarn_stream stream, struct tarn_error *error)
{
    if (copy->size == 0) {
        return TARN_OK;
    }
    const enum tarn_status st = copy_queue(device, copy, stream, error);

    if (st) {
        return st;
    }
    const enum tarn_status waited = device->ops->stream_wait(device, stream);

    return waited ? tn_device_failed(device, waited, "waiting for a copy", error) : TARN_OK;
}

enum tarn_status tarn_copy_from_host(struct tarn_allocator *destination, tarn_ptr to,
                                     const void *from, uint64_t size, tarn_stream stream,
                                     struct tarn_error *error)
{
    const struct tn_copy copy = {.to_device = destination->device,
                                 .to = to,
                                 .from = (uint64_t)(uintptr_t)from,
                                 .size = size};

    return copy_and_wait(destination->device, &copy, stream, error);
}

enum tarn_status tarn_copy_to_host(struct tarn_allocator *source, void *to, tarn_ptr from,
                                   uint64_t size, tarn_stream stream, struct tarn_error *error)
{
    const struct tn_copy copy = {
        .to = (uint64_t)(uintptr_t)to, .from_device = source->device, .from = from, .size = size};

    return copy_and_wait(source->device, &copy, stream, error);
}
