/* SPDX-License-Identifier: MIT */
#include "analysis/where_view.h"

#include "analysis/annotation.h"
#include "base/assertion.h"
#include "base/host_mem.h"

#include <stdio.h>
#include <string.h>

enum {
    ANSWER_NO = 1,
    ANSWER_YES = 2
};

/* One question: the parts of a block that terms look at. */
struct question {
    struct tn_where_view *view;
    const struct tn_where_scope *scope;
    const struct tn_lifetime *lifetime;
};

static bool is_about_frames(enum tn_where_field field)
{
    return field == TN_WHERE_FRAME || field == TN_WHERE_FUNCTION || field == TN_WHERE_FILE;
}

/* ---- answers ---- */

static bool answers_init(struct tn_where_answers *answers, const struct tn_where_term *term,
                         const struct tn_model *model, const struct tn_categories *categories)
{
    if (is_about_frames(term->field)) {
        answers->texts = (size_t)model->frames.count + 1;
        answers->stacks = (size_t)model->stacks.count + 1;
    } else if (term->field == TN_WHERE_CATEGORY) {
        answers->texts = tn_category_count(categories);
    } else {
        answers->texts = (size_t)model->strings.count + 1;
    }
    answers->of_text = tn_host_alloc_zero(answers->texts);
    answers->of_stack = answers->stacks > 0 ? tn_host_alloc_zero(answers->stacks) : NULL;
    return answers->of_text && (answers->of_stack || answers->stacks == 0);
}

static size_t answers_bytes(const struct tarn_where *where)
{
    return ((size_t)where->texts + 1) * sizeof(struct tn_where_answers);
}

bool tn_where_view_init(struct tn_where_view *view, const struct tarn_where *where,
                        const struct tn_model *model, const struct tn_categories *categories)
{
    const struct tn_where_term *terms = where->terms.items;

    *view = (struct tn_where_view){
        .where = where, .model = model, .answers = tn_host_alloc_zero(answers_bytes(where))};
    if (!view->answers) {
        return false;
    }
    for (size_t i = 0; i < where->terms.count; i++) {
        if (terms[i].text &&
            !answers_init(&view->answers[terms[i].answers], &terms[i], model, categories)) {
            tn_where_view_fini(view);
            return false;
        }
    }
    return true;
}

void tn_where_view_fini(struct tn_where_view *view)
{
    for (size_t i = 0; view->answers && i < view->where->texts; i++) {
        struct tn_where_answers *answers = &view->answers[i];

        tn_host_free(answers->of_text, answers->texts);
        tn_host_free(answers->of_stack, answers->stacks);
    }
    if (view->answers) {
        tn_host_free(view->answers, answers_bytes(view->where));
    }
    view->answers = NULL;
}

/* ---- texts ---- */

static bool matches(const struct tn_where_view *view, const struct tn_where_term *term,
                    const char *text)
{
    const struct tn_pattern *patterns = view->where->patterns.items;

    return tn_pattern_matches_text(&patterns[term->pattern], text);
}

/* All of it, or all after a slash. */
static bool is_file(struct tn_string file, const char *name)
{
    const size_t length = strlen(name);

    return file.length >= length && memcmp(file.text + file.length - length, name, length) == 0 &&
           (file.length == length || file.text[file.length - length - 1] == '/');
}

static bool frame_fits(const struct tn_where_view *view, const struct tn_where_term *term,
                       uint32_t number)
{
    const struct tn_frame *frame = tn_model_frame(view->model, number);
    const struct tn_string part =
        tn_model_string(view->model, term->field == TN_WHERE_FILE ? frame->filename : frame->name);
    struct tn_frame_text whole = {.text = ""};

    if (term->field == TN_WHERE_FRAME) {
        tn_frame_text_set(&whole, view->model, frame);
        return term->comparison == TN_WHERE_MATCHES ? matches(view, term, whole.text)
                                                    : strcmp(whole.text, term->text) == 0;
    }
    if (term->comparison == TN_WHERE_MATCHES) {
        return matches(view, term, part.text);
    }
    return term->field == TN_WHERE_FILE ? is_file(part, term->text)
                                        : tn_string_is(part, term->text);
}

