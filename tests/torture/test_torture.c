/* SPDX-License-Identifier: MIT */
/*
 * Every scenario runs with its first fallible call failing, then with its second, and so on until
 * it runs through: once for host memory and once for each kind of device call, as a device error
 * and, where a device can say so, as out of memory. Each failure happens in one step. Then:
 *
 *   - the step reports that failure, or has coped with it and reports what it would have;
 *   - the checker finds nothing;
 *   - a step that failed changed nothing. Allocating and flushing may have completed frees and
 *     given cached memory back on the way, but every block handed out is still there and nothing
 *     new is reserved;
 *   - the same step works when it is tried again;
 *   - after the end nothing leaks, of host memory or of the device's.
 *
 * The allocator keeps room for nodes and lists ahead, so that few steps ask the host for memory. So
 * each scenario runs once more without that room: then every node and every entry is a call.
 */
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#include "base/host_mem.h"
#include "property/ops.h"
#include "support/rig.h"
#include "support/scarce.h"
#include "support/view.h"
#include "tarn/block.h"
#include "tarn/peer.h"
#include "tarn/request.h"
#include "tarn/sleep.h"

enum {
    SLOTS = 24,
    STEPS_MAX = 96,
    TEXT_MAX = 512,
    NOT_FIRED_MAX = 4096 /* calls of one kind that a scenario makes at most */
};

/* Steps that random programs do not have. */
enum torture_op {
    OP_TRIM = OP_KINDS + 1,
    OP_RELEASE_STREAM,
    OP_SLEEP,
    OP_WAKE,
    OP_ADD_PEER,
    OP_ALLOC_ALIGNED /* to 2 MiB */
};

static uint64_t failures_injected;

/* What fails: host memory, or calls of one kind with one status. */
struct failure {
    bool host;
    bool scarce; /* without room that was kept ahead */
    enum tarn_sim_call call;
    enum tarn_status status;
};

struct scenario {
    const char *name;
    uint32_t capacity; /* index, see property/ops.h */
    bool expandable;
    bool compact;               /* policy:compact */
    bool reuse;                 /* graph_capture_record_stream_reuse */
    const char *conf;           /* all of the settings, or NULL */
    uint64_t max_split_size;    /* 0 = unlimited */
    struct op steps[STEPS_MAX]; /* OP_KINDS ends it early */
};

#define ALLOC(slot, stream, size)                                                                  \
    {                                                                                              \
        OP_ALLOC, slot, stream, size                                                               \
    }
#define ALLOC_AT(slot, stream, size)                                                               \
    {                                                                                              \
        OP_ALLOC_AT, slot, stream, size                                                            \
    }
#define FREE(slot)                                                                                 \
    {                                                                                              \
        OP_FREE, slot, 0, 0                                                                        \
    }
#define RECORD(slot, stream)                                                                       \
    {                                                                                              \
        OP_RECORD, slot, stream, 0                                                                 \
    }
#define BLOCK(stream)                                                                              \
    {                                                                                              \
        OP_BLOCK_STREAM, 0, stream, 0                                                              \
    }
#define UNBLOCK(stream)                                                                            \
    {                                                                                              \
        OP_UNBLOCK_STREAM, 0, stream, 0                                                            \
    }
#define CAPTURE(kind, stream)                                                                      \
    {                                                                                              \
        kind, 0, stream, 0                                                                         \
    }
#define JOIN(on, other)                                                                            \
    {                                                                                              \
        OP_JOIN, other, on, 0                                                                      \
    }
#define EMPTY_CACHE                                                                                \
    {                                                                                              \
        OP_EMPTY_CACHE, 0, 0, 0                                                                    \
    }
#define POOL(kind, pool, stream)                                                                   \
    {                                                                                              \
        kind, pool, stream, 0                                                                      \
    }
#define POOL_ON(kind, pool)                                                                        \
    {                                                                                              \
        kind, pool, 0, 1                                                                           \
    }
#define FRACTION(of_256)                                                                           \
    {                                                                                              \
        OP_SET_FRACTION, 0, 0, of_256                                                              \
    }
#define LOOK(kind, slot)                                                                           \
    {                                                                                              \
        kind, slot, 0, 0                                                                           \
    }
#define MORE(kind, slot, stream, value)                                                            \
    {                                                                                              \
        (enum op_kind)(kind), slot, stream, value                                                  \
    }
#define END                                                                                        \
    {                                                                                              \
        OP_KINDS, 0, 0, 0                                                                          \
    }

