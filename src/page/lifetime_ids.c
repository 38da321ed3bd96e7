/* SPDX-License-Identifier: MIT */
#include "page/lifetime_ids.h"

#include <stdlib.h>

/* Keys of tn_map are not 0. The two highest addresses share one: no block begins there. */
static uint64_t key_of(uint64_t address)
{
    return address < UINT64_MAX ? address + 1 : UINT64_MAX;
}

void tn_lifetime_ids_init(struct tn_lifetime_ids *lifetimes)
{
    *lifetimes = (struct tn_lifetime_ids){.count = 0};
    tn_vec_init(&lifetimes->row, sizeof(uint64_t));
    tn_vec_init(&lifetimes->place, sizeof(uint64_t));
    tn_vec_init(&lifetimes->shelf, sizeof(uint64_t));
}

void tn_lifetime_ids_fini(struct tn_lifetime_ids *lifetimes)
{
    tn_map_fini(&lifetimes->live);
    tn_map_fini(&lifetimes->freed);
    tn_vec_fini(&lifetimes->row);
    tn_vec_fini(&lifetimes->place);
    tn_vec_fini(&lifetimes->shelf);
}

uint64_t tn_lifetime_ids_at(const struct tn_lifetime_ids *lifetimes, uint64_t address)
{
    const uint64_t *lifetime = tn_map_find(&lifetimes->live, key_of(address));

    return lifetime ? *lifetime : TN_LIFETIME_NONE;
}

/* Lives behind one in the row. */
static uint64_t behind_of(const struct tn_lifetime_ids *lifetimes, uint64_t lifetime)
{
    return lifetimes->row.count - 1 - ((const uint64_t *)lifetimes->place.items)[lifetime];
}

/* There is room: tn_lifetime_ids_step has seen to it. */
static void row_push(struct tn_lifetime_ids *lifetimes, uint64_t lifetime)
{
    ((uint64_t *)lifetimes->place.items)[lifetime] = lifetimes->row.count;
    ((uint64_t *)lifetimes->row.items)[lifetimes->row.count++] = lifetime;
}

static void row_take(struct tn_lifetime_ids *lifetimes, uint64_t lifetime)
{
    uint64_t *row = lifetimes->row.items;
    uint64_t *place = lifetimes->place.items;
    const uint64_t last = row[--lifetimes->row.count];

    row[place[lifetime]] = last;
    place[last] = place[lifetime];
}

static void shelf_push(struct tn_lifetime_ids *lifetimes, uint64_t address)
{
    tn_map_insert(&lifetimes->freed, key_of(address), lifetimes->shelf.count);
    ((uint64_t *)lifetimes->shelf.items)[lifetimes->shelf.count++] = address;
}

/* Takes the address out; 1 more than addresses behind it, or 0 when it is not there. */
static uint64_t shelf_take(struct tn_lifetime_ids *lifetimes, uint64_t address)
{
    uint64_t *shelf = lifetimes->shelf.items;
    uint64_t place = TN_LIFETIME_NONE;

    if (!tn_map_take(&lifetimes->freed, key_of(address), &place) || place == TN_LIFETIME_NONE) {
        return 0;
    }
    const uint64_t behind = lifetimes->shelf.count - place;
    const uint64_t last = shelf[--lifetimes->shelf.count];

    if (behind > 1) {
        shelf[place] = last;
        *tn_map_find(&lifetimes->freed, key_of(last)) = place;
    }
    return behind;
}

static void life_begin(struct tn_lifetime_ids *lifetimes, uint64_t address,
                       struct tn_lifetime_step *step)
{
    uint64_t *old = tn_map_find(&lifetimes->live, key_of(address));

    step->lifetime = lifetimes->count++;
    step->is_new = true;
    lifetimes->place.count++;
    if (old) {
        step->ended = *old;
        step->behind = behind_of(lifetimes, *old);
        row_take(lifetimes, *old);
        *old = step->lifetime;
    } else {
        tn_map_insert(&lifetimes->live, key_of(address), step->lifetime);
    }
    row_push(lifetimes, step->lifetime);
}

