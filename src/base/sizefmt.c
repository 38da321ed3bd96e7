/* SPDX-License-Identifier: MIT */
#include "base/sizefmt.h"

#include <stdio.h>

struct tn_size_text tn_size_format(uint64_t bytes)
{
    struct tn_size_text out;
    const double kib = 1024.0;

    if (bytes <= (uint64_t)1 << 10) {
        (void)snprintf(out.text, sizeof out.text, "%llu bytes", (unsigned long long)bytes);
    } else if (bytes <= (uint64_t)1 << 20) {
        (void)snprintf(out.text, sizeof out.text, "%.2f KiB", (double)bytes / kib);
    } else if (bytes <= (uint64_t)1 << 30) {
        (void)snprintf(out.text, sizeof out.text, "%.2f MiB", (double)bytes / (kib * kib));
    } else {
        (void)snprintf(out.text, sizeof out.text, "%.2f GiB", (double)bytes / (kib * kib * kib));
    }
    return out;
}
