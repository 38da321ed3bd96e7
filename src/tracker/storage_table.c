/* SPDX-License-Identifier: MIT */
#include "tracker/storage_table.h"

#include "base/assertion.h"

void tn_storage_table_init(struct tn_storage_table *table)
{
    *table = (struct tn_storage_table){.first_free = TN_STORAGE_NONE};
    tn_vec_init(&table->records, sizeof(struct tn_storage));
}

void tn_storage_table_fini(struct tn_storage_table *table)
{
    tn_map_fini(&table->map);
    tn_vec_fini(&table->records);
}

static struct tn_storage *record_at(const struct tn_storage_table *table, uint64_t at)
{
    return (struct tn_storage *)table->records.items + at;
}

struct tn_storage *tn_storage_find(const struct tn_storage_table *table, uint64_t id)
{
    const uint64_t *at = tn_map_find(&table->map, id + 1);

    return at ? record_at(table, *at) : NULL;
}

bool tn_storage_table_reserve(struct tn_storage_table *table)
{
    return (table->first_free != TN_STORAGE_NONE ||
            (table->records.count < TN_STORAGE_NONE && tn_vec_reserve(&table->records, 1))) &&
           tn_map_reserve(&table->map, 1);
}

struct tn_storage *tn_storage_add(struct tn_storage_table *table, uint64_t id)
{
    uint32_t at = table->first_free;

    if (at == TN_STORAGE_NONE) {
        tn_assert(table->records.count < table->records.capacity);
        at = (uint32_t)table->records.count++;
    } else {
        table->first_free = record_at(table, at)->next_free;
    }
    tn_map_insert(&table->map, id + 1, at);
    *record_at(table, at) = (struct tn_storage){.id = id, .next_free = TN_STORAGE_NONE};
    return record_at(table, at);
}

void tn_storage_remove(struct tn_storage_table *table, struct tn_storage *storage)
{
    uint64_t at;
    const bool found = tn_map_take(&table->map, storage->id + 1, &at);

    tn_assert(found && record_at(table, at) == storage);
    (void)found;
    storage->next_free = table->first_free;
    table->first_free = (uint32_t)at;
}
