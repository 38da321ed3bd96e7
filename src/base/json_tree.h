/* SPDX-License-Identifier: MIT */
/*
 * Parses one JSON value into a tree, for logs with one value per line. Strict as in json_token.h;
 * strings cannot contain NUL, integers must fit into 64 signed bits.
 *
 * A library reads the program's own JSON files, but it has no limits, and aborts or drops digits
 * when memory runs out within a token. Untrusted files are read with this parser.
 *
 * Nesting is bounded by TN_JSON_DEPTH and all memory by a budget. No recursion. A value takes 24
 * bytes; object keys are sorted, so finding one is O(log n).
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
    uint32_t begin; /* position in the text */
    uint32_t end;
    union {
        int64_t integer;
        double real;
        const char *text;                  /* NUL-terminated */
        const struct tn_json_value *items; /* of an object: alternating keys and values, sorted by
                                              key */
    } as;
};

struct tn_json_tree {
    struct tn_budget budget;
    struct tn_arena arena;
    struct tn_json_value *stack; /* values of incomplete containers */
    size_t depth;
    size_t capacity;
    struct tn_json_value root;
};

void tn_json_tree_init(struct tn_json_tree *tree);
void tn_json_tree_fini(struct tn_json_tree *tree);

/* Fills tree->root, which is borrowed until the next call or the end of the tree. The text is not
 * used afterwards. Duplicate keys are rejected, unless `repeats`: then the last one wins.
 * TARN_ERR_FORMAT; TARN_ERR_TRUNCATED when the text ends early; TARN_ERR_LIMIT;
 * TARN_ERR_HOST_MEMORY. The error has the problem and the column as its text, and the byte as its
 * offset. After a failure the root is null. */
enum tarn_status tn_json_parse(struct tn_json_tree *tree, const char *text, size_t size,
                               bool repeats, struct tarn_error *error) TN_MUST_CHECK;

/* Accessors. `value` may be NULL everywhere: a missing value has no kind. */

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

/* 0 when it is not a number. */
static inline double tn_json_number(const struct tn_json_value *value)
{
    return tn_json_is(value, TN_JSON_REAL) ? value->as.real : (double)tn_json_integer(value);
}

/* NULL when it is not a string. */
static inline const char *tn_json_text(const struct tn_json_value *value)
{
    return tn_json_is(value, TN_JSON_STRING) ? value->as.text : NULL;
}

/* Items of an array; 0 for other kinds. */
static inline size_t tn_json_length(const struct tn_json_value *value)
{
    return tn_json_is(value, TN_JSON_ARRAY) ? value->count : 0;
}

/* NULL when it is not an array or too short. */
static inline const struct tn_json_value *tn_json_at(const struct tn_json_value *value, size_t i)
{
    return i < tn_json_length(value) ? &value->as.items[i] : NULL;
}

/* Pairs of an object; 0 for other kinds. */
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

/* NULL when it is not an object or has no such key. */
const struct tn_json_value *tn_json_get(const struct tn_json_value *value, const char *key);

#endif
