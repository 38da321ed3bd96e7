/* SPDX-License-Identifier: MIT */
/*
 * What stays of private pools: a record per id with the counters of the bytes that the pool
 * reserves. It is made with the pool and outlasts it, as an entry of PyTorch's
 * reserved_bytes_by_private_pools does, until resets have left nothing to read in it. A pool that
 * gets the id of an earlier one goes on with its record.
 *
 * Owns the records; the pools belong to private_pool.h, which finds them by their records. Guarded
 * by the heap's lock. Cost: O(1) expected, reading and resetting all O(records).
 */
#ifndef TN_ALLOC_POOL_POOL_RECORD_H
#define TN_ALLOC_POOL_POOL_RECORD_H

#include "alloc/pool/counters.h"
#include "base/map.h"
#include "tarn/allocator.h"
#include "tarn/graph_pool.h"

struct tn_private_pool;

struct tn_pool_record {
    struct tarn_pool_id id;
    struct tn_private_pool *pool; /* NULL: there is none any more */
    struct tn_counter reserved;
    struct tn_pool_record *next; /* in order of creation */
    struct tn_pool_record *prev;
    struct tn_pool_record *alike; /* another one whose id has the same key */
};

/* All zero is empty. */
struct tn_pool_records {
    struct tn_pool_record *first;
    struct tn_pool_record *last;
    uint64_t count;
    struct tn_map by_key; /* of ids: the first of the records that are alike */
};

static inline bool tn_pool_id_equal(struct tarn_pool_id a, struct tarn_pool_id b)
{
    return a.first == b.first && a.second == b.second;
}

/* NULL when the id has none. */
struct tn_pool_record *tn_pool_record_find(const struct tn_pool_records *records,
                                           struct tarn_pool_id id);

/* The id's record, made if it has none; NULL without host memory. */
struct tn_pool_record *tn_pool_record_acquire(struct tn_pool_records *records,
                                              struct tarn_pool_id id) TN_MUST_CHECK;

/* The record's pool goes. It is kept if there is something to read in it; of more than
 * TARN_POOL_RESERVED_MAX the oldest without a pool is destroyed, so that a process that makes pools
 * for days does not grow. */
void tn_pool_record_leave(struct tn_pool_records *records, struct tn_pool_record *record);

/* Destroys the record if it has no pool and nothing to read. */
void tn_pool_record_tidy(struct tn_pool_records *records, struct tn_pool_record *record);

/* As tn_counters_reset_peaks and tn_counters_reset_accumulated; tidies all. */
void tn_pool_records_reset_peaks(struct tn_pool_records *records);
void tn_pool_records_reset_accumulated(struct tn_pool_records *records);

/* As tarn_allocator_get_pool_reserved. */
size_t tn_pool_records_read(const struct tn_pool_records *records,
                            struct tarn_pool_reserved *reserved_out, size_t room);

void tn_pool_records_fini(struct tn_pool_records *records);

#endif
