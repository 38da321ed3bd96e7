/* SPDX-License-Identifier: MIT */
/*
 * Storages by the caller's number. Records move when the table grows and are reused when a storage
 * is deleted, so that a steady run needs no host memory.
 *
 * Invariant: the map has exactly the records that are not on the free list.
 * Guarded by its owner. Cost: one hash lookup.
 */
#ifndef TN_TRACKER_STORAGE_TABLE_H
#define TN_TRACKER_STORAGE_TABLE_H

#include "base/map.h"
#include "base/vec.h"

#define TN_STORAGE_NONE UINT32_MAX

struct tn_storage {
    uint64_t id;
    int64_t size;  /* bytes, as reported by the caller */
    int64_t bytes; /* counted bytes: rounded up on some devices */
    uint32_t device;
    uint32_t category;
    uint32_t owner;     /* index in the table of owners */
    uint32_t next_free; /* of a free record; TN_STORAGE_NONE at the end */
};

struct tn_storage_table {
    struct tn_map map;     /* id + 1 to record */
    struct tn_vec records; /* of struct tn_storage */
    uint32_t first_free;
};

void tn_storage_table_init(struct tn_storage_table *table);
void tn_storage_table_fini(struct tn_storage_table *table);

/* NULL when it is unknown. Borrowed until the next add. `id` must not be UINT64_MAX. */
struct tn_storage *tn_storage_find(const struct tn_storage_table *table, uint64_t id);

/* Reserves space for one more; false when host memory runs out. */
bool tn_storage_table_reserve(struct tn_storage_table *table) TN_MUST_CHECK;

/* Adds a record with `id`, otherwise zeroed; space must be reserved, and the id must be unknown. */
struct tn_storage *tn_storage_add(struct tn_storage_table *table, uint64_t id);

void tn_storage_remove(struct tn_storage_table *table, struct tn_storage *storage);

#endif
