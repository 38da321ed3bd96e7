/* SPDX-License-Identifier: MIT */
#include "base/json_tree.h"

#include "base/assertion.h"
#include "base/decimal.h"
#include "base/errinfo.h"
#include "base/json_token.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum {
    MEMORY_MAX = 256 << 20, /* of one value with everything in it */
    STACK_FIRST = 64
};

/* What may follow. */
enum expected {
    EXPECT_VALUE,
    EXPECT_VALUE_OR_END, /* after [ */
    EXPECT_KEY_OR_END,   /* after { */
    EXPECT_KEY,          /* after a comma in an object */
    EXPECT_COLON,
    EXPECT_COMMA_OR_END,
    EXPECT_NOTHING /* the value is complete */
};

struct mark {
    size_t base; /* values below it belong to outer containers */
    uint32_t begin;
    bool is_object;
};

struct parse {
    struct tn_json_tree *tree;
    struct tarn_error *error;
    const char *text;
    size_t size;
    size_t at;
    struct mark marks[TN_JSON_DEPTH];
    unsigned depth;
    enum expected expected;
    bool repeats;
};

static enum tarn_status parse_fail(const struct parse *p, enum tarn_status status, const char *what)
{
    return tn_fail_at(p->error, status, (int64_t)p->at, "%s at column %zu", what, p->at + 1);
}

static enum tarn_status parse_wrong(const struct parse *p, const char *what)
{
    return parse_fail(p, TARN_ERR_FORMAT, what);
}

static enum tarn_status parse_cut(const struct parse *p)
{
    return parse_fail(p, TARN_ERR_TRUNCATED, "the input ends early");
}

static enum tarn_status parse_memory(const struct parse *p)
{
    const enum tarn_status status = tn_budget_status(&p->tree->budget);

    return status == TARN_ERR_LIMIT
               ? tn_fail(p->error, status, "it needs more than the limit of %d bytes of memory",
                         MEMORY_MAX)
               : tn_fail_memory(p->error);
}

/* ---- the value stack ---- */

static bool stack_grow(struct tn_json_tree *tree)
{
    const size_t capacity = tree->capacity ? tree->capacity * 2 : STACK_FIRST;
    struct tn_json_value *stack = tn_budget_alloc(&tree->budget, capacity * sizeof *stack);

    if (!stack) {
        return false;
    }
    if (tree->depth > 0) {
        memcpy(stack, tree->stack, tree->depth * sizeof *stack);
    }
    tn_budget_free(&tree->budget, tree->stack, tree->capacity * sizeof *stack);
    tree->stack = stack;
    tree->capacity = capacity;
    return true;
}

/* Ends a value and sets what may follow. */
static enum tarn_status parse_take(struct parse *p, struct tn_json_value value)
{
    struct tn_json_tree *tree = p->tree;

    if (tree->depth == tree->capacity && !stack_grow(tree)) {
        return parse_memory(p);
    }
    value.end = (uint32_t)p->at;
    tree->stack[tree->depth++] = value;
    if (p->expected == EXPECT_KEY || p->expected == EXPECT_KEY_OR_END) {
        p->expected = EXPECT_COLON;
    } else {
        p->expected = p->depth > 0 ? EXPECT_COMMA_OR_END : EXPECT_NOTHING;
    }
    return TARN_OK;
}

/* ---- strings ---- */

/* Bytes between the quotes; the opening quote is at `at`. */
static enum tarn_status string_measure(struct parse *p, size_t *length_out)
{
    const size_t first = p->at + 1;

    for (size_t i = first; i < p->size; i++) {
        const unsigned char c = (unsigned char)p->text[i];

        if (c == '"') {
            *length_out = i - first;
            return TARN_OK;
        }
        if (c < 0x20) {
            p->at = i;
            return parse_wrong(p, "a control character in a string");
        }
        i += c == '\\';
    }
    p->at = p->size;
    return parse_cut(p);
}

static enum tarn_status string_parse(struct parse *p)
{
    struct tn_json_value value = {.kind = TN_JSON_STRING, .begin = (uint32_t)p->at};
    size_t length = 0;
    size_t size = 0;
    const enum tarn_status status = string_measure(p, &length);

    if (status) {
        return status;
    }
    char *copy = tn_arena_alloc(&p->tree->arena, length + 1);
    if (!copy) {
        return parse_memory(p);
    }
    const char *wrong = tn_json_unescape(p->text + p->at + 1, length, copy, &size);
    if (wrong) {
        return parse_wrong(p, wrong);
    }
    if (memchr(copy, '\0', size)) {
        return parse_wrong(p, "a string with a NUL");
    }
    if (!tn_utf8_is_valid(copy, size)) {
        char *repaired = tn_arena_alloc(&p->tree->arena, size * TN_UTF8_REPAIR_GROWTH + 1);

        if (!repaired) {
            return parse_memory(p);
        }
        size = tn_utf8_repair(copy, size, repaired);
        copy = repaired;
    }
    copy[size] = '\0';
    value.count = (uint32_t)size;
    value.as.text = copy;
    p->at += length + 2;
    return parse_take(p, value);
}

