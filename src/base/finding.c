/* SPDX-License-Identifier: MIT */
#include "base/finding.h"

#include "base/escaped.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void tn_finding_add(struct tarn_findings *findings, const char *format, ...)
{
    if (findings->count < TARN_FINDINGS_KEPT) {
        char text[TARN_FINDING_TEXT_MAX + TN_UTF8_MAX];
        va_list args;

        va_start(args, format);
        (void)vsnprintf(text, sizeof text, format, args);
        va_end(args);
        (void)tn_escaped_copy(text, strlen(text), TN_ESCAPED_PLAIN, findings->text[findings->count],
                              TARN_FINDING_TEXT_MAX);
    }
    findings->count++;
}
