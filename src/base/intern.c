/* SPDX-License-Identifier: MIT */
#include "base/intern.h"

#include "base/host_mem.h"

#include <string.h>

enum {
    BUCKETS_FIRST = 64
};

void tn_intern_init(struct tn_intern *intern, enum tn_lock_rank rank, uint64_t max_bytes,
                    tn_intern_gone *gone, void *context)
{
    *intern = (struct tn_intern){.max_bytes = max_bytes, .gone = gone, .context = context};
    tn_biased_lock_init(&intern->lock, rank);
}

static size_t piece_bytes(size_t size)
{
    return sizeof(struct tn_interned) + size;
}

static void piece_destroy(struct tn_intern *intern, struct tn_interned *piece)
{
    if (intern->gone) {
        intern->gone(intern->context, piece->bytes, piece->size);
    }
    intern->bytes -= piece_bytes(piece->size);
    tn_host_free(piece, piece_bytes(piece->size));
}

static void list_destroy(struct tn_intern *intern, struct tn_interned *list)
{
    while (list) {
        struct tn_interned *next = list->next;

        piece_destroy(intern, list);
        list = next;
    }
}

static void buckets_free(struct tn_intern *intern)
{
    const uint64_t bytes = intern->bucket_count * sizeof(struct tn_interned *);

    tn_host_free(intern->buckets, bytes);
    intern->bytes -= bytes;
    intern->buckets = NULL;
    intern->bucket_count = 0;
}

void tn_intern_fini(struct tn_intern *intern)
{
    tn_assert(intern->readers == 0 && !intern->waiting);
    for (uint64_t i = 0; i < intern->bucket_count; i++) {
        list_destroy(intern, intern->buckets[i]);
    }
    buckets_free(intern);
    tn_assert(intern->bytes == 0);
    tn_biased_lock_fini(&intern->lock);
}

static struct tn_interned **bucket_of(const struct tn_intern *intern, uint64_t hash)
{
    return &intern->buckets[hash >> 32 & (intern->bucket_count - 1)];
}

static bool has_room(const struct tn_intern *intern, uint64_t more)
{
    return more <= intern->max_bytes && intern->bytes <= intern->max_bytes - more;
}

static void buckets_take_over(struct tn_intern *intern, struct tn_interned **old,
                              uint64_t old_count)
{
    for (uint64_t i = 0; i < old_count; i++) {
        struct tn_interned *piece = old[i];

        while (piece) {
            struct tn_interned *next = piece->next;
            struct tn_interned **bucket = bucket_of(intern, piece->hash);

            piece->next = *bucket;
            *bucket = piece;
            piece = next;
        }
    }
}

/* Doubles the buckets at load factor 1. If that fails, the lists just grow longer; false when there
 * are no buckets at all. */
static TN_COLD bool buckets_grow(struct tn_intern *intern)
{
    struct tn_interned **old = intern->buckets;
    const uint64_t old_count = intern->bucket_count;
    const uint64_t count = old_count ? old_count * 2 : BUCKETS_FIRST;
    const uint64_t bytes = count * sizeof(struct tn_interned *);
    struct tn_interned **buckets = has_room(intern, bytes) ? tn_host_alloc_zero(bytes) : NULL;

    if (!buckets) {
        return old != NULL;
    }
    intern->buckets = buckets;
    intern->bucket_count = count;
    intern->bytes += bytes;
    buckets_take_over(intern, old, old_count);
    tn_host_free(old, old_count * sizeof(struct tn_interned *));
    intern->bytes -= old_count * sizeof(struct tn_interned *);
    return true;
}

static struct tn_interned *piece_find(const struct tn_intern *intern, const void *bytes,
                                      size_t size, uint64_t hash)
{
    struct tn_interned *piece = intern->bucket_count > 0 ? *bucket_of(intern, hash) : NULL;

    while (piece &&
           (piece->hash != hash || piece->size != size || memcmp(piece->bytes, bytes, size) != 0)) {
        piece = piece->next;
    }
    return piece;
}

static TN_COLD struct tn_interned *piece_create(struct tn_intern *intern, const void *bytes,
                                                size_t size, uint64_t hash)
{
    struct tn_interned *piece = NULL;

    if ((intern->count < intern->bucket_count || buckets_grow(intern)) &&
        has_room(intern, piece_bytes(size))) {
        piece = tn_host_alloc(piece_bytes(size));
    }
    if (!piece) {
        intern->refused++;
        return NULL;
    }
    struct tn_interned **bucket = bucket_of(intern, hash);

    piece->next = *bucket;
    piece->hash = hash;
    piece->size = size;
    atomic_init(&piece->references, 1);
    memcpy(piece->bytes, bytes, size);
    *bucket = piece;
    intern->count++;
    intern->bytes += piece_bytes(size);
    return piece;
}

struct tn_interned *tn_intern_get(struct tn_intern *intern, const void *bytes, size_t size,
                                  uint64_t hash, bool *found_out)
{
    tn_biased_lock_acquire(&intern->lock);
    struct tn_interned *piece = piece_find(intern, bytes, size, hash);
    const bool found = piece != NULL;

    if (tn_likely(found)) {
        tn_interned_retain(piece);
    } else {
        piece = piece_create(intern, bytes, size, hash);
    }
    tn_biased_lock_release(&intern->lock);
    if (found_out) {
        *found_out = found;
    }
    return piece;
}

/* Unlinks an entry. */
static void piece_unlink(struct tn_intern *intern, struct tn_interned *piece)
{
    struct tn_interned **link = bucket_of(intern, piece->hash);

    while (*link != piece) {
        link = &(*link)->next;
    }
    *link = piece->next;
    intern->count--;
    if (intern->readers > 0) {
        piece->next = intern->waiting;
        intern->waiting = piece;
    } else {
        piece_destroy(intern, piece);
    }
    if (intern->count == 0) {
        buckets_free(intern);
    }
}

void tn_intern_release_last(struct tn_intern *intern, struct tn_interned *piece)
{
    tn_biased_lock_acquire(&intern->lock);
    const uint64_t before = atomic_fetch_sub_explicit(&piece->references, 1, memory_order_acq_rel);

    tn_assert(before > 0);
    if (before == 1) {
        piece_unlink(intern, piece);
    }
    tn_biased_lock_release(&intern->lock);
}

void tn_intern_refuse(struct tn_intern *intern)
{
    tn_biased_lock_acquire(&intern->lock);
    intern->refused++;
    tn_biased_lock_release(&intern->lock);
}

void tn_intern_begin_reading(struct tn_intern *intern)
{
    tn_biased_lock_acquire(&intern->lock);
    intern->readers++;
    tn_biased_lock_release(&intern->lock);
}

void tn_intern_end_reading(struct tn_intern *intern)
{
    struct tn_interned *done = NULL;

    tn_biased_lock_acquire(&intern->lock);
    tn_assert(intern->readers > 0);
    if (--intern->readers == 0) {
        done = intern->waiting;
        intern->waiting = NULL;
    }
    list_destroy(intern, done);
    tn_biased_lock_release(&intern->lock);
}

struct tn_intern_usage tn_intern_usage(struct tn_intern *intern)
{
    tn_biased_lock_acquire(&intern->lock);
    const struct tn_intern_usage usage = {
        .count = intern->count,
        .bytes = intern->bytes,
        .refused = intern->refused,
    };

    tn_biased_lock_release(&intern->lock);
    return usage;
}

uint64_t tn_intern_hash(const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint64_t hash = 0xcbf29ce484222325u ^ size;

    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ at[i]) * 0x100000001b3u;
    }
    return hash ^ hash << 29;
}
