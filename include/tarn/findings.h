/* SPDX-License-Identifier: MIT */
/*
 * What a checker reports: every violation of an invariant as one line with both numbers. A checker
 * never aborts and never changes what it checks.
 * The struct is the caller's: one thread at a time.
 */
#ifndef TARN_FINDINGS_H
#define TARN_FINDINGS_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TARN_FINDINGS_KEPT = 16,
    TARN_FINDING_TEXT_MAX = 200
};

/* Caller owned; start from TARN_FINDINGS_INIT or zero bytes. */
struct tarn_findings {
    uint64_t count;                                       /* all violations, kept or not */
    char text[TARN_FINDINGS_KEPT][TARN_FINDING_TEXT_MAX]; /* the first ones */
};

/* clang-format off */
#define TARN_FINDINGS_INIT {0, {{0}}}
/* clang-format on */

#ifdef __cplusplus
}
#endif

#endif