/* ---- numbers and words ---- */

/* The sign is handled separately because tn_whole_parse accepts none. */
static enum tarn_status whole_parse(const struct parse *p, const char *token, int64_t *integer_out)
{
    const bool is_negative = token[0] == '-';
    uint64_t number = 0;

    if (tn_whole_parse(token + is_negative, &number) != TN_DECIMAL_OK ||
        number > (uint64_t)INT64_MAX + is_negative) {
        return parse_wrong(p, "a whole number of more than 64 bits");
    }
    *integer_out = number > INT64_MAX ? INT64_MIN
                   : is_negative      ? -(int64_t)number
                                      : (int64_t)number;
    return TARN_OK;
}

static enum tarn_status number_parse(const struct parse *p, const char *token,
                                     struct tn_json_value *value)
{
    bool is_whole = false;

    if (!tn_json_number_is_formed(token, &is_whole)) {
        return parse_wrong(p, "neither a value nor the end of a container");
    }
    value->kind = is_whole ? TN_JSON_INTEGER : TN_JSON_REAL;
    if (is_whole) {
        return whole_parse(p, token, &value->as.integer);
    }
    return tn_real_parse(token, &value->as.real) == TN_DECIMAL_OK
               ? TARN_OK
               : parse_wrong(p, "a number out of range");
}

static bool word_parse(const char *token, struct tn_json_value *value)
{
    static const char *const words[] = {
        [TN_JSON_NULL] = "null", [TN_JSON_FALSE] = "false", [TN_JSON_TRUE] = "true"};

    for (uint32_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(token, words[i]) == 0) {
            value->kind = i;
            return true;
        }
    }
    return false;
}

static enum tarn_status token_parse(struct parse *p)
{
    struct tn_json_value value = {.begin = (uint32_t)p->at};
    char token[TN_JSON_NUMBER_MAX + 1];
    size_t length = 0;
    enum tarn_status status = TARN_OK;

    while (p->at + length < p->size && tn_json_token_has(p->text[p->at + length])) {
        if (length == TN_JSON_NUMBER_MAX) {
            return parse_wrong(p, "a number that is too long");
        }
        token[length] = p->text[p->at + length];
        length++;
    }
    token[length] = '\0';
    if (!word_parse(token, &value)) {
        /* The remaining part may be missing. */
        status = p->depth > 0 && p->at + length == p->size ? parse_cut(p)
                                                           : number_parse(p, token, &value);
    }
    if (status) {
        return status;
    }
    p->at += length;
    return parse_take(p, value);
}

/* ---- containers ---- */

static enum tarn_status container_begin(struct parse *p, bool is_object)
{
    if (p->depth == TN_JSON_DEPTH) {
        return parse_fail(p, TARN_ERR_LIMIT, "containers nested too deeply");
    }
    p->marks[p->depth++] = (struct mark){p->tree->depth, (uint32_t)p->at, is_object};
    p->at++;
    p->expected = is_object ? EXPECT_KEY_OR_END : EXPECT_VALUE_OR_END;
    return TARN_OK;
}

/* Sorted by key; of equal keys the last in the text comes first. */
static int pair_compare(const void *left, const void *right)
{
    const struct tn_json_value *a = left;
    const struct tn_json_value *b = right;
    const int order = strcmp(a->as.text, b->as.text);

    return order ? order : (a->begin < b->begin) - (a->begin > b->begin);
}

/* Keeps one pair per key. */
static enum tarn_status pairs_unite(const struct parse *p, struct tn_json_value *pairs,
                                    size_t *count)
{
    size_t kept = 0;

    qsort(pairs, *count, 2 * sizeof *pairs, pair_compare);
    for (size_t i = 0; i < *count; i++) {
        if (kept > 0 && strcmp(pairs[2 * i].as.text, pairs[2 * kept - 2].as.text) == 0) {
            if (!p->repeats) {
                return parse_wrong(p, "an object with a duplicate key");
            }
            continue;
        }
        memmove(&pairs[2 * kept++], &pairs[2 * i], 2 * sizeof *pairs);
    }
    *count = kept;
    return TARN_OK;
}

/* Moves the container's values from the stack to their final memory. */
static enum tarn_status container_end(struct parse *p)
{
    struct tn_json_tree *tree = p->tree;
    const struct mark mark = p->marks[p->depth - 1];
    const size_t values = tree->depth - mark.base;
    struct tn_json_value value = {.kind = mark.is_object ? TN_JSON_OBJECT : TN_JSON_ARRAY,
                                  .begin = mark.begin};
    size_t count = mark.is_object ? values / 2 : values;

