/* SPDX-License-Identifier: MIT */
/* What the checkers of the engines do most: compare a number that is kept with a count. */
#ifndef TN_ALLOC_ENGINE_CHECK_NUMBER_H
#define TN_ALLOC_ENGINE_CHECK_NUMBER_H

#include "base/finding.h"

#include <inttypes.h>

/* Adds a finding if the number that is kept is not the one that was counted. */
static inline void tn_check_number(const char *what, uint64_t recorded, uint64_t counted,
                                   struct tarn_findings *findings)
{
    if (recorded != counted) {
        tn_finding_add(findings, "%s: %" PRIu64 " recorded, %" PRIu64 " counted", what, recorded,
                       counted);
    }
}

#endif
