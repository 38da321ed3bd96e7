/* SPDX-License-Identifier: MIT */
/* Arithmetic with overflow checks. */
#ifndef TN_BASE_CHECKED_H
#define TN_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* *out = a + b; false on overflow. */
static inline bool tn_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

/* *out = a * b; false on overflow. */
static inline bool tn_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool tn_mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

/* Rounds `value` up to a multiple of `step` (> 0, any number); false on overflow. */
static inline bool tn_round_up_u64(uint64_t value, uint64_t step, uint64_t *out)
{
    const uint64_t rest = value % step;

    *out = value;
    return rest == 0 || tn_add_u64(value, step - rest, out);
}

#endif
