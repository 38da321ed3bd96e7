/* SPDX-License-Identifier: MIT */
#include "page/view_place.h"

#include <stdlib.h>
#include <string.h>

void tn_view_places_init(struct tn_view_places *places)
{
    *places = (struct tn_view_places){.failed = false};
    tn_vec_init(&places->places, sizeof(struct tn_view_place));
    tn_vec_init(&places->segments, sizeof(const struct tn_model_segment *));
    tn_id_table_init(&places->ids, &places->budget);
    tn_column_init(&places->size_column);
}

void tn_view_places_fini(struct tn_view_places *places)
{
    tn_vec_fini(&places->places);
    tn_vec_fini(&places->segments);
    tn_id_table_fini(&places->ids);
    tn_map_fini(&places->sizes);
    tn_column_fini(&places->size_column);
}

static int segment_compare(const void *left, const void *right)
{
    const struct tn_model_segment *a = *(const struct tn_model_segment *const *)left;
    const struct tn_model_segment *b = *(const struct tn_model_segment *const *)right;

    if (a->address != b->address) {
        return a->address < b->address ? -1 : 1;
    }
    return a < b ? -1 : a > b; /* both are of one array */
}

static bool is_default(struct tn_pool_id pool)
{
    return pool.id[0] == 0 && pool.id[1] == 0;
}

void tn_view_places_look_at(struct tn_view_places *places, const struct tn_trace_source *source)
{
    struct tn_vec *list = &places->segments;

    list->count = 0;
    places->has_private = false;
    for (size_t i = 0; i < source->segment_count; i++) {
        if (tn_source_has(source, i)) {
            const struct tn_model_segment **item = tn_vec_push(list);

            if (!item) {
                places->failed = true;
                return;
            }
            *item = &source->segments[i];
            places->has_private = places->has_private || !is_default((*item)->pool);
        }
    }
    if (list->count > 0) {
        qsort(list->items, list->count, list->item_size, segment_compare);
    }
}

static struct tn_pool_id pool_at(const struct tn_view_places *places, uint64_t address)
{
    const struct tn_model_segment *const *segments = places->segments.items;
    size_t low = 0;
    size_t high = places->segments.count;

    if (!places->has_private) {
        return (struct tn_pool_id){{0, 0}};
    }
    while (low < high) { /* segments before `low` begin at or before the address */
        const size_t middle = low + (high - low) / 2;

        if (segments[middle]->address <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low > 0 && address - segments[low - 1]->address < segments[low - 1]->total_size) {
        return segments[low - 1]->pool;
    }
    return (struct tn_pool_id){{TN_POOL_UNKNOWN, TN_POOL_UNKNOWN}};
}

static bool place_equal(const void *owner, uint32_t id, const void *key)
{
    const struct tn_view_places *places = owner;

    return memcmp((const struct tn_view_place *)places->places.items + id, key,
                  sizeof(struct tn_view_place)) == 0;
}

uint32_t tn_view_places_get(struct tn_view_places *places, uint64_t stream, struct tn_pool_id pool)
{
    const struct tn_view_place key = {stream, pool};
    const uint32_t hash = tn_hash_bytes(&key, sizeof key);
    const int64_t found = tn_id_table_find(&places->ids, hash, place_equal, places, &key);

    if (found >= 0) {
        return (uint32_t)found;
    }
    struct tn_view_place *place = tn_vec_push(&places->places);

    if (!place || !tn_id_table_add(&places->ids, hash, (uint32_t)places->places.count - 1)) {
        places->failed = true;
        return 0;
    }
    *place = key;
    return (uint32_t)places->places.count - 1;
}

uint32_t tn_view_places_of_entry(struct tn_view_places *places, const struct tn_model *model,
                                 const struct tn_trace_entry *entry)
{
    const struct tn_trace_extra *extra = tn_model_extra(model, entry->extra);

    return tn_view_places_get(places, entry->stream,
                              extra->has_pool ? extra->pool : pool_at(places, entry->address));
}

/* ---- sizes ---- */

/* Of tn_map, whose keys are not 0. The two greatest sizes share one: there are no such blocks. */
static uint64_t size_key(uint64_t size)
{
    return size < UINT64_MAX ? size + 1 : UINT64_MAX;
}

static void size_write(struct tn_view_places *places, uint64_t size)
{
    tn_column_put_step(&places->size_column, places->size, size);
    places->size = size;
}

void tn_view_places_note_sizes(struct tn_view_places *places, const struct tn_trace_source *source,
                               uint64_t first)
{
    for (uint64_t i = first; i < source->trace->count; i++) {
        const struct tn_trace_entry *entry = tn_trace_at(source->model, source->trace, i);
        const bool has_size =
            entry->action == TN_TRACE_ALLOC || (uint64_t)tn_reserved_delta(entry) == entry->size;

        if (has_size && !tn_map_find(&places->sizes, size_key(entry->size))) {
            if (!tn_map_reserve(&places->sizes, 1)) {
                places->failed = true;
                return;
            }
            tn_map_insert(&places->sizes, size_key(entry->size), 0);
        }
    }
}

static int number_compare(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;

    return a < b ? -1 : a > b;
}

void tn_view_places_sort_sizes(struct tn_view_places *places)
{
    struct tn_map *sizes = &places->sizes;
    struct tn_vec keys;

    tn_vec_init(&keys, sizeof(uint64_t));
    if (places->failed || !tn_vec_reserve(&keys, sizes->count)) {
        places->failed = true;
        return;
    }
    uint64_t *list = keys.items;

    for (uint64_t i = 0; i < sizes->capacity; i++) {
        if (sizes->slots[i].key != 0) {
            list[keys.count++] = sizes->slots[i].key;
        }
    }
    if (keys.count > 0) {
        qsort(list, keys.count, sizeof *list, number_compare);
    }
    for (size_t i = 0; i < keys.count; i++) {
        *tn_map_find(sizes, list[i]) = i;
        size_write(places, list[i] - 1);
    }
    tn_vec_fini(&keys);
}

uint64_t tn_view_places_size(struct tn_view_places *places, uint64_t size)
{
    const uint64_t *found = tn_map_find(&places->sizes, size_key(size));

    if (found) {
        return *found;
    }
    if (!tn_map_reserve(&places->sizes, 1)) {
        places->failed = true;
        return 0;
    }
    const uint64_t number = places->sizes.count;

    tn_map_insert(&places->sizes, size_key(size), number);
    size_write(places, size);
    return number;
}
