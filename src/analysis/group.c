/* SPDX-License-Identifier: MIT */
#include "analysis/group.h"

#include "analysis/address_map.h"

#include <stdlib.h>

static int group_compare(const void *left, const void *right)
{
    const struct tn_group *a = left;
    const struct tn_group *b = right;

    if (a->bytes != b->bytes) {
        return a->bytes > b->bytes ? -1 : 1;
    }
    return a->key < b->key ? -1 : a->key > b->key;
}

/* The row of a key, made at first sight. */
static struct tn_group *group_get(struct tn_groups *groups, struct tn_map *numbers, uint64_t key)
{
    const uint64_t *number = tn_address_find(numbers, key);

    if (number) {
        return (struct tn_group *)groups->rows.items + *number;
    }
    if (!tn_address_put(numbers, key, groups->rows.count)) {
        return NULL;
    }
    struct tn_group *group = tn_vec_push(&groups->rows);

    if (group) {
        group->key = key;
    }
    return group;
}

static bool life_add(struct tn_groups *groups, struct tn_map *numbers,
                     const struct tn_group_keys *keys, const struct tn_lifetime *lifetime)
{
    const uint64_t before = lifetime->start == TN_NEVER ? lifetime->size : 0;
    uint64_t key;

    if (!tn_group_key_find(keys, lifetime, &key)) {
        return false;
    }
    struct tn_group *group = group_get(groups, numbers, key);

    if (!group) {
        return false;
    }
    group->bytes += lifetime->size;
    group->count++;
    group->before += before;
    groups->bytes += lifetime->size;
    groups->count++;
    groups->before += before;
    return true;
}

bool tn_groups_collect(struct tn_groups *groups, const struct tn_analysis *analysis, uint64_t entry)
{
    const struct tn_timeline *timeline = analysis->timeline;
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(timeline);
    struct tn_map numbers = {0};
    bool good = true;

    *groups = (struct tn_groups){.bytes = 0};
    tn_vec_init(&groups->rows, sizeof(struct tn_group));
    for (size_t i = 0; good && i < timeline->lifetimes.count; i++) {
        if (tn_lifetime_is_at(&lifetimes[i], entry)) {
            good = life_add(groups, &numbers, &analysis->keys, &lifetimes[i]);
        }
    }
    tn_map_fini(&numbers);
    if (!good) {
        tn_groups_fini(groups);
        return false;
    }
    if (groups->rows.count > 0) {
        qsort(groups->rows.items, groups->rows.count, sizeof(struct tn_group), group_compare);
    }
    return true;
}

void tn_groups_fini(struct tn_groups *groups)
{
    tn_vec_fini(&groups->rows);
}