static const struct scenario scenarios[] = {
    {.name = "alloc and free",
     .capacity = 2,
     .steps = {ALLOC(0, 0, 1),
               ALLOC(1, 0, 512),
               ALLOC(2, 0, MIB),
               ALLOC(3, 0, MIB + 1),
               ALLOC(4, 0, 3 * MIB),
               ALLOC(5, 0, 12 * MIB),
               ALLOC(6, 1, 100),
               ALLOC(7, 2, 5 * MIB),
               FREE(1),
               FREE(0),
               ALLOC(0, 0, 1000),
               FREE(4),
               FREE(3),
               ALLOC(3, 0, 5 * MIB),
               LOOK(OP_BASE, 3),
               LOOK(OP_CACHE_INFO, 0),
               LOOK(OP_WALK, 0),
               ALLOC(8, 3, 40 * MIB),
               FREE(8),
               ALLOC(8, 3, 40 * MIB),
               FREE(5),
               FREE(7),
               FREE(6),
               ALLOC(9, 0, 200),
               ALLOC(10, 0, 300),
               ALLOC(11, 0, 400),
               FREE(10),
               FREE(9),
               FREE(11),
               END}},
    {.name = "streams and events", .capacity = 2, .steps = {ALLOC(0, 0, 4096), ALLOC(1, 0, 3 * MIB),
                                                            ALLOC(2, 1, 100),  RECORD(0, 1),
                                                            RECORD(0, 2),      RECORD(1, 3),
                                                            RECORD(2, 0),      BLOCK(1),
                                                            BLOCK(2),          FREE(0),
                                                            FREE(1),           FREE(2),
                                                            ALLOC(3, 0, 4096), UNBLOCK(1),
                                                            ALLOC(4, 0, 4096), UNBLOCK(2),
                                                            ALLOC(5, 0, 4096), ALLOC(6, 0, 2000),
                                                            RECORD(6, 1),      RECORD(6, 3),
                                                            BLOCK(3),          FREE(6),
                                                            EMPTY_CACHE,       ALLOC(7, 0, 2000),
                                                            RECORD(7, 1),      FREE(7),
                                                            ALLOC(8, 0, 2000), RECORD(8, 2),
                                                            FREE(8),           END}},
    {.name = "expandable segments",
     .capacity = 2,
     .expandable = true,
     .steps = {ALLOC(0, 0, 100),
               ALLOC(1, 0, 3 * MIB),
               ALLOC(2, 0, 30 * MIB),
               ALLOC(3, 0, 50 * MIB),
               ALLOC(4, 1, 5 * MIB),
               FREE(2),
               EMPTY_CACHE,
               ALLOC(5, 0, 25 * MIB),
               ALLOC(6, 0, 60 * MIB),
               FREE(3),
               FREE(1),
               EMPTY_CACHE,
               ALLOC(7, 0, 70 * MIB),
               LOOK(OP_WALK, 0),
               FREE(7),
               FREE(6),
               FREE(5),
               FREE(0),
               EMPTY_CACHE,
               ALLOC(8, 0, 100),
               FREE(4),
               EMPTY_CACHE,
               END}},
    {.name = "pages move",
     .capacity = 2,
     .compact = true,
     .steps = {ALLOC(0, 0, 100),
               ALLOC(1, 0, 3 * MIB),
               ALLOC(2, 0, 30 * MIB),
               ALLOC(3, 0, 20 * MIB),
               ALLOC(4, 1, 5 * MIB),
               FREE(2),
               ALLOC(5, 0, 40 * MIB), /* most of it from where 2 was */
               FREE(5),
               ALLOC(6, 0, 6 * MIB),
               ALLOC(7, 0, 44 * MIB),
               FREE(4),
               ALLOC(8, 2, 4 * MIB), /* from another stream, which is done */
               LOOK(OP_WALK, 0),
               FREE(3),
               FREE(7),
               EMPTY_CACHE,
               ALLOC(9, 0, 50 * MIB),
               FREE(0),
               FREE(9),
               ALLOC(10, 0, 100),
               EMPTY_CACHE,
               END}},
    {.name = "pages run out",
     .capacity = 0,
     .compact = true,
     .steps = {ALLOC(0, 0, 20 * MIB), ALLOC(1, 1, 18 * MIB), BLOCK(0), BLOCK(1), FREE(0),
               ALLOC(2, 1, 30 * MIB), ALLOC(3, 0, 100 * MIB), RECORD(2, 0), FREE(2),
               ALLOC(4, 2, 38 * MIB), UNBLOCK(0), FREE(1), UNBLOCK(1), ALLOC(5, 0, 12 * MIB),
               FREE(4), FREE(5), EMPTY_CACHE, END}},
    {.name = "pages of private pools",
     .capacity = 2,
     .compact = true,
     .steps = {ALLOC(0, 1, 30 * MIB), FREE(0), POOL(OP_BEGIN_POOL, 0, 1), ALLOC(1, 1, 100),
               ALLOC(2, 1, 12 * MIB), ALLOC(3, 1, 34 * MIB), FREE(2), POOL(OP_GET_CHECKPOINT, 0, 0),
               FREE(3), ALLOC(4, 1, 40 * MIB), POOL(OP_END_POOL, 0, 0), ALLOC(5, 1, 60 * MIB),
               POOL(OP_SET_CHECKPOINT, 0, 0), POOL(OP_RELEASE_POOL, 0, 0), EMPTY_CACHE, END}},
    {.name = "memory runs out",
     .capacity = 0,
     .max_split_size = 24 * MIB,
     .steps = {ALLOC(0, 0, 20 * MIB),
               ALLOC(1, 0, 14 * MIB),
               ALLOC(2, 0, 14 * MIB),
               FREE(0),
               ALLOC(3, 0, 30 * MIB),
               ALLOC(4, 0, 60 * MIB),
               FREE(3),
               ALLOC(5, 0, 26 * MIB),
               FREE(5),
               ALLOC(6, 0, 34 * MIB),
               FREE(1),
               FREE(2),
               ALLOC(7, 0, 28 * MIB),
               FRACTION(128),
               ALLOC(8, 0, 100),
               ALLOC(9, 0, 30 * MIB),
               FREE(7),
               FRACTION(256),
               ALLOC(10, 0, 50 * MIB),
               END}},
    {.name = "expandable segments run out",
     .capacity = 0,
     .expandable = true,
     .steps = {ALLOC(0, 0, 20 * MIB), ALLOC(1, 1, 18 * MIB), ALLOC(2, 0, 40 * MIB), FREE(0),
               ALLOC(3, 1, 22 * MIB), ALLOC(4, 0, 100 * MIB), FREE(1), FREE(3),
               ALLOC(5, 0, 39 * MIB), FREE(5), EMPTY_CACHE, END}},
    {.name = "private pools",
     .capacity = 2,
     .steps = {POOL(OP_BEGIN_POOL, 0, 1),
               ALLOC(0, 1, 100),
               ALLOC(1, 1, 3 * MIB),
               ALLOC(2, 0, 3 * MIB),
               RECORD(1, 2),
               RECORD(2, 2),
               FREE(1),
               FREE(2),
               ALLOC(3, 1, 12 * MIB),
               FREE(3),
               POOL(OP_BEGIN_POOL, 1, 2),
               ALLOC(4, 2, 5 * MIB),
               POOL(OP_END_POOL, 1, 0),
               POOL(OP_END_POOL, 0, 0),
               ALLOC(5, 1, 100),
               POOL(OP_ACQUIRE_POOL, 0, 0),
               POOL(OP_RELEASE_POOL, 0, 0),
               FREE(0),
               POOL(OP_RELEASE_POOL, 0, 0),
               EMPTY_CACHE,
               POOL_ON(OP_USE_ON_OOM, 1),
               POOL_ON(OP_NO_SPLIT, 1),
               FREE(4),
               POOL(OP_RELEASE_POOL, 1, 0),
               POOL(OP_EMPTY_POOL, 1, 0),
               ALLOC(6, 0, 100),
               END}},
    {.name = "checkpoints",
     .capacity = 2,
     .steps = {POOL(OP_BEGIN_POOL, 0, 1),
               ALLOC(0, 1, 100),
               ALLOC(1, 1, 3 * MIB),
               ALLOC(2, 1, 4 * MIB),
               ALLOC(3, 1, 200),
               FREE(0),
               POOL(OP_END_POOL, 0, 0),
               POOL(OP_GET_CHECKPOINT, 0, 0),
               FREE(2),
               FREE(3),
               POOL(OP_BEGIN_POOL, 0, 1),
               ALLOC(4, 1, 9 * MIB),
               ALLOC(5, 1, 2 * MIB),
               POOL(OP_END_POOL, 0, 0),
               POOL(OP_SET_CHECKPOINT, 0, 0),
               POOL(OP_SET_CHECKPOINT, 0, 0),
               LOOK(OP_CHECK_LIVE, 0),
               POOL(OP_RELEASE_POOL, 0, 0),
               EMPTY_CACHE,
               END}},
    {.name = "checkpoints of expandable segments",
     .capacity = 2,
     .expandable = true,
     .steps = {POOL(OP_BEGIN_POOL, 0, 1), ALLOC(0, 1, 100), ALLOC(1, 1, 3 * MIB),
               ALLOC(2, 1, 34 * MIB), ALLOC(3, 1, 200), FREE(0), POOL(OP_GET_CHECKPOINT, 0, 0),
               FREE(2), ALLOC(4, 1, 40 * MIB), POOL(OP_END_POOL, 0, 0),
               POOL(OP_SET_CHECKPOINT, 0, 0), POOL(OP_RELEASE_POOL, 0, 0), EMPTY_CACHE, END}},
    {.name = "checkpoints and streams",
     .capacity = 2,
     .steps = {POOL(OP_BEGIN_POOL, 0, 1), ALLOC(0, 1, 100), POOL(OP_GET_CHECKPOINT, 0, 0),
               ALLOC(1, 1, 12 * MIB), ALLOC(2, 1, 3 * MIB), RECORD(1, 2), RECORD(1, 3), BLOCK(2),
               POOL(OP_END_POOL, 0, 0), POOL(OP_SET_CHECKPOINT, 0, 0), ALLOC(3, 0, 100), UNBLOCK(2),
               ALLOC(4, 0, 100), POOL(OP_GET_CHECKPOINT, 0, 0), END}},
    {.name = "at an address", /* sizes that 3 divides: behind the last one */
     .capacity = 2,
     .steps = {ALLOC(0, 0, 12 * MIB), FREE(0), ALLOC_AT(0, 0, 3 * MIB), FREE(0),
               ALLOC_AT(0, 0, 5 * MIB), RECORD(0, 1), BLOCK(1), FREE(0), UNBLOCK(1),
               ALLOC_AT(0, 0, 4 * MIB), ALLOC(1, 0, 100), FREE(1), ALLOC_AT(1, 0, 300), END}},
    {.name = "at an address, expandable segments",
     .capacity = 2,
     .expandable = true,
     .steps = {ALLOC(0, 0, 12 * MIB), FREE(0), ALLOC_AT(0, 0, 3 * MIB), FREE(0),
               ALLOC_AT(0, 0, 5 * MIB), RECORD(0, 1), BLOCK(1), FREE(0), UNBLOCK(1),
               ALLOC_AT(0, 0, 4 * MIB), END}},
    {.name = "reuse within a capture",
     .capacity = 2,
     .reuse = true,
     .steps = {ALLOC(0, 1, 12 * MIB),
               RECORD(0, 3),
               POOL(OP_BEGIN_POOL, 0, 1),
               CAPTURE(OP_BEGIN_CAPTURE, 1),
               CAPTURE(OP_ENQUEUE, 1),
               ALLOC(1, 1, 3 * MIB),
               ALLOC(2, 1, 200),
               ALLOC(3, 1, 12 * MIB),
               JOIN(2, 1),
               JOIN(3, 1),
               CAPTURE(OP_ENQUEUE, 2),
               CAPTURE(OP_ENQUEUE, 3),
               RECORD(1, 2),
               RECORD(2, 2),
               RECORD(2, 3),
               RECORD(3, 3),
               FREE(1),
               FREE(2),
               FREE(3),
               FREE(0),
               ALLOC(4, 1, 3 * MIB),
               JOIN(1, 2),
               CAPTURE(OP_ENQUEUE, 1),
               ALLOC(5, 1, 3 * MIB), /* what 1 held */
               JOIN(2, 3),
               JOIN(1, 2),
               ALLOC(6, 1, 200), /* all the others */
               RECORD(6, 3),
               FREE(6),
               CAPTURE(OP_END_CAPTURE, 1),
               POOL(OP_END_POOL, 0, 0),
               ALLOC(7, 1, 200),
               END}},
    {.name = "trim and release",
     .capacity = 2,
     .steps = {ALLOC(0, 0, 100),
               ALLOC(1, 1, 3 * MIB),
               ALLOC(2, 2, 30 * MIB),
               POOL(OP_BEGIN_POOL, 0, 1),
               ALLOC(3, 1, 12 * MIB),
               ALLOC(4, 1, 300),
               POOL(OP_END_POOL, 0, 0),
               POOL(OP_RELEASE_POOL, 0, 0),
               RECORD(2, 1),
               RECORD(3, 2),
               FREE(3),
               FREE(4),
               FREE(2),
               MORE(OP_TRIM, 0, 0, 60 * MIB),
               MORE(OP_TRIM, 0, 0, MIB),
               FREE(1),
               FREE(0),
               MORE(OP_RELEASE_STREAM, 0, 1, 0),
               ALLOC(5, 0, 12 * MIB),
               RECORD(5, 1),
               FREE(5),
               MORE(OP_RELEASE_STREAM, 0, 0, 0),
               MORE(OP_TRIM, 0, 0, 0),
               END}},
    {.name = "trim and release, expandable segments",
     .capacity = 2,
     .expandable = true,
     .steps = {ALLOC(0, 0, 100), ALLOC(1, 1, 3 * MIB), ALLOC(2, 1, 30 * MIB), ALLOC(3, 1, 50 * MIB),
               RECORD(2, 2), FREE(2), MORE(OP_TRIM, 0, 0, 60 * MIB), FREE(1), FREE(3),
               MORE(OP_RELEASE_STREAM, 0, 1, 0), FREE(0), MORE(OP_TRIM, 0, 0, 0), END}},
    {.name = "release the streams of pools",
     .capacity = 2,
     .steps = {POOL(OP_BEGIN_POOL, 0, 1),
               ALLOC(0, 1, 30 * MIB),
               ALLOC(1, 1, 300),
               POOL(OP_END_POOL, 0, 0),
               POOL(OP_RELEASE_POOL, 0, 0),
               POOL(OP_BEGIN_POOL, 1, 1),
               ALLOC(2, 1, 30 * MIB),
               ALLOC(3, 1, 300),
               POOL(OP_END_POOL, 1, 0),
               POOL(OP_RELEASE_POOL, 1, 0),
               ALLOC(4, 1, 3 * MIB),
               RECORD(0, 2),
               BLOCK(2),
               FREE(0),
               FREE(1),
               FREE(2),
               FREE(3),
               FREE(4),
               UNBLOCK(2),
               MORE(OP_RELEASE_STREAM, 0, 1, 0),
               END}},
    {.name = "release the streams of pools, pages move",
     .capacity = 2,
     .compact = true,
     .steps = {ALLOC(5, 1, 30 * MIB), FREE(5), POOL(OP_BEGIN_POOL, 0, 1), ALLOC(0, 1, 40 * MIB),
               ALLOC(1, 1, 300), POOL(OP_END_POOL, 0, 0), POOL(OP_RELEASE_POOL, 0, 0),
               ALLOC(4, 1, 3 * MIB), RECORD(0, 2), BLOCK(2), FREE(0), FREE(1), FREE(4), UNBLOCK(2),
               MORE(OP_RELEASE_STREAM, 0, 1, 0), END}},
    {.name = "garbage",
     .capacity = 2,
     .conf = "garbage_collection_threshold:0.1",
     .steps = {FRACTION(200), ALLOC(0, 0, 24 * MIB), ALLOC(1, 0, 26 * MIB), ALLOC(2, 0, 28 * MIB),
               FREE(0), FREE(1), FREE(2), ALLOC(3, 0, 40 * MIB), FREE(3), ALLOC(4, 0, 60 * MIB),
               END}},
    {.name = "oversize",
     .capacity = 2,
     .max_split_size = 20 * MIB,
     .steps = {ALLOC(0, 0, 24 * MIB), ALLOC(1, 0, 100 * MIB), FREE(0), FREE(1),
               ALLOC(2, 0, 150 * MIB), FREE(2), ALLOC(3, 0, 200 * MIB), END}},
    {.name = "pools sleep",
     .capacity = 2,
     .compact = true,
     .steps = {POOL(OP_BEGIN_POOL, 0, 1),
               ALLOC(0, 1, 100),
               ALLOC(1, 1, 3 * MIB),
               ALLOC(2, 1, 30 * MIB),
               ALLOC(3, 1, 7 * MIB),
               POOL(OP_END_POOL, 0, 0),
               ALLOC(4, 1, 5 * MIB),
               FREE(1),
               MORE(OP_SLEEP, 0, 0, 0),
               FREE(2),
               MORE(OP_WAKE, 0, 0, 0),
               FREE(3),
               MORE(OP_SLEEP, 0, 0, 0),
               EMPTY_CACHE,
               FREE(4),
               POOL(OP_RELEASE_POOL, 0, 0),
               EMPTY_CACHE,
               MORE(OP_WAKE, 0, 0, 0),
               FREE(0),
               EMPTY_CACHE,
               END}},
    {.name = "pools of growing segments sleep",
     .capacity = 2,
     .expandable = true,
     .steps = {POOL(OP_BEGIN_POOL, 0, 1), ALLOC(0, 1, 100), ALLOC(1, 1, 30 * MIB),
               ALLOC(2, 1, 30 * MIB), ALLOC(3, 1, 40 * MIB), POOL(OP_END_POOL, 0, 0), FREE(2),
               MORE(OP_SLEEP, 0, 0, 0), FREE(1), POOL(OP_RELEASE_POOL, 0, 0), EMPTY_CACHE,
               MORE(OP_WAKE, 0, 0, 0), FREE(0), MORE(OP_SLEEP, 0, 0, 0), FREE(3), EMPTY_CACHE,
               END}},
    {.name = "aligned",
     .capacity = 2,
     .steps = {ALLOC(0, 0, 12 * MIB), ALLOC(1, 0, 3 * MIB), FREE(0),
               MORE(OP_ALLOC_ALIGNED, 2, 0, 3 * MIB), MORE(OP_ALLOC_ALIGNED, 3, 0, 100),
               MORE(OP_ALLOC_ALIGNED, 4, 1, 30 * MIB), FREE(2),
               MORE(OP_ALLOC_ALIGNED, 5, 0, 5 * MIB), FREE(1), FREE(3), FREE(4), EMPTY_CACHE,
               FREE(5), EMPTY_CACHE, END}},
    {.name = "aligned, expandable segments",
     .capacity = 2,
     .expandable = true,
     .steps = {ALLOC(0, 0, 12 * MIB), ALLOC(1, 0, 3 * MIB), FREE(0),
               MORE(OP_ALLOC_ALIGNED, 2, 0, 3 * MIB), MORE(OP_ALLOC_ALIGNED, 3, 0, 30 * MIB),
               FREE(2), EMPTY_CACHE, MORE(OP_ALLOC_ALIGNED, 4, 0, 5 * MIB), FREE(1), FREE(3),
               FREE(4), EMPTY_CACHE, END}},
    {.name = "aligned, pages move",
     .capacity = 2,
     .compact = true,
     .steps = {ALLOC(0, 0, 12 * MIB), ALLOC(1, 0, 3 * MIB), FREE(0),
               MORE(OP_ALLOC_ALIGNED, 2, 0, 3 * MIB), MORE(OP_ALLOC_ALIGNED, 3, 1, 30 * MIB),
               FREE(2), MORE(OP_ALLOC_ALIGNED, 4, 0, 5 * MIB), FREE(1), FREE(3), FREE(4),
               EMPTY_CACHE, END}},
    {.name = "peers",
     .capacity = 2,
     .expandable = true,
     .steps = {ALLOC(0, 0, 100), ALLOC(1, 0, 30 * MIB), MORE(OP_ADD_PEER, 1, 0, 0),
               ALLOC(2, 0, 60 * MIB), MORE(OP_ADD_PEER, 2, 0, 0), FREE(1), ALLOC(3, 0, 80 * MIB),
               FREE(2), EMPTY_CACHE, ALLOC(4, 0, 40 * MIB), END}},
    {.name = "the driver's pools",
     .capacity = 0,
     .conf = "backend:cudaMallocAsync",
     .steps = {ALLOC(0, 0, 100), ALLOC(1, 1, 3 * MIB), ALLOC(2, 0, 20 * MIB), RECORD(1, 2),
               RECORD(1, 3), RECORD(2, 1), FREE(1), ALLOC(3, 1, 3 * MIB), LOOK(OP_CACHE_INFO, 0),
               FREE(2), FREE(0), ALLOC(4, 0, 100 * MIB), FRACTION(128), ALLOC(5, 0, 30 * MIB),
               FRACTION(256), EMPTY_CACHE, FREE(3), EMPTY_CACHE, END}},
    {.name = "empty cache",
     .capacity = 2,
     .steps = {ALLOC(0, 0, 100), ALLOC(1, 0, 3 * MIB), ALLOC(2, 1, 30 * MIB), EMPTY_CACHE, FREE(2),
               EMPTY_CACHE, FREE(1), FREE(0), EMPTY_CACHE, ALLOC(3, 0, 50), FREE(3), EMPTY_CACHE,
               END}},
};

