/* SPDX-License-Identifier: MIT */
/*
 * Streams of a device, for programs without CUDA's headers. A stream is the driver's handle
 * (CUstream, cudaStream_t) as a number: streams created here can be passed to CUDA and vice versa;
 * 0 is the default stream. On a simulated device any number is a stream. Thread-safe. Device errors
 * give TARN_ERR_DEVICE with the device's text.
 *
 * Memory is cached per stream handle. cudaStreamPerThread (2) is a different stream in each thread,
 * so on a GPU allocating for it or recording it fails with TARN_ERR_NOT_SUPPORTED: create a stream
 * for each thread instead. cudaStreamLegacy (1) is the default stream to the GPU but a different
 * one to the allocator, as in PyTorch: memory freed on one is not reused on the other.
 */
#ifndef TARN_STREAM_H
#define TARN_STREAM_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Creates a stream without implicit synchronization (non-blocking). Caller owns it, destroy with
 * tarn_stream_destroy. */
TARN_API enum tarn_status tarn_stream_create(struct tarn_device *device, tarn_stream *stream_out,
                                             struct tarn_error *error) TARN_MUST_CHECK;

/* Destroys the stream without waiting; queued work still completes. First free the blocks that were
 * allocated for it and call tarn_allocator_release_stream (block.h): memory cached for one stream
 * serves no other, and returning expandable segments waits for their stream, which must still
 * exist. */
TARN_API enum tarn_status tarn_stream_destroy(struct tarn_device *device, tarn_stream stream,
                                              struct tarn_error *error) TARN_MUST_CHECK;

/* Waits until all work queued on the stream is done. */
TARN_API enum tarn_status tarn_stream_wait(struct tarn_device *device, tarn_stream stream,
                                           struct tarn_error *error) TARN_MUST_CHECK;

/* The unique id of the capture that the stream is currently part of, 0 when it is not being
 * captured. */
TARN_API enum tarn_status tarn_stream_get_capture(struct tarn_device *device, tarn_stream stream,
                                                  uint64_t *capture_out,
                                                  struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
