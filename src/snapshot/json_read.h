/* SPDX-License-Identifier: MIT */
/*
 * Reads a snapshot in JSON: one pass over the input, no recursion, no tree. A container's values
 * stay on a stack until it ends and are then passed to the decoder. JSON has no tuples: an array of
 * exactly two whole numbers, which can only be a pool id, becomes one.
 *
 * Strict RFC 8259, except that lone surrogates (\ud800), which Python writes, are allowed. Bounds:
 * depth, stack and strings by the limits; whole numbers by 64 bits; all memory by the budget of the
 * model.
 */
#ifndef TN_SNAPSHOT_JSON_READ_H
#define TN_SNAPSHOT_JSON_READ_H

#include "base/input.h"
#include "snapshot/decode.h"

enum {
    TN_JSON_DEPTH_MAX = 128
};

struct tn_json_limits {
    unsigned max_depth; /* <= TN_JSON_DEPTH_MAX */
    uint64_t max_stack; /* values */
    uint64_t max_string;
};

/* Reads all of the input, one value surrounded by white space. TARN_ERR_TRUNCATED, TARN_ERR_FORMAT,
 * TARN_ERR_LIMIT, TARN_ERR_IO or TARN_ERR_HOST_MEMORY, with the byte offset in the error. */
enum tarn_status tn_json_read(struct tn_input *input, struct tn_decoder *decoder,
                              const struct tn_json_limits *limits, struct tarn_error *error,
                              struct tn_value *top_out) TN_MUST_CHECK;

#endif