enum {
    SCENARIOS = sizeof scenarios / sizeof scenarios[0],
    CASES = 4 /* of a scenario */
};

/* One run of a scenario with its n-th call failing. */
struct run {
    const struct scenario *scenario;
    const struct failure *failure;
    uint64_t n;
    struct tarn_device *device;
    struct tarn_allocator *allocator;
    struct tarn_checkpoint *checkpoint;
    tarn_ptr slot[SLOTS];
    tarn_ptr last[SLOTS]; /* what it had before */
    tarn_stream route;    /* what begin_pool routes */
    uint64_t seen;        /* calls so far that could have failed */
    bool fired;
    const char *where;
};

#define CHECK(run, condition, ...)                                                                 \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            print_message("%s, call %llu of kind %d with status %d, at %s: ",                      \
                          (run)->scenario->name, (unsigned long long)(run)->n,                     \
                          (run)->failure->host ? -1 : (int)(run)->failure->call,                   \
                          (int)(run)->failure->status, (run)->where);                              \
            fail_msg(__VA_ARGS__);                                                                 \
        }                                                                                          \
    } while (0)

static uint64_t calls_now(const struct run *run)
{
    if (run->failure->host) {
        return tarn_host_get_usage().alloc_calls;
    }
    struct tarn_sim_counters counters = {.struct_size = sizeof counters};

    tarn_sim_get_counters(run->device, &counters);
    return counters.calls[run->failure->call];
}

