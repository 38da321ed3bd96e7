/* SPDX-License-Identifier: MIT */
/* Reading expressions: recursive descent, as deep as parentheses are, with a limit. */
#include "analysis/where.h"

#include "base/checked.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/utf8.h"
#include "tarn/text.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* What a field is compared with. */
enum kind {
    KIND_BYTES,
    KIND_NUMBER,
    KIND_SPAN, /* entries of the trace, or a time */
    KIND_POOL,
    KIND_TEXT,
    KIND_FLAG
};

static const struct field {
    const char *name;
    enum tn_where_field field;
    enum kind kind;
} fields[] = {
    {"size", TN_WHERE_SIZE, KIND_BYTES},        {"lifetime", TN_WHERE_LIFETIME, KIND_SPAN},
    {"age", TN_WHERE_LIFETIME, KIND_SPAN},      {"start", TN_WHERE_START, KIND_SPAN},
    {"end", TN_WHERE_END, KIND_SPAN},           {"address", TN_WHERE_ADDRESS, KIND_NUMBER},
    {"segment", TN_WHERE_SEGMENT, KIND_NUMBER}, {"stream", TN_WHERE_STREAM, KIND_NUMBER},
    {"device", TN_WHERE_DEVICE, KIND_NUMBER},   {"pool", TN_WHERE_POOL, KIND_POOL},
    {"category", TN_WHERE_CATEGORY, KIND_TEXT}, {"annotation", TN_WHERE_ANNOTATION, KIND_TEXT},
    {"metadata", TN_WHERE_METADATA, KIND_TEXT}, {"compile", TN_WHERE_COMPILE, KIND_TEXT},
    {"frame", TN_WHERE_FRAME, KIND_TEXT},       {"function", TN_WHERE_FUNCTION, KIND_TEXT},
    {"file", TN_WHERE_FILE, KIND_TEXT},         {"freed", TN_WHERE_FREED, KIND_FLAG},
    {"before", TN_WHERE_BEFORE, KIND_FLAG},
};

/* The values that a kind of field takes. */
static const char *const values_allowed[] = {
    [KIND_BYTES] = "a size (512, 64MiB)",
    [KIND_NUMBER] = "a number (7, 0x7f00)",
    [KIND_SPAN] = "a number of events (100) or a time (2s, 300ms)",
    [KIND_POOL] = "default, private, or the number of a pool (1,0)",
    [KIND_TEXT] = "a text (\"attention\")",
};

enum {
    FIELD_COUNT = sizeof fields / sizeof fields[0],
    NAME_MAX_BYTES = 16,
    FIELDS_TEXT_MAX = 256,
    FRACTION_DIGITS_MAX = 9
};

/* No step is there yet. */
#define NO_STEP UINT32_MAX

struct reader {
    struct tarn_where *where;
    const char *text; /* the whole expression */
    const char *at;
    unsigned depth;
    struct tarn_error *error;
};

/* ---- messages ---- */

static enum tarn_status wrong(struct reader *r, const char *at, const char *expected)
{
    const long long offset = at - r->text;

    if (*at == '\0') {
        return tn_fail_at(r->error, TARN_ERR_INVALID_ARGUMENT, offset,
                          "column %lld: expected %s, not the end", offset + 1, expected);
    }
    return tn_fail_at(r->error, TARN_ERR_INVALID_ARGUMENT, offset,
                      "column %lld: expected %s, not \"%.*s\"", offset + 1, expected,
                      tn_utf8_cut(at, 20), at);
}

static enum tarn_status field_unknown(struct reader *r, const char *at, size_t length)
{
    const long long offset = at - r->text;
    char word[TARN_TEXT_DISTANCE_MAX + 1];
    char allowed[FIELDS_TEXT_MAX] = "";
    const char *nearest = NULL;
    unsigned least = 3; /* as many letters may be wrong, less one */
    size_t used = 0;

    (void)snprintf(word, sizeof word, "%.*s", tn_utf8_fit(at, length, 40), at);
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const unsigned distance = tarn_text_distance(word, fields[i].name);

