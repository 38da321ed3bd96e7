/* SPDX-License-Identifier: MIT */
/* Bytes as text: in the project's own style, and as PyTorch's memory tools and its allocator's
 * messages have them. */
#ifndef TN_BASE_SIZE_TEXT_H
#define TN_BASE_SIZE_TEXT_H

#include "tarn/base.h"

struct tn_size_text {
    char text[TARN_SIZE_TEXT_MAX];
};

/* As tarn_size_text: "1.50 KiB", "512 B"; "1.54 kB"; or whole bytes without a unit. */
struct tn_size_text tn_size_text_in(enum tarn_units units, double bytes);

/* As PyTorch's tools: "1.5KiB", "0.0B". Divides by 1024 until the amount is below 1024. Matches
 * `Bytes.__repr__` of _memory_viz.py. Also in other units: "1.5kB", or whole bytes without one. */
struct tn_size_text tn_size_text_viz(enum tarn_units units, double bytes);

/* As the allocator's messages (C++ format_size): "512 bytes", "2.00 MiB". A unit is used up to and
 * including 1024 of it; GiB is the largest. */
struct tn_size_text tn_size_text_message(uint64_t bytes);

#endif
