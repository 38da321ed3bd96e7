/* SPDX-License-Identifier: MIT */
#include "alloc/fast/stream_cache.h"

#include "alloc/fast/serve.h"
#include "base/assertion.h"
#include "base/host_mem.h"

enum {
    PATIENCE_FIRST = 32, /* waits for the heap's lock before caches open */
    PATIENCE_MAX = 1 << 20,
    CALLS_THAT_OPEN = 512,  /* then, each the cache of its stream */
    SLOW_CALLS_LOOK = 1024, /* calls that take all caches, between two checks whether they pay */
    ASKING_ROUNDS = 3,      /* of all caches, before the call goes to the heap */
    HITS_LOOK = 1 << 18,    /* calls that one cache serves, between two such checks */
    HITS_THAT_PAY = 4,      /* beside the busiest cache's, for each call that takes all caches */
    SPARES_WANTED = 256,    /* nodes that a cache starts with when the heap's lock is released */
    SPARES_MAX = 1024
};

/* The cache that a thread used last, of the heap with that id. */
struct cache_hint {
    uint64_t id;
    struct tn_stream_cache *cache;
};

static _Thread_local struct cache_hint hint __attribute__((tls_model("initial-exec")));

void tn_stream_caches_init(struct tn_stream_caches *caches)
{
    static _Atomic uint64_t ids;

    *caches = (struct tn_stream_caches){
        .id = atomic_fetch_add_explicit(&ids, 1, memory_order_relaxed) + 1,
        .patience = PATIENCE_FIRST,
    };
}

void tn_stream_caches_fini(struct tn_stream_caches *caches)
{
    for (uint32_t i = 0; i < caches->count; i++) {
        struct tn_stream_cache *cache = caches->list[i];

        while (cache->shard.spares) {
            tn_block_destroy(tn_shard_take_spare(&cache->shard));
        }
        tn_ptr_map_fini(&cache->shard.map);
        tn_biased_lock_fini(&cache->lock);
        tn_host_free(cache, sizeof *cache);
    }
}

/* ---- quotas ---- */

/* What the cache would have added since it was last collected, were its cursor there. */
static struct tn_quota cache_used(struct tn_stream_cache *cache, uint32_t cursor)
{
    const struct tn_undo_log *log = &cache->log;
    struct tn_quota used = tn_quota_used(&cache->shard.counters);

    for (uint32_t i = log->counted; i < cursor; i++) {
        const struct tn_quota_change change = tn_quota_entry(&log->entries[i], 1);

        tn_quota_add(&used, &change);
    }
    for (uint32_t i = log->counted; i > cursor; i--) {
        const struct tn_quota_change change = tn_quota_entry(&log->entries[i - 1], -1);

        tn_quota_add(&used, &change);
    }
    return used;
}

/* Lets the cursor go as far as the quota allows. */
static TN_NOINLINE void cache_set_limits_slow(struct tn_stream_cache *cache)
{
    struct tn_undo_log *log = &cache->log;
    const struct tn_quota here = cache_used(cache, log->cursor);
    struct tn_quota used = here;

    tn_assert(tn_quota_covers(&cache->quota, &here));
    log->ceiling = log->cursor;
    while (log->ceiling < log->end) {
        const struct tn_quota_change change = tn_quota_entry(&log->entries[log->ceiling], 1);

        tn_quota_add(&used, &change);
        if (!tn_quota_covers(&cache->quota, &used)) {
            break;
        }
        log->ceiling++;
    }
    used = here;
    log->floor = log->cursor;
    while (log->floor > 0) {
        const struct tn_quota_change change = tn_quota_entry(&log->entries[log->floor - 1], -1);

        tn_quota_add(&used, &change);
        if (!tn_quota_covers(&cache->quota, &used)) {
            break;
        }
        log->floor--;
    }
}

static inline void cache_set_limits(struct tn_stream_cache *cache)
{
    if (cache->log.end > 0) {
        cache_set_limits_slow(cache);
    }
}

/* Takes what is lacking, or half of what the other cache does not use if that is more. Both are
 * held. */
