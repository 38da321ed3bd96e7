/* SPDX-License-Identifier: MIT */
/*
 * One JSON value with all that is in it, for logs of one value a line. Strict as json_token.h says;
 * strings have no NUL, whole numbers fit into 64 bits with a sign.
 *
 * The program's own JSON is read by a library, which aborts or drops digits when memory ends in the
 * middle of a token and knows no bounds; files from outside are read by this.
 *
 * Bounds: nesting by TN_JSON_DEPTH, and all memory by a budget, which one line cannot exceed
 * however it is made. No recursion. A value takes 24 bytes; finding a key in an object costs the
 * logarithm of its keys, which are sorted.
 */
#ifndef TN_BASE_JSON_TREE_H
#define TN_BASE_JSON_TREE_H

#include "base/arena.h"

enum {
    TN_JSON_DEPTH = 64
};

enum tn_json_kind {
    TN_JSON_NULL,
    TN_JSON_FALSE,
    TN_JSON_TRUE,
    TN_JSON_INTEGER,
    TN_JSON_REAL,
    TN_JSON_STRING,
    TN_JSON_ARRAY,
    TN_JSON_OBJECT
};

struct tn_json_value {
    uint32_t kind;  /* enum tn_json_kind */
    uint32_t count; /* items of an array, pairs of an object, bytes of a string */
    uint32_t begin; /* where it stands in the text */
    uint32_t end;
    union {
        int64_t integer;
        double real;
        const char *text;                  /* NUL-terminated */
        const struct tn_json_value *items; /* of an object: key and value in turn, by key */
    } as;
};

struct tn_json_tree {
    struct tn_budget budget;
    struct tn_arena arena;
    struct tn_json_value *stack; /* values whose container is not complete */
    size_t depth;
    size_t capacity;
    struct tn_json_value root;
};

void tn_json_tree_init(struct tn_json_tree *tree);
void tn_json_tree_fini(struct tn_json_tree *tree);

/* Fills tree->root, all of which is borrowed until the next call or the end of the tree. The text
 * is not used afterwards. An object that has a key twice is refused, unless `repeats`: then the
 * last one counts. TARN_ERR_FORMAT; TARN_ERR_TRUNCATED where the text ends too early;
 * TARN_ERR_LIMIT; TARN_ERR_HOST_MEMORY. The error's text is what is wrong and the column, its
 * offset the byte. After a failure the root is null. */
enum tarn_status tn_json_parse(struct tn_json_tree *tree, const char *text, size_t size,
                               bool repeats, struct tarn_error *error) TN_MUST_CHECK;

/* Looking. `value` may be NULL everywhere: what is not there has no kind. */

static inline bool tn_json_is(const struct tn_json_value *value, enum tn_json_kind kind)
{
    return value && value->kind == (uint32_t)kind;
}

static inline bool tn_json_is_bool(const struct tn_json_value *value)
{
    return tn_json_is(value, TN_JSON_TRUE) || tn_json_is(value, TN_JSON_FALSE);
}

static inline bool tn_json_is_number(const struct tn_json_value *value)
{
    return tn_json_is(value, TN_JSON_INTEGER) || tn_json_is(value, TN_JSON_REAL);
}

/* 0 when it is none. */
static inline int64_t tn_json_integer(const struct tn_json_value *value)
{
    return tn_json_is(value, TN_JSON_INTEGER) ? value->as.integer : 0;
}

/* 0 when it is no number. */
static inline double tn_json_number(const struct tn_json_value *value)
{
    return tn_json_is(value, TN_JSON_REAL) ? value->as.real : (double)tn_json_integer(value);
}

/* NULL when it is no string. */
static inline const char *tn_json_text(const struct tn_json_value *value)
{
    return tn_json_is(value, TN_JSON_STRING) ? value->as.text : NULL;
}

/* Items of an array; 0 when it is none. */
static inline size_t tn_json_length(const struct tn_json_value *value)
{
    return tn_json_is(value, TN_JSON_ARRAY) ? value->count : 0;
}

/* NULL when it is no array, or a shorter one. */
static inline const struct tn_json_value *tn_json_at(const struct tn_json_value *value, size_t i)
{
    return i < tn_json_length(value) ? &value->as.items[i] : NULL;
}

/* Pairs of an object; 0 when it is none. */
static inline size_t tn_json_pairs(const struct tn_json_value *value)
{
    return tn_json_is(value, TN_JSON_OBJECT) ? value->count : 0;
}

/* Key and value of pair `i` < tn_json_pairs, by key. */
static inline const char *tn_json_key(const struct tn_json_value *value, size_t i)
{
    return value->as.items[2 * i].as.text;
}

static inline const struct tn_json_value *tn_json_pair(const struct tn_json_value *value, size_t i)
{
    return &value->as.items[2 * i + 1];
}

/* NULL when it is no object, or has no such key. */
const struct tn_json_value *tn_json_get(const struct tn_json_value *value, const char *key);

#endif
