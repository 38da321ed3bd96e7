/* SPDX-License-Identifier: MIT */
/*
 * Categories of frames, stacks and blocks by rules (rules.h), for one model.
 *
 * If no rule matches, the use of a block is a hint: from before the first step to the end of the
 * trace it is probably a parameter, for a few entries probably temporary, of a parameter's size
 * until the optimizer's step probably a gradient (gradient.h). Such categories are named
 * "... (by lifetime)" and "... (by size)".
 */
#ifndef TN_ANALYSIS_CATEGORY_H
#define TN_ANALYSIS_CATEGORY_H

#include "analysis/rules.h"
#include "analysis/timeline.h"

/* Categories of a report: 0 is "unclassified", then come those of the rules, then the guesses. */
enum {
    TN_CATEGORY_UNCLASSIFIED = 0,
    TN_CATEGORIES_GUESSED = 3,
    TN_TEMPORARY_ENTRIES = 32 /* a block that lives no longer is temporary */
};

/* Results for one model, each computed once. Borrows both. Guarded by its owner. */
struct tn_categories {
    const struct tarn_rules *rules;
    struct tarn_rules *own_rules; /* the default ones, or NULL */
    const struct tn_model *model;
    uint32_t *of_frame;  /* 0 = not asked, 1 = none, else category + 1 */
    uint32_t *of_stack;  /* the same */
    uint8_t *is_refined; /* frame: 0 = not asked, 1 = no refining rule matches, 2 = one does */
    uint8_t *is_own;     /* frame: 0 = not asked, 1 = not of Python outside PyTorch, 2 = it is */
    uint8_t trains;      /* 0 = not asked, 1 = no, 2 = yes */

    /* A path is most of the text of a frame, and few files have many frames: the rules' filter goes
     * over it once. */
    uint32_t *of_file;             /* string: 0 = not asked, else its number in `files` + 1 */
    struct tn_vec files;           /* as many struct tn_filter_place as the filter has groups */
    struct tn_filter_place *frame; /* of the frame that is looked at */
};

/* `rules` NULL: the default ones. TARN_ERR_HOST_MEMORY; then there is nothing to release. */
enum tarn_status tn_categories_init(struct tn_categories *categories,
                                    const struct tarn_rules *rules, const struct tn_model *model,
                                    struct tarn_error *error) TN_MUST_CHECK;
void tn_categories_fini(struct tn_categories *categories);

/* The category of a frame by the rules; TN_CATEGORY_UNCLASSIFIED when none matches. */
uint32_t tn_category_of_frame(struct tn_categories *categories, uint32_t frame);

/* The category that refining rules give to a stack whose innermost frame outside PyTorch is this,
 * if they apply; TN_CATEGORY_UNCLASSIFIED when none matches. */
uint32_t tn_category_of_frame_refined(struct tn_categories *categories, uint32_t frame);

/* Whether the function generates text, by its name. */
bool tn_frame_generates(const struct tn_model *model, uint32_t frame);

/* The category of a stack; TN_CATEGORY_UNCLASSIFIED when no rule matches. */
uint32_t tn_category_of_stack(struct tn_categories *categories, uint32_t stack);

/* How many there are, from 0 on: "unclassified", those of the rules, "parameter (by lifetime)",
 * "temporary (by lifetime)" and "gradient (by size)". */
uint32_t tn_category_count(const struct tn_categories *categories);

/* The category of a block. The first step ends at entry `first_step`; gradient.h knows whether it
 * is used as a gradient. */
uint32_t tn_category_of(struct tn_categories *categories, const struct tn_lifetime *lifetime,
                        uint64_t first_step, bool is_gradient);

/* Its name, static or the rules'; *hint_out is its suffix: "", " (by lifetime)" or " (by size)". */
const char *tn_category_name(const struct tn_categories *categories, uint32_t category,
                             const char **hint_out);

#endif