static void cache_take_quota(struct tn_stream_cache *cache, struct tn_stream_cache *other,
                             const struct tn_quota *wanted)
{
    const struct tn_quota others = cache_used(other, other->log.cursor);

    for (int c = 0; c < TN_QUOTA_COUNTERS; c++) {
        for (int stat = 0; stat < TARN_STAT_POOLS; stat++) {
            const int64_t lacking = wanted->of[c][stat] - cache->quota.of[c][stat];
            const int64_t idle = other->quota.of[c][stat] - others.of[c][stat];

            if (lacking > 0) {
                const int64_t half = idle / 2 > lacking ? idle / 2 : lacking;
                const int64_t taken = half < idle ? half : idle;

                cache->quota.of[c][stat] += taken;
                other->quota.of[c][stat] -= taken;
            }
        }
    }
    cache_set_limits(other);
}

/* Asks one other cache, unless it is in use right now. */
static bool cache_ask(struct tn_stream_cache *cache, struct tn_stream_cache *other,
                      const struct tn_quota *wanted)
{
    if (!tn_biased_lock_try(&other->lock)) {
        return false;
    }
    if (other->open) {
        cache_take_quota(cache, other, wanted);
    }
    tn_biased_lock_leave(&other->lock);
    return tn_quota_covers(&cache->quota, wanted);
}

/* Asks the other caches, one after the other, for what is lacking; false when they have too
 * little, or when this one has asked so often that it is time to look whether caches pay. */
static TN_NOINLINE bool cache_find_quota(struct tn_stream_caches *caches,
                                         struct tn_stream_cache *cache,
                                         const struct tn_quota *wanted)
{
    const uint32_t count = atomic_load_explicit(&caches->count, memory_order_acquire);
    const uint32_t rounds = cache->asked < SLOW_CALLS_LOOK ? ASKING_ROUNDS : 0;
    bool found = false;

    tn_assert(!tn_quota_covers(&cache->quota, wanted));
    cache->asked += rounds > 0;
    for (uint32_t round = 0; round < rounds && !found; round++) {
        for (uint32_t i = 1; i < count && !found; i++) {
            found = cache_ask(cache, caches->list[(cache->number + i) % count], wanted);
        }
    }
    cache_set_limits(cache);
    return found;
}

/* Whether the cursor may go there, if need be with quota from other caches. */
static TN_NOINLINE bool cache_may_move(struct tn_stream_caches *caches,
                                       struct tn_stream_cache *cache, uint32_t cursor)
{
    const struct tn_quota wanted = cache_used(cache, cursor);

    return cache_find_quota(caches, cache, &wanted);
}

static TN_NOINLINE bool cache_may_change_slow(struct tn_stream_caches *caches,
                                              struct tn_stream_cache *cache,
                                              const struct tn_quota_change *change)
{
    struct tn_quota wanted = tn_quota_used(&cache->shard.counters);

    tn_quota_add(&wanted, change);
    return cache_find_quota(caches, cache, &wanted);
}

/* Whether a call may change the counters so; the log is counted. */
static inline bool cache_may_change(struct tn_stream_caches *caches, struct tn_stream_cache *cache,
                                    const struct tn_quota_change *change)
{
    return tn_likely(tn_quota_allows(&cache->quota, &cache->shard.counters, change)) ||
           cache_may_change_slow(caches, cache, change);
}

/* ---- without the heap's lock ---- */

static void cache_count(struct tn_stream_cache *cache)
{
    cache->hits += tn_undo_log_count_below_peaks(&cache->log, &cache->shard.counters);
}

/* Redoes the next entry of the log if it is this request, if need be with quota from other
 * caches. */
static const struct tn_undo_entry *cache_redo(struct tn_stream_caches *caches,
                                              struct tn_stream_cache *cache, uint64_t requested)
{
    struct tn_undo_log *log = &cache->log;
    const struct tn_undo_entry *entry = tn_undo_log_redo(log, requested, cache->stream);

