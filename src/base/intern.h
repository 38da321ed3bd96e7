/* SPDX-License-Identifier: MIT */
/*
 * Bytes stored once, with a count of who holds them. A piece lives until the last reference is
 * given back; its address is its identity.
 *
 * Two kinds of hands: those that look up (tn_intern) take the lock; those that hold a reference may
 * add or take back others with one atomic operation. A count of zero is reached only under the
 * lock, so that nobody finds a piece that is about to go.
 *
 * While somebody reads (tn_intern_begin_reading), pieces whose count reaches zero stay where they
 * are, no longer to be found, and go when the last reader ends: a reader may keep plain pointers
 * that were referenced when it began.
 *
 * Owns: the pieces and the table of them, of at most `max_bytes` in all. Thread-safe. Cost: a
 * lookup is a hash of all bytes, a lock and a comparison; a new piece a host allocation more.
 */
#ifndef TN_BASE_INTERN_H
#define TN_BASE_INTERN_H

#include "base/attr.h"
#include "base/biased_lock.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Called under the lock of the table when a piece goes for good. */
typedef void tn_intern_gone(void *context, const void *bytes, size_t size);

struct tn_interned {
    struct tn_interned *next; /* in its bucket, or among those that wait for readers */
    uint64_t hash;
    _Atomic uint64_t references; /* reaches 0 only under the lock */
    uint64_t size;
    unsigned char bytes[]; /* aligned to 8 */
};

struct tn_intern {
    struct tn_biased_lock lock; /* guards all below */
    struct tn_interned **buckets;
    uint64_t bucket_count; /* a power of two, or 0 */
    uint64_t count;        /* pieces to be found */
    uint64_t bytes;        /* of host memory, buckets included */
    uint64_t max_bytes;
    uint64_t refused; /* new pieces that found no room */
    uint64_t readers;
    struct tn_interned *waiting; /* for the last reader to end */
    tn_intern_gone *gone;        /* constant; may be NULL */
    void *context;
};

void tn_intern_init(struct tn_intern *intern, enum tn_lock_rank rank, uint64_t max_bytes,
                    tn_intern_gone *gone, void *context);

/* Nobody reads. Pieces that are still referenced go as well. */
void tn_intern_fini(struct tn_intern *intern);

/* The piece with these bytes, with one more reference, found or made; NULL when there is no room or
 * no host memory, which is counted. `hash` is any function of the bytes, the same for all calls;
 * *found_out says whether it was there already and may be NULL. */
struct tn_interned *tn_intern_get(struct tn_intern *intern, const void *bytes, size_t size,
                                  uint64_t hash, bool *found_out) TN_MUST_CHECK;

/* For who holds a reference already. */
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

/* Counts one that could not even be put together. */
void tn_intern_refuse(struct tn_intern *intern);

void tn_intern_begin_reading(struct tn_intern *intern);
void tn_intern_end_reading(struct tn_intern *intern);

/* Numbers from one moment. */
struct tn_intern_usage {
    uint64_t count;
    uint64_t bytes;
    uint64_t refused;
};

struct tn_intern_usage tn_intern_usage(struct tn_intern *intern);

/* A hash for short texts. */
uint64_t tn_intern_hash(const void *bytes, size_t size);

#endif
