/* SPDX-License-Identifier: MIT */
#include "draw.h"

#include <math.h>

void bench_draw_init(struct bench_draw *draw, uint64_t seed)
{
    draw->words[0] = seed;
    for (uint64_t i = 1; i < BENCH_DRAW_WORDS; i++) {
        const uint64_t last = draw->words[i - 1];

        draw->words[i] = 6364136223846793005u * (last ^ (last >> 62)) + i;
    }
    draw->used = BENCH_DRAW_WORDS;
}

static void draw_renew(struct bench_draw *draw)
{
    const uint64_t high_bits = ~(uint64_t)0 << 31;
    uint64_t *words = draw->words;

    for (int i = 0; i < BENCH_DRAW_WORDS; i++) {
        const uint64_t next = words[(i + 1) % BENCH_DRAW_WORDS];
        const uint64_t mixed = (words[i] & high_bits) | (next & ~high_bits);
        const uint64_t twist = (mixed & 1) != 0 ? 0xb5026f5aa96619e9u : 0;

        words[i] = words[(i + BENCH_DRAW_WORDS / 2) % BENCH_DRAW_WORDS] ^ (mixed >> 1) ^ twist;
    }
    draw->used = 0;
}

uint64_t bench_draw_next(struct bench_draw *draw)
{
    if (draw->used == BENCH_DRAW_WORDS) {
        draw_renew(draw);
    }
    uint64_t z = draw->words[draw->used++];

    z ^= (z >> 29) & 0x5555555555555555u;
    z ^= (z << 17) & 0x71d67fffeda60000u;
    z ^= (z << 37) & 0xfff7eee000000000u;
    return z ^ (z >> 43);
}

uint64_t bench_draw_size(struct bench_draw *draw, double low, double high)
{
    const double unit = (double)bench_draw_next(draw) / 18446744073709551616.0;
    const double from = log(low);

    return (uint64_t)exp(unit * (log(high) - from) + from);
}
