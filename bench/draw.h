/* SPDX-License-Identifier: MIT */
/*
 * Random numbers of the patterns: the 64-bit Mersenne Twister of the C++ library (mt19937_64), and
 * sizes drawn from it log-uniformly as std::uniform_real_distribution does. So a pattern asks for
 * the same sizes as one that is written in C++ with the same seed.
 */
#ifndef BENCH_DRAW_H
#define BENCH_DRAW_H

#include <stdint.h>

enum {
    BENCH_DRAW_WORDS = 312
};

struct bench_draw {
    uint64_t words[BENCH_DRAW_WORDS];
    int used; /* of the words, since they were last renewed */
};

void bench_draw_init(struct bench_draw *draw, uint64_t seed);

uint64_t bench_draw_next(struct bench_draw *draw);

/* Bytes from `low` to `high`; each power of two is as likely as any other. */
uint64_t bench_draw_size(struct bench_draw *draw, double low, double high);

#endif
