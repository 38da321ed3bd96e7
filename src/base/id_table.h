/* SPDX-License-Identifier: MIT */
/*
 * Maps contents to ids: an open hash table of 32-bit ids. The owner stores and compares the items.
 * Slots keep 32 bits of the hash, so most misses need no comparison and growing needs no rehashing.
 *
 * The hash is seeded per process, so that hostile files cannot provoke collisions; ids do not
 * depend on the seed.
 *
 * Invariant: number of used slots <= 3/4 of capacity; capacity is 0 or a power of two.
 */
#ifndef TN_BASE_ID_TABLE_H
#define TN_BASE_ID_TABLE_H

#include "base/budget.h"

struct tn_id_slot {
    uint32_t hash;
    uint32_t id_plus_1; /* 0 = free slot */
};

struct tn_id_table {
    struct tn_budget *budget;
    struct tn_id_slot *slots;
    size_t capacity;
    size_t used;
};

/* Whether item `id` of `owner` equals `key`. */
typedef bool tn_id_equal(const void *owner, uint32_t id, const void *key);

void tn_id_table_init(struct tn_id_table *table, struct tn_budget *budget);
void tn_id_table_fini(struct tn_id_table *table);

/* False when the table has no such item; *id_out is then unchanged. */
bool tn_id_table_find(const struct tn_id_table *table, uint32_t hash, tn_id_equal *equal,
                      const void *owner, const void *key, uint32_t *id_out);

/* Inserts an id that is not in the table; false: see tn_budget_status. */
bool tn_id_table_add(struct tn_id_table *table, uint32_t hash, uint32_t id) TN_MUST_CHECK;

/* Seeded hash of bytes. */
uint32_t tn_hash_bytes(const void *bytes, size_t size);

#endif
