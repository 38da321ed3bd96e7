/* SPDX-License-Identifier: MIT */
/*
 * A recorded trace as a program: what the run asked of the allocator, without what the allocator
 * made of it. The same program can run under any settings.
 *
 * Requests and frees are taken as they stand. A free that was completed later (the block was used
 * on other streams) becomes a free that waits and a completion at its place in the trace. A run of
 * segments given back becomes a flush of the cache; if it happened for want of memory, in the
 * middle of a request, the flush is only made by a replay that has no limit: one that has decides
 * by itself. The recorded addresses of segments are kept, so that the same settings reproduce the
 * run exactly.
 *
 * Requests go to the private pool (of a captured graph, of a MemPool) that the entry names, or else
 * to that of the final segment in which they lie.
 *
 * When the trace does not begin with an empty allocator (the ring overflowed, or recording began
 * late), the state at its beginning is rebuilt: from the final segments, walking the trace
 * backwards. What cannot be known is said in the notes.
 *
 * A slot holds one block at a time: once that is free, the next request may get it.
 *
 * Owns: its arrays. Immutable once compiled; any number of runs may use it at once.
 */
#ifndef TN_REPLAY_PROGRAM_H
#define TN_REPLAY_PROGRAM_H

#include "base/vec.h"
#include "snapshot/model.h"
#include "tarn/config.h"
#include "tarn/graph_pool.h"

#define TN_NO_SLOT  UINT32_MAX
#define TN_NO_QUEUE UINT32_MAX /* never completed in the trace */

#define TN_RANGE_GAP         ((uint64_t)8 << 30) /* bytes between two growing segments, at least */
#define TN_DEVICE_BOUND_NONE ((uint64_t)1 << 40) /* bytes; nothing is known of the device */

enum tn_op_kind {
    TN_OP_ALLOC,      /* `size` bytes on `stream`; the pointer goes to `slot` */
    TN_OP_FREE,       /* of `slot` */
    TN_OP_FREE_WAITS, /* of `slot`, which stays active until its completion; `queue` */
    TN_OP_COMPLETE,   /* of the free of `slot` */
    TN_OP_FLUSH,      /* the cache was emptied */
    TN_OP_FLUSH_WANT, /* the allocator gave memory back because it was short */
    TN_OP_RELEASE,    /* of all uses of the private pool */
    TN_OP_TRY         /* a request of `size` that failed when it was recorded */
};

struct tn_op {
    uint64_t size;
    tarn_stream stream;
    uint64_t address; /* recorded; for ALLOC */
    uint32_t slot;
    uint32_t queue; /* FREE_WAITS: completions of one queue come in the order of the frees */
    uint64_t entry; /* in the trace */
    uint16_t kind;  /* enum tn_op_kind */
    uint16_t pool;  /* ALLOC, TRY, RELEASE: place in `pools`; 0 = the default pool */
};

/* A segment that was there before the trace began. */
struct tn_start_segment {
    uint64_t address;
    uint64_t size;
    tarn_stream stream;
    bool is_large;
    bool is_expandable;
    uint64_t first_block; /* in `start_blocks` */
    uint64_t block_count; /* used ones; what lies between is free */
};

/* A block in use when the trace began. */
struct tn_start_block {
    uint64_t address;
    uint64_t size;      /* bytes of the block */
    uint64_t requested; /* bytes asked for */
    uint32_t slot;
    bool waiting; /* freed, but not completed */
};

enum {
    TN_NOTES_MAX = 16,
    TN_NOTE_TEXT_MAX = 240
};

/* What limited the recorded run, see limit.h. */
struct tn_limit {
    uint64_t at_least; /* bytes that were reserved at most */
    uint64_t below;    /* it did not get so far; UINT64_MAX: no limit shows */
    uint64_t device;   /* bytes that the device had for it, when it refused */
    uint64_t bytes;    /* the limit under which the recorded run comes out exactly; 0 = not found */
    bool by_device;    /* it is the device's room, not the allocator's limit */
};

struct tn_program {
    int device;
    struct tn_limit limit;
    struct tn_vec ops;               /* struct tn_op */
    struct tn_vec start_segments;    /* struct tn_start_segment, by address */
    struct tn_vec start_blocks;      /* struct tn_start_block, by segment and address */
    struct tn_vec segment_addresses; /* uint64_t, in the order of the trace */
    struct tn_vec map_addresses;     /* the same of mapped ranges */
    struct tn_vec pools;             /* struct tarn_pool_id; the first is the default pool */
    uint64_t device_bound; /* the device had at most this much memory, as far as is known */
    uint32_t slot_count;
    uint32_t queue_count;
    uint64_t entry_count;                       /* of the trace */
    uint64_t alloc_count;                       /* requests that succeeded */
    uint64_t oom_count;                         /* requests that failed */
    bool complete;                              /* the trace begins with an empty allocator */
    char notes[TN_NOTES_MAX][TN_NOTE_TEXT_MAX]; /* what is not known */
    uint32_t note_count;
};

/* A program of nothing. */
void tn_program_init(struct tn_program *program, int device);
void tn_program_fini(struct tn_program *program);

/* Bytes reserved before the trace. */
uint64_t tn_program_reserved_at_start(const struct tn_program *program);

/* Adds a sentence about what is not known; silently dropped when there are too many. */
void tn_program_note(struct tn_program *program, const char *format, ...) TN_PRINTF(2, 3);

#endif
