/* SPDX-License-Identifier: MIT */
/*
 * A window onto a reader's input: bytes [at, end) are available, `tn_input_need` fetches more.
 * Positions are those of the uncompressed input. The same window serves files, pipes and compressed
 * data, so memory stays small for inputs of any length.
 *
 * Invariant: start <= at <= end, and `base` is the position of `start`.
 */
#ifndef TN_BASE_INPUT_H
#define TN_BASE_INPUT_H

#include "base/attr.h"
#include "base/source.h"
#include "base/unpack.h"

struct tn_input {
    const uint8_t *at;
    const uint8_t *end;
    const uint8_t *start;
    uint64_t base;
    struct tn_source source;
    struct tn_unpack unpack;
    uint8_t *buffer; /* NULL: the window is the caller's memory */
    size_t capacity;
};

/* Borrows `path`. On failure there is nothing to close. */
enum tarn_status tn_input_open(struct tn_input *input, const char *path,
                               const struct tn_unpack_limits *limits,
                               struct tarn_error *error) TARN_MUST_CHECK;
/* Borrows the bytes. */
enum tarn_status tn_input_open_memory(struct tn_input *input, const void *bytes, size_t size,
                                      const struct tn_unpack_limits *limits,
                                      struct tarn_error *error) TARN_MUST_CHECK;
void tn_input_close(struct tn_input *input);

/* Makes `size` bytes available at `at`. TARN_ERR_TRUNCATED when the input has fewer; the existing
 * ones are then in the window. Memory grows only with bytes that actually arrive. */
enum tarn_status tn_input_fill(struct tn_input *input, size_t size,
                               struct tarn_error *error) TARN_MUST_CHECK;

static inline enum tarn_status tn_input_need(struct tn_input *input, size_t size,
                                             struct tarn_error *error)
{
    return tn_likely((size_t)(input->end - input->at) >= size) ? TARN_OK
                                                               : tn_input_fill(input, size, error);
}

/* Position of `at`. */
static inline uint64_t tn_input_offset(const struct tn_input *input)
{
    return input->base + (uint64_t)(input->at - input->start);
}

#endif