        if (distance < least) {
            least = distance;
            nearest = fields[i].name;
        }
        used += (size_t)snprintf(allowed + used, sizeof allowed - used, "%s%s", i > 0 ? ", " : "",
                                 fields[i].name);
    }
    return tn_fail_at(r->error, TARN_ERR_INVALID_ARGUMENT, offset,
                      "column %lld: \"%s\" is not a field%s%s%s; allowed: %s", offset + 1, word,
                      nearest ? " (did you mean \"" : "", nearest ? nearest : "",
                      nearest ? "\"?)" : "", allowed);
}

/* ---- steps ---- */

/* Adds a step; NO_STEP when host memory is missing. */
static uint32_t step_add(struct reader *r, enum tn_where_step_kind kind, uint32_t target)
{
    const struct tn_where_step step = {.kind = kind, .target = target};

    return tn_vec_append(&r->where->steps, &step, 1) ? (uint32_t)r->where->steps.count - 1
                                                     : NO_STEP;
}

/* Jumps of one chain lead to the step that comes next. Each has the one before it as its target
 * until then. */
static void jumps_land(struct tarn_where *where, uint32_t last)
{
    struct tn_where_step *steps = where->steps.items;

    while (last != NO_STEP) {
        const uint32_t before = steps[last].target;

        steps[last].target = (uint32_t)where->steps.count;
        last = before;
    }
}

/* ---- words ---- */

static void blanks_skip(struct reader *r)
{
    r->at += strspn(r->at, " \t\n");
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t name_length(const char *text)
{
    size_t length = 0;

    while (is_letter(text[length]) || (length > 0 && is_digit(text[length]))) {
        length++;
    }
    return length;
}

static bool taken(struct reader *r, const char *sign)
{
    blanks_skip(r);
    if (strncmp(r->at, sign, strlen(sign)) != 0) {
        return false;
    }
    r->at += strlen(sign);
    return true;
}

/* In quotes, where a backslash escapes the quote and is otherwise literal; or a word. */
static enum tarn_status text_read(struct reader *r, const char **text_out)
{
    const char quote = *r->at;
    const char *begin = r->at;
    size_t length;

    if (quote != '"' && quote != '\'') {
        length = strcspn(r->at, " \t\n()&|!\"'");
        if (length == 0) {
            return wrong(r, r->at, values_allowed[KIND_TEXT]);
        }
        r->at += length;
        *text_out = tn_arena_copy_text(&r->where->arena, begin, length);
        return *text_out ? TARN_OK : tn_fail_memory(r->error);
    }
    char *copy = tn_arena_alloc(&r->where->arena, strlen(begin));

    if (!copy) {
        return tn_fail_memory(r->error);
    }
    length = 0;
    for (r->at++; *r->at != quote; r->at++) {
        if (*r->at == '\0') {
            return wrong(r, r->at, "the quote that ends the text");
        }
        r->at += r->at[0] == '\\' && r->at[1] == quote;
        copy[length++] = *r->at;
    }
    copy[length] = '\0';
    r->at++;
    *text_out = copy;
    return TARN_OK;
}

/* ---- numbers ---- */

static const struct unit {
    const char *name;
    uint64_t factor;
    bool is_time;
} units[] = {
    {"B", 1, false},
    {"KiB", (uint64_t)1 << 10, false},
    {"MiB", (uint64_t)1 << 20, false},
    {"GiB", (uint64_t)1 << 30, false},
    {"TiB", (uint64_t)1 << 40, false},
    {"K", (uint64_t)1 << 10, false},
    {"M", (uint64_t)1 << 20, false},
    {"G", (uint64_t)1 << 30, false},
    {"T", (uint64_t)1 << 40, false},
    {"KB", 1000, false},
    {"MB", 1000000, false},
    {"GB", 1000000000, false},
    {"TB", 1000000000000, false},
    {"us", 1, true},
    {"ms", 1000, true},
    {"s", 1000000, true},
    {"min", 60000000, true},
    {"h", 3600000000, true},
};

static const struct unit *unit_find(const char *text, size_t length)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strlen(units[i].name) == length && strncasecmp(units[i].name, text, length) == 0) {
            return &units[i];
        }
    }
    return NULL;
}

