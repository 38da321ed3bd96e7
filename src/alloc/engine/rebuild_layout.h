/* SPDX-License-Identifier: MIT */
/*
 * Bringing memory into a known state: a free block is allocated in pieces of given sizes, in
 * address order, and the pieces that are to be free are freed again. Restoring a checkpoint does
 * that (and its order of events is PyTorch's), and so does a replay that starts in the middle of a
 * run.
 */
#ifndef TN_ALLOC_ENGINE_REBUILD_LAYOUT_H
#define TN_ALLOC_ENGINE_REBUILD_LAYOUT_H

#include "alloc/engine/engine.h"

struct tn_layout_block {
    uint64_t size; /* bytes, a multiple of 512 */
    uint64_t requested;
    bool allocated; /* false: free again at the end */
    bool unmapped;  /* and its whole pages given back; only in an expandable segment, between pieces
                       that stay mapped */
};

struct tn_layout_segment {
    uint64_t size;
    tarn_stream stream;
    bool is_small;
    bool expandable; /* the mapped beginning of an expandable segment; `size` is of whole pages */
};

/* `block` is free, in its set, and the pieces are not larger than it; what they leave stays free.
 * There must be as many spare nodes as pieces, and as much room in the pointer map. Under the
 * lock. */
void tn_rebuild_layout(struct tn_engine *engine, struct tn_block *block,
                       const struct tn_layout_block *pieces, uint64_t count, uint64_t stack);

/* Makes a segment of a default pool with these blocks, which fill it, as if a run that was not
 * recorded had allocated them. The device chooses the address. Takes the lock. A failure may leave
 * a part of it. */
enum tarn_status tn_rebuild_segment(struct tn_engine *engine,
                                    const struct tn_layout_segment *segment,
                                    const struct tn_layout_block *pieces, uint64_t count,
                                    tarn_ptr *address_out, struct tarn_error *error) TN_MUST_CHECK;

#endif