static void plan(const struct run *run, uint64_t n)
{
    if (run->failure->host) {
        tarn_host_fail_nth(n);
    } else {
        tarn_sim_fail_nth(run->device, run->failure->call, n, run->failure->status);
    }
}

static bool to_stream(void *context, tarn_stream stream)
{
    return *(const tarn_stream *)context == stream;
}

static struct tarn_config config_of(const struct scenario *scenario)
{
    struct tarn_config config;

    tarn_config_init(&config);
    if (scenario->conf) {
        assert_int_equal(tarn_config_parse(scenario->conf, &config, NULL), TARN_OK);
        return config;
    }
    config.expandable_segments = scenario->expandable;
    config.policy = scenario->compact ? TARN_POLICY_COMPACT : TARN_POLICY_EXACT;
    config.graph_capture_record_stream_reuse = scenario->reuse;
    if (scenario->max_split_size) {
        config.max_split_size = scenario->max_split_size;
    }
    return config;
}

/* ---- steps ---- */

static enum tarn_status restore(struct run *run)
{
    struct tarn_checkpoint_delta delta = {0};
    enum tarn_status st;

    if (!run->checkpoint) {
        return TARN_OK;
    }
    st = tarn_allocator_set_checkpoint(run->allocator, run->checkpoint, &delta, NULL);
    if (st) {
        return st;
    }
    for (size_t i = 0; i < delta.freed_count; i++) {
        for (int s = 0; s < SLOTS; s++) {
            run->slot[s] = run->slot[s] == delta.freed[i] ? 0 : run->slot[s];
        }
    }
    for (size_t i = 0; i < delta.created_count; i++) {
        int s = SLOTS - 1;

        while (s > 0 && run->slot[s]) {
            s--;
        }
        run->slot[s] = delta.created[i];
    }
    tarn_checkpoint_delta_fini(&delta);
    return TARN_OK;
}

