/* SPDX-License-Identifier: MIT */
/* The section "answers" of a recording, as JSON: what the program found out about it, for the view
 * of that name. It has sizes, events and settings, and no name of the recording's. */
#ifndef TN_PAGE_ANSWERS_H
#define TN_PAGE_ANSWERS_H

#include "page/section.h"
#include "tarn/viewer.h"

/* `answers` may be NULL. Texts that may be the recording's own are left out with
 * TARN_VIEW_REDACT_ALL. False when host memory is missing. */
bool tn_answers_put(const struct tarn_view_answers *answers, enum tarn_view_redact redact,
                    const struct tn_section_out *out) TN_MUST_CHECK;

#endif
