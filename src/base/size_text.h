/* SPDX-License-Identifier: MIT */
/*
 * Bytes as PyTorch's memory tools print them: "1.5KiB", "0.0B". One decimal, binary units.
 */
#ifndef TN_BASE_SIZE_TEXT_H
#define TN_BASE_SIZE_TEXT_H

#include <stdint.h>

enum {
    TN_SIZE_TEXT_MAX = 32
};

struct tn_size_text {
    char text[TN_SIZE_TEXT_MAX];
};

/* Divides by 1024 until the amount is below 1024. Matches `Bytes.__repr__` of _memory_viz.py. */
struct tn_size_text tn_size_text(double bytes);

#endif