static void life_end(struct tn_lifetime_ids *lifetimes, uint64_t address)
{
    uint64_t lifetime;

    if (tn_map_take(&lifetimes->live, key_of(address), &lifetime)) {
        row_take(lifetimes, lifetime);
        shelf_push(lifetimes, address);
    }
}

static void free_step(struct tn_lifetime_ids *lifetimes, const struct tn_trace_entry *entry,
                      struct tn_lifetime_step *step)
{
    step->lifetime = tn_lifetime_ids_at(lifetimes, entry->address);
    if (step->lifetime != TN_LIFETIME_NONE) {
        step->behind = behind_of(lifetimes, step->lifetime);
    } else if (!tn_map_find(&lifetimes->freed, key_of(entry->address))) {
        life_begin(lifetimes, entry->address, step);
    }
    if (entry->action == TN_TRACE_FREE_COMPLETED) {
        life_end(lifetimes, entry->address);
    }
}

/* For one life more, in use or freed. */
static bool room_make(struct tn_lifetime_ids *lifetimes)
{
    return tn_map_reserve(&lifetimes->live, 1) && tn_map_reserve(&lifetimes->freed, 1) &&
           tn_vec_reserve(&lifetimes->row, 1) && tn_vec_reserve(&lifetimes->place, 1) &&
           tn_vec_reserve(&lifetimes->shelf, 1);
}

bool tn_lifetime_ids_step(struct tn_lifetime_ids *lifetimes, const struct tn_trace_entry *entry,
                          struct tn_lifetime_step *step_out)
{
    *step_out = (struct tn_lifetime_step){.lifetime = TN_LIFETIME_NONE, .ended = TN_LIFETIME_NONE};
    if (!room_make(lifetimes)) {
        return false;
    }
    if (entry->action == TN_TRACE_ALLOC) {
        step_out->reuse = shelf_take(lifetimes, entry->address);
        life_begin(lifetimes, entry->address, step_out);
    } else if (entry->action == TN_TRACE_FREE_REQUESTED ||
               entry->action == TN_TRACE_FREE_COMPLETED) {
        free_step(lifetimes, entry, step_out);
    } else if (entry->action == TN_TRACE_ANNOTATE) {
        step_out->lifetime = tn_lifetime_ids_at(lifetimes, entry->address);
        if (step_out->lifetime != TN_LIFETIME_NONE) {
            step_out->behind = behind_of(lifetimes, step_out->lifetime);
        }
    }
    return true;
}

static int number_compare(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;

    return a < b ? -1 : a > b;
}

bool tn_lifetime_ids_carry(struct tn_lifetime_ids *lifetimes, struct tn_vec *carried_out)
{
    for (uint64_t i = 0; i < lifetimes->live.capacity; i++) {
        if (lifetimes->live.slots[i].key != 0) {
            uint64_t *lifetime = tn_vec_push(carried_out);

            if (!lifetime) {
                return false;
            }
            *lifetime = lifetimes->live.slots[i].value;
        }
    }
    if (carried_out->count > 0) {
        qsort(carried_out->items, carried_out->count, sizeof(uint64_t), number_compare);
    }
    for (uint64_t i = 0; i < lifetimes->live.capacity; i++) {
        if (lifetimes->live.slots[i].key != 0) {
            const uint64_t *found = bsearch(&lifetimes->live.slots[i].value, carried_out->items,
                                            carried_out->count, sizeof(uint64_t), number_compare);

            lifetimes->live.slots[i].value =
                (uint64_t)(found - (const uint64_t *)carried_out->items);
        }
    }
    for (uint64_t i = 0; i < lifetimes->freed.capacity; i++) {
        lifetimes->freed.slots[i].value = TN_LIFETIME_NONE;
    }
    lifetimes->count = carried_out->count;
    lifetimes->shelf.count = 0;
    lifetimes->row.count = 0;
    lifetimes->place.count = carried_out->count;
    for (uint64_t lifetime = 0; lifetime < lifetimes->count; lifetime++) {
        row_push(lifetimes, lifetime);
    }
    return true;
}