static bool stack_fits(const struct tn_where_view *view, const struct tn_where_term *term,
                       uint32_t number)
{
    struct tn_where_answers *answers = &view->answers[term->answers];
    const struct tn_stack stack = tn_model_stack(view->model, number);
    uint8_t *known = &answers->of_stack[number];

    if (*known == 0) {
        *known = ANSWER_NO;
        for (uint32_t i = 0; i < stack.count && *known == ANSWER_NO; i++) {
            uint8_t *of_frame = &answers->of_text[stack.frames[i]];

            if (*of_frame == 0) {
                *of_frame = frame_fits(view, term, stack.frames[i]) ? ANSWER_YES : ANSWER_NO;
            }
            *known = *of_frame;
        }
    }
    return *known == ANSWER_YES;
}

static bool string_fits(const struct tn_where_view *view, const struct tn_where_term *term,
                        uint32_t number)
{
    uint8_t *known = &view->answers[term->answers].of_text[number];
    const struct tn_string text = tn_model_string(view->model, number);

    if (number == TN_STRING_NONE) {
        return false;
    }
    if (*known == 0) {
        const bool fits = term->comparison == TN_WHERE_MATCHES
                              ? matches(view, term, text.text)
                              : tn_phase_is_named(text, term->text);

        *known = fits ? ANSWER_YES : ANSWER_NO;
    }
    return *known == ANSWER_YES;
}

/* By its name, with what says how it was found or without. */
static bool category_fits(const struct question *question, const struct tn_where_term *term)
{
    const uint32_t category = question->lifetime->category;
    uint8_t *known = &question->view->answers[term->answers].of_text[category];
    const char *hint;
    const char *name = tn_category_name(question->scope->categories, category, &hint);
    char full[TN_PATTERN_TEXT_MAX];

    if (*known == 0) {
        (void)snprintf(full, sizeof full, "%s%s", name, hint);
        const bool fits = term->comparison == TN_WHERE_MATCHES
                              ? matches(question->view, term, full)
                              : strcmp(name, term->text) == 0 || strcmp(full, term->text) == 0;

        *known = fits ? ANSWER_YES : ANSWER_NO;
    }
    return *known == ANSWER_YES;
}

/* ---- numbers ---- */

static bool compares(enum tn_where_comparison comparison, uint64_t value, uint64_t number)
{
    switch (comparison) {
    case TN_WHERE_EQUAL:
        return value == number;
    case TN_WHERE_LESS:
        return value < number;
    case TN_WHERE_AT_MOST:
        return value <= number;
    case TN_WHERE_MORE:
        return value > number;
    case TN_WHERE_AT_LEAST:
        return value >= number;
    case TN_WHERE_MATCHES:
    case TN_WHERE_HOLDS: /* of texts */
        tn_no_case();
        break;
    }
    return false;
}

/* Microseconds from the trace's first time to that entry; false when it has no time, or one from
 * before (of a damaged file). Expressions with times are refused where there are none at all. */
static bool time_of(const struct tn_where_scope *scope, uint64_t entry, uint64_t *us_out)
{
    const int64_t time = tn_trace_at(scope->whole->model, scope->whole->trace, entry)->time_us;

    tn_assert(scope->zero != TN_TIME_NONE);
    if (time == TN_TIME_NONE || time < scope->zero) {
        return false;
    }
    *us_out = (uint64_t)time - (uint64_t)scope->zero;
    return true;
}

/* From the entry where the block came into use, or the first, to that where it went, or the last.
 */
static bool lifetime_length(const struct question *question, bool is_time, uint64_t *length_out)
{
    const struct tn_lifetime *lifetime = question->lifetime;
    const uint64_t count = question->scope->whole->trace->count;
    const uint64_t start = lifetime->start == TN_NEVER ? 0 : lifetime->start;
    const uint64_t end = lifetime->end == TN_NEVER ? count : lifetime->end;
    uint64_t from;
    uint64_t to;

    if (!is_time) {
        *length_out = end - start;
        return true;
    }
    if (!time_of(question->scope, start, &from) ||
        !time_of(question->scope, end < count ? end : count - 1, &to) || to < from) {
        return false;
    }
    *length_out = to - from;
    return true;
}

static bool entry_of(const struct question *question, uint64_t entry, bool is_time,
                     uint64_t *value_out)
{
    *value_out = entry;
    return entry != TN_NEVER && (!is_time || time_of(question->scope, entry, value_out));
}