static int digit_value(char c)
{
    if (is_digit(c)) {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
}

/* Digits of that base; false when there is none, or too many. */
static bool whole_read(const char **text, unsigned base, uint64_t *number_out)
{
    const char *begin = *text;

    for (*number_out = 0; digit_value(**text) < (int)base; (*text)++) {
        if (!tn_mul_u64(*number_out, base, number_out) ||
            !tn_add_u64(*number_out, (uint64_t)digit_value(**text), number_out)) {
            return false;
        }
    }
    return *text > begin;
}

/* The digits after the decimal point, in units. */
static bool fraction_read(const char **text, uint64_t factor, uint64_t *number_out)
{
    double scale = 1;
    double digits = 0;
    unsigned count = 0;

    for (; is_digit(**text); (*text)++) {
        if (++count > FRACTION_DIGITS_MAX) {
            return false;
        }
        digits = digits * 10 + (**text - '0');
        scale *= 10;
    }
    *number_out = (uint64_t)(digits / scale * (double)factor + 0.5);
    return count > 0;
}

/* A number and its unit; *unit_out is NULL when there is none. */
static bool amount_read(const char **text, uint64_t *number_out, const struct unit **unit_out)
{
    const char *fraction = NULL;
    uint64_t more = 0;

    *unit_out = NULL;
    if ((*text)[0] == '0' && ((*text)[1] == 'x' || (*text)[1] == 'X')) {
        *text += 2;
        return whole_read(text, 16, number_out);
    }
    if (!whole_read(text, 10, number_out)) {
        return false;
    }
    if (**text == '.') {
        fraction = ++*text;
        *text += strspn(*text, "0123456789");
    }
    const size_t length = name_length(*text);
    const struct unit *unit = unit_find(*text, length);

    if ((length > 0 || fraction) && !unit) {
        return false;
    }
    *text += length;
    *unit_out = unit;
    return (!unit || tn_mul_u64(*number_out, unit->factor, number_out)) &&
           (!fraction || fraction_read(&fraction, unit->factor, &more)) &&
           tn_add_u64(*number_out, more, number_out);
}

/* Whether a number of that unit is allowed for that kind of field. */
static bool unit_fits(enum kind kind, const struct unit *unit)
{
    return !unit || (kind == KIND_BYTES && !unit->is_time) || (kind == KIND_SPAN && unit->is_time);
}

static enum tarn_status number_read(struct reader *r, enum kind kind, struct tn_where_term *term)
{
    const struct unit *unit;
    const char *end = r->at;

    /* All digits are read by then. */
    if (!amount_read(&end, &term->number, &unit) || !unit_fits(kind, unit) || is_letter(*end) ||
        *end == '.') {
        return wrong(r, r->at, values_allowed[kind]);
    }
    r->at = end;
    term->is_time = unit && unit->is_time;
    r->where->uses_time = r->where->uses_time || term->is_time;
    return TARN_OK;
}

static enum tarn_status pool_read(struct reader *r, struct tn_where_term *term)
{
    const char *end = r->at;
    const size_t length = name_length(end);

    term->pools = TARN_POOLS_ONE;
    if (length == 7 && memcmp(end, "default", length) == 0) {
        term->pools = TARN_POOLS_DEFAULT;
        end += length;
    } else if (length == 7 && memcmp(end, "private", length) == 0) {
        term->pools = TARN_POOLS_PRIVATE;
        end += length;
    } else if (!whole_read(&end, 10, &term->pool.id[0]) || *end++ != ',' ||
               !whole_read(&end, 10, &term->pool.id[1]) || is_letter(*end)) {
        return wrong(r, r->at, values_allowed[KIND_POOL]);
    }
    r->at = end;
    return TARN_OK;
}

static enum tarn_status pattern_read(struct reader *r, const char *at, struct tn_where_term *term)
{
    struct tarn_where *where = r->where;
    struct tn_pattern *pattern = tn_vec_push(&where->patterns);
    char what[48];

    if (!pattern) {
        return tn_fail_memory(r->error);
    }
    (void)snprintf(what, sizeof what, "column %lld", (long long)(at - r->text) + 1);
    const enum tarn_status status = tn_pattern_init(pattern, term->text, what, r->error);

    if (status) {
        where->patterns.count--;
        if (r->error) {
            r->error->offset = at - r->text;
        }
        return status;
    }
    term->pattern = (uint32_t)where->patterns.count - 1;
    return TARN_OK;
}

static enum tarn_status value_read(struct reader *r, enum kind kind, struct tn_where_term *term)
{
    const char *at;
    enum tarn_status status;

    blanks_skip(r);
    at = r->at;
    if (kind == KIND_POOL) {
        return pool_read(r, term);
    }
    if (kind != KIND_TEXT) {
        return number_read(r, kind, term);
    }
    status = text_read(r, &term->text);
    if (status) {
        return status;
    }
    term->answers = r->where->texts++;
    return term->comparison == TN_WHERE_MATCHES ? pattern_read(r, at, term) : TARN_OK;
}

/* ---- terms ---- */

/* False when there is none here. */
static bool comparison_read(struct reader *r, enum tn_where_comparison *comparison_out,
                            bool *is_not_out)
{
    static const struct {
        const char *sign;
        enum tn_where_comparison comparison;
        bool is_not;
    } signs[] = {
        /* longer ones first */
        {"==", TN_WHERE_EQUAL, false},   {"!=", TN_WHERE_EQUAL, true},
        {"<=", TN_WHERE_AT_MOST, false}, {">=", TN_WHERE_AT_LEAST, false},
        {"!~", TN_WHERE_MATCHES, true},  {"=~", TN_WHERE_MATCHES, false},
        {"=", TN_WHERE_EQUAL, false},    {"<", TN_WHERE_LESS, false},
        {">", TN_WHERE_MORE, false},     {"~", TN_WHERE_MATCHES, false},
    };

    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        if (taken(r, signs[i].sign)) {
            *comparison_out = signs[i].comparison;
            *is_not_out = signs[i].is_not;
            return true;
        }
    }
    return false;
}

