/* SPDX-License-Identifier: MIT */
/* One allocation on its way through the engine. */
#ifndef TN_ALLOC_ENGINE_REQUEST_H
#define TN_ALLOC_ENGINE_REQUEST_H

#include "alloc/pool/core.h"

struct tn_request {
    uint64_t requested;    /* bytes that the caller asked for */
    uint64_t size;         /* rounded */
    uint64_t segment_size; /* what the device would be asked for */
    tarn_stream stream;
    struct tn_pool *pool;
    struct tn_free_set *set; /* of the pool and stream */
    uint64_t stack;
    bool grows;             /* growing segments may serve it; false: only plain ones */
    bool rejected;          /* refused because of the limit, before the device was asked */
    struct tn_block *block; /* found: in no set, at least `size` bytes */
};

#endif
