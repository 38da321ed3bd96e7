/* SPDX-License-Identifier: MIT */
/*
 * Blocks by the stack that asked for them, and the stack in one line. The rows of a table and its
 * row "others" add up to its total.
 */
#ifndef TN_REPORT_GROUP_H
#define TN_REPORT_GROUP_H

#include "base/shown.h"
#include "report/json_text.h"
#include "report/timeline.h"

/* The blocks of one stack at one moment, or over the whole trace. */
struct tn_group {
    uint32_t stack; /* TN_STACK_NONE: unknown */
    uint64_t bytes; /* what the table is sorted by */
    uint64_t count;
    uint64_t before; /* bytes of these that were there before the first entry */
};

struct tn_groups {
    struct tn_vec rows; /* struct tn_group, most bytes first; of equals the lower stack */
    uint64_t bytes;     /* of all rows */
    uint64_t count;
    uint64_t before;
};

/* What was in use right after an entry. False when host memory is missing; then there is nothing to
 * release. */
bool tn_groups_collect(struct tn_groups *groups, const struct tn_timeline *timeline,
                       uint64_t entry) TN_MUST_CHECK;
void tn_groups_fini(struct tn_groups *groups);

/* The stack from the innermost frame on, in one line: the frame itself, and up to three more that
 * are neither of PyTorch nor of the interpreter, which is where the user's code is. */
void tn_stack_put(struct tn_text_out *out, const struct tn_model *model, uint32_t stack,
                  enum tn_shown_form form);

/* The table: at most `limit` rows, a row for the others if there are any, and the total. */
void tn_groups_put(struct tn_text_out *out, const struct tn_model *model,
                   const struct tn_groups *groups, uint64_t limit);

/* The same as members of the open object: "groups", each with its frames, "others", "total". */
void tn_groups_put_json(struct tn_json_text *json, const struct tn_model *model,
                        const struct tn_groups *groups, uint64_t limit);

/* The frames of a stack as an array of objects, innermost first. */
void tn_stack_put_json(struct tn_json_text *json, const char *key, const struct tn_model *model,
                       uint32_t stack);

#endif
