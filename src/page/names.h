/* SPDX-License-Identifier: MIT */
/*
 * The texts, stacks and details that a page shows, numbered at first use, so that only those of the
 * entries that are in it are written. Stacks become a tree of frames from the outermost one on,
 * which equal beginnings share.
 *
 * Number 0 of each is "none". With a redaction the texts are cut or replaced here, once for the
 * whole page.
 *
 * Owns its tables; borrows the model and the rules' answers. When host memory is missing it
 * remembers that and numbers become 0. Guarded by its owner. Cost: O(frames) for a new stack, else
 * O(1).
 */
#ifndef TN_PAGE_NAMES_H
#define TN_PAGE_NAMES_H

#include "analysis/category.h"
#include "base/map.h"
#include "page/column.h"
#include "page/hidden_texts.h"
#include "page/section.h"
#include "snapshot/model.h"
#include "tarn/viewer.h"

/* Numbers of things of the model: a uint32_t each, 0 = not used yet. */
struct tn_numbering {
    uint32_t *numbers;
    size_t count;
    uint32_t used;
};

struct tn_names {
    const struct tn_model *model;
    struct tn_categories *categories;
    enum tarn_view_redact redact;
    struct tn_hidden_texts *hidden;
    bool failed;
    struct tn_numbering
        strings[TN_TEXT_KINDS]; /* by enum tn_text_kind: each is redacted its own way */
    struct tn_numbering frames;
    struct tn_numbering stacks;
    struct tn_numbering extras;
    struct tn_map children; /* of a node by frame */
    uint32_t texts;
    uint32_t nodes;
    struct tn_column text_sizes;
    struct tn_column text_bytes;
    struct tn_column frame_column; /* name, file, line as step from 0, enum tn_code_origin,
                                      four of torch.fx */
    struct tn_column node_column;  /* own number less the parent's, frame */
    struct tn_column stack_column; /* node, category */
    struct tn_column extra_column; /* metadata, compile context, category, internal, action */
};

/* False when host memory is missing; then there is nothing to release. Texts that a redaction hides
 * are numbered in `hidden`. */
bool tn_names_init(struct tn_names *names, const struct tn_model *model,
                   struct tn_categories *categories, enum tarn_view_redact redact,
                   struct tn_hidden_texts *hidden) TN_MUST_CHECK;
void tn_names_fini(struct tn_names *names);

uint32_t tn_names_text(struct tn_names *names, uint32_t string, enum tn_text_kind kind);
uint32_t tn_names_stack(struct tn_names *names, uint32_t stack);
uint32_t tn_names_extra(struct tn_names *names, uint32_t extra);

/* Everything numbered so far as sections; false when host memory is, or was, missing. */
bool tn_names_put(const struct tn_names *names, const struct tn_section_out *out) TN_MUST_CHECK;

#endif
