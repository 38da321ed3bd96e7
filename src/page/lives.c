/* SPDX-License-Identifier: MIT */
#include "page/lives.h"

#include <stdlib.h>

/* Keys of tn_map are not 0. The two highest addresses share one: no block begins there. */
static uint64_t key_of(uint64_t address)
{
    return address < UINT64_MAX ? address + 1 : UINT64_MAX;
}

void tn_lives_init(struct tn_lives *lives)
{
    *lives = (struct tn_lives){.count = 0};
    tn_vec_init(&lives->row, sizeof(uint64_t));
    tn_vec_init(&lives->place, sizeof(uint64_t));
    tn_vec_init(&lives->shelf, sizeof(uint64_t));
}

void tn_lives_fini(struct tn_lives *lives)
{
    tn_map_fini(&lives->live);
    tn_map_fini(&lives->freed);
    tn_vec_fini(&lives->row);
    tn_vec_fini(&lives->place);
    tn_vec_fini(&lives->shelf);
}

uint64_t tn_lives_at(const struct tn_lives *lives, uint64_t address)
{
    const uint64_t *life = tn_map_find(&lives->live, key_of(address));

    return life ? *life : TN_LIFE_NONE;
}

/* Lives behind one in the row. */
static uint64_t behind_of(const struct tn_lives *lives, uint64_t life)
{
    return lives->row.count - 1 - ((const uint64_t *)lives->place.items)[life];
}

/* There is room: tn_lives_step has seen to it. */
static void row_push(struct tn_lives *lives, uint64_t life)
{
    ((uint64_t *)lives->place.items)[life] = lives->row.count;
    ((uint64_t *)lives->row.items)[lives->row.count++] = life;
}

static void row_take(struct tn_lives *lives, uint64_t life)
{
    uint64_t *row = lives->row.items;
    uint64_t *place = lives->place.items;
    const uint64_t last = row[--lives->row.count];

    row[place[life]] = last;
    place[last] = place[life];
}

static void shelf_push(struct tn_lives *lives, uint64_t address)
{
    tn_map_insert(&lives->freed, key_of(address), lives->shelf.count);
    ((uint64_t *)lives->shelf.items)[lives->shelf.count++] = address;
}

/* Takes the address out; 1 more than addresses behind it, or 0 when it is not there. */
static uint64_t shelf_take(struct tn_lives *lives, uint64_t address)
{
    uint64_t *shelf = lives->shelf.items;
    uint64_t place = TN_LIFE_NONE;

    if (!tn_map_take(&lives->freed, key_of(address), &place) || place == TN_LIFE_NONE) {
        return 0;
    }
    const uint64_t behind = lives->shelf.count - place;
    const uint64_t last = shelf[--lives->shelf.count];

    if (behind > 1) {
        shelf[place] = last;
        *tn_map_find(&lives->freed, key_of(last)) = place;
    }
    return behind;
}

static void life_begin(struct tn_lives *lives, uint64_t address, struct tn_life_step *step)
{
    uint64_t *old = tn_map_find(&lives->live, key_of(address));

    step->life = lives->count++;
    step->is_new = true;
    lives->place.count++;
    if (old) {
        step->ended = *old;
        step->behind = behind_of(lives, *old);
        row_take(lives, *old);
        *old = step->life;
    } else {
        tn_map_insert(&lives->live, key_of(address), step->life);
    }
    row_push(lives, step->life);
}

static void life_end(struct tn_lives *lives, uint64_t address)
{
    uint64_t life;

    if (tn_map_take(&lives->live, key_of(address), &life)) {
        row_take(lives, life);
        shelf_push(lives, address);
    }
}

static void free_step(struct tn_lives *lives, const struct tn_trace_entry *entry,
                      struct tn_life_step *step)
{
    step->life = tn_lives_at(lives, entry->address);
    if (step->life != TN_LIFE_NONE) {
        step->behind = behind_of(lives, step->life);
    } else if (!tn_map_find(&lives->freed, key_of(entry->address))) {
        life_begin(lives, entry->address, step);
    }
    if (entry->action == TN_TRACE_FREE_COMPLETED) {
        life_end(lives, entry->address);
    }
}

/* For one life more, in use or freed. */
static bool room_make(struct tn_lives *lives)
{
    return tn_map_reserve(&lives->live, 1) && tn_map_reserve(&lives->freed, 1) &&
           tn_vec_reserve(&lives->row, 1) && tn_vec_reserve(&lives->place, 1) &&
           tn_vec_reserve(&lives->shelf, 1);
}

bool tn_lives_step(struct tn_lives *lives, const struct tn_trace_entry *entry,
                   struct tn_life_step *step_out)
{
    *step_out = (struct tn_life_step){.life = TN_LIFE_NONE, .ended = TN_LIFE_NONE};
    if (!room_make(lives)) {
        return false;
    }
    if (entry->action == TN_TRACE_ALLOC) {
        step_out->reuse = shelf_take(lives, entry->address);
        life_begin(lives, entry->address, step_out);
    } else if (entry->action == TN_TRACE_FREE_REQUESTED ||
               entry->action == TN_TRACE_FREE_COMPLETED) {
        free_step(lives, entry, step_out);
    } else if (entry->action == TN_TRACE_ANNOTATE) {
        step_out->life = tn_lives_at(lives, entry->address);
        if (step_out->life != TN_LIFE_NONE) {
            step_out->behind = behind_of(lives, step_out->life);
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

bool tn_lives_carry(struct tn_lives *lives, struct tn_vec *carried_out)
{
    for (uint64_t i = 0; i < lives->live.capacity; i++) {
        if (lives->live.slots[i].key != 0) {
            uint64_t *life = tn_vec_push(carried_out);

            if (!life) {
                return false;
            }
            *life = lives->live.slots[i].value;
        }
    }
    if (carried_out->count > 0) {
        qsort(carried_out->items, carried_out->count, sizeof(uint64_t), number_compare);
    }
    for (uint64_t i = 0; i < lives->live.capacity; i++) {
        if (lives->live.slots[i].key != 0) {
            const uint64_t *found = bsearch(&lives->live.slots[i].value, carried_out->items,
                                            carried_out->count, sizeof(uint64_t), number_compare);

            lives->live.slots[i].value = (uint64_t)(found - (const uint64_t *)carried_out->items);
        }
    }
    for (uint64_t i = 0; i < lives->freed.capacity; i++) {
        lives->freed.slots[i].value = TN_LIFE_NONE;
    }
    lives->count = carried_out->count;
    lives->shelf.count = 0;
    lives->row.count = 0;
    lives->place.count = carried_out->count;
    for (uint64_t life = 0; life < lives->count; life++) {
        row_push(lives, life);
    }
    return true;
}
