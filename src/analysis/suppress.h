/* SPDX-License-Identifier: MIT */
/*
 * Stacks that are not leaks, in the format of LeakSanitizer: lines "leak:pattern", where a pattern
 * is a part of the name of a function or file; '*' matches anything, '^' and '$' the two ends.
 */
#ifndef TN_ANALYSIS_SUPPRESS_H
#define TN_ANALYSIS_SUPPRESS_H

#include "analysis/pattern.h"
#include "base/vec.h"
#include "tarn/report.h"

struct tarn_suppressions {
    struct tn_vec patterns; /* struct tn_pattern */
};

/* From memory; `name` is for messages. As tarn_suppressions_load. */
enum tarn_status tn_suppressions_parse(const char *text, size_t size, const char *name,
                                       struct tarn_suppressions **suppressions_out,
                                       struct tarn_error *error) TN_MUST_CHECK;

/* Whether some frame of the stack is suppressed. */
bool tn_suppresses(const struct tarn_suppressions *suppressions, const struct tn_model *model,
                   uint32_t stack);

#endif
