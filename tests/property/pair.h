/* SPDX-License-Identifier: MIT */
/*
 * The allocator and the reference allocator side by side, each on its own simulated device of the
 * same kind, and one operation after the other done to both. After each everything that can be seen
 * must be the same: status, pointer, events, counters, what the device holds, and now and then
 * every segment and block.
 */
#ifndef TESTS_PROPERTY_PAIR_H
#define TESTS_PROPERTY_PAIR_H

#include "property/ops.h"

enum {
    PAIR_TEXT_MAX = 1024
};

struct pair;

/* `walk_every`: how many operations lie between comparisons of all blocks. */
struct pair *pair_create(const struct program *program, unsigned walk_every);
void pair_destroy(struct pair *pair);

/* Does it to both. false: they differ, and `text` says in what. */
bool pair_apply(struct pair *pair, const struct op *op, char text[PAIR_TEXT_MAX]);

/* Allocations at an address that succeeded so far. */
uint64_t pair_placed(const struct pair *pair);

/* Blocks that were reused in a capture so far. */
uint64_t pair_reclaimed(const struct pair *pair);

/* Runs a program on a new pair. Returns how many operations were the same on both; `count` when all
 * were. `text` as above. */
size_t pair_run(const struct program *program, unsigned walk_every, char text[PAIR_TEXT_MAX]);

#endif
