/* SPDX-License-Identifier: MIT */
/* Implements tarn/foreign.h. */
#include "tarn/foreign.h"

#include "alloc/engine/allocator.h"

#include <stdatomic.h>

static void *memory_alloc(struct tarn_allocator *allocator, size_t size)
{
    tarn_ptr ptr = 0;

    return allocator && tarn_allocator_alloc(allocator, size, 0, &ptr, NULL) == TARN_OK
               ? (void *)(uintptr_t)ptr
               : NULL;
}

static void memory_free(struct tarn_allocator *allocator, void *memory)
{
    if (allocator) {
        (void)!tarn_allocator_free(allocator, (tarn_ptr)(uintptr_t)memory, NULL);
    }
}

/* ---- CuPy ---- */

void *tarn_cupy_alloc(void *allocator, size_t size, int device)
{
    return tn_allocator_ordinal(allocator) == device ? memory_alloc(allocator, size) : NULL;
}

void tarn_cupy_free(void *allocator, void *memory, int device)
{
    (void)device; /* the pointer says it */
    memory_free(allocator, memory);
}

/* ---- ONNX Runtime ---- */

static _Atomic(struct tarn_allocator *) onnx_allocator;

void tarn_onnx_use(struct tarn_allocator *allocator)
{
    atomic_store_explicit(&onnx_allocator, allocator, memory_order_release);
}

void *tarn_onnx_alloc(size_t size)
{
    return memory_alloc(atomic_load_explicit(&onnx_allocator, memory_order_acquire), size);
}

void tarn_onnx_free(void *memory)
{
    memory_free(atomic_load_explicit(&onnx_allocator, memory_order_acquire), memory);
}

void tarn_onnx_empty_cache(void)
{
    struct tarn_allocator *allocator = atomic_load_explicit(&onnx_allocator, memory_order_acquire);

    if (allocator) {
        (void)!tarn_allocator_empty_cache(allocator, NULL);
    }
}
