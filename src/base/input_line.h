/* SPDX-License-Identifier: MIT */
/* Reading an input line by line. */
#ifndef TN_BASE_INPUT_LINE_H
#define TN_BASE_INPUT_LINE_H

#include "base/input.h"

/* The next line without its newline (the last one may lack it), not NUL-terminated, borrowed until
 * the next call. TARN_ERR_NOT_FOUND at the end of the input, TARN_ERR_LIMIT for a line of more than
 * `max` bytes, TARN_ERR_TRUNCATED when compressed input ends early. */
enum tarn_status tn_input_line(struct tn_input *input, size_t max, const char **line_out,
                               size_t *length_out, struct tarn_error *error) TARN_MUST_CHECK;

#endif
