/* SPDX-License-Identifier: MIT */
/* Counters of an allocator: those of PyTorch's `memory_stats`, with the same meaning. These
 * functions keep no state: any thread may call them on its own structs. */
#ifndef TARN_STATS_H
#define TARN_STATS_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One counter. `allocated` and `freed` are totals since creation or the last reset. */
struct tarn_stat {
    int64_t current;
    int64_t peak;
    int64_t allocated;
    int64_t freed;
};

/* Counters by pool exist three times. */
enum tarn_stat_pool {
    TARN_STAT_ALL,
    TARN_STAT_SMALL_POOL,
    TARN_STAT_LARGE_POOL,
    TARN_STAT_POOLS
};

/* Counters by pool: enumerator, PyTorch's key, what it counts. */
#define TARN_STAT_MAP(X)                                                                           \
    X(ALLOCATION, "allocation", "allocated blocks")                                                \
    X(SEGMENT, "segment", "segments allocated on the device")                                      \
    X(ACTIVE, "active", "blocks allocated or waiting for streams")                                 \
    X(INACTIVE_SPLIT, "inactive_split", "free blocks that are part of a split segment")            \
    X(ALLOCATED_BYTES, "allocated_bytes", "bytes of allocated blocks")                             \
    X(RESERVED_BYTES, "reserved_bytes", "bytes allocated on the device")                           \
    X(ACTIVE_BYTES, "active_bytes", "bytes of active blocks")                                      \
    X(INACTIVE_SPLIT_BYTES, "inactive_split_bytes", "bytes of inactive split blocks")              \
    X(REQUESTED_BYTES, "requested_bytes", "requested bytes of active blocks")

enum tarn_stat_kind {
#define TARN_STAT_ENUM(name, key, text) TARN_STAT_##name,
    TARN_STAT_MAP(TARN_STAT_ENUM)
#undef TARN_STAT_ENUM
    TARN_STAT_KINDS
};

enum {
    TARN_STATS_ROOM = 8
};

/* Kinds of counters by pool are appended, so their array is last; new single counters take what
 * `room` holds. Neither moves a field. */
struct tarn_stats {
    uint32_t struct_size;                  /* in: sizeof(struct tarn_stats) */
    struct tarn_stat oversize_allocations; /* allocated blocks of at least max_split_size */
    struct tarn_stat oversize_segments;    /* segments of that size */
    int64_t num_alloc_retries;             /* device allocations retried after a cache flush */
    int64_t num_ooms;
    int64_t num_sync_all_streams;  /* waits for the events of all pending frees */
    int64_t num_device_alloc;      /* segments allocated and ranges mapped */
    int64_t num_device_free;       /* segments freed and ranges unmapped */
    int64_t max_split_size;        /* at creation; -1 = unlimited */
    int64_t num_oom_rejections;    /* requests rejected by throw_on_cudamalloc_oom */
    int64_t room[TARN_STATS_ROOM]; /* 0 */
    struct tarn_stat by_pool[TARN_STAT_KINDS][TARN_STAT_POOLS];
};

/* PyTorch's key of a counter, e.g. "allocated_bytes", and of a pool, e.g. "small_pool". Static
 * storage.
 * */
TARN_API const char *tarn_stat_kind_name(enum tarn_stat_kind kind);
TARN_API const char *tarn_stat_pool_name(enum tarn_stat_pool pool);

/* Visits every counter under PyTorch's flat key ("active_bytes.all.peak"), in the order of
 * torch.cuda.memory_stats(): sorted by key. Counters that PyTorch 2.11 does not have
 * (num_oom_rejections) are omitted. The key is valid during the call. */
TARN_API void tarn_stats_walk(const struct tarn_stats *stats,
                              void (*visit)(void *context, const char *key, int64_t value),
                              void *context);

/* Visitor of nested dictionaries: `value` for a number, `begin` and `end` around a nested
 * dictionary. Keys are valid during the call. */
struct tarn_stats_visitor {
    void *context;
    void (*begin)(void *context, const char *key);
    void (*value)(void *context, const char *key, int64_t value);
    void (*end)(void *context);
};

/* Visits the same counters in the structure and order of
 * torch.cuda.memory_stats_as_nested_dict(). */
TARN_API void tarn_stats_walk_nested(const struct tarn_stats *stats,
                                     const struct tarn_stats_visitor *visitor);

#ifdef __cplusplus
}
#endif

#endif
