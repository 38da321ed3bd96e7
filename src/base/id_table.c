/* SPDX-License-Identifier: MIT */
#include "base/id_table.h"

#include <string.h>

enum {
    CAPACITY_FIRST = 64,
#ifdef TN_HASHES_ALIKE /* tests/torture: that different contents have equal hashes */
    HASH_BITS = 3
#else
    HASH_BITS = 32
#endif
};

void tn_id_table_init(struct tn_id_table *table, struct tn_budget *budget)
{
    *table = (struct tn_id_table){.budget = budget};
}

void tn_id_table_fini(struct tn_id_table *table)
{
    tn_budget_free(table->budget, table->slots, table->capacity * sizeof *table->slots);
    tn_id_table_init(table, table->budget);
}

bool tn_id_table_find(const struct tn_id_table *table, uint32_t hash, tn_id_equal *equal,
                      const void *owner, const void *key, uint32_t *id_out)
{
    if (table->capacity == 0) {
        return false;
    }
    const size_t mask = table->capacity - 1;
    for (size_t i = hash & mask; table->slots[i].id_plus_1 != 0; i = (i + 1) & mask) {
        const struct tn_id_slot *slot = &table->slots[i];

        if (slot->hash == hash && equal(owner, slot->id_plus_1 - 1, key)) {
            *id_out = slot->id_plus_1 - 1;
            return true;
        }
    }
    return false;
}

static void slots_put(struct tn_id_slot *slots, size_t capacity, struct tn_id_slot slot)
{
    const size_t mask = capacity - 1;
    size_t i = slot.hash & mask;

    while (slots[i].id_plus_1 != 0) {
        i = (i + 1) & mask;
    }
    slots[i] = slot;
}

static bool table_grow(struct tn_id_table *table)
{
    const size_t capacity = table->capacity == 0 ? CAPACITY_FIRST : table->capacity * 2;
    struct tn_id_slot *slots = tn_budget_alloc(table->budget, capacity * sizeof *slots);

    if (!slots) {
        return false;
    }
    memset(slots, 0, capacity * sizeof *slots);
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->slots[i].id_plus_1 != 0) {
            slots_put(slots, capacity, table->slots[i]);
        }
    }
    tn_budget_free(table->budget, table->slots, table->capacity * sizeof *slots);
    table->slots = slots;
    table->capacity = capacity;
    return true;
}

bool tn_id_table_add(struct tn_id_table *table, uint32_t hash, uint32_t id)
{
    if (table->used + 1 > table->capacity / 4 * 3 && !table_grow(table)) {
        return false;
    }
    slots_put(table->slots, table->capacity, (struct tn_id_slot){hash, id + 1});
    table->used++;
    return true;
}

/* Differs from process to process where addresses are randomised. */
static uint64_t hash_seed(void)
{
    static const char anchor = 0;

    return (uint64_t)(uintptr_t)&anchor * 0x9e3779b97f4a7c15u;
}

static uint64_t hash_mix(uint64_t hash, uint64_t word)
{
    hash ^= word;
    hash *= 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
    hash *= 0xc4ceb9fe1a85ec53u;
    return hash ^ (hash >> 29);
}

/* Two independent chains, for instruction-level parallelism. */
uint32_t tn_hash_bytes(const void *bytes, size_t size)
{
    const char *at = bytes;
    uint64_t even = hash_seed() ^ size;
    uint64_t odd = ~even;
    uint64_t words[2] = {0, 0};

    for (; size >= sizeof words; at += sizeof words, size -= sizeof words) {
        memcpy(words, at, sizeof words);
        even = hash_mix(even, words[0]);
        odd = hash_mix(odd, words[1]);
    }
    if (size > 0) {
        words[0] = 0;
        words[1] = 0;
        memcpy(words, at, size);
        even = hash_mix(even, words[0]);
        odd = hash_mix(odd, words[1]);
    }
    return (uint32_t)(hash_mix(even, odd) >> (64 - HASH_BITS));
}
