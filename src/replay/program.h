/* SPDX-License-Identifier: MIT */
/*
 * A recorded trace as a program: the requests of the run, without the allocator's decisions. The
 * same program can run under any settings.
 *
 * Requests and frees are copied. A free that completed later (the block was used on other streams)
 * becomes a free that waits and a completion at its position in the trace. A series of released
 * segments becomes a flush of the cache. If the allocator released them in the middle of a request
 * because memory was short, only a replay without a limit makes the flush: one with a limit decides
 * by itself. The recorded addresses of segments are kept, so that the same settings reproduce the
 * run exactly.
 *
 * Requests use the private pool (of a captured graph, of a MemPool) that the entry names, or else
 * that of the final segment that contains their address.
 *
 * If the trace does not begin with an empty allocator (the ring overflowed, or recording began
 * late), the initial state is rebuilt from the final segments by walking the trace backwards. The
 * notes say what is unknown.
 *
 * A slot holds one block at a time; once the block is free, another request reuses the slot.
 *
 * Owns: its arrays. Immutable once compiled; several runs may use it concurrently.
 */
#ifndef TN_REPLAY_PROGRAM_H
#define TN_REPLAY_PROGRAM_H

#include "base/vec.h"
#include "snapshot/model.h"
#include "tarn/config.h"
#include "tarn/graph_pool.h"

#define TN_NO_SLOT  UINT32_MAX
#define TN_NO_QUEUE UINT32_MAX /* never completed in the trace */

#define TN_RANGE_GAP         ((uint64_t)8 << 30) /* minimum bytes between expandable segments */
#define TN_DEVICE_BOUND_NONE ((uint64_t)1 << 40) /* bytes; the device is unknown */

enum tn_op_kind {
    TN_OP_ALLOC,      /* `size` bytes on `stream`; the pointer goes to `slot` */
    TN_OP_FREE,       /* of `slot` */
    TN_OP_FREE_WAITS, /* of `slot`, which stays active until its completion; `queue` */
    TN_OP_COMPLETE,   /* of the free of `slot` */
    TN_OP_FLUSH,      /* the cache was emptied */
    TN_OP_FLUSH_WANT, /* the allocator released memory because it was short */
    TN_OP_RELEASE,    /* of all uses of the private pool */
    TN_OP_TRY         /* a request of `size` that failed when it was recorded */
};

struct tn_op {
    uint64_t size;
    tarn_stream stream;
    uint64_t address; /* recorded; for ALLOC */
    uint32_t slot;
    uint32_t queue;   /* FREE_WAITS: frees of one queue complete in order */
    uint64_t entry;   /* in the trace */
    uint16_t kind;    /* enum tn_op_kind */
    uint16_t pool;    /* ALLOC, TRY, RELEASE: index in `pools`; 0 = the default pool */
    uint32_t time_ms; /* since the first entry; 0 where the trace has no times */
};

/* A segment from before the trace. */
struct tn_start_segment {
    uint64_t address;
    uint64_t size;
    tarn_stream stream;
    bool is_large;
    bool is_expandable;
    uint64_t first_block; /* in `start_blocks` */
    uint64_t block_count; /* blocks in use; the gaps between them are free */
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
    uint64_t at_least; /* peak of the reserved bytes */
    uint64_t below;    /* exclusive upper bound; UINT64_MAX: no limit is visible */
    uint64_t device;   /* bytes that the device had for it when it refused a request */
    uint64_t bytes;    /* the limit that reproduces the recorded run exactly; 0 = not found */
    bool by_device;    /* the size of the device, not a limit of the allocator */
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
    uint64_t device_bound;           /* known upper bound of the device's memory */
    uint32_t slot_count;
    uint32_t queue_count;
    uint32_t lag_ms;      /* that the device was seen to be behind the program; 0 = was not seen */
    uint64_t entry_count; /* of the trace */
    uint64_t alloc_count; /* requests that succeeded */
    uint64_t oom_count;   /* requests that failed */
    bool complete;        /* the trace begins with an empty allocator */
    char notes[TN_NOTES_MAX][TN_NOTE_TEXT_MAX]; /* what is unknown */
    uint32_t note_count;
};

/* An empty program. */
void tn_program_init(struct tn_program *program, int device);
void tn_program_fini(struct tn_program *program);

/* Bytes reserved before the trace. */
uint64_t tn_program_reserved_at_start(const struct tn_program *program);

/* Adds a sentence about something unknown; dropped if there are too many. */
void tn_program_note(struct tn_program *program, const char *format, ...) TN_PRINTF(2, 3);

#endif
