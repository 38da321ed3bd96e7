/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a fuzz input as a row of decisions. A generator that asks for one decision after the
 * other turns any bytes into a well-formed document, and a fuzzer that changes a byte changes one
 * decision. When the bytes are used up every answer is 0: generators take 0 for the plainest choice
 * and stop repeating.
 */
#ifndef FUZZ_DICE_H
#define FUZZ_DICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dice {
    const uint8_t *at;
    const uint8_t *end;
};

static inline bool dice_more(const struct dice *dice)
{
    return dice->at < dice->end;
}

static inline unsigned dice_byte(struct dice *dice)
{
    return dice_more(dice) ? *dice->at++ : 0;
}

/* 0 to count - 1. */
static inline unsigned dice_below(struct dice *dice, unsigned count)
{
    unsigned number = dice_byte(dice);

    if (count > 256) {
        number = number << 8 | dice_byte(dice);
    }
    return number % count;
}

/* True once in `count` times, never when there are no bytes left. */
static inline bool dice_once_in(struct dice *dice, unsigned count)
{
    return dice_byte(dice) % count == count - 1;
}

/* Any number. */
static inline uint64_t dice_u64(struct dice *dice)
{
    uint64_t number = 0;

    for (int i = 0; i < 8; i++) {
        number = number << 8 | dice_byte(dice);
    }
    return number;
}

#endif
