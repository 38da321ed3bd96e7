/* SPDX-License-Identifier: MIT */
/* Writing into struct tarn_findings. */
#ifndef TN_BASE_FINDING_H
#define TN_BASE_FINDING_H

#include "base/attr.h"
#include "tarn/findings.h"

/* Counts one violation and keeps its text if there is space. `findings` must not be NULL. */
void tn_finding_add(struct tarn_findings *findings, const char *format, ...) TN_PRINTF(2, 3);

#endif
