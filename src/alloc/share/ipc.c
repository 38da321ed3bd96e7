/* SPDX-License-Identifier: MIT */
/* Implements tarn/ipc.h. */
#include "tarn/ipc.h"

#include "alloc/engine/allocator.h"
#include "alloc/engine/engine_forked.h"
#include "alloc/engine/engine_methods.h"
#include "alloc/engine/ipc_message.h"
#include "base/os_process.h"

#include <inttypes.h>

enum tarn_status tarn_ipc_export(struct tarn_allocator *allocator, tarn_ptr ptr, void *message,
                                 size_t capacity, size_t *length_out, struct tarn_error *error)
{
    const struct tn_engine_methods *methods = allocator->methods;
    struct tn_ipc_buffer buffer = {.bytes = message, .capacity = message ? capacity : 0};

    if (!methods->ipc_export) {
        return methods->refuse("shareIpcHandle", error);
    }
    const enum tarn_status st = methods->ipc_export(allocator, ptr, &buffer, error);

    if (st) {
        return st;
    }
    *length_out = buffer.length;
    return buffer.length <= buffer.capacity
               ? TARN_OK
               : tn_fail(error, TARN_ERR_LIMIT,
                         "the message has %zu bytes, and there is room for %zu", buffer.length,
                         buffer.capacity);
}

enum tarn_status tarn_ipc_open(struct tarn_allocator *allocator, const void *message, size_t length,
                               tarn_ptr *ptr_out, uint64_t *size_out, struct tarn_error *error)
{
    struct tn_ipc_content content;

    if (tn_fork_passed(&allocator->fork)) {
        return tn_forked_refuse(error);
    }
    enum tarn_status st = tn_ipc_read(message, length, &content, error);

    if (st) {
        return st;
    }
    if (content.head.process == tn_os_process_id()) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "the message comes from this process: use the original pointer");
    }
    if (content.head.ordinal != allocator->device->ordinal) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "the message is for device %d, the allocator is on device %d",
                       (int)content.head.ordinal, allocator->device->ordinal);
    }
    st = tn_ipc_cache_open(&allocator->opened, &content, ptr_out, error);
    if (st == TARN_OK && size_out) {
        *size_out = content.head.size;
    }
    return st;
}

enum tarn_status tarn_ipc_close(struct tarn_allocator *allocator, tarn_ptr ptr,
                                struct tarn_error *error)
{
    return tn_fork_passed(&allocator->fork) ? tn_forked_refuse(error)
                                            : tn_ipc_cache_close(&allocator->opened, ptr, error);
}
