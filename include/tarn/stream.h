/* SPDX-License-Identifier: MIT */
/*
 * Streams of a device, for programs without CUDA's headers. A stream is the driver's own
 * (CUstream, cudaStream_t) as a number: one made here can be passed to CUDA and the other way
 * round; 0 is the default stream. On a simulated device any number is a stream. Thread-safe. What
 * the device refuses fails with TARN_ERR_DEVICE and its text.
 *
 * Memory is kept by the number of its stream. So on a GPU cudaStreamPerThread (2), which is another
 * stream in each thread, is refused with TARN_ERR_NOT_SUPPORTED where memory is allocated for it or
 * used on it: make a stream for each thread. cudaStreamLegacy (1) is the default stream to the GPU
 * and another one to the allocator, as in PyTorch: what was freed on one is not used again on the
 * other.
 */
#ifndef TARN_STREAM_H
#define TARN_STREAM_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A stream that waits for no other by itself. Caller owns it, give back with
 * tarn_stream_destroy. */
TARN_API enum tarn_status tarn_stream_create(struct tarn_device *device, tarn_stream *stream_out,
                                             struct tarn_error *error) TARN_MUST_CHECK;

/* Does not wait: what is queued is done, then the stream goes. Before that, free the blocks that
 * were allocated for it and call tarn_allocator_empty_cache: what is cached for a stream serves no
 * other, and giving back growing segments waits for their stream, which must be there then. */
TARN_API enum tarn_status tarn_stream_destroy(struct tarn_device *device, tarn_stream stream,
                                              struct tarn_error *error) TARN_MUST_CHECK;

/* Returns when everything queued on the stream is done. */
TARN_API enum tarn_status tarn_stream_wait(struct tarn_device *device, tarn_stream stream,
                                           struct tarn_error *error) TARN_MUST_CHECK;

/* Which capture the stream's work goes into just now: a number that no other capture has, 0 when it
 * runs. */
TARN_API enum tarn_status tarn_stream_get_capture(struct tarn_device *device, tarn_stream stream,
                                                  uint64_t *capture_out,
                                                  struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
