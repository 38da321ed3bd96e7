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

void tn_frame_text_set(struct tn_frame_text *text, const struct tn_model *model,
                       const struct tn_frame *frame)
{
    const struct tn_string file = tn_model_string(model, frame->filename);
    const struct tn_string name = tn_model_string(model, frame->name);

    (void)snprintf(text->text, sizeof text->text, "%s:%" PRId64 ":%s", file.text, frame->line,
                   name.text);
}

bool tn_pattern_matches(const struct tn_pattern *pattern, const struct tn_frame_text *text)
{
    return tn_pattern_matches_text(pattern, text->text);
}

bool tn_pattern_matches_text(const struct tn_pattern *pattern, const char *text)
{
    return tn_matcher_finds(&pattern->matcher, text, strnlen(text, TN_EXPRESSION_TEXT_MAX));
}
