/* SPDX-License-Identifier: MIT */
/*
 * Reads the plain data of a pickle. An interpreter of data opcodes with a value stack, not an
 * unpickler: no code here can import or call anything. Opcodes that would are refused before their
 * arguments are used (pickle_ops.def, pickle_global.c).
 *
 * Protocols 2 to 5. One pass, no recursion, no tree: containers are passed to the decoder
 * immediately.
 *
 * Bounds: open marks and container depth by the limits; memo numbers by the bytes read so far,
 * since each memo write takes a byte; strings by the limit; integers by 64 bits; all memory by the
 * budget of the model.
 *
 * Invariant: marks are ascending positions of the value stack, none above its top.
 */
#ifndef TN_SNAPSHOT_PICKLE_H
#define TN_SNAPSHOT_PICKLE_H

#include "base/input.h"
#include "snapshot/decode.h"
#include "snapshot/pickle_rows.h"

enum {
    TN_PICKLE_MARKS_MAX = 128
};

struct tn_pickle_limits {
    unsigned max_depth; /* of marks, <= TN_PICKLE_MARKS_MAX */
    uint64_t max_stack; /* values */
    uint64_t max_string;
    bool strict; /* without the exceptions of pickle_global.c */
};

/* Cache of short strings that repeat without the memo, by contents. */
enum {
    TN_RECENT_STRINGS_LOG = 6,
    TN_RECENT_STRING_MAX = 16
};

struct tn_recent_string {
    uint64_t words[2]; /* the bytes, shifted left so that those after the string drop out */
    uint32_t string;   /* TN_STRING_NONE: free */
    uint32_t length;
};

struct tn_pickle {
    struct tn_input *input;
    struct tn_decoder *decoder;
    struct tn_budget *budget;
    struct tarn_error *error;
    struct tn_pickle_limits limits;
    struct tn_value *stack;
    size_t depth; /* values on the stack */
    size_t capacity;
    size_t marks[TN_PICKLE_MARKS_MAX];
    unsigned mark_count;
    size_t floor;                /* the newest mark, or 0: values below it are inaccessible */
    struct tn_chunked_vec memo;  /* uint64_t words */
    struct tn_chunked_vec boxed; /* struct tn_value: memoised numbers */
    struct tn_row_cache rows;
    struct tn_recent_string recent[1 << TN_RECENT_STRINGS_LOG];
    uint64_t row_offset; /* of the bytes after the newest MARK above a new list, 0 = none */
    uint64_t op_offset;  /* position of the current opcode */
    bool stopped;
};

enum tarn_status tn_pickle_init(struct tn_pickle *pickle, struct tn_input *input,
                                struct tn_decoder *decoder, const struct tn_pickle_limits *limits,
                                struct tarn_error *error) TN_MUST_CHECK;
void tn_pickle_fini(struct tn_pickle *pickle);

/* Reads up to STOP; *top_out is the value. TARN_ERR_TRUNCATED, TARN_ERR_UNSAFE, TARN_ERR_FORMAT,
 * TARN_ERR_LIMIT, TARN_ERR_IO or TARN_ERR_HOST_MEMORY, with the byte offset in the error. */
enum tarn_status tn_pickle_read(struct tn_pickle *pickle, struct tn_value *top_out) TN_MUST_CHECK;

/* After TARN_ERR_TRUNCATED: closes open containers, dropping incomplete dicts. False if nothing is
 * left. Errors are not reported. */
bool tn_pickle_salvage(struct tn_pickle *pickle, struct tn_value *top_out);

/* For pickle_global.c. */

/* Pushes a value. */
enum tarn_status tn_pickle_push(struct tn_pickle *pickle, struct tn_value value) TN_MUST_CHECK;

/* Executes GLOBAL, STACK_GLOBAL or REDUCE if they produce a plain container; fails with
 * TARN_ERR_UNSAFE otherwise and for any other opcode of class CALL. */
enum tarn_status tn_pickle_call(struct tn_pickle *pickle, uint8_t op) TN_MUST_CHECK;

#endif
