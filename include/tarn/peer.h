/* SPDX-License-Identifier: MIT */
/*
 * Access between devices, and the right kind of copy for two devices. copy.h does the copying.
 * Every function may be called from any thread.
 */
#ifndef TARN_PEER_H
#define TARN_PEER_H

#include "allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Gives the device with that ordinal read and write access to every expandable segment, existing
 * and future. Repeating it for the same device does nothing. After a failure some segments may
 * already be accessible to the peer; future ones will not be. */
TARN_API enum tarn_status tarn_allocator_add_peer(struct tarn_allocator *allocator, int ordinal,
                                                  struct tarn_error *error) TARN_MUST_CHECK;

/* Enables access from the allocator's device to the peer's memory, where the hardware supports it:
 * plain segments through the driver's peer access, expandable ones with tarn_allocator_add_peer.
 * *reaches_out says whether it works; the answer is cached. Both devices must be of one backend,
 * else TARN_ERR_INVALID_ARGUMENT. A device always reaches itself. */
TARN_API enum tarn_status tarn_allocator_reach_peer(struct tarn_allocator *allocator,
                                                    struct tarn_allocator *peer, bool *reaches_out,
                                                    struct tarn_error *error) TARN_MUST_CHECK;

/* Whether the allocator currently has expandable segments. */
TARN_API bool tarn_allocator_has_expandable_segments(struct tarn_allocator *allocator);

enum tarn_copy_kind {
    TARN_COPY_PLAIN, /* a copy in one address space: cudaMemcpyAsync */
    TARN_COPY_PEER   /* a copy that names both devices: cudaMemcpyPeerAsync */
};

/* How to copy between memory of two allocators: without peer access only a copy that names both
 * devices handles expandable segments. The rule of PyTorch's memcpyAsync. NULL is a device without
 * an allocator, and so without such segments: TARN_COPY_PLAIN. */
TARN_API enum tarn_copy_kind tarn_allocator_choose_copy(struct tarn_allocator *destination,
                                                        struct tarn_allocator *source,
                                                        bool peer_access);

#ifdef __cplusplus
}
#endif

#endif
