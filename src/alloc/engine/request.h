/* SPDX-License-Identifier: MIT */
/* Requests with options and tries (tarn/request.h), for the files that name a pool. */
#ifndef TN_ALLOC_ENGINE_REQUEST_H
#define TN_ALLOC_ENGINE_REQUEST_H

#include "alloc/engine/engine.h"

/* What a request asks for besides its size and stream. */
struct tn_wish {
    struct tn_private_pool *owner; /* NULL: where the stream is routed */
    uint64_t alignment;            /* a power of two; at most 512 = any address */
    unsigned flags;                /* of enum tarn_alloc_flags; 0 = no try */
};

/* Takes the engine's lock. `error` is written unless it is a try. */
enum tarn_status tn_request_alloc(struct tn_engine *engine, uint64_t size, tarn_stream stream,
                                  const struct tn_wish *wish, tarn_ptr *ptr_out,
                                  struct tarn_error *error) TN_MUST_CHECK;

#endif
