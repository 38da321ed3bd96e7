/* SPDX-License-Identifier: MIT */
/* A walk over an allocator as rows, for tests to look at. */
#ifndef TESTS_PLUG_COPY_WALK_H
#define TESTS_PLUG_COPY_WALK_H

#include "tarn/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A segment, or a block of the segment before it. */
struct walk_row {
    bool is_segment; /* `segment` holds, else `block` */
    union {
        struct tarn_segment_info segment;
        struct tarn_block_info block;
    } as;
};

/* Of one pool; fills up to `capacity` rows, *count_out is how many there are. */
enum tarn_status copy_walk(struct tarn_allocator *allocator, const struct tarn_pool_id *pool,
                           struct walk_row *rows, size_t capacity, size_t *count_out);

#ifdef __cplusplus
}
#endif

#endif
