/* SPDX-License-Identifier: MIT */
#include "base/expression.h"

#include "base/assertion.h"
#include "base/host_mem.h"

#include <assert.h>
#include <regex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* State of an open group. */
struct level {
    uint64_t sum;
    uint64_t last; /* weight of the last item, which a repetition would repeat */
};

/* Computes the weight of an expression; the C library checks the syntax. */
struct scale {
    const char *at;
    struct level levels[TN_EXPRESSION_DEPTH_MAX + 1];
    unsigned depth;
    bool too_deep;
    bool refers_back;
};

static void weigh(struct scale *scale, uint64_t weight)
{
    struct level *level = &scale->levels[scale->depth];

    level->last = weight;
    level->sum += weight;
}

static void open_group(struct scale *scale)
{
    scale->too_deep = scale->depth == TN_EXPRESSION_DEPTH_MAX;
    if (!scale->too_deep) {
        scale->levels[++scale->depth] = (struct level){0};
    }
}

static void close_group(struct scale *scale)
{
    const uint64_t inside = scale->levels[scale->depth].sum;

    if (scale->depth > 0) {
        scale->depth--;
        weigh(scale, inside + 1);
    }
}

/* The end of a class such as [[:alpha:]] from its '['; NULL if it is not a class. */
static const char *skip_class(const char *open)
{
    if (open[0] != '[' || (open[1] != ':' && open[1] != '.' && open[1] != '=')) {
        return NULL;
    }
    const char end[] = {open[1], ']', '\0'};
    const char *close = strstr(open + 2, end);

    return close ? close + 2 : NULL;
}

/* After the '['. */
static void skip_bracket(struct scale *scale)
{
    scale->at += *scale->at == '^';
    scale->at += *scale->at == ']';
    while (*scale->at && *scale->at != ']') {
        const char *behind = skip_class(scale->at);

        scale->at = behind ? behind : scale->at + 1;
    }
    scale->at += *scale->at == ']';
}

/* A number, capped at one more than the maximum weight. */
static uint64_t read_number(struct scale *scale)
{
    uint64_t number = 0;

    for (; *scale->at >= '0' && *scale->at <= '9'; scale->at++) {
        number = number * 10 + (uint64_t)(*scale->at - '0');
        number = number > TN_EXPRESSION_WEIGHT_MAX ? TN_EXPRESSION_WEIGHT_MAX + 1 : number;
    }
    return number;
}

/* Repeats the preceding item. */
static void multiply(struct scale *scale, uint64_t copies)
{
    struct level *level = &scale->levels[scale->depth];

    level->sum += level->last * (copies - 1);
    level->last *= copies;
}

/* What a repetition weighs by itself: also {1}, of which there could be any number, and the C
 * library takes time in the square of it. */
static void weigh_loop(struct scale *scale)
{
    scale->levels[scale->depth].last++;
    scale->levels[scale->depth].sum++;
}

/* After the '{': {n}, {n,} or {n,m}. */
static void repeat(struct scale *scale)
{
    const uint64_t least = read_number(scale);
    uint64_t most = least;

    if (*scale->at == ',') {
        scale->at++;
        most = read_number(scale);
        most = most > least ? most : least + 1; /* {n,} is n copies and a loop */
    }
    multiply(scale, most > 0 ? most : 1);
    weigh_loop(scale);
    scale->at += *scale->at == '}';
}

static void weigh_next(struct scale *scale)
{
    switch (*scale->at++) {
    case '\\':
        scale->refers_back = *scale->at >= '1' && *scale->at <= '9';
        scale->at += *scale->at != '\0';
        weigh(scale, 1);
        break;
    case '[':
        skip_bracket(scale);
        weigh(scale, 1);
        break;
    case '(':
        open_group(scale);
        break;
    case ')':
        close_group(scale);
        break;
    case '{':
        repeat(scale);
        break;
    case '+': /* one, and a loop of one more */
        multiply(scale, 2);
        break;
    case '*':
    case '?':
        weigh_loop(scale);
        break;
    case '|':
        scale->levels[scale->depth].sum++;
        break;
    default:
        weigh(scale, 1);
    }
}

static const char too_long[] = "with its repetitions expanded it is longer than 4000 characters";

