/* SPDX-License-Identifier: MIT */
/*
 * An expression applied to the blocks of one model. Each term is evaluated once per frame, stack or
 * other text.
 *
 * Owns: the answers; borrows the rest. Guarded by its owner. Cost: O(terms) per block, O(frames)
 * more for a new stack.
 */
#ifndef TN_ANALYSIS_WHERE_VIEW_H
#define TN_ANALYSIS_WHERE_VIEW_H

#include "analysis/category.h"
#include "analysis/pool_stream.h"
#include "analysis/where.h"

/* Of one term about texts: 0 = not evaluated yet, 1 = no, 2 = yes. */
struct tn_where_answers {
    uint8_t *of_text; /* frames, strings or categories */
    uint8_t *of_stack;
    size_t texts;
    size_t stacks;
};

/* The device that blocks are evaluated in. */
struct tn_where_scope {
    const struct tn_timeline
        *whole; /* lifetimes have what terms need: pool and stream, annotation, ... */
    const struct tn_pool_streams *pool_streams; /* for pools and segments */
    const struct tn_categories *categories;
    int64_t zero; /* time of the first entry that has one, or TN_TIME_NONE */
};

struct tn_where_view {
    const struct tarn_where *where;
    const struct tn_model *model;
    struct tn_where_answers *answers;
};

/* `categories` is for expressions that name some, else NULL. False when host memory is missing;
 * then there is nothing to release. */
bool tn_where_view_init(struct tn_where_view *view, const struct tarn_where *where,
                        const struct tn_model *model,
                        const struct tn_categories *categories) TN_MUST_CHECK;
void tn_where_view_fini(struct tn_where_view *view);

/* Whether the expression holds for a block. */
bool tn_where_takes(struct tn_where_view *view, const struct tn_where_scope *scope,
                    const struct tn_lifetime *lifetime);

#endif
