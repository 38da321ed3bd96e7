/* SPDX-License-Identifier: MIT */
#include "analysis/pool_stream.h"

#include "base/id_table.h"

#include <string.h>

/* While the trace is read backwards. */
struct reading {
    struct tn_pool_streams *pool_streams;
    struct tn_timeline *timeline;
    struct tn_segment_walk walk;
    uint32_t last;              /* the one that was found last: runs of blocks have the same */
    struct tn_budget budget;    /* no limit */
    struct tn_id_table numbers; /* of `pools` */
};

static bool pool_is(const void *owner, uint32_t number, const void *id)
{
    const struct tn_pool_streams *pool_streams = owner;

    return memcmp((const struct tn_pool_id *)pool_streams->pools.items + number, id,
                  sizeof(struct tn_pool_id)) == 0;
}

/* The number of a pool, made at first sight; 0 when host memory is missing. */
static uint32_t pool_get(struct reading *reading, struct tn_pool_id id)
{
    struct tn_pool_streams *pool_streams = reading->pool_streams;
    uint32_t number = tn_pool_stream_at(pool_streams, reading->last)->pool;

    if (number != 0 && pool_is(pool_streams, number, &id)) {
        return number;
    }
    const uint32_t hash = tn_hash_bytes(&id, sizeof id);

    if (tn_id_table_find(&reading->numbers, hash, pool_is, pool_streams, &id, &number)) {
        return number;
    }
    number = (uint32_t)pool_streams->pools.count;
    return tn_vec_append(&pool_streams->pools, &id, 1) &&
                   tn_id_table_add(&reading->numbers, hash, number)
               ? number
               : 0;
}

static bool pool_stream_equal(const struct tn_pool_stream *a, const struct tn_pool_stream *b)
{
    return a->segment == b->segment && a->stream == b->stream && a->pool == b->pool;
}

/* The pool and stream of an address; `stream` is for an address in no segment. */
static bool pool_stream_find(struct reading *reading, uint64_t address, uint64_t stream,
                             uint32_t *pool_stream_out)
{
    const struct tn_segment_range *range = tn_segment_walk_find(&reading->walk, address);
    struct tn_pool_streams *pool_streams = reading->pool_streams;
    struct tn_pool_stream pool_stream = {.stream = stream};

    if (range) {
        pool_stream = (struct tn_pool_stream){.segment = range->segment, .stream = range->stream};
        if (range->has_pool) {
            pool_stream.pool = pool_get(reading, range->pool);
            if (pool_stream.pool == 0) {
                return false;
            }
        }
    }
    if (!pool_stream_equal(tn_pool_stream_at(pool_streams, reading->last), &pool_stream)) {
        if (!tn_vec_append(&pool_streams->all, &pool_stream, 1)) {
            return false;
        }
        reading->last = (uint32_t)pool_streams->all.count - 1;
    }
    *pool_stream_out = reading->last;
    return true;
}

static bool lifetime_assign(struct reading *reading, struct tn_lifetime *lifetime)
{
    return pool_stream_find(reading, lifetime->address, lifetime->stream, &lifetime->pool_stream);
}

/* The pool and stream of an entry that adds or removes memory. The memory is there after the entry
 * in the one case and before it in the other. */
static bool entry_undo(struct reading *reading, uint64_t number)
{
    const struct tn_timeline *timeline = reading->timeline;
    const struct tn_trace_entry *entry = tn_trace_at(timeline->model, timeline->trace, number);
    const int64_t delta = tn_reserved_delta(entry);
    uint32_t *pool_stream = (uint32_t *)reading->pool_streams->of_entry.items + number;

    if (delta > 0 && !pool_stream_find(reading, entry->address, entry->stream, pool_stream)) {
        return false;
    }
    if (!tn_segment_walk_to(&reading->walk, number > 0 ? number - 1 : TN_NEVER)) {
        return false;
    }
    return delta >= 0 || pool_stream_find(reading, entry->address, entry->stream, pool_stream);
}

/* Lifetimes that began in the trace are in the order of their entries. */
static bool lifetimes_assign(struct reading *reading)
{
    struct tn_lifetime *lifetimes = reading->timeline->lifetimes.items;
    size_t next = reading->timeline->lifetimes.count;

    for (uint64_t i = reading->timeline->trace->count; i > 0; i--) {
        while (next > 0 &&
               (lifetimes[next - 1].start == TN_NEVER || lifetimes[next - 1].start == i - 1)) {
            next--;
            if (lifetimes[next].start != TN_NEVER && !lifetime_assign(reading, &lifetimes[next])) {
                return false;
            }
        }
        if (!entry_undo(reading, i - 1)) {
            return false;
        }
    }
    for (size_t i = 0; i < reading->timeline->lifetimes.count; i++) {
        if (lifetimes[i].start == TN_NEVER && !lifetime_assign(reading, &lifetimes[i])) {
            return false;
        }
    }
    return true;
}