    if (count > 0) {
        struct tn_json_value *items =
            tn_arena_copy(&tree->arena, tree->stack + mark.base, values, sizeof *items);

        if (!items) {
            return parse_memory(p);
        }
        const enum tarn_status status = mark.is_object ? pairs_unite(p, items, &count) : TARN_OK;

        if (status) {
            return status;
        }
        value.as.items = items;
    }
    value.count = (uint32_t)count;
    tree->depth = mark.base;
    p->depth--;
    p->at++;
    p->expected = EXPECT_VALUE; /* a value, not a key */
    return parse_take(p, value);
}

/* ---- the loop ---- */

static bool skip_blanks(struct parse *p)
{
    while (p->at < p->size && tn_json_is_blank(p->text[p->at])) {
        p->at++;
    }
    return p->at < p->size;
}

static bool may_end(const struct parse *p, char c)
{
    const bool ends = p->expected == EXPECT_COMMA_OR_END || p->expected == EXPECT_VALUE_OR_END ||
                      p->expected == EXPECT_KEY_OR_END;

    return ends && c == (p->marks[p->depth - 1].is_object ? '}' : ']');
}

static enum tarn_status step_value(struct parse *p, char c)
{
    if (c == '{' || c == '[') {
        return container_begin(p, c == '{');
    }
    return c == '"' ? string_parse(p) : token_parse(p);
}

static enum tarn_status step_sign(struct parse *p, char c)
{
    const bool is_colon = p->expected == EXPECT_COLON;

    if (c != (is_colon ? ':' : ',')) {
        return parse_wrong(p, is_colon ? "no colon after a key"
                                       : "neither a comma nor the end of a container");
    }
    p->at++;
    p->expected = !is_colon && p->marks[p->depth - 1].is_object ? EXPECT_KEY : EXPECT_VALUE;
    return TARN_OK;
}

static enum tarn_status parse_step(struct parse *p)
{
    const char c = p->text[p->at];

    if (may_end(p, c)) {
        return container_end(p);
    }
    switch (p->expected) {
    case EXPECT_VALUE:
    case EXPECT_VALUE_OR_END:
        return step_value(p, c);
    case EXPECT_KEY:
    case EXPECT_KEY_OR_END:
        return c == '"' ? string_parse(p) : parse_wrong(p, "a key that is not a string");
    case EXPECT_COLON:
    case EXPECT_COMMA_OR_END:
        return step_sign(p, c);
    case EXPECT_NOTHING: /* which ends it */
        tn_no_case();
        break;
    }
    return TARN_ERR_INTERNAL;
}

static void tree_clear(struct tn_json_tree *tree)
{
    tn_arena_clear(&tree->arena);
    tree->depth = 0;
    tree->root = (struct tn_json_value){0};
    tree->budget.exceeded = false;
}

enum tarn_status tn_json_parse(struct tn_json_tree *tree, const char *text, size_t size,
                               bool repeats, struct tarn_error *error)
{
    struct parse p = {.tree = tree, .error = error, .text = text, .size = size, .repeats = repeats};
    enum tarn_status status = TARN_OK;

    tree_clear(tree);
    if (size > MEMORY_MAX) {
        return parse_fail(&p, TARN_ERR_LIMIT, "a value that is too long");
    }
    while (status == TARN_OK && p.expected != EXPECT_NOTHING) {
        status = skip_blanks(&p) ? parse_step(&p) : parse_cut(&p);
    }
    if (status == TARN_OK && skip_blanks(&p)) {
        status = parse_wrong(&p, "extra data after the value");
    }
    if (status == TARN_OK) {
        tree->root = tree->stack[0];
    }
    return status;
}

/* ---- lifetime ---- */

void tn_json_tree_init(struct tn_json_tree *tree)
{
    *tree = (struct tn_json_tree){.budget = {.limit = MEMORY_MAX}};
    tn_arena_init(&tree->arena, &tree->budget);
}

void tn_json_tree_fini(struct tn_json_tree *tree)
{
    tn_arena_fini(&tree->arena);
    tn_budget_free(&tree->budget, tree->stack, tree->capacity * sizeof *tree->stack);
    tree->stack = NULL;
    tree->capacity = 0;
}

/* ---- accessors ---- */

static int key_compare(const void *key, const void *pair)
{
    return strcmp(key, ((const struct tn_json_value *)pair)->as.text);
}

const struct tn_json_value *tn_json_get(const struct tn_json_value *value, const char *key)
{
    const size_t count = tn_json_pairs(value);
    const struct tn_json_value *pair =
        count > 0 ? bsearch(key, value->as.items, count, 2 * sizeof *value, key_compare) : NULL;

    return pair ? pair + 1 : NULL;
}
