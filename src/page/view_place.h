/* SPDX-License-Identifier: MIT */
/*
 * Numbers for places (stream and pool) and for sizes, of which a trace has few different ones.
 * Older files do not say the pool of an entry; then it is that of the segment which the snapshot
 * has at the address.
 *
 * Owns its tables; remembers that host memory was missing. Guarded by its owner. Cost: O(1)
 * expected, O(log segments) without a pool.
 */
#ifndef TN_PAGE_VIEW_PLACE_H
#define TN_PAGE_VIEW_PLACE_H

#include "analysis/trace_source.h"
#include "base/id_table.h"
#include "base/map.h"
#include "base/vec.h"
#include "page/column.h"

/* `id` of a pool that nobody knows. */
#define TN_POOL_UNKNOWN UINT64_MAX

struct tn_view_place {
    uint64_t stream;
    struct tn_pool_id pool;
};

struct tn_view_places {
    struct tn_budget budget; /* without a limit */
    struct tn_vec places;    /* struct tn_view_place */
    struct tn_id_table ids;
    struct tn_map sizes;          /* size + 1 -> number */
    struct tn_column size_column; /* steps from one to the next */
    uint64_t size;                /* the last one in it */
    struct tn_vec segments;       /* const struct tn_model_segment *: of the source, by address */
    bool has_private;             /* one of them is of another pool than the default one */
    bool failed;
};

void tn_view_places_init(struct tn_view_places *places);
void tn_view_places_fini(struct tn_view_places *places);

/* The source whose entries are looked at next. */
void tn_view_places_look_at(struct tn_view_places *places, const struct tn_trace_source *source);

uint32_t tn_view_places_get(struct tn_view_places *places, uint64_t stream, struct tn_pool_id pool);
uint32_t tn_view_places_of_entry(struct tn_view_places *places, const struct tn_model *model,
                                 const struct tn_trace_entry *entry);

/* Numbers of sizes in their order, so that what is similar has similar numbers: first those of the
 * allocations and segments of each source are noted, from entry `first` on, then they are sorted.
 * Before any number of a size is asked for. */
void tn_view_places_note_sizes(struct tn_view_places *places, const struct tn_trace_source *source,
                               uint64_t first);
void tn_view_places_sort_sizes(struct tn_view_places *places);

/* The number of a size, a new one if it has none. */
uint64_t tn_view_places_size(struct tn_view_places *places, uint64_t size);

#endif