/* Only sizes, numbers and spans have an order, only texts match. */
static bool comparison_fits(enum kind kind, enum tn_where_comparison comparison)
{
    if (comparison == TN_WHERE_MATCHES) {
        return kind == KIND_TEXT;
    }
    return comparison == TN_WHERE_EQUAL || (kind != KIND_TEXT && kind != KIND_POOL);
}

static const struct field *field_read(struct reader *r)
{
    const size_t length = name_length(r->at);

    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if (strlen(fields[i].name) == length && memcmp(fields[i].name, r->at, length) == 0) {
            r->at += length;
            return &fields[i];
        }
    }
    return NULL;
}

static enum tarn_status comparison_expected(struct reader *r, const char *at, enum kind kind)
{
    return wrong(r, at,
                 kind == KIND_TEXT   ? "==, !=, ~ or !~"
                 : kind == KIND_POOL ? "== or !="
                                     : "==, !=, <, <=, > or >=");
}

static enum tarn_status term_add(struct reader *r, const struct tn_where_term *term, bool is_not)
{
    if (!tn_vec_append(&r->where->terms, term, 1) ||
        step_add(r, TN_WHERE_TERM, (uint32_t)r->where->terms.count - 1) == NO_STEP ||
        (is_not && step_add(r, TN_WHERE_NOT, 0) == NO_STEP)) {
        return tn_fail_memory(r->error);
    }
    return TARN_OK;
}

static enum tarn_status term_read(struct reader *r)
{
    struct tn_where_term term = {.comparison = TN_WHERE_HOLDS};
    const char *at = r->at;
    bool is_not = false;
    const struct field *field = field_read(r);

    if (!field) {
        const size_t length = name_length(at);

        return length > 0 ? field_unknown(r, at, length) : wrong(r, at, "a field, ! or (");
    }
    if (r->where->terms.count == TN_WHERE_TERMS_MAX) {
        return tn_fail_at(r->error, TARN_ERR_LIMIT, at - r->text,
                          "column %lld: more than %d comparisons", (long long)(at - r->text) + 1,
                          TN_WHERE_TERMS_MAX);
    }
    term.field = field->field;
    if (field->kind != KIND_FLAG) {
        blanks_skip(r);
        at = r->at;
        if (!comparison_read(r, &term.comparison, &is_not) ||
            !comparison_fits(field->kind, term.comparison)) {
            return comparison_expected(r, at, field->kind);
        }
        const enum tarn_status status = value_read(r, field->kind, &term);

        if (status) {
            return status;
        }
    }
    return term_add(r, &term, is_not);
}

/* ---- expressions ---- */

static enum tarn_status expression_read(struct reader *r);

static enum tarn_status parentheses_read(struct reader *r)
{
    const char *at = r->at - 1;

