/* SPDX-License-Identifier: MIT */
/*
 * How a table groups blocks: a key for each block, and the name of a key. Keys compare
 * within one snapshot only; tn_group_key_put_path names them for comparisons between two.
 *
 * Borrows everything but a table of frames that count as one. Guarded by its owner.
 */
#ifndef TN_ANALYSIS_GROUP_KEY_H
#define TN_ANALYSIS_GROUP_KEY_H

#include "analysis/category.h"
#include "analysis/frame_view.h"
#include "analysis/pool_stream.h"
#include "analysis/stack_label.h"
#include "base/bits.h"
#include "base/escaped.h"
#include "base/text_out.h"

struct tn_group_keys {
    enum tarn_grouping by;
    enum tarn_units units; /* of sizes in names */
    bool full_stacks;      /* labels have all frames */
    bool only_frames;      /* groups by stack have frames and no label */
    const struct tn_model *model;
    struct tn_frame_view *view;
    const struct tn_categories *categories;     /* for TARN_BY_CATEGORY */
    const struct tn_pool_streams *pool_streams; /* for pools */
    uint32_t *same_frame; /* a frame: the first that counts as the same; NULL: not needed */
};

/* How frames are written in paths. */
struct tn_path_format {
    bool ignore_lines;        /* without line numbers */
    const char *strip_prefix; /* of file names, or NULL */
};

/* `keys` has all but `same_frame`. False when host memory is missing; nothing to release then. */
bool tn_group_keys_init(struct tn_group_keys *keys) TN_MUST_CHECK;
void tn_group_keys_fini(struct tn_group_keys *keys);

/* tn_group_key_find of any grouping. */
bool tn_group_key_find_any(const struct tn_group_keys *keys, const struct tn_lifetime *lifetime,
                           uint64_t *key_out) TN_MUST_CHECK;

/* The key of a block; false when host memory is missing. Without a call by stack and by size, which
 * most passes over all blocks group by. */
TN_MUST_CHECK static inline bool tn_group_key_find(const struct tn_group_keys *keys,
                                                   const struct tn_lifetime *lifetime,
                                                   uint64_t *key_out)
{
    if (keys->by == TARN_BY_STACK && !keys->view->changes) {
        *key_out = lifetime->stack;
        return true;
    }
    if (keys->by == TARN_BY_SIZE) { /* the power of two that it is rounded up to */
        *key_out = lifetime->size > 1 ? tn_log2_floor(lifetime->size - 1) + 1 : 0;
        return true;
    }
    return tn_group_key_find_any(keys, lifetime, key_out);
}

/* Its name in a line of a table; of a stack as stack_label.h says. */
void tn_group_key_put(struct tn_text_out *out, const struct tn_group_keys *keys, uint64_t key);

/* The label of a stack, the key of a grouping by stack. */
struct tn_stack_label tn_group_key_label(const struct tn_group_keys *keys, uint64_t key);

/* The same in full, of all groupings but by stack. */
void tn_group_key_put_name(struct tn_text_out *out, const struct tn_group_keys *keys, uint64_t key);

/* In full, on one line: all frames of a stack, outermost first, joined by ';'. Two snapshots have
 * something in common if these are equal. */
void tn_group_key_put_path(struct tn_text_out *out, const struct tn_group_keys *keys, uint64_t key,
                           const struct tn_path_format *format);

/* The path of a stack. */
void tn_stack_put_path(struct tn_text_out *out, const struct tn_stack_label *label,
                       const struct tn_path_format *format);

/* "stacks", "files": what the rows of a table are. Static storage. */
const char *tn_grouping_plural(enum tarn_grouping by);

/* "stack", "file", as options name it. Static storage. */
const char *tn_grouping_name(enum tarn_grouping by);

/* Heading of the column of names: "allocated by" for all that are about frames. */
const char *tn_grouping_heading(enum tarn_grouping by);

/* A stack of the model from the innermost frame on, in one line. */
void tn_stack_put(struct tn_text_out *out, const struct tn_model *model, uint32_t stack);

#endif