/* Why the expression is too large or takes too long, or NULL. */
static const char *find_excess(const char *text)
{
    struct scale scale = {.at = text};

    while (*scale.at && !scale.too_deep && !scale.refers_back &&
           scale.levels[scale.depth].sum <= TN_EXPRESSION_WEIGHT_MAX) {
        weigh_next(&scale);
    }
    if (scale.too_deep) {
        return "more than 100 nested parentheses";
    }
    if (scale.refers_back) {
        return "it has a back-reference (\\1), with which a search can take years; write out what "
               "is meant, "
               "or "
               "\\\\1 for a backslash and a digit";
    }
    return *scale.at || scale.levels[scale.depth].sum > TN_EXPRESSION_WEIGHT_MAX ? too_long : NULL;
}

static_assert((int)TN_EXPRESSION_DEPTH_MAX == (int)TN_MATCHER_DEPTH_MAX, "one limit");
/* An item of weight w has at most 2w - 1 operations, and each '|' two. */
static_assert(2 * TN_EXPRESSION_WEIGHT_MAX < TN_MATCHER_OPS_MAX, "what weighs enough fits");
static_assert(TN_EXPRESSION_DEPTH_MAX == 100 && TN_EXPRESSION_WEIGHT_MAX == 4000,
              "the messages contain these numbers");

/* After a '{': skips a valid {n}, {n,} or {n,m}; otherwise stays. */
static bool skip_interval(struct scale *scale)
{
    struct scale ahead = *scale;
    const uint64_t least = read_number(&ahead);
    const bool has_least = ahead.at > scale->at;
    uint64_t most = least;

    if (*ahead.at == ',') {
        const char *digits = ++ahead.at;

        most = read_number(&ahead);
        most = ahead.at > digits ? most : least;
    }
    if (!has_least || most < least || *ahead.at != '}') {
        return false;
    }
    scale->at = ahead.at + 1;
    return true;
}

/* The expression with '?' in place of every repetition: it is valid exactly when the original is.
 * The C library takes exponential time to compile nested and consecutive loops, but not this. `out`
 * has as much space as the text. */
static void skeleton_write(const char *text, char *out)
{
    struct scale scale = {.at = text};

    while (*scale.at) {
        const char *begin = scale.at;
        const char c = *scale.at++;

        if (c == '+' || c == '*' || (c == '{' && skip_interval(&scale))) {
            *out++ = '?';
            continue;
        }
        if (c == '\\') {
            scale.at += *scale.at != '\0';
        } else if (c == '[') {
            skip_bracket(&scale);
        }
        memcpy(out, begin, (size_t)(scale.at - begin));
        out += scale.at - begin;
    }
    *out = '\0';
}

/* For syntax errors, uses the C library's familiar messages. */
static enum tarn_status expression_check(const char *text, char reason[TN_EXPRESSION_REASON_MAX])
{
    const size_t size = strlen(text) + 1;
    char *skeleton = tn_host_alloc(size);
    regex_t regex;

    if (!skeleton) {
        (void)snprintf(reason, TN_EXPRESSION_REASON_MAX, "no host memory");
        return TARN_ERR_HOST_MEMORY;
    }
    skeleton_write(text, skeleton);
    const int code = regcomp(&regex, skeleton, REG_EXTENDED | REG_NOSUB);

    tn_host_free(skeleton, size);
    if (code == 0) {
        regfree(&regex);
        return TARN_OK;
    }
    (void)regerror(code, &regex, reason, TN_EXPRESSION_REASON_MAX);
    return code == REG_ESPACE ? TARN_ERR_HOST_MEMORY : TARN_ERR_INVALID_ARGUMENT;
}

enum tarn_status tn_expression_init(struct tn_matcher *matcher, const char *text,
                                    char reason[TN_EXPRESSION_REASON_MAX])
{
    const char *excess = find_excess(text);
    enum tarn_status status = TARN_ERR_INVALID_ARGUMENT;

    if (excess) {
        (void)snprintf(reason, TN_EXPRESSION_REASON_MAX, "%s", excess);
        return status;
    }
    status = expression_check(text, reason);
    if (status) {
        return status;
    }
    status = tn_matcher_init(matcher, text);
    tn_assert(status != TARN_ERR_LIMIT);
    if (status) {
        (void)snprintf(reason, TN_EXPRESSION_REASON_MAX, "%s", tarn_status_text(status));
    }
    return status;
}