    if (r->depth == TN_WHERE_DEPTH_MAX) {
        return tn_fail_at(r->error, TARN_ERR_LIMIT, at - r->text,
                          "column %lld: more than %d parentheses in parentheses",
                          (long long)(at - r->text) + 1, TN_WHERE_DEPTH_MAX);
    }
    r->depth++;
    const enum tarn_status status = expression_read(r);

    r->depth--;
    if (status) {
        return status;
    }
    return taken(r, ")") ? TARN_OK : wrong(r, r->at, "&&, || or )");
}

static enum tarn_status one_read(struct reader *r)
{
    bool is_not = false;

    while (taken(r, "!")) {
        is_not = !is_not;
    }
    /* NOLINTNEXTLINE(misc-no-recursion): no deeper than TN_WHERE_DEPTH_MAX */
    const enum tarn_status status = taken(r, "(") ? parentheses_read(r) : term_read(r);

    if (status == TARN_OK && is_not && step_add(r, TN_WHERE_NOT, 0) == NO_STEP) {
        return tn_fail_memory(r->error);
    }
    return status;
}

/* Pieces with a sign between them, of which each that comes last is the answer. */
static enum tarn_status chain_read(struct reader *r, const char *sign,
                                   enum tn_where_step_kind leave,
                                   enum tarn_status (*piece)(struct reader *r))
{
    uint32_t last = NO_STEP;
    enum tarn_status status = piece(r);

    while (status == TARN_OK && taken(r, sign)) {
        const uint32_t jump = step_add(r, leave, last);

        if (jump == NO_STEP) {
            return tn_fail_memory(r->error);
        }
        last = jump;
        status = piece(r);
    }
    jumps_land(r->where, last);
    return status;
}

static enum tarn_status both_read(struct reader *r)
{
    return chain_read(r, "&&", TN_WHERE_LEAVE_IF_FALSE, one_read);
}

static enum tarn_status expression_read(struct reader *r)
{
    return chain_read(r, "||", TN_WHERE_LEAVE_IF_TRUE, both_read);
}

static enum tarn_status where_read(struct tarn_where *where, const char *text,
                                   struct tarn_error *error)
{
    struct reader r = {.where = where, .text = text, .at = text, .error = error};

    where->text = tn_arena_copy_text(&where->arena, text, strlen(text));
    if (!where->text) {
        return tn_fail_memory(r.error);
    }
    const enum tarn_status status = expression_read(&r);

    if (status) {
        return status;
    }
    blanks_skip(&r);
    return *r.at == '\0' ? TARN_OK : wrong(&r, r.at, "&&, || or the end");
}

enum tarn_status tarn_where_parse(const char *text, struct tarn_where **where_out,
                                  struct tarn_error *error)
{
    *where_out = NULL;
    if (strlen(text) > TN_WHERE_TEXT_MAX) {
        return tn_fail_at(error, TARN_ERR_LIMIT, TN_WHERE_TEXT_MAX,
                          "an expression of more than %d bytes", TN_WHERE_TEXT_MAX);
    }
    struct tarn_where *where = tn_host_alloc_zero(sizeof *where);

    if (!where) {
        return tn_fail_memory(error);
    }
    tn_arena_init(&where->arena, &where->budget);
    tn_vec_init(&where->steps, sizeof(struct tn_where_step));
    tn_vec_init(&where->terms, sizeof(struct tn_where_term));
    tn_vec_init(&where->patterns, sizeof(struct tn_pattern));
    const enum tarn_status status = where_read(where, text, error);

    if (status) {
        tarn_where_destroy(where);
        return status;
    }
    *where_out = where;
    return TARN_OK;
}

void tarn_where_destroy(struct tarn_where *where)
{
    if (!where) {
        return;
    }
    struct tn_pattern *patterns = where->patterns.items;

    for (size_t i = 0; i < where->patterns.count; i++) {
        tn_pattern_fini(&patterns[i]);
    }
    tn_vec_fini(&where->patterns);
    tn_vec_fini(&where->terms);
    tn_vec_fini(&where->steps);
    tn_arena_fini(&where->arena);
    tn_host_free(where, sizeof *where);
}

bool tn_where_uses(const struct tarn_where *where, enum tn_where_field field)
{
    const struct tn_where_term *terms = where->terms.items;

    for (size_t i = 0; i < where->terms.count; i++) {
        if (terms[i].field == field) {
            return true;
        }
    }
    return false;
}
