/* SPDX-License-Identifier: MIT */
/*
 * Writes a snapshot as a pickle of protocol 4, with the opcodes that Python, PyTorch's viewer and
 * this library read: no FRAME opcodes, each string, frame and stack once and then from the memo,
 * lists in batches of at most 1,000 items, like CPython.
 */
#ifndef TN_SNAPSHOT_PICKLE_WRITE_H
#define TN_SNAPSHOT_PICKLE_WRITE_H

#include "snapshot/format.h"

struct tn_pickle_format {
    struct tn_format format; /* first */
    uint32_t *strings;       /* memo number + 1 of each string of the model, 0 = not yet written */
    uint32_t *frames;        /* ... of each frame */
    uint32_t *stacks;        /* ... of each stack */
    uint32_t memo_count;
};

/* False without host memory. Borrows model and output. */
bool tn_pickle_format_init(struct tn_pickle_format *pickle, const struct tn_model *model,
                           struct tn_byte_out *out) TN_MUST_CHECK;
void tn_pickle_format_fini(struct tn_pickle_format *pickle);

#endif