static enum tarn_status take_checkpoint(struct run *run, struct tarn_pool_id id)
{
    struct tarn_checkpoint *taken = NULL;
    const enum tarn_status st = tarn_allocator_get_checkpoint(run->allocator, id, &taken, NULL);

    if (st == TARN_OK) {
        tarn_checkpoint_destroy(run->checkpoint);
        run->checkpoint = taken;
    }
    return st;
}

static enum tarn_status step_pool(struct run *run, const struct op *op)
{
    struct tarn_allocator *a = run->allocator;
    const struct tarn_pool_id id = ops_pool(op->slot);
    bool live = false;

    switch ((int)op->kind) {
    case OP_BEGIN_POOL:
        run->route = ops_stream(op->stream);
        return tarn_allocator_begin_pool(a, id, to_stream, &run->route, NULL);
    case OP_END_POOL:
        return tarn_allocator_end_pool(a, id, NULL);
    case OP_ACQUIRE_POOL:
        return tarn_allocator_acquire_pool(a, id, NULL);
    case OP_RELEASE_POOL:
        return tarn_allocator_release_pool(a, id, NULL);
    case OP_EMPTY_POOL:
        return tarn_allocator_empty_pool(a, id, NULL);
    case OP_USE_ON_OOM:
        return tarn_allocator_set_pool_use_on_oom(a, id, op->value != 0);
    case OP_NO_SPLIT:
        return tarn_allocator_set_pool_no_split(a, id, op->value != 0);
    case OP_GET_CHECKPOINT:
        return take_checkpoint(run, id);
    case OP_SET_CHECKPOINT:
        return restore(run);
    case OP_CHECK_LIVE:
        return tarn_allocator_check_pool_live(a, id, NULL, 0, &live, NULL);
    default:
        fail_msg("no such step: %s", ops_name(op->kind));
        return TARN_ERR_INTERNAL;
    }
}

