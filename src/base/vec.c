/* SPDX-License-Identifier: MIT */
#include "base/vec.h"

#include "base/checked.h"
#include "base/host_mem.h"

#include <stdlib.h>
#include <string.h>

enum {
#ifdef TN_NOTHING_AHEAD /* tests/torture: that each of the first items may not fit */
    VEC_FIRST_CAPACITY = 1,
    VEC_EXACT = 24 /* items up to which no more is allocated than is needed */
#else
    VEC_FIRST_CAPACITY = 16,
    VEC_EXACT = 0
#endif
};

void tn_vec_fini(struct tn_vec *vec)
{
    tn_host_free(vec->items, vec->capacity * vec->item_size);
    vec->items = NULL;
    vec->count = 0;
    vec->capacity = 0;
}

bool tn_vec_reserve(struct tn_vec *vec, size_t more)
{
    size_t wanted = vec->capacity ? vec->capacity : VEC_FIRST_CAPACITY;
    size_t bytes;

    if (more > SIZE_MAX - vec->count) {
        return false;
    }
    const size_t needed = vec->count + more;

    if (needed <= vec->capacity) {
        return true;
    }
    if (needed <= VEC_EXACT || (vec->capacity == 0 && needed > VEC_FIRST_CAPACITY)) {
        wanted = needed;
    }
    while (wanted < needed && wanted <= SIZE_MAX / 2) {
        wanted *= 2;
    }
    if (wanted < needed || !tn_mul_size(wanted, vec->item_size, &bytes)) {
        return false;
    }
    void *moved = tn_host_resize(vec->items, vec->capacity * vec->item_size, bytes);

    if (moved) {
        vec->items = moved;
        vec->capacity = wanted;
    }
    return moved != NULL;
}

void *tn_vec_push(struct tn_vec *vec)
{
    if (!tn_vec_reserve(vec, 1)) {
        return NULL;
    }
    void *item = (char *)vec->items + vec->count++ * vec->item_size;

    memset(item, 0, vec->item_size);
    return item;
}

bool tn_vec_append(struct tn_vec *vec, const void *items, size_t count)
{
    if (!tn_vec_reserve(vec, count)) {
        return false;
    }
    if (count > 0) {
        memcpy((char *)vec->items + vec->count * vec->item_size, items, count * vec->item_size);
    }
    vec->count += count;
    return true;
}

void tn_vec_sort(struct tn_vec *vec, int (*compare)(const void *, const void *))
{
    if (vec->count > 0) {
        qsort(vec->items, vec->count, vec->item_size, compare);
    }
}
