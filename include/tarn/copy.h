/* SPDX-License-Identifier: MIT */
/*
 * Copying memory: between allocations, of one device or two, and from and to the host. On a
 * simulated device only one that is backed has something to copy (struct tarn_sim_options).
 *
 * Pointers may lie inside an allocation; what is copied must not reach beyond it, which is not
 * checked. A size of 0 copies nothing. Thread-safe. What the device refuses fails with
 * TARN_ERR_DEVICE and its text.
 */
#ifndef TARN_COPY_H
#define TARN_COPY_H

#include "peer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Queues a copy on a stream of the source's device. Between two devices that reach each other, and
 * wherever plain segments are all there is, it is a copy in one address space, else one that names
 * both devices: the rule of PyTorch's memcpyAsync, with tarn_allocator_reach_peer asked first. */
TARN_API enum tarn_status tarn_copy(struct tarn_allocator *destination, tarn_ptr to,
                                    struct tarn_allocator *source, tarn_ptr from, uint64_t size,
                                    tarn_stream stream, struct tarn_error *error) TARN_MUST_CHECK;

/* Copy in the order of the stream's work, and wait until it is done. */
TARN_API enum tarn_status tarn_copy_from_host(struct tarn_allocator *destination, tarn_ptr to,
                                              const void *from, uint64_t size, tarn_stream stream,
                                              struct tarn_error *error) TARN_MUST_CHECK;
TARN_API enum tarn_status tarn_copy_to_host(struct tarn_allocator *source, void *to, tarn_ptr from,
                                            uint64_t size, tarn_stream stream,
                                            struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