static enum tarn_status step_look(struct run *run, const struct op *op)
{
    uint64_t number = 0;
    tarn_ptr base;
    struct view view = {0};
    const struct tarn_walker walker = view_walker(&view);
    enum tarn_status st;

    switch ((int)op->kind) {
    case OP_BASE:
        return run->slot[op->slot] ? tarn_allocator_base_allocation(
                                         run->allocator, run->slot[op->slot], &base, &number, NULL)
                                   : TARN_OK;
    case OP_CACHE_INFO:
        return tarn_allocator_cache_info(run->allocator, &number, NULL);
    case OP_WALK:
        st = tarn_allocator_walk(run->allocator, &walker);
        view_fini(&view);
        return st;
    default:
        return step_pool(run, op);
    }
}

/* False for waking what is awake, or sleeping what is gone: then it does nothing. */
static bool may_change_sleep(const struct run *run, const struct op *op)
{
    return tarn_allocator_is_asleep(run->allocator, ops_pool(op->slot)) ==
           ((int)op->kind == OP_WAKE);
}

static enum tarn_status step_more(struct run *run, const struct op *op)
{
    struct tarn_allocator *a = run->allocator;
    const struct tarn_pool_id id = ops_pool(op->slot);
    const struct tarn_sleep_options discard = {.struct_size = sizeof discard, .discard = true};
    const struct tarn_alloc_options aligned = {.struct_size = sizeof aligned, .alignment = 2 * MIB};

    switch ((int)op->kind) {
    case OP_TRIM:
        return tarn_allocator_trim(a, op->value, NULL, NULL);
    case OP_RELEASE_STREAM:
        return tarn_allocator_release_stream(a, ops_stream(op->stream), NULL);
    case OP_SLEEP:
        return may_change_sleep(run, op) ? tarn_allocator_sleep(a, id, &discard, NULL) : TARN_OK;
    case OP_WAKE:
        return may_change_sleep(run, op) ? tarn_allocator_wake(a, id, NULL) : TARN_OK;
    case OP_ALLOC_ALIGNED:
        return run->slot[op->slot] ? TARN_OK
                                   : tarn_alloc_with(a, op->value, ops_stream(op->stream), &aligned,
                                                     &run->slot[op->slot], NULL);
    case OP_ADD_PEER:
        return tarn_allocator_add_peer(a, (int)op->slot, NULL);
    default:
        return step_look(run, op);
    }
}

static enum tarn_status step(struct run *run, const struct op *op)
{
    enum tarn_status st;

