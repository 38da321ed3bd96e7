/* SPDX-License-Identifier: MIT */
/*
 * Blocks of segments as folded stacks, the lines that flame graphs are made of: outermost first,
 * then bytes. They are those of `_memory_viz memory|segments|compare`, in the same order.
 *
 * A block gives a line with its requested bytes and its stack, and, when it is larger, one with
 * the rest and `<gaps>`. In files of the old format a line for each allocation in its
 * history.
 */
#ifndef TN_ANALYSIS_FOLD_H
#define TN_ANALYSIS_FOLD_H

#include "base/escaped.h"
#include "snapshot/model.h"

enum tn_fold_leaf {
    TN_FOLD_STACK,      /* the frames of `stack` */
    TN_FOLD_NON_PYTHON, /* the list of frames is empty */
    TN_FOLD_NO_CONTEXT, /* an allocation of the old format without frames */
    TN_FOLD_GAPS
};

struct tn_fold_line {
    const char *side; /* the first place, or NULL */
    const struct tn_model_segment *segment;
    bool by_segment; /* the segment's address follows the stream */
    uint8_t state;   /* enum tn_block_state */
    enum tn_fold_leaf leaf;
    uint32_t stack;
    uint64_t bytes;
    bool is_negative; /* then -bytes: a file says that a block holds more than its size */
};

/* Who takes lines; false ends the walk. */
struct tn_fold_visitor {
    bool (*visit)(void *context, const struct tn_fold_line *line);
    void *context;
};

/* The lines of one segment. `head` gives side and by_segment. False when the visitor returned
 * false. */
bool tn_fold_segment(const struct tn_model_segment *segment, const struct tn_fold_line *head,
                     const struct tn_fold_visitor *visitor);

/* Whether PyTorch's tools leave the frame out: interpreter and dispatcher. */
bool tn_fold_hides_frame(const struct tn_model *model, const struct tn_frame *frame);

/* The part of a file name after its last slash. */
struct tn_string tn_fold_base_name(struct tn_string path);

/* "file.py:12:function", with the last part of the file name. */
void tn_frame_put(struct tn_text_out *out, const struct tn_model *model, uint32_t frame,
                  enum tn_escape_format format);

/* Name of a leaf that is no stack, "<gaps>". */
const char *tn_fold_leaf_name(enum tn_fold_leaf leaf);

#endif