    if (tn_likely(entry) || log->cursor < log->ceiling || log->cursor == log->end ||
        !cache_may_move(caches, cache, log->cursor + 1)) {
        return entry;
    }
    return tn_undo_log_redo(log, requested, cache->stream);
}

/* Whether only the quota keeps the log from serving the next call: the heap's lock lets it. */
static bool log_is_held_up(const struct tn_undo_log *log)
{
    return log->cursor == log->ceiling && log->cursor < log->end;
}

/* Finds a free block for the request, as tn_request_prepare and tn_best_fit do, but with what the
 * cache has; host memory may be taken for its map only. */
static bool cache_find_block(const struct tn_stream_cache *cache, struct tn_ptr_map *map,
                             struct tn_heap *heap, struct tn_request *request)
{
    if (request->requested >= TN_MAX_REQUEST) {
        return false;
    }
    tn_request_route(heap, request, NULL);
    request->set = cache->sets[tn_counter_pool(request->pool->is_small)];
    return request->size < heap->config.max_split_size && /* else the heap counts it */
           request->set && !request->set->linked.first && cache->shard.spare_count > 0 &&
           tn_ptr_map_reserve(map, 1) && tn_best_fit(heap, request);
}

/* What allocating the block found will do to the counters. */
static struct tn_quota_change request_change(const struct tn_heap *heap,
                                             const struct tn_request *request)
{
    const struct tn_block *block = request->block;
    const bool split = tn_request_splits(heap, request);
    const uint64_t size = split ? request->size : block->size;
    const struct tn_split_change parts =
        tn_split_change(block, tn_block_is_split(block), size, block->size - size);

    return (struct tn_quota_change){
        .of = {1, (int64_t)size, (int64_t)request->requested, parts.blocks, parts.bytes},
        .pool = tn_counter_pool(request->pool->is_small),
    };
}

/* It has served so many calls that it is time to look whether caches pay: the next one goes to the
 * heap. */
static bool cache_is_due(const struct tn_stream_cache *cache)
{
    return tn_unlikely(cache->hits >= HITS_LOOK);
}

/* Allocates from the stream's free blocks, as the heap would. */
static bool cache_serve(struct tn_stream_caches *caches, struct tn_stream_cache *cache,
                        struct tn_heap *heap, struct tn_request *request)
{
    struct tn_shard *shard = &cache->shard;

    cache_count(cache);
    tn_undo_log_flush(heap, shard, &cache->log);
    if (cache_is_due(cache) || !cache_find_block(cache, &shard->map, heap, request)) {
        cache_set_limits(cache); /* flushed, the log has none */
        return false;
    }
    const struct tn_quota_change change = request_change(heap, request);

    if (!cache_may_change(caches, cache, &change)) {
        tn_pool_insert(request->block);
        return false;
    }
    tn_serve_alloc(heap, shard, &cache->log, request, NULL);
    cache_set_limits(cache);
    cache->hits++;
    return true;
}

bool tn_stream_cache_alloc(struct tn_stream_caches *caches, struct tn_heap *heap,
                           uint64_t requested, tarn_stream stream, tarn_ptr *ptr_out)
{
    struct tn_stream_cache *cache = hint.cache;
    bool served = false;

    if (hint.id != caches->id || cache->stream != stream) {
        return false;
    }
    tn_biased_lock_acquire(&cache->lock);
    if (tn_likely(cache->open)) {
        const struct tn_undo_entry *entry = cache_redo(caches, cache, requested);
        struct tn_request request = {.requested = requested, .stream = stream};

        served =
            entry || (!log_is_held_up(&cache->log) && cache_serve(caches, cache, heap, &request));
        if (served) {
            *ptr_out = entry ? entry->address : request.block->address;
        }
    }
    tn_biased_lock_release(&cache->lock);
    return served;
}

/* Undoes the newest entry of the log if it is this pointer. That can need quota as well: free parts
 * of segments grow. */
