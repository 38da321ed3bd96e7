/* SPDX-License-Identifier: MIT */
#include "analysis/group.h"

#include "analysis/address_map.h"
#include "analysis/call_tree.h"
#include "base/size_text.h"

#include <inttypes.h>
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

/* ---- tables ---- */

static void row_put(struct tn_text_out *out, uint64_t bytes, uint64_t all, uint64_t count)
{
    tn_text_put_size(out, (double)bytes);
    tn_text_printf(out, "  %5.1f%%  %8" PRIu64 "  ",
                   all > 0 ? (double)bytes / (double)all * 100 : 0.0, count);
}

/* Rows that are not shown, as one. */
static struct tn_group others_sum(const struct tn_groups *groups, uint64_t limit)
{
    const struct tn_group *rows = groups->rows.items;
    struct tn_group others = {0};

    for (size_t i = (size_t)limit; i < groups->rows.count; i++) {
        others.bytes += rows[i].bytes;
        others.count += rows[i].count;
        others.before += rows[i].before;
    }
    return others;
}

/* What no rule knows is said even where its row is among the others. */
static struct tn_group unclassified(const struct tn_groups *groups)
{
    const struct tn_group *rows = groups->rows.items;

    for (size_t i = 0; i < groups->rows.count; i++) {
        if (rows[i].key == TN_CATEGORY_UNCLASSIFIED) {
            return rows[i];
        }
    }
    return (struct tn_group){.key = TN_CATEGORY_UNCLASSIFIED};
}

void tn_groups_put(struct tn_text_out *out, const struct tn_group_keys *keys,
                   const struct tn_groups *groups, uint64_t limit)
{
    const struct tn_group *rows = groups->rows.items;

    limit = limit < groups->rows.count ? limit : groups->rows.count;
    tn_text_put_head(out, "#bytes   share    blocks  ");
    tn_text_printf(out, "%s\n", tn_grouping_heading(keys->by));
    for (size_t i = 0; i < limit; i++) {
        row_put(out, rows[i].bytes, groups->bytes, rows[i].count);
        tn_group_key_put(out, keys, rows[i].key);
        tn_text_putc(out, '\n');
    }
    if (limit < groups->rows.count) {
        const struct tn_group others = others_sum(groups, limit);

        row_put(out, others.bytes, groups->bytes, others.count);
        tn_text_printf(out, "others (%" PRIu64 " %s)\n", groups->rows.count - limit,
                       tn_grouping_plural(keys->by));
    }
    row_put(out, groups->bytes, groups->bytes, groups->count);
    tn_text_puts(out, "total\n");
    if (keys->by == TARN_BY_CATEGORY) {
        const struct tn_group group = unclassified(groups);

        row_put(out, group.bytes, groups->bytes, group.count);
        tn_text_puts(out, "of it is unclassified\n");
    }
}

static void numbers_put_json(struct tn_json_text *json, uint64_t bytes, uint64_t count,
                             uint64_t before)
{
    tn_json_number(json, "bytes", bytes);
    tn_json_number(json, "blocks", count);
    tn_json_number(json, "bytes_from_before_the_trace", before);
}

void tn_groups_put_json(struct tn_json_text *json, const struct tn_group_keys *keys,
                        const struct tn_groups *groups, uint64_t limit)
{
    const struct tn_group *rows = groups->rows.items;

    limit = limit < groups->rows.count ? limit : groups->rows.count;
    tn_json_open_array(json, "groups");
    for (size_t i = 0; i < limit; i++) {
        tn_json_open_object(json, NULL);
        numbers_put_json(json, rows[i].bytes, rows[i].count, rows[i].before);
        tn_group_key_put_json(json, keys, rows[i].key);
        tn_json_close(json);
    }
    tn_json_close(json);
    const struct tn_group others = others_sum(groups, limit);

    tn_json_open_object(json, "others");
    tn_json_number(json, tn_grouping_plural(keys->by), groups->rows.count - limit);
    numbers_put_json(json, others.bytes, others.count, others.before);
    tn_json_close(json);
    tn_json_open_object(json, "total");
    numbers_put_json(json, groups->bytes, groups->count, groups->before);
    tn_json_close(json);
    if (keys->by == TARN_BY_CATEGORY) {
        tn_json_number(json, "unclassified_bytes", unclassified(groups).bytes);
    }
}

/* ---- trees ---- */

enum {
    COUNT, /* of the numbers of a row; the bytes are its rank */
    BEFORE
};

static void calls_put(struct tn_text_out *out, const struct tn_call_sums *sums,
                      const struct tn_call_sums *all)
{
    row_put(out, sums->rank, all->rank, sums->numbers[COUNT]);
}

static void calls_put_json(struct tn_json_text *json, const struct tn_call_sums *sums)
{
    numbers_put_json(json, sums->rank, sums->numbers[COUNT], sums->numbers[BEFORE]);
}

static bool tree_fill(struct tn_call_tree *tree, const struct tn_groups *groups)
{
    const struct tn_group *rows = groups->rows.items;

    for (size_t i = 0; i < groups->rows.count; i++) {
        const struct tn_call_sums sums = {
            .rank = rows[i].bytes, .numbers = {[COUNT] = rows[i].count, [BEFORE] = rows[i].before}};

        if (!tn_call_tree_add(tree, rows[i].key, &sums)) {
            return false;
        }
    }
    return tn_call_tree_sort(tree);
}

/* To one of both. */
static bool tree_put(struct tn_text_out *out, struct tn_json_text *json,
                     const struct tn_analysis *analysis, const struct tn_groups *groups,
                     uint64_t limit)
{
    const struct tn_call_rows rows = {.put = calls_put,
                                      .put_json = calls_put_json,
                                      .limit = limit,
                                      .min_share = analysis->query->min_share};
    struct tn_call_tree tree;

    if (!tn_call_tree_init(&tree, &analysis->keys)) {
        return false;
    }
    const bool good = tree_fill(&tree, groups);

    if (good && json) {
        tn_call_tree_put_json(json, &tree, &rows);
    } else if (good) {
        tn_text_put_head(out, "#bytes   share    blocks  calls\n");
        tn_call_tree_put(out, &tree, &rows);
    }
    tn_call_tree_fini(&tree);
    return good;
}

bool tn_groups_put_tree(struct tn_text_out *out, const struct tn_analysis *analysis,
                        const struct tn_groups *groups, uint64_t limit)
{
    return tree_put(out, NULL, analysis, groups, limit);
}

bool tn_groups_put_tree_json(struct tn_json_text *json, const struct tn_analysis *analysis,
                             const struct tn_groups *groups, uint64_t limit)
{
    return tree_put(NULL, json, analysis, groups, limit);
}
