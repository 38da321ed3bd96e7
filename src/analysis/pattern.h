/* SPDX-License-Identifier: MIT */
/* Regular expressions on frames: POSIX extended ones, on "file:line:function". */
#ifndef TN_ANALYSIS_PATTERN_H
#define TN_ANALYSIS_PATTERN_H

#include "base/attr.h"
#include "base/expression.h"
#include "snapshot/model.h"

enum {
    TN_PATTERN_TEXT_MAX = TN_EXPRESSION_TEXT_MAX /* bytes of a frame that are matched */
};

struct tn_pattern {
    struct tn_matcher matcher;
};

/* TARN_ERR_INVALID_ARGUMENT with `what` and the reason when it is none, TARN_ERR_HOST_MEMORY. After
 * a failure there is nothing to release. */
enum tarn_status tn_pattern_init(struct tn_pattern *pattern, const char *text, const char *what,
                                 struct tarn_error *error) TN_MUST_CHECK;

/* The same for a text of our own, which is known to be one: without regcomp, which takes most of
 * the time. */
enum tarn_status tn_pattern_init_known(struct tn_pattern *pattern, const char *text,
                                       struct tarn_error *error) TN_MUST_CHECK;
void tn_pattern_fini(struct tn_pattern *pattern);

/* A frame as the text that patterns see. */
struct tn_frame_text {
    size_t length;
    size_t file_length;                 /* of its file, which is the same for many */
    char text[TN_PATTERN_TEXT_MAX + 1]; /* ends with NUL */
};

void tn_frame_text_set(struct tn_frame_text *text, const struct tn_model *model,
                       const struct tn_frame *frame);

bool tn_pattern_matches(const struct tn_pattern *pattern, const struct tn_frame_text *text);

/* The same for any text that ends with NUL. */
bool tn_pattern_matches_text(const struct tn_pattern *pattern, const char *text);

#endif
