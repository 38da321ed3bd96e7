/* SPDX-License-Identifier: MIT */
/*
 * Interned, reference-counted byte strings. An entry lives until its last reference is released;
 * its address is its identity.
 *
 * Lookups (tn_intern) take the lock; holders of a reference may add or drop further ones with one
 * atomic operation. The count reaches zero only under the lock, so that no lookup finds an entry
 * that is being destroyed.
 *
 * While there are readers (tn_intern_begin_reading), entries whose count reaches zero are unlinked
 * but not freed before the last reader ends: a reader may keep plain pointers to entries that were
 * referenced when it started.
 *
 * Owns the entries and their table, at most `max_bytes` in total. Thread-safe. Cost: a lookup
 * hashes all bytes, takes a lock and compares once; a new entry adds one host allocation.
 */
#ifndef TN_BASE_INTERN_H
#define TN_BASE_INTERN_H

#include "base/attr.h"
#include "base/biased_lock.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Called under the table's lock when an entry is destroyed. */
typedef void tn_intern_gone(void *context, const void *bytes, size_t size);

struct tn_interned {
    struct tn_interned *next; /* in its bucket, or in the list that waits for readers */
    uint64_t hash;
    _Atomic uint64_t references; /* reaches 0 only under the lock */
    uint64_t size;
    unsigned char bytes[]; /* aligned to 8 */
};

struct tn_intern {
    struct tn_biased_lock lock; /* guards all below */
    struct tn_interned **buckets;
    uint64_t bucket_count; /* a power of two, or 0 */
    uint64_t count;        /* entries in the table */
    uint64_t bytes;        /* of host memory, buckets included */
    uint64_t max_bytes;
    uint64_t refused; /* new entries refused for lack of space */
    uint64_t readers;
    struct tn_interned *waiting; /* unlinked entries that wait for the last reader */
    tn_intern_gone *gone;        /* constant; may be NULL */
    void *context;
};

void tn_intern_init(struct tn_intern *intern, enum tn_lock_rank rank, uint64_t max_bytes,
                    tn_intern_gone *gone, void *context);

/* There must be no readers. Destroys even referenced entries. */
void tn_intern_fini(struct tn_intern *intern);

/* Finds or creates the entry with these bytes and adds a reference; NULL, which is counted, when
 * space or host memory runs out. `hash` is any function of the bytes, the same for all calls;
 * *found_out (may be NULL) says whether the entry existed. */
struct tn_interned *tn_intern_get(struct tn_intern *intern, const void *bytes, size_t size,
                                  uint64_t hash, bool *found_out) TN_MUST_CHECK;

/* The caller must already hold a reference. */
static inline void tn_interned_retain(struct tn_interned *piece)
{
    (void)atomic_fetch_add_explicit(&piece->references, 1, memory_order_relaxed);
}

void tn_intern_release_last(struct tn_intern *intern, struct tn_interned *piece);

static inline void tn_interned_release(struct tn_intern *intern, struct tn_interned *piece)
{
    uint64_t references = atomic_load_explicit(&piece->references, memory_order_relaxed);

    while (references > 1) {
        if (atomic_compare_exchange_weak_explicit(&piece->references, &references, references - 1,
                                                  memory_order_release, memory_order_relaxed)) {
            return;
        }
    }
    tn_intern_release_last(intern, piece);
}

/* Counts a string that could not even be assembled. */
void tn_intern_refuse(struct tn_intern *intern);

void tn_intern_begin_reading(struct tn_intern *intern);
void tn_intern_end_reading(struct tn_intern *intern);

/* Counters, read under the lock. */
struct tn_intern_usage {
    uint64_t count;
    uint64_t bytes;
    uint64_t refused;
};

struct tn_intern_usage tn_intern_usage(struct tn_intern *intern);

/* A hash for short texts. */
uint64_t tn_intern_hash(const void *bytes, size_t size);

#endif
