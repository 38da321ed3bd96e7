/* SPDX-License-Identifier: MIT */
/*
 * Private pools: memory kept apart for captured graphs (whose addresses must not be handed out to
 * anybody else while the graph may be replayed) or by choice.
 */
#ifndef TARN_GRAPH_POOL_H
#define TARN_GRAPH_POOL_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Name of a pool; {0, 0} is the default pool and not a private one. As PyTorch's MempoolId_t: user pools
 * have first != 0, graph pools second != 0. */
struct tarn_pool_id {
    uint64_t first;
    uint64_t second;
};

/* Whether a request on the stream goes to the pool. Called under the allocator's lock: it must not call
 * the allocator. */
typedef bool (*tarn_pool_filter)(void *context, tarn_stream stream);

#ifdef __cplusplus
}
#endif

#endif