static bool vecs_begin(struct tn_pool_streams *pool_streams, uint64_t entries)
{
    struct tn_pool_stream *unknown = tn_vec_push(&pool_streams->all);
    struct tn_pool_id *unused = tn_vec_push(&pool_streams->pools);

    if (!unknown || !unused || !tn_vec_reserve(&pool_streams->of_entry, (size_t)entries)) {
        return false;
    }
    if (entries > 0) {
        memset(pool_streams->of_entry.items, 0, (size_t)entries * sizeof(uint32_t));
    }
    pool_streams->of_entry.count = (size_t)entries;
    return true;
}

bool tn_pool_streams_init(struct tn_pool_streams *pool_streams, struct tn_timeline *timeline)
{
    const struct tn_trace_source source = tn_timeline_source(timeline);
    struct reading reading = {.pool_streams = pool_streams, .timeline = timeline};

    tn_vec_init(&pool_streams->all, sizeof(struct tn_pool_stream));
    tn_vec_init(&pool_streams->pools, sizeof(struct tn_pool_id));
    tn_vec_init(&pool_streams->of_entry, sizeof(uint32_t));
    if (!vecs_begin(pool_streams, timeline->trace->count) ||
        !tn_segment_walk_init(&reading.walk, &source)) {
        tn_pool_streams_fini(pool_streams);
        return false;
    }
    tn_id_table_init(&reading.numbers, &reading.budget);
    const bool good = lifetimes_assign(&reading);

    tn_id_table_fini(&reading.numbers);
    tn_segment_walk_fini(&reading.walk);
    if (!good) {
        tn_pool_streams_fini(pool_streams);
    }
    return good;
}

void tn_pool_streams_fini(struct tn_pool_streams *pool_streams)
{
    tn_vec_fini(&pool_streams->of_entry);
    tn_vec_fini(&pool_streams->pools);
    tn_vec_fini(&pool_streams->all);
}

bool tn_pool_is_of(struct tn_pool_id pool, enum tarn_pools pools, const uint64_t one[2])
{
    const bool is_default = pool.id[0] == 0 && pool.id[1] == 0;

    if (pools == TARN_POOLS_ONE) {
        return memcmp(pool.id, one, sizeof pool.id) == 0;
    }
    return pools == TARN_POOLS_ALL || is_default == (pools == TARN_POOLS_DEFAULT);
}

bool tn_pool_stream_is_of(const struct tn_pool_streams *pool_streams, uint32_t pool_stream,
                          enum tarn_pools pools, const uint64_t one[2])
{
    if (pools == TARN_POOLS_ALL) {
        return true;
    }
    const uint32_t number = tn_pool_stream_at(pool_streams, pool_stream)->pool;

    return number != 0 && tn_pool_is_of(tn_pool_stream_pool(pool_streams, number), pools, one);
}

/* ---- pools of entries ---- */

bool tn_entry_pools_init(struct tn_entry_pools *pools, const struct tn_trace_source *source)
{
    pools->has_private = false;
    for (size_t i = 0; i < source->segment_count; i++) {
        const struct tn_pool_id pool = source->segments[i].pool;

        pools->has_private = pools->has_private ||
                             (tn_source_has(source, i) && (pool.id[0] != 0 || pool.id[1] != 0));
    }
    return tn_segment_walk_init(&pools->finals, source);
}

void tn_entry_pools_fini(struct tn_entry_pools *pools)
{
    tn_segment_walk_fini(&pools->finals);
}

bool tn_entry_pool(const struct tn_entry_pools *pools, const struct tn_trace_entry *entry,
                   struct tn_pool_id *pool_out, const struct tn_segment_range **by_out)
{
    const struct tn_trace_extra *extra = tn_model_extra(pools->finals.source.model, entry->extra);

    *by_out = NULL;
    *pool_out = extra->pool;
    if (extra->has_pool || !pools->has_private) {
        return true;
    }
    *by_out = tn_segment_walk_find(&pools->finals, entry->address);
    if (*by_out) {
        *pool_out = (*by_out)->pool;
    }
    return *by_out != NULL;
}
