/* SPDX-License-Identifier: MIT */
/* A pool as a handle (tarn/pool.h): a private pool that the handle uses and pins. */
#ifndef TN_ALLOC_ENGINE_POOL_HANDLE_H
#define TN_ALLOC_ENGINE_POOL_HANDLE_H

#include "alloc/pool/private_pool.h"
#include "tarn/pool.h"

struct tarn_pool {
    struct tarn_allocator *allocator; /* constant */
    struct tn_private_pool *pool;     /* constant; pinned */
};

#endif
