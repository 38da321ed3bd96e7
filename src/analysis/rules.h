/* SPDX-License-Identifier: MIT */
/*
 * Rules that derive a category from a stack, and their results for one model. From the outermost
 * frame inwards, the first frame that a rule matches decides, with the first such rule: what a
 * helper inside the optimizer allocates belongs to the optimizer.
 *
 * If no rule matches, the lifetime of a block is a hint: from before the first step to the end of
 * the trace it is probably a parameter, for a few entries probably temporary. Such categories are
 * named "... (by lifetime)".
 */
#ifndef TN_ANALYSIS_RULES_H
#define TN_ANALYSIS_RULES_H

#include "analysis/pattern.h"
#include "analysis/timeline.h"
#include "base/arena.h"
#include "base/vec.h"
#include "tarn/selection.h"

struct tn_rule {
    struct tn_pattern pattern;
    uint32_t category; /* number of `categories` */
};

struct tarn_rules {
    struct tn_budget budget;  /* without a limit */
    struct tn_arena arena;    /* names */
    struct tn_vec categories; /* const char *, in order of first sight */
    struct tn_vec rules;      /* struct tn_rule */
};

/* Categories of a report: 0 is "unclassified", then come those of the rules, then these two. */
enum {
    TN_CATEGORY_UNCLASSIFIED = 0,
    TN_CATEGORIES_BY_LIFETIME = 2,
    TN_TEMPORARY_ENTRIES = 32 /* a block that lives no longer is temporary */
};

/* Rules from memory; `name` is for messages. As tarn_rules_load. */
enum tarn_status tn_rules_parse(const char *text, size_t size, const char *name,
                                struct tarn_rules **rules_out,
                                struct tarn_error *error) TN_MUST_CHECK;

/* Results for one model, each computed once. Borrows both. Guarded by its owner. */
struct tn_categories {
    const struct tarn_rules *rules;
    struct tarn_rules *own_rules; /* the default ones, or NULL */
    const struct tn_model *model;
    uint32_t *of_frame; /* 0 = not asked, 1 = none, else category + 1 */
    uint32_t *of_stack; /* the same */
};

/* `rules` NULL: the default ones. TARN_ERR_HOST_MEMORY; then there is nothing to release. */
enum tarn_status tn_categories_init(struct tn_categories *categories,
                                    const struct tarn_rules *rules, const struct tn_model *model,
                                    struct tarn_error *error) TN_MUST_CHECK;
void tn_categories_fini(struct tn_categories *categories);

/* The category of a frame by the rules; TN_CATEGORY_UNCLASSIFIED when none matches. */
uint32_t tn_category_of_frame(struct tn_categories *categories, uint32_t frame);

/* The category of a stack; TN_CATEGORY_UNCLASSIFIED when no rule matches. */
uint32_t tn_category_of_stack(struct tn_categories *categories, uint32_t stack);

/* How many there are, from 0 on: "unclassified", those of the rules, "parameter (by lifetime)" and
 * "temporary (by lifetime)". */
uint32_t tn_category_count(const struct tn_categories *categories);

/* The category of a block. The first step ends at entry `first_step`. */
uint32_t tn_category_of(struct tn_categories *categories, const struct tn_lifetime *lifetime,
                        uint64_t first_step);

/* Its name, static or the rules'; *hint_out is its suffix: "" or " (by lifetime)". */
const char *tn_category_name(const struct tn_categories *categories, uint32_t category,
                             const char **hint_out);

#endif
