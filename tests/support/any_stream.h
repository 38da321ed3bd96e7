/* SPDX-License-Identifier: MIT */
/* The filter of a private pool that takes the requests of every stream. */
#ifndef TESTS_SUPPORT_ANY_STREAM_H
#define TESTS_SUPPORT_ANY_STREAM_H

#include "tarn/graph_pool.h"

static inline bool any_stream(void *context, tarn_stream stream)
{
    (void)context;
    (void)stream;
    return true;
}

#endif