static bool cache_undo(struct tn_stream_caches *caches, struct tn_stream_cache *cache, tarn_ptr ptr)
{
    struct tn_undo_log *log = &cache->log;

    return tn_likely(tn_undo_log_undo(log, ptr) != NULL) ||
           (log->cursor > 0 && log->cursor == log->floor &&
            cache_may_move(caches, cache, log->cursor - 1) && tn_undo_log_undo(log, ptr) != NULL);
}

/* What freeing the block will do to the counters, at most. */
static struct tn_quota_change block_free_change(const struct tn_block *block)
{
    const int64_t size = (int64_t)block->size;

    return (struct tn_quota_change){
        .of = {-1, -size, -(int64_t)block->requested_size, block->expandable ? 0 : 1,
               block->expandable ? 0 : size},
        .pool = tn_counter_pool(block->set->pool->is_small),
    };
}

/* Frees a block that was allocated through this cache and that no other stream uses. */
static bool cache_free(struct tn_stream_caches *caches, struct tn_stream_cache *cache,
                       struct tn_heap *heap, tarn_ptr ptr)
{
    struct tn_shard *shard = &cache->shard;

    cache_count(cache);
    tn_undo_log_invalidate(heap, shard, &cache->log);
    uint64_t *slot = tn_ptr_map_slot(&shard->map, ptr);

    if (!slot) {
        return false;
    }
    struct tn_block *block = tn_ptr_entry_block(*slot);
    const struct tn_quota_change most = block_free_change(block);

    /* Nobody receives events while caches are open, so what they allocate has no stack. */
    if (block->uses != 0 || tn_never(block->u.stack != 0) ||
        block->size >= heap->config.max_split_size || !cache_may_change(caches, cache, &most)) {
        return false;
    }
    tn_heap_mark_free(heap, shard, block, false, 0);
    tn_ptr_map_remove(&shard->map, slot);
    cache->hits++;
    return true;
}

bool tn_stream_cache_free(struct tn_stream_caches *caches, struct tn_heap *heap, tarn_ptr ptr)
{
    struct tn_stream_cache *cache = hint.cache;

    if (hint.id != caches->id) {
        return false;
    }
    tn_biased_lock_acquire(&cache->lock);
    const bool freed =
        cache->open && (cache_undo(caches, cache, ptr) || cache_free(caches, cache, heap, ptr));

    tn_biased_lock_release(&cache->lock);
    return freed;
}

/* ---- with the heap's lock ---- */

/* Takes a quota off the peaks. */
static void cache_grant(struct tn_stream_cache *cache, struct tn_counters *counters,
                        const struct tn_quota *share)
{
    tn_quota_move_peaks(share, counters, -1);
    cache->quota = *share;
    cache_set_limits(cache);
}

/* Gives the quota back, and counts what the cache did. */
static void cache_return_quota(struct tn_stream_cache *cache, struct tn_counters *counters)
{
    cache_count(cache);
    tn_quota_move_peaks(&cache->quota, counters, 1);
    cache->quota = (struct tn_quota){{{0}}};
    tn_quota_fold(counters, &cache->shard.counters);
}

/* What the cache needs to reach both ends of its log. */
static struct tn_quota cache_needs(const struct tn_stream_cache *cache)
{
    const struct tn_undo_log *log = &cache->log;
    struct tn_quota used = {{{0}}};
    struct tn_quota needs = {{{0}}};

    for (uint32_t i = log->cursor; i < log->end; i++) {
        const struct tn_quota_change change = tn_quota_entry(&log->entries[i], 1);

        tn_quota_add(&used, &change);
        tn_quota_raise(&needs, &used);
    }
    used = (struct tn_quota){{{0}}};
    for (uint32_t i = log->cursor; i > 0; i--) {
        const struct tn_quota_change change = tn_quota_entry(&log->entries[i - 1], -1);

        tn_quota_add(&used, &change);
        tn_quota_raise(&needs, &used);
    }
    return needs;
}

/* What it needs or its part of the room for so many caches, if that is more; not more than there
 * is. */
