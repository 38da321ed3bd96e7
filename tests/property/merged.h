/* SPDX-License-Identifier: MIT */
/*
 * Several threads use one allocator at once, each mostly on a stream of its own; blocks change
 * hands. What they did is merged into one history and done again, call after call, to the reference
 * allocator. Both must end with the same segments, blocks and counters.
 *
 * Streams do not touch each other's blocks while the device has memory, so any order of the calls
 * gives the same as long as the calls on each stream keep theirs: a lock per stream, held during a
 * call, gives it a number in the history. Addresses of segments do depend on the order of device
 * calls; segments are matched by stream and pool, in the order in which they were made, which is
 * that of their addresses because none is given back. Peaks depend on the order, too: they are
 * compared with what holds in every order.
 */
#ifndef TESTS_PROPERTY_MERGED_H
#define TESTS_PROPERTY_MERGED_H

#include "tarn/config.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    MERGED_TEXT_MAX = 1024,
    MERGED_THREADS_MAX = 64
};

struct merged_settings {
    struct tarn_config config;
    unsigned threads;
    uint64_t seed;
    uint64_t calls;  /* of each thread, between two comparisons */
    uint64_t rounds; /* comparisons */
};

/* Settings that the number stands for; their effects do not depend on the order of streams. */
struct tarn_config merged_config(uint64_t number);

/* false: they differ, and `text` says in what. */
bool merged_run(const struct merged_settings *settings, char text[MERGED_TEXT_MAX]);

#endif
