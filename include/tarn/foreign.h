/* SPDX-License-Identifier: MIT */
/*
 * Functions with the signatures of other libraries, to be handed to them by address: adaptors/ has
 * the other half. They may be called from any thread. A request that fails returns NULL and leaves
 * no message; tarn_alloc_explain has it.
 *
 * These libraries do not say which stream uses the memory: it is allocated for the default stream
 * (0), where it may be reused as soon as it is freed. Work on other streams has to be finished
 * before they free it.
 */
#ifndef TARN_FOREIGN_H
#define TARN_FOREIGN_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_allocator;

/* CuPy's CFunctionAllocator(param, malloc_func, free_func, owner): `allocator` is param, a struct
 * tarn_allocator. NULL when the device is not the allocator's; frees of NULL do nothing. */
TARN_API void *tarn_cupy_alloc(void *allocator, size_t size, int device);
TARN_API void tarn_cupy_free(void *allocator, void *memory, int device);

/* ONNX Runtime's options gpu_external_alloc, gpu_external_free and gpu_external_empty_cache of the
 * CUDA execution provider. They have no context: all of them use this allocator of the process,
 * which must outlive every session. NULL ends that; frees then do nothing. Set it before a session
 * is made. */
TARN_API void tarn_onnx_use(struct tarn_allocator *allocator);
TARN_API void *tarn_onnx_alloc(size_t size);
TARN_API void tarn_onnx_free(void *memory);
TARN_API void tarn_onnx_empty_cache(void);

#ifdef __cplusplus
}
#endif

#endif
