/* SPDX-License-Identifier: MIT */
/*
 * A stack in one line, innermost frame first: the frame that allocated, the first one outside
 * PyTorch, which is often a library's model, and up to three of the user's own code. An ellipsis
 * marks each place where frames are left out, but for those of the interpreter and of PyTorch's
 * dispatcher. Frames that tell the stack from another can be added.
 */
#ifndef TN_ANALYSIS_STACK_LABEL_H
#define TN_ANALYSIS_STACK_LABEL_H

#include "base/text_out.h"
#include "snapshot/model.h"

struct tn_stack_label {
    const struct tn_model *model;
    struct tn_stack stack;
    bool is_known;      /* the file has a list of frames, if an empty one */
    bool is_full;       /* all frames */
    const bool *wanted; /* of each frame: it is shown in any case; or NULL */
};

void tn_stack_label_put(struct tn_text_out *out, const struct tn_stack_label *label);

/* Sets the element of `wanted` of the first frame that the other stack, maybe of another file, does
 * not have in its place. Frames of the same text count as equal. */
void tn_stack_label_tell_apart(const struct tn_stack_label *stack,
                               const struct tn_stack_label *other, bool *wanted);

#endif
