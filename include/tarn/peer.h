/* SPDX-License-Identifier: MIT */
/*
 * Several devices: which reach whose memory, and which kind of copy between two devices is right.
 * copy.h copies.
 */
#ifndef TARN_PEER_H
#define TARN_PEER_H

#include "allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Gives the device with that ordinal read and write access to every growing segment, those to come
 * included. Again for the same device does nothing. On failure some segments may be accessible to
 * the peer already, and the peer is not remembered. */
TARN_API enum tarn_status tarn_allocator_add_peer(struct tarn_allocator *allocator, int ordinal,
                                                  struct tarn_error *error) TARN_MUST_CHECK;

/* Lets work on the allocator's device reach the peer's memory, where the hardware can: plain
 * segments by the driver's peer access, growing ones with tarn_allocator_add_peer. *reaches_out
 * says whether it does; asking again costs nothing. Both allocators are on devices of one backend,
 * else TARN_ERR_INVALID_ARGUMENT. A device always reaches itself. */
TARN_API enum tarn_status tarn_allocator_reach_peer(struct tarn_allocator *allocator,
                                                    struct tarn_allocator *peer, bool *reaches_out,
                                                    struct tarn_error *error) TARN_MUST_CHECK;

/* Whether the allocator holds growing segments just now. */
TARN_API bool tarn_allocator_has_expandable_segments(struct tarn_allocator *allocator);

enum tarn_copy_kind {
    TARN_COPY_PLAIN, /* a copy in one address space: cudaMemcpyAsync */
    TARN_COPY_PEER   /* a copy that names both devices: cudaMemcpyPeerAsync */
};

/* How to copy between memory of two allocators: without peer access only a copy that names both
 * devices handles memory of growing segments. The rule of PyTorch's memcpyAsync. */
TARN_API enum tarn_copy_kind tarn_allocator_choose_copy(struct tarn_allocator *destination,
                                                        struct tarn_allocator *source,
                                                        bool peer_access);

#ifdef __cplusplus
}
#endif

#endif
