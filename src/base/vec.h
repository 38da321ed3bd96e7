/* SPDX-License-Identifier: MIT */
/* A growing contiguous array of items of one size: items move when it grows. Guarded by its
 * owner. */
#ifndef TN_BASE_VEC_H
#define TN_BASE_VEC_H

#include "base/attr.h"

#include <stdbool.h>
#include <stddef.h>

struct tn_vec {
    void *items;
    size_t count;
    size_t capacity;
    size_t item_size;
};

static inline void tn_vec_init(struct tn_vec *vec, size_t item_size)
{
    *vec = (struct tn_vec){.item_size = item_size};
}

void tn_vec_fini(struct tn_vec *vec);

/* Reserves space for `more` items: just that at first, then at least twice as much as before. False
 * when host memory runs out. */
bool tn_vec_reserve(struct tn_vec *vec, size_t more) TN_MUST_CHECK;

/* Appends a zeroed item; NULL when host memory runs out. Borrowed until the next push. */
void *tn_vec_push(struct tn_vec *vec) TN_MUST_CHECK;

/* Appends copies of `count` items; false when host memory runs out. */
bool tn_vec_append(struct tn_vec *vec, const void *items, size_t count) TN_MUST_CHECK;

static inline bool tn_vec_add(struct tn_vec *vec, const void *item)
{
    return tn_vec_append(vec, item, 1);
}

/* Sorts as qsort does; an empty vector has nothing to sort. */
void tn_vec_sort(struct tn_vec *vec, int (*compare)(const void *, const void *));

#endif
