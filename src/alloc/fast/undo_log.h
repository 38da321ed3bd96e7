/* SPDX-License-Identifier: MIT */
/*
 * The undo log: the latest allocations in order, so that a free in reverse order undoes the newest
 * one and the same request again redoes it. Programs free most of what is short-lived in reverse
 * order and then ask for the same again.
 *
 *        begin                 cursor                end
 *          |  allocated           |  freed again      |
 *          +----+----+----+----+----+----+----+----+
 *
 * Best fit is a function of the free blocks, the request and the settings. So as long as nothing
 * but the entries themselves changed these, freeing the newest allocation leads back to the state
 * before it, and the same request from there leads to the same block. Undo and redo only move the
 * cursor: the block stays split off and in the pointer map, as if it were allocated. Before anybody
 * reads blocks, the entries beyond the cursor are flushed: freed for good. Before anything else
 * changes free blocks, the log is cleared.
 *
 * The counters are updated later, too: the range that the cursor has covered since the last time
 * gives their peaks, and the hits of each entry give what was allocated and freed. Until then
 * nothing else may change them. An entry whose hits are saturated is a miss once, which updates the
 * counters.
 *
 * An allocation gets an entry only while nothing but calls changes the free blocks (heap.h: busy),
 * and only if it came from a free block, not from the device, and is not oversize.
 *
 * Where memory is not freed in reverse order, entries only cost. So after every TN_UNDO_ENTRIES
 * entries the log checks how many were redone; if fewer than one in four, it backs off: none are
 * added for a while, and for longer the next time.
 *
 * Guarded by the heap's lock, or by that of its stream cache. Cost: undo and redo are O(1) and
 * touch the entry's line and the block's; what is never undone costs a store of one line.
 */
#ifndef TN_ALLOC_FAST_UNDO_LOG_H
#define TN_ALLOC_FAST_UNDO_LOG_H

#include "alloc/config/fast_path.h"
#include "alloc/config/size_class.h"
#include "alloc/fast/backoff.h"
#include "alloc/pool/core.h"
#include "alloc/pool/counters.h"
#include "alloc/pool/pool.h"
#include "base/assertion.h"
#include "base/attr.h"

#include <assert.h>

struct tn_heap;
struct tn_private_pool;
struct tn_shard;

enum {
#ifdef TN_LOG_SHORT /* tests/model */
    TN_UNDO_ENTRIES = 2
#else
    TN_UNDO_ENTRIES = 512
#endif
};

/* One cache line. */
struct tn_undo_entry {
    struct tn_block *block;
    uint64_t address;     /* of the block */
    uint64_t key;         /* what a request is compared with: tn_undo_key */
    tarn_stream stream;   /* of that request */
    uint64_t *stale;      /* requested size of the remainder, if the block was split */
    int64_t split_bytes;  /* what the allocation did to the counters of free parts of segments */
    uint32_t hits;        /* redone and not counted yet; UINT32_MAX: cannot be redone */
    int16_t split_blocks; /* as split_bytes */
    uint8_t pool;         /* TN_SMALL or TN_LARGE */
    uint64_t requested;   /* bytes of the request that it serves */
};

static_assert(sizeof(struct tn_undo_entry) == TN_CACHE_LINE, "an entry is one cache line");

/* A request that names its pool (`owner`) is told from all that do not by one bit, so that these
 * need no test more. */
static inline uint64_t tn_undo_key(uint64_t requested, const struct tn_private_pool *owner)
{
    return owner ? requested | (uint64_t)1 << 63 : requested;
}

/* All zero is an empty log. */
struct tn_undo_log {
    uint32_t cursor; /* entries before it are allocated, from it on freed again */
    uint32_t end;
    uint32_t floor;            /* lowest cursor allowed: 0, or more in a stream cache */
    uint32_t ceiling;          /* highest cursor allowed: `end`, or less in a stream cache */
    uint32_t counted;          /* cursor that the counters stand for */
    uint32_t low;              /* lowest cursor since then */
    uint32_t high;             /* highest cursor since then */
    uint32_t added;            /* entries added since the log last checked whether they pay */
    uint64_t reused;           /* entries redone since then */
    struct tn_backoff backoff; /* counts allocations that get no entry */
    uint64_t unused;           /* target of `stale` for blocks that were not split */
    struct tn_undo_entry entries[TN_UNDO_ENTRIES];
};

/* An entry for the allocation just made, which is counted: all but `hits` is to be filled in. The
 * log is flushed and counted. */