    switch ((int)op->kind) {
    case OP_ALLOC:
        if (run->slot[op->slot]) {
            return TARN_OK;
        }
        return tarn_allocator_alloc(run->allocator, op->value, ops_stream(op->stream),
                                    &run->slot[op->slot], NULL);
    case OP_FREE:
        st = tarn_allocator_free(run->allocator, run->slot[op->slot], NULL);
        run->last[op->slot] = st ? run->last[op->slot] : run->slot[op->slot];
        run->slot[op->slot] = st ? run->slot[op->slot] : 0;
        return st;
    case OP_ALLOC_AT:
        st = tarn_allocator_alloc_at(run->allocator, op->value, ops_stream(op->stream),
                                     run->last[op->slot] + ops_offset(op), NULL);
        run->slot[op->slot] = st ? 0 : run->last[op->slot] + ops_offset(op);
        return st;
    case OP_RECORD:
        return tarn_allocator_record_stream(run->allocator, run->slot[op->slot],
                                            ops_stream(op->stream), NULL);
    case OP_EMPTY_CACHE:
        return tarn_allocator_empty_cache(run->allocator, NULL);
    case OP_SET_FRACTION:
        return tarn_allocator_set_memory_fraction(run->allocator, (double)op->value / 256.0, NULL);
    default:
        return step_more(run, op);
    }
}

/* ---- what a failure may have changed ---- */

struct state {
    struct tarn_stats stats;
    struct view view;
};

static struct state state_take(const struct run *run)
{
    struct state state = {.stats = {.struct_size = sizeof state.stats}};
    const struct tarn_walker walker = view_walker(&state.view);

    tarn_allocator_get_stats(run->allocator, &state.stats);
    /* The driver shows nobody its pools. */
    assert_int_equal(tarn_allocator_walk(run->allocator, &walker),
                     tn_allocator_is_native(run->allocator) ? TARN_OK : TARN_ERR_NOT_SUPPORTED);
    return state;
}

static bool may_release(enum op_kind kind)
{
    return kind == OP_ALLOC || (int)kind == OP_ALLOC_ALIGNED || kind == OP_ALLOC_AT ||
           kind == OP_EMPTY_CACHE || kind == OP_EMPTY_POOL || (int)kind == OP_TRIM ||
           (int)kind == OP_RELEASE_STREAM || (int)kind == OP_SLEEP || (int)kind == OP_WAKE;
}

static void check_unchanged(struct run *run, enum op_kind kind, const struct state *before)
{
    struct state after = state_take(run);
    char text[TEXT_MAX] = "";

    /* Asking the driver's pools how much there is allocates it. */
    if (may_release(kind) || (kind == OP_CACHE_INFO && !tn_allocator_is_native(run->allocator))) {
        CHECK(run, view_same_allocated(&before->view, &after.view, text, sizeof text),
              "blocks handed out before and after a failure: %s", text);
        CHECK(run, view_reserved(&after.view) <= view_reserved(&before->view),
              "a step that failed reserved memory");
    } else {
        CHECK(run, view_same(&before->view, &after.view, text, sizeof text),
              "before and after a failure: %s", text);
        CHECK(run,
              memcmp(before->stats.by_pool, after.stats.by_pool, sizeof after.stats.by_pool) == 0,
              "a step that failed changed counters");
    }
    view_fini(&after.view);
}

static void check_consistent(struct run *run)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    CHECK(run, tarn_allocator_check(run->allocator, &findings) == 0, "%s", findings.text[0]);
}

/* ---- running ---- */

/* A step may report the failure that was planned, or running out of memory where that is what a
 * failure amounts to. */
static bool is_expected(const struct run *run, enum tarn_status st)
{
    if (run->failure->host) {
        return st == TARN_ERR_HOST_MEMORY;
    }
    return st == run->failure->status;
}

/* What a step gives when nothing fails: memory may be short in any case. */
static bool is_fine(const struct op *op, enum tarn_status st)
{
    return st == TARN_OK || (op->kind == OP_ALLOC && st == TARN_ERR_OUT_OF_MEMORY);
}

/* What happens to the device, not to the allocator: nothing fails there. False: it is neither. */
static bool run_on_device(const struct run *run, const struct op *op)
{
    const tarn_stream stream = ops_stream(op->stream);
    enum tarn_status st = TARN_OK;

    switch ((int)op->kind) {
    case OP_BLOCK_STREAM:
        st = tarn_sim_block_stream(run->device, stream);
        break;
    case OP_UNBLOCK_STREAM:
        (void)!tarn_sim_unblock_stream(run->device, stream);
        break;
    case OP_ENQUEUE:
        st = tarn_sim_enqueue_ns(run->device, stream, op->value);
        break;
    case OP_BEGIN_CAPTURE:
    case OP_END_CAPTURE:
        st = tarn_sim_set_capturing(run->device, stream, op->kind == OP_BEGIN_CAPTURE);
        break;
    case OP_JOIN:
        st = tarn_sim_join_stream(run->device, stream, ops_stream(op->slot));
        break;
    default:
        return false;
    }
    assert_int_equal(st, TARN_OK);
    return true;
}

static const char *step_name(enum op_kind kind)
{
    static const char *const names[] = {"trim", "release stream", "sleep",
                                        "wake", "add peer",       "aligned alloc"};

    return (int)kind >= OP_TRIM ? names[(int)kind - OP_TRIM] : ops_name(kind);
}

static void run_step(struct run *run, const struct op *op)
{
    run->where = step_name(op->kind);
    if (run_on_device(run, op)) {
        return;
    }
    struct state before = state_take(run);

    if (run->failure->scarce) {
        scarce_begin(run->allocator);
    }
    const uint64_t calls = calls_now(run);
    const uint64_t left = run->n > run->seen ? run->n - run->seen : 0;

    plan(run, left);
    enum tarn_status st = step(run, op);

    plan(run, 0);
    run->seen += calls_now(run) - calls;
    scarce_end();
    check_consistent(run);
    if (left > 0 && run->seen >= run->n) {
        run->fired = true;
        CHECK(run, is_fine(op, st) || is_expected(run, st), "status %s", tarn_status_name(st));
        if (st != TARN_OK) {
            check_unchanged(run, op->kind, &before);
            st = step(run, op);
            check_consistent(run);
        }
    }
    CHECK(run, is_fine(op, st), "status %s without a failure", tarn_status_name(st));
    view_fini(&before.view);
}

