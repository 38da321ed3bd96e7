/* SPDX-License-Identifier: MIT */
/*
 * Stacks of a model as a selection shows them: without hidden frames, cut to a depth. Stacks that
 * are then equal have the same number; without such options numbers are those of the model. Matches
 * are cached, so each frame is matched once.
 *
 * Owns: its tables. Guarded by its owner. Cost: O(frames) to make, O(1) for a stack seen before.
 */
#ifndef TN_ANALYSIS_FRAME_VIEW_H
#define TN_ANALYSIS_FRAME_VIEW_H

#include "analysis/pattern.h"
#include "base/arena.h"
#include "base/chunked_vec.h"
#include "base/id_table.h"
#include "tarn/selection.h"

struct tn_frame_view {
    const struct tn_model *model;
    struct tn_budget budget; /* without a limit */
    bool changes;            /* some frame is not shown, or stacks are cut */
    bool has_match;
    uint32_t depth;               /* 0: all */
    uint8_t *hidden;              /* a frame */
    uint8_t *matching;            /* a frame; NULL without a pattern */
    uint32_t *seen_as;            /* a stack of the model: number here + 1, 0 = not asked yet */
    struct tn_chunked_vec stacks; /* struct tn_stack; the first two are those of the model */
    struct tn_id_table ids;
    struct tn_arena arena; /* frames of the stacks */
};

/* Fails with the status of a pattern, or TARN_ERR_HOST_MEMORY; nothing to release then. Borrows the
 * model. */
enum tarn_status tn_frame_view_init(struct tn_frame_view *view, const struct tn_model *model,
                                    const struct tarn_selection *selection,
                                    struct tarn_error *error) TN_MUST_CHECK;
void tn_frame_view_fini(struct tn_frame_view *view);

/* The number under which a stack of the model is seen; false when host memory is missing. */
bool tn_frame_view_find(struct tn_frame_view *view, uint32_t stack,
                        uint32_t *seen_out) TN_MUST_CHECK;

/* A stack by that number. */
struct tn_stack tn_frame_view_stack(const struct tn_frame_view *view, uint32_t seen);

/* Whether a stack of the model has a frame that matches; always without a pattern. */
bool tn_frame_view_matches(const struct tn_frame_view *view, uint32_t stack);

#endif
