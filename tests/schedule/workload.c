/* SPDX-License-Identifier: MIT */
#include "schedule/workload.h"

#include "tarn/allocator.h"

#include <stdio.h>

const char *workload_finding(struct tarn_allocator *allocator)
{
    static char text[TARN_FINDING_TEXT_MAX];
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    if (tarn_allocator_check(allocator, &findings) == 0) {
        return NULL;
    }
    (void)snprintf(text, sizeof text, "%s", findings.text[0]);
    return text;
}
