/* SPDX-License-Identifier: MIT */
#include "page/size_table.h"

#include "analysis/address_map.h"
#include "base/order.h"

void tn_size_table_init(struct tn_size_table *table)
{
    *table = (struct tn_size_table){.failed = false};
    tn_column_init(&table->column);
}

void tn_size_table_fini(struct tn_size_table *table)
{
    tn_map_fini(&table->numbers);
    tn_column_fini(&table->column);
}

static void size_write(struct tn_size_table *table, uint64_t size)
{
    tn_column_put_step(&table->column, table->last, size);
    table->last = size;
}

void tn_size_table_note(struct tn_size_table *table, const struct tn_trace_source *source,
                        uint64_t first)
{
    for (uint64_t i = first; i < source->trace->count; i++) {
        const struct tn_trace_entry *entry = tn_source_entry(source, i);

        if ((entry->action == TN_TRACE_ALLOC || tn_trace_takes(entry) || entry->size == 0) &&
            !tn_address_put(&table->numbers, entry->size, 0)) {
            table->failed = true;
            return;
        }
    }
}

void tn_size_table_sort(struct tn_size_table *table)
{
    struct tn_map *sizes = &table->numbers;
    struct tn_vec keys;

    tn_vec_init(&keys, sizeof(uint64_t));
    if (table->failed || !tn_vec_reserve(&keys, sizes->count)) {
        table->failed = true;
        return;
    }
    uint64_t *list = keys.items;

    for (uint64_t i = 0; i < sizes->capacity; i++) {
        if (sizes->slots[i].key != 0) {
            list[keys.count++] = sizes->slots[i].key;
        }
    }
    tn_vec_sort(&keys, tn_order_numbers);
    for (size_t i = 0; i < keys.count; i++) {
        *tn_map_find(sizes, list[i]) = i;
        size_write(table, list[i] - 1);
    }
    tn_vec_fini(&keys);
}

uint64_t tn_size_table_get(struct tn_size_table *table, uint64_t size)
{
    const uint64_t *found = tn_address_find(&table->numbers, size);
    const uint64_t number = table->numbers.count;

    if (found) {
        return *found;
    }
    if (!tn_address_put(&table->numbers, size, number)) {
        table->failed = true;
        return 0;
    }
    size_write(table, size);
    return number;
}
