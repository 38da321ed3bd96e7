/* SPDX-License-Identifier: MIT */
/*
 * Copying memory between allocations, on one device or two, and to and from the host. A simulated
 * device has contents to copy only if it is backed (struct tarn_sim_options).
 *
 * Pointers may point inside an allocation. The caller must not copy past its end; this is not
 * checked. A size of 0 copies nothing. Thread-safe. Device errors give TARN_ERR_DEVICE with the
 * device's text.
 */
#ifndef TARN_COPY_H
#define TARN_COPY_H

#include "peer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Queues a copy on a stream of the source's device. With peer access between the devices, or when
 * neither allocator has expandable segments, this is a copy in one address space, otherwise a copy
 * that names both devices: the rule of PyTorch's memcpyAsync, after a call of
 * tarn_allocator_reach_peer. */
TARN_API enum tarn_status tarn_copy(struct tarn_allocator *destination, tarn_ptr to,
                                    struct tarn_allocator *source, tarn_ptr from, uint64_t size,
                                    tarn_stream stream, struct tarn_error *error) TARN_MUST_CHECK;

/* Copy in stream order and wait until the copy is done. */
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
