/* SPDX-License-Identifier: MIT */
/* tarn on a simulated device of 1 TiB, as an allocator that patterns.h measures. */
#ifndef BENCH_TARN_ADAPTER_H
#define BENCH_TARN_ADAPTER_H

#include "patterns.h"
#include "tarn/allocator.h"

struct bench_tarn {
    struct bench_allocator measured; /* its context is `allocator` */
    struct tarn_device *device;
    struct tarn_allocator *allocator;
};

/* With these settings, or a message and the end of the program. */
void bench_tarn_open(struct bench_tarn *tarn, const char *name, const struct tarn_config *config);
void bench_tarn_close(struct bench_tarn *tarn);

/* "tarn" with the default settings, "tarn-expandable" with growing segments or "tarn-compact" with
 * pages that move. */
void bench_tarn_open_named(struct bench_tarn *tarn, const char *name);

#endif