static const struct tn_pool_stream *pool_stream_of(const struct question *question)
{
    return tn_pool_stream_at(question->scope->pool_streams, question->lifetime->pool_stream);
}

/* What the term compares; false when it is not known. */
static bool number_of(const struct question *question, const struct tn_where_term *term,
                      uint64_t *value_out)
{
    const struct tn_lifetime *lifetime = question->lifetime;

    switch (term->field) {
    case TN_WHERE_SIZE:
        *value_out = lifetime->size;
        return true;
    case TN_WHERE_LIFETIME:
        return lifetime_length(question, term->is_time, value_out);
    case TN_WHERE_START:
        return entry_of(question, lifetime->start, term->is_time, value_out);
    case TN_WHERE_END:
        return entry_of(question, lifetime->end, term->is_time, value_out);
    case TN_WHERE_ADDRESS:
        *value_out = lifetime->address;
        return true;
    case TN_WHERE_SEGMENT:
        *value_out = pool_stream_of(question)->segment;
        return *value_out != 0;
    case TN_WHERE_STREAM:
        *value_out = lifetime->stream;
        return true;
    case TN_WHERE_DEVICE:
        *value_out = (uint64_t)question->scope->whole->device;
        return true;
    case TN_WHERE_POOL:
    case TN_WHERE_CATEGORY:
    case TN_WHERE_ANNOTATION:
    case TN_WHERE_METADATA:
    case TN_WHERE_COMPILE:
    case TN_WHERE_FRAME:
    case TN_WHERE_FUNCTION:
    case TN_WHERE_FILE:
    case TN_WHERE_FREED:
    case TN_WHERE_BEFORE: /* no numbers */
        tn_no_case();
        break;
    }
    return false;
}

/* ---- blocks ---- */

static bool term_holds(const struct question *question, const struct tn_where_term *term)
{
    const struct tn_lifetime *lifetime = question->lifetime;
    uint64_t value;

    switch (term->field) {
    case TN_WHERE_POOL:
        return tn_pool_stream_is_of(question->scope->pool_streams, lifetime->pool_stream,
                                    term->pools, term->pool.id);
    case TN_WHERE_CATEGORY:
        return category_fits(question, term);
    case TN_WHERE_ANNOTATION:
        return string_fits(question->view, term, lifetime->annotation);
    case TN_WHERE_METADATA:
        return string_fits(question->view, term, lifetime->metadata);
    case TN_WHERE_COMPILE:
        return string_fits(question->view, term,
                           tn_model_extra(question->view->model, lifetime->extra)->compile_context);
    case TN_WHERE_FRAME:
    case TN_WHERE_FUNCTION:
    case TN_WHERE_FILE:
        return stack_fits(question->view, term, lifetime->stack);
    case TN_WHERE_FREED:
        return lifetime->end != TN_NEVER;
    case TN_WHERE_BEFORE:
        return lifetime->start == TN_NEVER;
    case TN_WHERE_SIZE:
    case TN_WHERE_LIFETIME:
    case TN_WHERE_START:
    case TN_WHERE_END:
    case TN_WHERE_ADDRESS:
    case TN_WHERE_SEGMENT:
    case TN_WHERE_STREAM:
    case TN_WHERE_DEVICE:
        break;
    }
    return number_of(question, term, &value) && compares(term->comparison, value, term->number);
}

bool tn_where_takes(struct tn_where_view *view, const struct tn_where_scope *scope,
                    const struct tn_lifetime *lifetime)
{
    const struct question question = {view, scope, lifetime};
    const struct tn_where_step *steps = view->where->steps.items;
    const struct tn_where_term *terms = view->where->terms.items;
    bool holds = true;
    size_t at = 0;

    while (at < view->where->steps.count) {
        const struct tn_where_step *step = &steps[at++];

        switch (step->kind) {
        case TN_WHERE_TERM:
            holds = term_holds(&question, &terms[step->target]);
            break;
        case TN_WHERE_NOT:
            holds = !holds;
            break;
        case TN_WHERE_LEAVE_IF_FALSE:
            at = holds ? at : step->target;
            break;
        case TN_WHERE_LEAVE_IF_TRUE:
            at = holds ? step->target : at;
            break;
        }
    }
    return holds;
}
