/* SPDX-License-Identifier: MIT */
#include "gpu/gpu_block.h"

enum {
    SAMPLE = 4096 /* bytes read back at either end of a block */
};

bool block_fill(const struct gpu *gpu, const struct block *block, tarn_stream stream)
{
    return DRIVER(cuMemsetD8Async(block->ptr, block->value, block->size, stream));
}

static bool bytes_are(const struct gpu *gpu, tarn_ptr ptr, size_t size, unsigned char value)
{
    unsigned char bytes[SAMPLE];

    if (!DRIVER(cuMemcpyDtoH_v2(bytes, ptr, size))) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if (!CHECK(bytes[i] == value)) {
            return false;
        }
    }
    return true;
}

bool block_holds(const struct gpu *gpu, const struct block *block)
{
    const size_t size = block->size < SAMPLE ? (size_t)block->size : SAMPLE;

    return bytes_are(gpu, block->ptr, size, block->value) &&
           bytes_are(gpu, block->ptr + block->size - size, size, block->value);
}

uint64_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

uint64_t random_size(uint64_t *state, unsigned bits)
{
    return 1 + random_next(state) % ((uint64_t)2 << random_next(state) % bits);
}
