/* SPDX-License-Identifier: MIT */
#include "analysis/pattern.h"

#include "base/errinfo.h"
#include "base/utf8.h"

#include <string.h>

enum tarn_status tn_pattern_init(struct tn_pattern *pattern, const char *text, const char *what,
                                 struct tarn_error *error)
{
    char reason[TN_EXPRESSION_REASON_MAX];
    const enum tarn_status status = tn_expression_init(&pattern->matcher, text, reason);

    return status ? tn_fail(error, status, "%s: \"%.*s\" is not a regular expression: %s", what,
                            tn_utf8_cut(text, 200), text, reason)
                  : TARN_OK;
}

enum tarn_status tn_pattern_init_known(struct tn_pattern *pattern, const char *text,
                                       struct tarn_error *error)
{
    const enum tarn_status status = tn_matcher_init(&pattern->matcher, text);

    return status ? tn_fail(error, status, "%s", tarn_status_text(status)) : TARN_OK;
}

void tn_pattern_fini(struct tn_pattern *pattern)
{
    tn_matcher_fini(&pattern->matcher);
}

enum {
    LINE_BYTES = 32 /* of the number of a line between colons */
};

/* The number between colons, written from its end. */
static const char *line_text(char text[LINE_BYTES], int64_t line)
{
    uint64_t rest = line < 0 ? 0 - (uint64_t)line : (uint64_t)line;
    char *at = &text[LINE_BYTES - 1];

    *at = '\0';
    *--at = ':';
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (line < 0) {
        *--at = '-';
    }
    *--at = ':';
    return at;
}

/* Adds what there is room for of a text up to its first NUL. */
static void part_add(struct tn_frame_text *text, const char *part)
{
    const size_t length = strnlen(part, TN_PATTERN_TEXT_MAX - text->length);

    memcpy(text->text + text->length, part, length);
    text->length += length;
    text->text[text->length] = '\0';
}

/* Without snprintf, which would take most of the time: a file has thousands of frames. */
void tn_frame_text_set(struct tn_frame_text *text, const struct tn_model *model,
                       const struct tn_frame *frame)
{
    char line[LINE_BYTES];

    text->length = 0;
    part_add(text, tn_model_string(model, frame->filename).text);
    text->file_length = text->length;
    part_add(text, line_text(line, frame->line));
    part_add(text, tn_model_string(model, frame->name).text);
}

bool tn_pattern_matches(const struct tn_pattern *pattern, const struct tn_frame_text *text)
{
    return tn_matcher_finds(&pattern->matcher, text->text, text->length);
}

bool tn_pattern_matches_text(const struct tn_pattern *pattern, const char *text)
{
    return tn_matcher_finds(&pattern->matcher, text, strnlen(text, TN_EXPRESSION_TEXT_MAX));
}
