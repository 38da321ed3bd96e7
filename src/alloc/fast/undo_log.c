/* SPDX-License-Identifier: MIT */
#include "alloc/fast/undo_log.h"

#include "alloc/pool/heap.h"

#include <string.h>

static void log_move_to(struct tn_undo_log *log, uint32_t cursor)
{
    log->cursor = cursor;
    log->counted = cursor;
    log->low = cursor;
    log->high = cursor;
    log->floor = 0;
    log->ceiling = log->end;
}

/* Drops the older half: its blocks become ordinary allocations. */
static TN_COLD void log_shorten(struct tn_undo_log *log)
{
    const uint32_t kept = TN_UNDO_ENTRIES / 2;

    memmove(log->entries, log->entries + (log->end - kept), kept * sizeof *log->entries);
    log->end = kept;
}

struct tn_undo_entry *tn_undo_log_add(struct tn_undo_log *log)
{
    tn_assert(tn_undo_log_is_flushed(log) && log->counted == log->cursor);
    if (tn_unlikely(log->end == TN_UNDO_ENTRIES)) {
        log_shorten(log);
    }
    log->end++;
    log_move_to(log, log->end);
    struct tn_undo_entry *entry = &log->entries[log->end - 1];

    entry->hits = 0;
    return entry;
}

void tn_undo_log_clear(struct tn_undo_log *log)
{
    tn_assert(tn_undo_log_is_flushed(log) && log->counted == log->cursor);
    log->end = 0;
    log_move_to(log, 0);
}

void tn_undo_log_judge(struct tn_undo_log *log)
{
    tn_backoff_update(&log->backoff, 4 * log->reused >= TN_UNDO_ENTRIES);
    log->added = 0;
    log->reused = 0;
}

TN_NOINLINE void tn_undo_log_flush_slow(struct tn_heap *heap, struct tn_shard *shard,
                                        struct tn_undo_log *log)
{
    tn_assert(log->counted == log->cursor);
    while (log->end > log->cursor) {
        struct tn_block *block = log->entries[--log->end].block;

        tn_ptr_map_take(&shard->map, block->address);
        block->allocated = false;
        (void)tn_heap_make_free(heap, shard, block);
    }
    log_move_to(log, log->cursor);
}

/* ---- counting ---- */

/* Takes the counters and their peaks across an entry: forward (sign 1) or back (-1). */
static void count_state(struct tn_counters *counters, const struct tn_undo_entry *entry,
                        int64_t sign)
{
    const int64_t size = (int64_t)entry->block->size;
    const int64_t requested = (int64_t)entry->requested;

    tn_counter_move(&counters->blocks.out, entry->pool, sign);
    tn_counter_move(&counters->bytes.out, entry->pool, sign * size);
    tn_counter_move(&counters->requested, entry->pool, sign * requested);
    tn_counter_move(&counters->split, entry->pool, sign * entry->split_blocks);
    tn_counter_move(&counters->split_bytes, entry->pool, sign * entry->split_bytes);
}

/* The same without the peaks. */
static void shift_state(struct tn_counters *counters, const struct tn_undo_entry *entry,
                        int64_t sign)
{
    const int64_t size = (int64_t)entry->block->size;
    const int64_t requested = (int64_t)entry->requested;

    counters->blocks.out.current[entry->pool] += sign;
    counters->bytes.out.current[entry->pool] += sign * size;
    counters->requested.current[entry->pool] += sign * requested;
    counters->split.current[entry->pool] += sign * entry->split_blocks;
    counters->split_bytes.current[entry->pool] += sign * entry->split_bytes;
}

/* The increases by an entry that was redone and undone so often: only one of the two increases. */
static void count_increases(struct tn_counter *counter, unsigned pool, int64_t amount,
                            int64_t redone, int64_t undone)
{
    counter->allocated[pool] += amount > 0 ? redone * amount : -undone * amount;
}

static void count_hits(struct tn_counters *counters, const struct tn_undo_entry *entry,
                       int64_t undone)
{
    const int64_t redone = entry->hits;
    const unsigned pool = entry->pool;

    count_increases(&counters->blocks.out, pool, 1, redone, undone);
    count_increases(&counters->bytes.out, pool, (int64_t)entry->block->size, redone, undone);
    count_increases(&counters->requested, pool, (int64_t)entry->requested, redone, undone);
    count_increases(&counters->split, pool, entry->split_blocks, redone, undone);
    count_increases(&counters->split_bytes, pool, entry->split_bytes, redone, undone);
}

/* What was allocated and freed; returns the number of calls. */
static uint64_t count_all_hits(struct tn_undo_log *log, struct tn_counters *counters)
{
    uint64_t hits = 0;

    for (uint32_t i = log->low; i < log->high; i++) {
        struct tn_undo_entry *entry = &log->entries[i];
        const int64_t net = (int64_t)(i < log->cursor) - (int64_t)(i < log->counted);

        count_hits(counters, entry, (int64_t)entry->hits - net);
        hits += entry->hits;
        entry->hits = 0;
    }
    log->reused += hits;
    return 2 * hits;
}

static void log_set_counted(struct tn_undo_log *log)
{
    log->counted = log->cursor;
    log->low = log->cursor;
    log->high = log->cursor;
}

/* Every state between the lowest and the highest cursor has occurred: its peaks count. */
TN_NOINLINE void tn_undo_log_count_slow(struct tn_undo_log *log, struct tn_counters *counters)
{
    (void)count_all_hits(log, counters);
    for (uint32_t i = log->counted; i > log->low; i--) {
        count_state(counters, &log->entries[i - 1], -1);
    }
    for (uint32_t i = log->low; i < log->high; i++) {
        count_state(counters, &log->entries[i], 1);
    }
    for (uint32_t i = log->high; i > log->cursor; i--) {
        count_state(counters, &log->entries[i - 1], -1);
    }
    log_set_counted(log);
}

uint64_t tn_undo_log_count_below_peaks(struct tn_undo_log *log, struct tn_counters *counters)
{
    const uint64_t calls = count_all_hits(log, counters);

    for (uint32_t i = log->counted; i < log->cursor; i++) {
        shift_state(counters, &log->entries[i], 1);
    }
    for (uint32_t i = log->counted; i > log->cursor; i--) {
        shift_state(counters, &log->entries[i - 1], -1);
    }
    log_set_counted(log);
    return calls;
}
