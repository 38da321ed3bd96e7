/* SPDX-License-Identifier: MIT */
/*
 * Expressions that select blocks: `size >= 64MiB && (frame ~ "attention" || lifetime > 2s)`.
 *
 *     expression = both { "||" both }
 *     both       = one { "&&" one }
 *     one        = { "!" } ( "(" expression ")" | term )
 *     term       = field [ comparison value ]
 *
 * Parsed once into steps: a term sets the result, NOT inverts it, a jump skips what the result
 * so far makes irrelevant. So evaluating a block is one loop without recursion, however deep the
 * expression is. Each term is evaluated once for each text (where_view.h).
 *
 * Owns: steps, texts, patterns. Read only once made; any number of threads may use it.
 */
#ifndef TN_ANALYSIS_WHERE_H
#define TN_ANALYSIS_WHERE_H

#include "analysis/pattern.h"
#include "base/arena.h"
#include "base/vec.h"
#include "tarn/selection.h"

enum tn_where_field {
    TN_WHERE_SIZE,
    TN_WHERE_LIFETIME,
    TN_WHERE_START,
    TN_WHERE_END,
    TN_WHERE_ADDRESS,
    TN_WHERE_SEGMENT,
    TN_WHERE_STREAM,
    TN_WHERE_DEVICE,
    TN_WHERE_POOL,
    TN_WHERE_CATEGORY,
    TN_WHERE_ANNOTATION,
    TN_WHERE_METADATA,
    TN_WHERE_COMPILE,
    TN_WHERE_FRAME,
    TN_WHERE_FUNCTION,
    TN_WHERE_FILE,
    TN_WHERE_FREED,
    TN_WHERE_BEFORE
};

/* "!=" and "!~" are "==" and "~" followed by a NOT step. */
enum tn_where_comparison {
    TN_WHERE_EQUAL,
    TN_WHERE_LESS,
    TN_WHERE_AT_MOST,
    TN_WHERE_MORE,
    TN_WHERE_AT_LEAST,
    TN_WHERE_MATCHES,
    TN_WHERE_HOLDS /* the field alone */
};

struct tn_where_term {
    enum tn_where_field field;
    enum tn_where_comparison comparison;
    bool is_time;           /* `number` is in microseconds, not in entries */
    uint64_t number;        /* of all but texts */
    enum tarn_pools pools;  /* of the pool */
    struct tn_pool_id pool; /* for TARN_POOLS_ONE */
    const char *text;       /* of texts, NULL for others */
    uint32_t pattern;       /* number, for TN_WHERE_MATCHES */
    uint32_t answers;       /* number among the terms with a text */
};

enum tn_where_step_kind {
    TN_WHERE_TERM,
    TN_WHERE_NOT,
    TN_WHERE_LEAVE_IF_FALSE,
    TN_WHERE_LEAVE_IF_TRUE
};

struct tn_where_step {
    enum tn_where_step_kind kind;
    uint32_t target; /* of a jump: the step to go on with; of a term: its number */
};

enum {
    TN_WHERE_TEXT_MAX = 4096, /* bytes of an expression */
    TN_WHERE_TERMS_MAX = 256,
    TN_WHERE_DEPTH_MAX = 32 /* parentheses in parentheses */
};

struct tarn_where {
    struct tn_budget budget; /* without a limit */
    struct tn_arena arena;   /* texts */
    const char *text;        /* the expression */
    struct tn_vec steps;     /* struct tn_where_step */
    struct tn_vec terms;     /* struct tn_where_term */
    struct tn_vec patterns;  /* struct tn_pattern */
    uint32_t texts;          /* terms with a text */
    bool uses_time;
};

/* Whether some term tests that field. */
bool tn_where_uses(const struct tarn_where *where, enum tn_where_field field);

#endif
