/* SPDX-License-Identifier: MIT */
/*
 * Translates torch's calls to libtarn's. Exceptions are thrown only after the libtarn function has
 * returned and released its locks. Torch records every pointer that it received, so frees only pass
 * our pointers; a call without a device number tries the allocators in turn.
 */
#include "plug/pytorch/plug.h"

#include "plug/pytorch/devices.h"
#include "plug/pytorch/failure.h"
#include "plug/pytorch/py_frames.h"
#include "plug/pytorch/route.h"

static tarn_stream stream_of(const void *stream)
{
    return (tarn_stream)(uintptr_t)stream;
}

static tarn_ptr ptr_of(const void *ptr)
{
    return (tarn_ptr)(uintptr_t)ptr;
}

static void throw_if(enum tarn_status status, const struct tarn_error *error)
{
    if (status) {
        tn_torch_throw(error);
    }
}

static enum tarn_status device_alloc(size_t size, int device, const void *stream, void **ptr_out,
                                     struct tarn_error *error)
{
    struct tarn_allocator *allocator = NULL;
    tarn_ptr ptr = 0;
    enum tarn_status st = tn_torch_allocator(device, &allocator, error);

    if (st == TARN_OK) {
        st = tarn_allocator_alloc(allocator, size, stream_of(stream), &ptr, error);
    }
    *ptr_out = (void *)(uintptr_t)ptr;
    return st;
}

static enum tarn_status device_free(const void *ptr, int device, struct tarn_error *error)
{
    struct tarn_allocator *allocator = NULL;
    const enum tarn_status st = tn_torch_allocator(device, &allocator, error);

    return st ? st : tarn_allocator_free(allocator, ptr_of(ptr), error);
}

void *tarn_torch_alloc(size_t size, int device, void *stream)
{
    struct tarn_error error;
    void *ptr = NULL;

    if (size > 0) {
        throw_if(device_alloc(size, device, stream, &ptr, &error), &error);
    }
    return ptr;
}

void tarn_torch_free(void *ptr, size_t size, int device, void *stream)
{
    struct tarn_error error;

    (void)size;
    (void)stream;
    if (!ptr || tn_torch_is_over()) {
        return;
    }
    const enum tarn_status st = device_free(ptr, device, &error);

    if (st == TARN_ERR_INVALID_POINTER || st == TARN_ERR_INVALID_ARGUMENT) {
        tn_torch_throw(&error);
    } else if (st) {
        tn_torch_note(&error);
    }
}

void *tarn_torch_pool_alloc(size_t size, int device, void *stream)
{
    struct tarn_error error;
    void *ptr = NULL;

    if (size == 0) {
        return NULL;
    }
    tn_py_forbid_waiting(); /* torch calls this under its own allocator's lock */
    const enum tarn_status st = device_alloc(size, device, stream, &ptr, &error);

    tn_py_allow_waiting();
    if (st) {
        tn_torch_note(&error);
        return NULL;
    }
    return ptr;
}

void tarn_torch_pool_free(void *ptr, size_t size, int device, void *stream)
{
    struct tarn_allocator *allocator = NULL;
    struct tarn_error error;

    (void)size;
    (void)stream;
    if (!ptr || tn_torch_is_over()) {
        return;
    }
    enum tarn_status st = tn_torch_allocator(device, &allocator, &error);

    tn_py_forbid_waiting();
    if (st == TARN_OK) {
        st = tarn_allocator_free(allocator, ptr_of(ptr), &error);
    }
    if (st == TARN_OK) {
        st = tarn_allocator_empty_cache(allocator, &error);
    }
    tn_py_allow_waiting();
    if (st) {
        tn_torch_note(&error);
    }
}

/* Devices are opened on first use, so there is nothing to do here. */
void tarn_torch_init(int device_count)
{
    (void)device_count;
}

void tarn_torch_reset(void)
{
    struct tarn_error error;

    for (int i = 0; i < TARN_TORCH_DEVICES_MAX; i++) {
        struct tarn_allocator *const allocator = tarn_torch_find_allocator(i);

        if (allocator) {
            throw_if(tarn_allocator_empty_cache(allocator, &error), &error);
        }
    }
}

void tarn_torch_set_memory_fraction(double fraction, int device)
{
    struct tarn_allocator *allocator = NULL;
    struct tarn_error error;

    throw_if(tn_torch_allocator(device, &allocator, &error), &error);
    throw_if(tarn_allocator_set_memory_fraction(allocator, fraction, &error), &error);
}

/* A call on a block, tried on each allocator until one owns the pointer. */
struct block_call {
    enum tarn_status (*run)(struct tarn_allocator *allocator, struct block_call *call,
                            struct tarn_error *error);
    tarn_ptr ptr;
    tarn_stream stream; /* record_stream */
    tarn_ptr base;      /* base_alloc */
    uint64_t size;
};

static void run_on_owner(struct block_call *call)
{
    struct tarn_allocator *allocator = NULL;
    struct tarn_error error;
    enum tarn_status st = TARN_ERR_INVALID_POINTER;

    (void)tn_torch_fail(&error, st, "the pointer was not allocated by tarn");
    for (int i = 0; st == TARN_ERR_INVALID_POINTER && i < TARN_TORCH_DEVICES_MAX; i++) {
        allocator = tarn_torch_find_allocator(i);
        if (allocator) {
            st = call->run(allocator, call, &error);
        }
    }
    if (st && tn_torch_is_over()) { /* explains why nothing was found */
        st = tn_torch_allocator(0, &allocator, &error);
    }
    throw_if(st, &error);
}

static enum tarn_status run_base(struct tarn_allocator *allocator, struct block_call *call,
                                 struct tarn_error *error)
{
    return tarn_allocator_base_allocation(allocator, call->ptr, &call->base, &call->size, error);
}

void *tarn_torch_base_alloc(void *ptr, size_t *size_out)
{
    struct block_call call = {.run = run_base, .ptr = ptr_of(ptr)};

    run_on_owner(&call);
    if (size_out) {
        *size_out = (size_t)call.size;
    }
    return (void *)(uintptr_t)call.base;
}

static enum tarn_status run_record(struct tarn_allocator *allocator, struct block_call *call,
                                   struct tarn_error *error)
{
    return tarn_allocator_record_stream(allocator, call->ptr, call->stream, error);
}

void tarn_torch_record_stream(void *ptr, void *stream)
{
    struct block_call call = {.run = run_record, .ptr = ptr_of(ptr), .stream = stream_of(stream)};

    if (ptr) {
        run_on_owner(&call);
    }
}

void tarn_torch_begin_pool(int device, struct tarn_pool_id id, void *filter)
{
    struct tarn_error error;

    throw_if(tn_torch_begin_route(device, id, filter, &error), &error);
}

void tarn_torch_end_pool(int device, struct tarn_pool_id id)
{
    struct tarn_error error;

    throw_if(tn_torch_end_route(device, id, &error), &error);
}

void tarn_torch_release_pool(int device, struct tarn_pool_id id)
{
    struct tarn_allocator *allocator = NULL;
    struct tarn_error error;

    if (tn_torch_is_over()) {
        return;
    }
    enum tarn_status st = tn_torch_allocator(device, &allocator, &error);

    if (st == TARN_OK) {
        st = tarn_allocator_release_pool(allocator, id, &error);
    }
    if (st) {
        tn_torch_note(&error);
    }
}
