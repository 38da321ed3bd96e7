/* SPDX-License-Identifier: MIT */
#include "page/lifetime_ids.h"
#include "base/order.h"

#include <stdlib.h>

void tn_lifetime_ids_init(struct tn_lifetime_ids *lifetimes)
{
    *lifetimes = (struct tn_lifetime_ids){.walk = {.count = 0}};
    tn_vec_init(&lifetimes->row, sizeof(uint64_t));
    tn_vec_init(&lifetimes->index, sizeof(uint64_t));
    tn_vec_init(&lifetimes->freed, sizeof(uint64_t));
}

void tn_lifetime_ids_fini(struct tn_lifetime_ids *lifetimes)
{
    tn_lifetime_walk_fini(&lifetimes->walk);
    tn_vec_fini(&lifetimes->row);
    tn_vec_fini(&lifetimes->index);
    tn_vec_fini(&lifetimes->freed);
}

/* Lifetimes after one in the row. */
static uint64_t behind_of(const struct tn_lifetime_ids *lifetimes, uint64_t lifetime)
{
    return lifetimes->row.count - 1 - ((const uint64_t *)lifetimes->index.items)[lifetime];
}

/* There is room: tn_lifetime_ids_step has seen to it. */
static void row_push(struct tn_lifetime_ids *lifetimes, uint64_t lifetime)
{
    ((uint64_t *)lifetimes->index.items)[lifetime] = lifetimes->row.count;
    ((uint64_t *)lifetimes->row.items)[lifetimes->row.count++] = lifetime;
}

static void row_take(struct tn_lifetime_ids *lifetimes, uint64_t lifetime)
{
    uint64_t *row = lifetimes->row.items;
    uint64_t *index = lifetimes->index.items;
    const uint64_t last = row[--lifetimes->row.count];

    row[index[lifetime]] = last;
    index[last] = index[lifetime];
}

/* An address that was freed just now. */
static void freed_push(struct tn_lifetime_ids *lifetimes, uint64_t address)
{
    *tn_address_find(&lifetimes->walk.blocks, address) = TN_LIFETIME_FREED + lifetimes->freed.count;
    ((uint64_t *)lifetimes->freed.items)[lifetimes->freed.count++] = address;
}

/* Takes the address out; 1 more than the addresses after it, or 0 when it is not there. */
static uint64_t freed_take(struct tn_lifetime_ids *lifetimes, uint64_t address)
{
    const uint64_t *value = tn_address_find(&lifetimes->walk.blocks, address);
    uint64_t *addresses = lifetimes->freed.items;

    if (!value || !tn_lifetime_is_freed(*value) || *value == TN_LIFETIME_NONE) {
        return 0;
    }
    const uint64_t index = *value - TN_LIFETIME_FREED;
    const uint64_t behind = lifetimes->freed.count - index;
    const uint64_t last = addresses[--lifetimes->freed.count];

    if (behind > 1) {
        addresses[index] = last;
        *tn_address_find(&lifetimes->walk.blocks, last) = TN_LIFETIME_FREED + index;
    }
    return behind;
}

/* For one more lifetime, allocated or freed. */
static bool room_make(struct tn_lifetime_ids *lifetimes)
{
    return tn_vec_reserve(&lifetimes->row, 1) && tn_vec_reserve(&lifetimes->index, 1) &&
           tn_vec_reserve(&lifetimes->freed, 1);
}

bool tn_lifetime_ids_step(struct tn_lifetime_ids *lifetimes, const struct tn_trace_entry *entry,
                          struct tn_lifetime_id *id_out)
{
    struct tn_lifetime_step *step = &id_out->step;

    *id_out = (struct tn_lifetime_id){.behind = 0};
    if (!room_make(lifetimes)) {
        return false;
    }
    if (entry->action == TN_TRACE_ALLOC) {
        id_out->reuse = freed_take(lifetimes, entry->address);
    }
    if (!tn_lifetime_walk_step(&lifetimes->walk, entry, step)) {
        return false;
    }
    if (step->ended != TN_LIFETIME_NONE) {
        id_out->behind = behind_of(lifetimes, step->ended);
        row_take(lifetimes, step->ended);
    } else if (step->lifetime != TN_LIFETIME_NONE && !step->is_new) {
        id_out->behind = behind_of(lifetimes, step->lifetime);
    }
    if (step->is_new) {
        lifetimes->index.count++;
        row_push(lifetimes, step->lifetime);
    }
    if (entry->action == TN_TRACE_FREE_COMPLETED && step->lifetime != TN_LIFETIME_NONE) {
        row_take(lifetimes, step->lifetime);
        freed_push(lifetimes, entry->address);
    }
    return true;
}

static bool slot_is_live(const struct tn_map_slot *slot)
{
    return slot->key != 0 && !tn_lifetime_is_freed(slot->value);
}

bool tn_lifetime_ids_carry(struct tn_lifetime_ids *lifetimes, struct tn_vec *carried_out)
{
    const struct tn_map *blocks = &lifetimes->walk.blocks;

    for (uint64_t i = 0; i < blocks->capacity; i++) {
        if (slot_is_live(&blocks->slots[i]) &&
            !tn_vec_append(carried_out, &blocks->slots[i].value, 1)) {
            return false;
        }
    }
    tn_vec_sort(carried_out, tn_order_numbers);
    for (uint64_t i = 0; i < blocks->capacity; i++) {
        uint64_t *value = &blocks->slots[i].value;

        if (slot_is_live(&blocks->slots[i])) {
            const uint64_t *found = bsearch(value, carried_out->items, carried_out->count,
                                            sizeof(uint64_t), tn_order_numbers);

            *value = (uint64_t)(found - (const uint64_t *)carried_out->items);
        } else {
            *value = TN_LIFETIME_NONE;
        }
    }
    lifetimes->walk.count = carried_out->count;
    lifetimes->freed.count = 0;
    lifetimes->row.count = 0;
    lifetimes->index.count = carried_out->count;
    for (uint64_t lifetime = 0; lifetime < lifetimes->walk.count; lifetime++) {
        row_push(lifetimes, lifetime);
    }
    return true;
}
