/* SPDX-License-Identifier: MIT */
/* Bytes as PyTorch prints them: in its memory tools, and in its allocator's messages. */
#ifndef TN_BASE_SIZE_TEXT_H
#define TN_BASE_SIZE_TEXT_H

#include "tarn/base.h"

enum {
    TN_SIZE_TEXT_MAX = 32
};

struct tn_size_text {
    char text[TN_SIZE_TEXT_MAX];
};

/* As the tools: "1.5KiB", "0.0B". Divides by 1024 until the amount is below 1024. Matches
 * `Bytes.__repr__` of _memory_viz.py. Also in other units: "1.6kB", or whole bytes without one. */
struct tn_size_text tn_size_text_in(enum tarn_units units, double bytes);

/* As the allocator's messages (C++ format_size): "512 bytes", "2.00 MiB". A unit is used up to and
 * including 1024 of it; GiB is the largest. */
struct tn_size_text tn_size_text_message(uint64_t bytes);

#endif
