/* SPDX-License-Identifier: MIT */
#include "viewer/lives.h"

#include <stdlib.h>

/* Keys of tn_map are not 0. The two highest addresses share one: no block begins there. */
static uint64_t key_of(uint64_t address)
{
    return address < UINT64_MAX ? address + 1 : UINT64_MAX;
}

void tn_lives_init(struct tn_lives *lives)
{
    *lives = (struct tn_lives){.count = 0};
}

void tn_lives_fini(struct tn_lives *lives)
{
    tn_map_fini(&lives->live);
    tn_map_fini(&lives->freed);
}

uint64_t tn_lives_at(const struct tn_lives *lives, uint64_t address)
{
    const uint64_t *life = tn_map_find(&lives->live, key_of(address));

    return life ? *life : TN_LIFE_NONE;
}

static void life_begin(struct tn_lives *lives, uint64_t address, struct tn_life_step *step)
{
    uint64_t *old = tn_map_find(&lives->live, key_of(address));

    step->life = lives->count++;
    step->is_new = true;
    if (old) {
        step->ended = *old;
        *old = step->life;
    } else {
        tn_map_insert(&lives->live, key_of(address), step->life);
    }
}

static void life_end(struct tn_lives *lives, uint64_t address)
{
    uint64_t life;

    (void)tn_map_take(&lives->live, key_of(address), &life);
    if (!tn_map_find(&lives->freed, key_of(address))) {
        tn_map_insert(&lives->freed, key_of(address), 0);
    }
}

static void free_step(struct tn_lives *lives, const struct tn_trace_entry *entry,
                      struct tn_life_step *step)
{
    step->life = tn_lives_at(lives, entry->address);
    if (step->life == TN_LIFE_NONE && !tn_map_find(&lives->freed, key_of(entry->address))) {
        life_begin(lives, entry->address, step);
    }
    if (entry->action == TN_TRACE_FREE_COMPLETED) {
        life_end(lives, entry->address);
    }
}

bool tn_lives_step(struct tn_lives *lives, const struct tn_trace_entry *entry,
                   struct tn_life_step *step_out)
{
    *step_out = (struct tn_life_step){TN_LIFE_NONE, TN_LIFE_NONE, false};
    if (!tn_map_reserve(&lives->live, 1) || !tn_map_reserve(&lives->freed, 1)) {
        return false;
    }
    if (entry->action == TN_TRACE_ALLOC) {
        uint64_t ignored;

        (void)tn_map_take(&lives->freed, key_of(entry->address), &ignored);
        life_begin(lives, entry->address, step_out);
    } else if (entry->action == TN_TRACE_FREE_REQUESTED ||
               entry->action == TN_TRACE_FREE_COMPLETED) {
        free_step(lives, entry, step_out);
    } else if (entry->action == TN_TRACE_ANNOTATE) {
        step_out->life = tn_lives_at(lives, entry->address);
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
    lives->count = carried_out->count;
    return true;
}
