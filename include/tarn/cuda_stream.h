/* SPDX-License-Identifier: MIT */
/*
 * The allocator with CUDA's own types: `cudaStream_t` and `CUstream`, which are the same type, and
 * `void *`. Needs no header of CUDA, and passing anything but a stream does not compile. Every
 * function may be called from any thread. `cudaStreamPerThread` is refused on a GPU: see stream.h.
 */
#ifndef TARN_CUDA_STREAM_H
#define TARN_CUDA_STREAM_H

#include "allocator.h"

struct CUstream_st; /* CUDA's; in C++ in the global namespace, as there */

#ifdef __cplusplus
extern "C" {
#endif

/* The number of a stream of CUDA, and the stream of CUDA behind a number. */
static inline tarn_stream tarn_stream_from_cuda(struct CUstream_st *stream)
{
    return (tarn_stream)(uintptr_t)stream;
}

static inline struct CUstream_st *tarn_stream_to_cuda(tarn_stream stream)
{
    return (struct CUstream_st *)(uintptr_t)stream;
}

/* As tarn_allocator_alloc, tarn_allocator_free and tarn_allocator_record_stream. */
TARN_MUST_CHECK static inline enum tarn_status
tarn_cuda_alloc(struct tarn_allocator *allocator, uint64_t size, struct CUstream_st *stream,
                void **memory_out, struct tarn_error *error)
{
    tarn_ptr ptr = 0;
    const enum tarn_status status =
        tarn_allocator_alloc(allocator, size, tarn_stream_from_cuda(stream), &ptr, error);

    if (status == TARN_OK) {
        *memory_out = (void *)(uintptr_t)ptr;
    }
    return status;
}

TARN_MUST_CHECK static inline enum tarn_status
tarn_cuda_free(struct tarn_allocator *allocator, void *memory, struct tarn_error *error)
{
    return tarn_allocator_free(allocator, (tarn_ptr)(uintptr_t)memory, error);
}

TARN_MUST_CHECK static inline enum tarn_status
tarn_cuda_record_stream(struct tarn_allocator *allocator, void *memory, struct CUstream_st *stream,
                        struct tarn_error *error)
{
    return tarn_allocator_record_stream(allocator, (tarn_ptr)(uintptr_t)memory,
                                        tarn_stream_from_cuda(stream), error);
}

#ifdef __cplusplus
}
#endif

#endif
