/* SPDX-License-Identifier: MIT */
/* Byte counts as text. */
#ifndef TN_BASE_SIZEFMT_H
#define TN_BASE_SIZEFMT_H

#include <stdint.h>

enum {
    TN_SIZE_TEXT_MAX = 32
};

struct tn_size_text {
    char text[TN_SIZE_TEXT_MAX];
};

/* As PyTorch's allocator writes sizes in messages: "512 bytes", "2.00 MiB". A unit is used up to
 * and with 1024 of it. */
struct tn_size_text tn_size_format(uint64_t bytes);

#endif