struct tn_undo_entry *tn_undo_log_add(struct tn_undo_log *log);

/* Drops all entries; the log is flushed and counted. */
void tn_undo_log_clear(struct tn_undo_log *log);

/* Frees for good what is beyond the cursor, blocks in the map of this shard. Never fails. */
void tn_undo_log_flush_slow(struct tn_heap *heap, struct tn_shard *shard, struct tn_undo_log *log);

/* Checks whether entries pay, and backs off if not. */
void tn_undo_log_judge(struct tn_undo_log *log);

/* Counts what was undone and redone since the last time. The second leaves out the peaks, for a
 * stream cache, whose quota keeps it below them, and returns the number of calls. */
void tn_undo_log_count_slow(struct tn_undo_log *log, struct tn_counters *counters);
uint64_t tn_undo_log_count_below_peaks(struct tn_undo_log *log, struct tn_counters *counters);

/* Then it is flushed and counted as well. */
static inline bool tn_undo_log_is_empty(const struct tn_undo_log *log)
{
    return log->end == 0;
}

static inline bool tn_undo_log_is_flushed(const struct tn_undo_log *log)
{
    return log->cursor == log->end;
}

static inline void tn_undo_log_flush(struct tn_heap *heap, struct tn_shard *shard,
                                     struct tn_undo_log *log)
{
    if (!tn_undo_log_is_flushed(log)) {
        tn_undo_log_flush_slow(heap, shard, log);
    }
}

/* Flushes and clears: the free blocks of the log's streams may then be changed. */
static inline void tn_undo_log_invalidate(struct tn_heap *heap, struct tn_shard *shard,
                                          struct tn_undo_log *log)
{
    if (!tn_undo_log_is_empty(log)) {
        tn_undo_log_flush(heap, shard, log);
        tn_undo_log_clear(log);
    }
}

static inline void tn_undo_log_count(struct tn_undo_log *log, struct tn_counters *counters)
{
    if (log->low != log->high) {
        tn_undo_log_count_slow(log, counters);
    }
}

/* Whether an allocation that could get an entry should. Ask once for each. */
static inline bool tn_undo_log_wants_entry(struct tn_undo_log *log)
{
    if (!TN_FAST_HAS(TN_PART_UNDO_LOG)) {
        return false;
    }
    if (tn_likely(log->backoff.left > 0)) {
        log->backoff.left--;
        return false;
    }
    if (tn_unlikely(log->added++ == TN_UNDO_ENTRIES)) {
        tn_undo_log_judge(log);
    }
    return log->backoff.left == 0;
}

/* Redoes the next entry if it is this request, of a pool or of nobody's. Else NULL. */
static TN_INLINE struct tn_undo_entry *tn_undo_log_redo_in(struct tn_undo_log *log,
                                                           const struct tn_private_pool *owner,
                                                           uint64_t requested, tarn_stream stream)
{
    struct tn_undo_entry *entry = &log->entries[log->cursor];

    if (log->cursor >= log->ceiling || entry->key != tn_undo_key(requested, owner) ||
        entry->stream != stream || entry->hits == UINT32_MAX) {
        return NULL;
    }
    struct tn_block *block = entry->block;

    if (owner ? block->set->pool->owner != owner : requested >= TN_MAX_REQUEST) {
        return NULL; /* another pool's, or a size that looks like the key of a pool's request */
    }
    log->cursor++;
    log->high = log->cursor > log->high ? log->cursor : log->high;
    entry->hits++;
    *entry->stale = block->requested_size; /* as if it had been one block: see tn_block_split */
    block->requested_size = requested;
    return entry;
}

static inline struct tn_undo_entry *tn_undo_log_redo(struct tn_undo_log *log, uint64_t requested,
                                                     tarn_stream stream)
{
    return tn_undo_log_redo_in(log, NULL, requested, stream);
}

/* Undoes the entry before the cursor if it is this pointer. Else NULL. */
static inline struct tn_undo_entry *tn_undo_log_undo(struct tn_undo_log *log, tarn_ptr ptr)
{
    tn_assert(log->cursor <= TN_UNDO_ENTRIES);
    if (log->cursor <= log->floor || log->entries[log->cursor - 1].address != ptr) {
        return NULL;
    }
    log->cursor--;
    log->low = log->cursor < log->low ? log->cursor : log->low;
    return &log->entries[log->cursor];
}

#endif