static void run_create(struct run *run)
{
    const struct tarn_config config = config_of(run->scenario);
    const uint64_t calls = calls_now(run);

    run->where = "create";
    plan(run, run->n);
    enum tarn_status st = tarn_allocator_create(run->device, &config, &run->allocator, NULL);

    plan(run, 0);
    run->seen = calls_now(run) - calls;
    if (run->seen >= run->n) {
        run->fired = true;
        CHECK(run, st == TARN_OK || is_expected(run, st), "status %s", tarn_status_name(st));
        if (st) {
            st = tarn_allocator_create(run->device, &config, &run->allocator, NULL);
        }
    }
    CHECK(run, st == TARN_OK, "status %s without a failure", tarn_status_name(st));
}

/* A page that the device refused to release is lost: what became of it cannot be known. */
static bool lost_a_page(const struct run *run)
{
    return !run->failure->host && run->failure->call == TARN_SIM_PAGE_RELEASE && run->fired;
}

static void check_device_is_empty(struct run *run)
{
    struct tarn_sim_counters counters = {.struct_size = sizeof counters};

    tarn_sim_get_counters(run->device, &counters);
    if (lost_a_page(run)) {
        CHECK(run, counters.live_pages == 1, "%llu pages leak",
              (unsigned long long)counters.live_pages);
        counters.used_bytes = 0;
        counters.live_pages = 0;
    }
    CHECK(run, counters.used_bytes == 0, "%llu bytes of the device leak",
          (unsigned long long)counters.used_bytes);
    CHECK(run, counters.live_allocations == 0 && counters.live_pages == 0, "memory leaks");
    CHECK(run, counters.live_mappings == 0 && counters.live_reservations == 0, "addresses leak");
    CHECK(run, counters.live_events == 0, "%llu events leak",
          (unsigned long long)counters.live_events);
}

/* Runs the scenario with the n-th call failing; false when it makes fewer calls. */
static bool run_once(const struct scenario *scenario, const struct failure *failure, uint64_t n)
{
    struct run run = {.scenario = scenario, .failure = failure, .n = n, .where = "open"};
    const struct tarn_sim_options options = {.struct_size = sizeof options,
                                             .capacity = ops_capacity(scenario->capacity)};
    const uint64_t live = tarn_host_get_usage().live_count;

    assert_int_equal(tarn_sim_open(&options, &run.device, NULL), TARN_OK);
    run_create(&run);
    for (size_t i = 0; i < STEPS_MAX && scenario->steps[i].kind != OP_KINDS; i++) {
        run_step(&run, &scenario->steps[i]);
    }
    run.where = "the end";
    tarn_checkpoint_destroy(run.checkpoint);
    tarn_allocator_destroy(run.allocator);
    check_device_is_empty(&run);
    tarn_device_close(run.device);
    CHECK(&run, tarn_host_get_usage().live_count == live, "%llu pieces of host memory leak",
          (unsigned long long)(tarn_host_get_usage().live_count - live));
    return run.fired;
}

static void run_all(const struct scenario *scenario, const struct failure *failure)
{
    uint64_t n = 1;

    while (n < NOT_FIRED_MAX && run_once(scenario, failure, n)) {
        n++;
        failures_injected++;
    }
    assert_true(n < NOT_FIRED_MAX);
}

/* ---- cases ---- */

static void host_memory(void **state)
{
    const struct failure failure = {.host = true, .status = TARN_ERR_HOST_MEMORY};

    run_all(*state, &failure);
}

static void host_memory_scarce(void **state)
{
    const struct failure failure = {.host = true, .scarce = true, .status = TARN_ERR_HOST_MEMORY};

    run_all(*state, &failure);
}

static void device_error(void **state)
{
    for (int call = 0; call < TARN_SIM_CALL_COUNT; call++) {
        const struct failure failure = {.call = (enum tarn_sim_call)call,
                                        .status = TARN_ERR_DEVICE};

        run_all(*state, &failure);
    }
}

static void device_out_of_memory(void **state)
{
    static const enum tarn_sim_call calls[] = {TARN_SIM_ALLOC, TARN_SIM_VA_RESERVE,
                                               TARN_SIM_PAGE_CREATE, TARN_SIM_MAP,
                                               TARN_SIM_EVENT_CREATE};

    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        const struct failure failure = {.call = calls[i], .status = TARN_ERR_OUT_OF_MEMORY};

        run_all(*state, &failure);
    }
}

static void add_case(struct CMUnitTest *test, char *name, size_t size, const char *what,
                     const struct scenario *scenario, void (*function)(void **state))
{
    void *context;

    (void)snprintf(name, size, "%s: %s", scenario->name, what);
    memcpy(&context, &scenario, sizeof context); /* cmocka wants a pointer to non-const */
    *test = (struct CMUnitTest){.name = name, .test_func = function, .initial_state = context};
}

int main(void)
{
    static const struct {
        const char *what;
        void (*function)(void **state);
    } cases[CASES] = {{"host memory fails", host_memory},
                      {"host memory fails, nothing kept ahead", host_memory_scarce},
                      {"the device fails", device_error},
                      {"the device is full", device_out_of_memory}};
    static struct CMUnitTest tests[CASES * SCENARIOS];
    static char names[CASES * SCENARIOS][96];

    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        add_case(&tests[i], names[i], sizeof names[0], cases[i % CASES].what, &scenarios[i / CASES],
                 cases[i % CASES].function);
    }
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);

    print_message("%llu failures injected\n", (unsigned long long)failures_injected);
    return failed;
}
