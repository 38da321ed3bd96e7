/* SPDX-License-Identifier: MIT */
#include "base/input_line.h"

#include "base/errinfo.h"

#include <string.h>

/* Number of bytes before the first newline at or after `from`; all bytes of the window if there is
 * none. */
static size_t window_find_newline(const struct tn_input *input, size_t from, bool *found_out)
{
    const size_t have = (size_t)(input->end - input->at);
    const uint8_t *newline = have > from ? memchr(input->at + from, '\n', have - from) : NULL;

    *found_out = newline != NULL;
    return newline ? (size_t)(newline - input->at) : have;
}

enum tarn_status tn_input_line(struct tn_input *input, size_t max, const char **line_out,
                               size_t *length_out, struct tarn_error *error)
{
    bool found;
    size_t length = window_find_newline(input, 0, &found);

    while (!found && length <= max) {
        struct tarn_error failure; /* the end of the input is not the caller's error */
        const enum tarn_status st = tn_input_fill(input, length + 1, &failure);

        if (st == TARN_ERR_TRUNCATED && !input->unpack.mid_frame) {
            if (length == 0) {
                return TARN_ERR_NOT_FOUND;
            }
            break;
        }
        if (st) {
            if (error) {
                *error = failure;
            }
            return st;
        }
        length = window_find_newline(input, length, &found);
    }
    if (length > max) {
        return tn_fail_at(error, TARN_ERR_LIMIT, (int64_t)tn_input_offset(input),
                          "the line at byte %llu is longer than %zu bytes",
                          (unsigned long long)tn_input_offset(input), max);
    }
    *line_out = (const char *)input->at;
    *length_out = length;
    input->at += length + (found ? 1 : 0);
    return TARN_OK;
}