static struct tn_quota cache_share(const struct tn_stream_cache *cache, struct tn_quota *room,
                                   int64_t caches_left)
{
    struct tn_quota share = cache_needs(cache);

    for (int c = 0; c < TN_QUOTA_COUNTERS; c++) {
        for (int stat = 0; stat < TARN_STAT_POOLS; stat++) {
            const int64_t left = room->of[c][stat];
            const int64_t part = tn_always(caches_left > 0) ? left / caches_left : left;
            const int64_t wanted = share.of[c][stat] > part ? share.of[c][stat] : part;

            share.of[c][stat] = wanted < left ? wanted : left;
            room->of[c][stat] -= share.of[c][stat];
        }
    }
    return share;
}

void tn_stream_caches_collect(struct tn_stream_caches *caches, struct tn_heap *heap)
{
    for (uint32_t i = 0; i < caches->count; i++) {
        struct tn_stream_cache *cache = caches->list[i];

        if (cache->open) { /* changes under the heap's lock only */
            if (tn_unlikely(heap->lock.visited)) {
                tn_biased_lock_visit_another(&cache->lock);
            } else {
                tn_biased_lock_acquire_another(&cache->lock);
            }
            cache_return_quota(cache, &heap->shard.counters);
            caches->is_due = caches->is_due || cache_is_due(cache);
            caches->slow_calls += cache->asked;
            cache->asked = 0;
        }
    }
    caches->slow_calls += !heap->lock.visited;
}

/* Nodes that it can work with. A cache without any goes to the heap for each split, so it does not
 * matter when they cannot be had. */
static void cache_stock(struct tn_stream_cache *cache, struct tn_heap *heap)
{
    struct tn_shard *shard = &cache->shard;

    (void)tn_heap_reserve_spares(heap, shard, SPARES_WANTED);
    while (tn_unlikely(shard->spare_count > SPARES_MAX)) {
        tn_block_destroy(tn_shard_take_spare(shard));
    }
}

static int64_t caches_count_open(const struct tn_stream_caches *caches)
{
    int64_t count = 0;

    for (uint32_t i = 0; i < caches->count; i++) {
        count += caches->list[i]->open;
    }
    return count;
}

void tn_stream_caches_redistribute(struct tn_stream_caches *caches, struct tn_heap *heap)
{
    struct tn_counters *counters = &heap->shard.counters;
    struct tn_quota room = tn_quota_room(counters);
    const uint32_t first = caches->first++; /* in turn: not always the same get enough */
    int64_t left = caches_count_open(caches);

    for (uint32_t i = 0; i < caches->count; i++) {
        struct tn_stream_cache *cache = caches->list[(first + i) % caches->count];

        if (cache->open) {
            const struct tn_quota share = cache_share(cache, &room, left--);

            cache_stock(cache, heap);
            cache_grant(cache, counters, &share);
            tn_biased_lock_leave(&cache->lock);
        }
    }
}

void tn_stream_caches_excuse(struct tn_stream_caches *caches)
{
    caches->slow_calls--;
}

struct tn_stream_cache *tn_stream_caches_find(const struct tn_stream_caches *caches,
                                              tarn_stream stream)
{
    for (uint32_t i = 0; i < caches->count; i++) {
        struct tn_stream_cache *cache = caches->list[i];

        if (cache->open && cache->stream == stream) {
            return cache;
        }
    }
    return NULL;
}

void tn_stream_caches_remember(const struct tn_stream_caches *caches, tarn_stream stream)
{
    struct tn_stream_cache *cache = tn_stream_caches_find(caches, stream);

    if (cache) {
        hint = (struct cache_hint){.id = caches->id, .cache = cache};
    }
}

void tn_stream_caches_close(struct tn_stream_caches *caches)
{
    for (uint32_t i = 0; i < caches->count; i++) {
        struct tn_stream_cache *cache = caches->list[i];

        if (cache->open) {
            tn_assert(cache->log.end == 0);
            cache->open = false;
            tn_biased_lock_leave(&cache->lock);
        }
    }
    atomic_store_explicit(&caches->open, false, memory_order_relaxed);
}

