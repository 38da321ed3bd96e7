/* SPDX-License-Identifier: MIT */
#include "base/finding.h"

#include <stdarg.h>
#include <stdio.h>

void tn_finding_add(struct tarn_findings *findings, const char *format, ...)
{
    if (findings->count < TARN_FINDINGS_KEPT) {
        va_list args;

        va_start(args, format);
        (void)vsnprintf(findings->text[findings->count], TARN_FINDING_TEXT_MAX, format, args);
        va_end(args);
    }
    findings->count++;
}
