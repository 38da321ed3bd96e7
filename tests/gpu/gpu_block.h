/* SPDX-License-Identifier: MIT */
/* Blocks whose contents are known, and the sizes that cases draw for them. */
#ifndef TESTS_GPU_GPU_BLOCK_H
#define TESTS_GPU_GPU_BLOCK_H

#include "gpu/gpu_case.h"

struct block {
    tarn_ptr ptr;
    uint64_t size;
    unsigned char value;
};

/* Queues work that fills it. */
bool block_fill(const struct gpu *gpu, const struct block *block, tarn_stream stream);

/* Both ends of it; work queued on any stream is over. */
bool block_holds(const struct gpu *gpu, const struct block *block);

/* The next number of a seed, 31 bits. */
uint64_t random_next(uint64_t *state);

/* From one byte to 2^bits, small ones more often. */
uint64_t random_size(uint64_t *state, unsigned bits);

#endif