/* The peaks of its counters mean nothing: only the heap's do. */
static void shard_join(struct tn_shard *shard, struct tn_heap *heap)
{
    shard->spares_kept = UINT32_MAX; /* the slab is the heap's, too */
    shard->next = heap->shard.next;
    heap->shard.next = shard;
}

/* The stream's closed cache, created if need be; NULL if it cannot be. */
static struct tn_stream_cache *caches_get(struct tn_stream_caches *caches, struct tn_heap *heap,
                                          tarn_stream stream)
{
    const uint32_t count = caches->count;

    for (uint32_t i = 0; i < count; i++) {
        if (caches->list[i]->stream == stream) {
            return caches->list[i];
        }
    }
    struct tn_stream_cache *cache =
        count < TN_STREAM_CACHES_MAX ? tn_host_alloc_zero(sizeof *cache) : NULL;

    if (cache) {
        tn_biased_lock_init(&cache->lock, TN_LOCK_STREAM_CACHE);
        cache->stream = stream;
        cache->number = count;
        shard_join(&cache->shard, heap);
        caches->list[count] = cache;
        atomic_store_explicit(&caches->count, count + 1, memory_order_release);
    }
    return cache;
}

/* Opens the stream's cache, collected as the others are; false when it is open or there is none. */
static bool caches_open(struct tn_stream_caches *caches, struct tn_heap *heap, tarn_stream stream)
{
    struct tn_stream_cache *cache =
        tn_stream_caches_find(caches, stream) ? NULL : caches_get(caches, heap, stream);

    if (cache) {
        tn_biased_lock_acquire_another(&cache->lock);
        cache->sets[TN_SMALL] = tn_pool_get_set(&heap->small, stream);
        cache->sets[TN_LARGE] = tn_pool_get_set(&heap->large, stream);
        cache->hits = 0;
        cache->open = true;
        atomic_store_explicit(&caches->open, true, memory_order_relaxed);
    }
    return cache != NULL;
}

static TN_NOINLINE void caches_look(struct tn_stream_caches *caches, uint32_t waits)
{
    if (waits - caches->waits_seen < caches->patience) {
        return;
    }
    if (caches->changes >= caches->patience / 4) {
        caches->calls_left = CALLS_THAT_OPEN;
    }
    caches->waits_seen = waits;
    caches->changes = 0;
}

bool tn_stream_caches_consider_slow(struct tn_stream_caches *caches, struct tn_heap *heap,
                                    tarn_stream stream)
{
    const uint32_t waits = heap->lock.waits;
    bool opened = false;

    if (caches->calls_left > 0) {
        caches->calls_left--;
        opened = caches_open(caches, heap, stream);
    }
    if (waits != caches->waits_seen) {
        caches->changes += stream != caches->last_stream;
        caches->last_stream = stream;
        caches_look(caches, waits);
    }
    return opened;
}

/* Calls that the caches served since the last look, but for those of the busiest: were it the only
 * one in use, the heap would have served them as fast. Starts to count again. */
static uint64_t caches_count_hits(struct tn_stream_caches *caches)
{
    uint64_t all = 0;
    uint64_t most = 0;

    for (uint32_t i = 0; i < caches->count; i++) {
        struct tn_stream_cache *cache = caches->list[i];

        if (cache->open) {
            all += cache->hits;
            most = cache->hits > most ? cache->hits : most;
            cache->hits = 0;
        }
    }
    return all - most;
}

bool tn_stream_caches_pay(struct tn_stream_caches *caches)
{
    if (tn_likely(caches->slow_calls < SLOW_CALLS_LOOK && !caches->is_due)) {
        return true;
    }
    const bool pay = caches_count_hits(caches) >= caches->slow_calls * HITS_THAT_PAY;

    caches->slow_calls = 0;
    caches->is_due = false;
    if (pay) {
        caches->patience = PATIENCE_FIRST;
    } else {
        caches->patience = caches->patience < PATIENCE_MAX ? 2 * caches->patience : PATIENCE_MAX;
        caches->calls_left = 0;
    }
    return pay;
}
