/* SPDX-License-Identifier: MIT */
/*
 * Programs for an allocator: a device, settings to begin with, and a list of operations. They come
 * from a seed or from a fuzzer's bytes, can be run (pair.h), shrunk (shrink.h) and printed as C.
 *
 * Every operation means something in every state: one that does not fit (freeing a slot that is
 * empty) does nothing. So any subset of a program is a program, which is what shrinking needs.
 */
#ifndef TESTS_PROPERTY_OPS_H
#define TESTS_PROPERTY_OPS_H

#include "tarn/config.h"
#include "tarn/graph_pool.h"

#include <stdio.h>

enum {
    OPS_SLOTS = 48, /* blocks that can be handed out at once */
    OPS_STREAMS = 4,
    OPS_POOLS = 3,
    OPS_CONFIGS = 128, /* settings that a program can choose from */
    OPS_CAPACITIES = 4
};

/* name, weight when drawn from a seed */
#define OPS_MAP(X)                                                                                 \
    X(ALLOC, 1000)                                                                                 \
    X(FREE, 800)                                                                                   \
    X(RECORD, 150)                                                                                 \
    X(EMPTY_CACHE, 12)                                                                             \
    X(EMPTY_POOL, 10)                                                                              \
    X(BLOCK_STREAM, 30)                                                                            \
    X(UNBLOCK_STREAM, 60)                                                                          \
    X(ENQUEUE, 60)                                                                                 \
    X(ADVANCE, 60)                                                                                 \
    X(BEGIN_POOL, 25)                                                                              \
    X(END_POOL, 30)                                                                                \
    X(ACQUIRE_POOL, 8)                                                                             \
    X(RELEASE_POOL, 30)                                                                            \
    X(USE_ON_OOM, 6)                                                                               \
    X(NO_SPLIT, 6)                                                                                 \
    X(GET_CHECKPOINT, 12)                                                                          \
    X(SET_CHECKPOINT, 12)                                                                          \
    X(SET_CONFIG, 10)                                                                              \
    X(SET_FRACTION, 8)                                                                             \
    X(RESET_PEAK, 6)                                                                               \
    X(RESET_ACCUMULATED, 6)                                                                        \
    X(BASE, 20)                                                                                    \
    X(CACHE_INFO, 10)                                                                              \
    X(CHECK_LIVE, 10)                                                                              \
    X(FOREIGN, 6)                                                                                  \
    X(FREE_WRONG, 5)                                                                               \
    X(ARM_CALLBACK, 20)                                                                            \
    X(WALK, 40)                                                                                    \
    X(BEGIN_CAPTURE, 30)                                                                           \
    X(END_CAPTURE, 12)                                                                             \
    X(JOIN, 150)                                                                                   \
    X(ANNOUNCE_CAPTURE, 40)                                                                        \
    X(ANNOUNCE_END, 20)                                                                            \
    X(ALLOC_AT, 80)

enum op_kind {
#define OPS_ENUM(name, weight) OP_##name,
    OPS_MAP(OPS_ENUM)
#undef OPS_ENUM
    OP_KINDS
};

struct op {
    enum op_kind kind;
    uint32_t slot;   /* slot, pool, number of settings or other stream, as the kind wants */
    uint32_t stream; /* index */
    uint64_t value;  /* bytes, nanoseconds, 1/256 of the device, or a switch */
};

/* Who looks on. With a sink every event and every counter is compared after each operation; quietly
 * the counters only now and then, so that undone and redone calls add up; with caches each stream
 * gets one at once. */
enum program_mode {
    MODE_SINK,
    MODE_QUIET,
    MODE_CACHES,
    PROGRAM_MODES
};

struct program {
    uint32_t capacity; /* index */
    uint32_t config;   /* index */
    enum program_mode mode;
    uint64_t seed; /* where it came from, 0 = from bytes */
    struct op *ops;
    size_t count;
};

/* What indices stand for. */
uint64_t ops_capacity(uint32_t index);
tarn_stream ops_stream(uint32_t index);
struct tarn_pool_id ops_pool(uint32_t index);
struct tarn_config ops_config(uint32_t index);
/* ALLOC_AT: how far from the last address of its slot. */
uint64_t ops_offset(const struct op *op);

const char *ops_name(enum op_kind kind);

/* Free with program_fini. */
struct program program_from_seed(uint64_t seed, size_t count);
struct program program_from_bytes(const uint8_t *data, size_t size);
struct program program_copy(const struct program *program);
void program_fini(struct program *program);

/* As a C program over include/tarn that does the same to an allocator; `why` becomes a comment. */
void program_print(const struct program *program, const char *why, FILE *out);

#endif
