/* SPDX-License-Identifier: MIT */
/*
 * Rules that derive a category from a stack. From the outermost frame inwards, the first frame
 * that a rule matches decides, with the first such rule: what a helper inside the optimizer
 * allocates belongs to the optimizer.
 *
 * A rule "A > B: pattern" then refines: stacks of category A ("unclassified" where no rule matches)
 * whose innermost frame outside PyTorch matches are of category B. That is for what is kept of a
 * computation, such as the cache of keys and values of a text that is generated. Where a file shows
 * training, the same code runs in forward passes that generate nothing; there such rules take only
 * stacks with a function whose name begins with "generate".
 */
#ifndef TN_ANALYSIS_RULES_H
#define TN_ANALYSIS_RULES_H

#include "analysis/pattern.h"
#include "base/arena.h"
#include "base/matcher_filter.h"
#include "base/vec.h"
#include "tarn/selection.h"

struct tn_rule {
    struct tn_pattern pattern;
    uint32_t category; /* number of `categories` */
    bool is_refining;
    uint32_t of; /* category of a report that it refines */
};

struct tarn_rules {
    struct tn_budget budget;         /* without a limit */
    struct tn_arena arena;           /* names */
    struct tn_vec categories;        /* const char *, in order of first sight */
    struct tn_vec rules;             /* struct tn_rule */
    struct tn_matcher_filter filter; /* of their patterns */
    bool is_built_in;                /* patterns that tests have checked */
};

/* Rules from memory; `name` is for messages. As tarn_rules_load. */
enum tarn_status tn_rules_parse(const char *text, size_t size, const char *name,
                                struct tarn_rules **rules_out,
                                struct tarn_error *error) TN_MUST_CHECK;

#endif
