/* SPDX-License-Identifier: MIT */
#include "analysis/pattern.h"

#include "base/errinfo.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
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

void tn_pattern_fini(struct tn_pattern *pattern)
{
    tn_matcher_fini(&pattern->matcher);
}

/* Adds what there is room for of a text up to its first NUL; returns the end. */
static char *part_add(struct tn_frame_text *text, char *at, const char *part)
{
    const size_t length = strnlen(part, (size_t)(text->text + TN_PATTERN_TEXT_MAX - at));

    memcpy(at, part, length);
    at[length] = '\0';
    return at + length;
}

/* Not in one snprintf: a file has thousands of frames, and it takes longer than the copies. */
void tn_frame_text_set(struct tn_frame_text *text, const struct tn_model *model,
                       const struct tn_frame *frame)
{
    char line[32];
    char *at = part_add(text, text->text, tn_model_string(model, frame->filename).text);

    (void)snprintf(line, sizeof line, ":%" PRId64 ":", frame->line);
    at = part_add(text, at, line);
    (void)part_add(text, at, tn_model_string(model, frame->name).text);
}

bool tn_pattern_matches(const struct tn_pattern *pattern, const struct tn_frame_text *text)
{
    return tn_pattern_matches_text(pattern, text->text);
}

bool tn_pattern_matches_text(const struct tn_pattern *pattern, const char *text)
{
    return tn_matcher_finds(&pattern->matcher, text, strnlen(text, TN_EXPRESSION_TEXT_MAX));
}
