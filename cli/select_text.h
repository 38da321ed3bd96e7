/* SPDX-License-Identifier: MIT */
/* Parsers of option values: parts of a trace, time points, pools. On invalid text they return false
 * and write nothing. */
#ifndef CLI_SELECT_TEXT_H
#define CLI_SELECT_TEXT_H

#include "tarn/selection.h"

/* "5..9", "5..", "..9" or "5", inclusive at both ends. */
bool cli_read_span(const char *text, struct tarn_span *span_out);

/* The same for times: seconds, or with a unit "s", "ms" or "us": "1.5..2", "300ms..". */
bool cli_read_time_span(const char *text, struct tarn_span *span_out);

/* "peak", "reserved-peak", "start", "end", "oom", "oom:2", "event:17", "time:1.5", "step:3". */
bool cli_read_instant(const char *text, struct tarn_instant *instant_out);

/* "2%" or "1.5%": *percent_out, and *bytes_out is 0; "500", "20MiB": *bytes_out, and *percent_out
 * is below 0. */
bool cli_read_threshold(const char *text, double *percent_out, uint64_t *bytes_out);

/* "default", "private" or "A,B". */
bool cli_read_pool(const char *text, struct tarn_selection *selection);

#endif
