/* SPDX-License-Identifier: MIT */
#include "alloc/fast/stream_cache.h"

#include "base/host_mem.h"

enum {
    PATIENCE_FIRST = 32, /* waits for the heap's lock before caches open */
    PATIENCE_MAX = 1 << 20,
    CALLS_THAT_OPEN = 512,  /* then, each the cache of its stream */
    SLOW_CALLS_LOOK = 1024, /* calls that take all caches, between two checks whether they pay */
    ASKING_ROUNDS = 3,      /* of all caches, before the call goes to the heap */
    HITS_THAT_PAY = 8       /* for each call that takes all caches */
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
        tn_biased_lock_fini(&caches->list[i]->lock);
        tn_host_free(caches->list[i], sizeof *caches->list[i]);
    }
}

/* ---- quotas ---- */

static unsigned pool_stat(unsigned pool)
{
    return TARN_STAT_SMALL_POOL + pool;
}

/* Adds what an entry does to the counters, or takes it away. */
static void quota_add(struct tn_quota *quota, const struct tn_undo_entry *entry, int64_t sign)
{
    const int64_t change[TN_QUOTA_COUNTERS] = {1, (int64_t)entry->block->size,
                                               (int64_t)entry->requested, entry->split_blocks,
                                               entry->split_bytes};

    for (int c = 0; c < TN_QUOTA_COUNTERS; c++) {
        quota->of[c][TARN_STAT_ALL] += sign * change[c];
        quota->of[c][pool_stat(entry->pool)] += sign * change[c];
    }
}

/* Raises `most` to at least `quota`, counter by counter. */
static void quota_raise(struct tn_quota *most, const struct tn_quota *quota)
{
    for (int c = 0; c < TN_QUOTA_COUNTERS; c++) {
        for (int stat = 0; stat < TARN_STAT_POOLS; stat++) {
            if (quota->of[c][stat] > most->of[c][stat]) {
                most->of[c][stat] = quota->of[c][stat];
            }
        }
    }
}

/* Whether the quota covers what is used. */
static bool cache_affords(const struct tn_stream_cache *cache, const struct tn_quota *used)
{
    bool affords = true;

    for (int c = 0; c < TN_QUOTA_COUNTERS; c++) {
        for (int stat = 0; stat < TARN_STAT_POOLS; stat++) {
            affords = affords && used->of[c][stat] <= cache->quota.of[c][stat];
        }
    }
    return affords;
}

/* What the cache would have added since it was last collected, were its cursor there. */
static struct tn_quota cache_used(const struct tn_stream_cache *cache, uint32_t cursor)
{
    const struct tn_undo_log *log = &cache->log;
    struct tn_quota used = {{{0}}};

    for (uint32_t i = log->counted; i < cursor; i++) {
        quota_add(&used, &log->entries[i], 1);
    }
    for (uint32_t i = log->counted; i > cursor; i--) {
        quota_add(&used, &log->entries[i - 1], -1);
    }
    return used;
}

/* Lets the cursor go as far as the quota allows. */
static void cache_set_limits(struct tn_stream_cache *cache)
{
    struct tn_undo_log *log = &cache->log;
    const struct tn_quota here = cache_used(cache, log->cursor);
    struct tn_quota used = here;

    tn_assert(cache_affords(cache, &here));
    log->ceiling = log->cursor;
    while (log->ceiling < log->end) {
        quota_add(&used, &log->entries[log->ceiling], 1);
        if (!cache_affords(cache, &used)) {
            break;
        }
        log->ceiling++;
    }
    used = here;
    log->floor = log->cursor;
    while (log->floor > 0) {
        quota_add(&used, &log->entries[log->floor - 1], -1);
        if (!cache_affords(cache, &used)) {
            break;
        }
        log->floor--;
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
    return cache_affords(cache, wanted);
}

/* Asks the other caches, one after the other, until the cursor may go there; false when they have
 * too little. */
static TN_NOINLINE bool cache_find_quota(struct tn_stream_caches *caches,
                                         struct tn_stream_cache *cache, uint32_t cursor)
{
    const uint32_t count = atomic_load_explicit(&caches->count, memory_order_acquire);
    const struct tn_quota wanted = cache_used(cache, cursor);
    bool found = cache_affords(cache, &wanted);

    for (uint32_t round = 0; round < ASKING_ROUNDS && !found; round++) {
        for (uint32_t i = 1; i < count && !found; i++) {
            found = cache_ask(cache, caches->list[(cache->number + i) % count], &wanted);
        }
    }
    cache_set_limits(cache);
    return found;
}

/* ---- without the heap's lock ---- */

static const struct tn_undo_entry *cache_redo(struct tn_stream_caches *caches,
                                              struct tn_stream_cache *cache, uint64_t requested)
{
    struct tn_undo_log *log = &cache->log;
    const struct tn_undo_entry *entry = tn_undo_log_redo(log, requested, cache->stream);

    if (tn_likely(entry) || log->cursor < log->ceiling || log->cursor == log->end ||
        !cache_find_quota(caches, cache, log->cursor + 1)) {
        return entry;
    }
    return tn_undo_log_redo(log, requested, cache->stream);
}

bool tn_stream_cache_alloc(struct tn_stream_caches *caches, uint64_t requested, tarn_stream stream,
                           tarn_ptr *ptr_out)
{
    struct tn_stream_cache *cache = hint.cache;
    const struct tn_undo_entry *entry = NULL;

    if (hint.id != caches->id || cache->stream != stream) {
        return false;
    }
    tn_biased_lock_acquire(&cache->lock);
    if (tn_likely(cache->open)) {
        entry = cache_redo(caches, cache, requested);
    }
    if (tn_likely(entry)) {
        *ptr_out = entry->address;
    }
    tn_biased_lock_release(&cache->lock);
    return entry != NULL;
}

/* Undoing can need quota as well: free parts of segments grow. */
static bool cache_undo(struct tn_stream_caches *caches, struct tn_stream_cache *cache, tarn_ptr ptr)
{
    struct tn_undo_log *log = &cache->log;

    if (tn_likely(tn_undo_log_undo(log, ptr) != NULL)) {
        return true;
    }
    return log->cursor > 0 && log->cursor == log->floor &&
           cache_find_quota(caches, cache, log->cursor - 1) && tn_undo_log_undo(log, ptr) != NULL;
}

bool tn_stream_cache_free(struct tn_stream_caches *caches, tarn_ptr ptr)
{
    struct tn_stream_cache *cache = hint.cache;

    if (hint.id != caches->id) {
        return false;
    }
    tn_biased_lock_acquire(&cache->lock);
    const bool freed = cache->open && cache_undo(caches, cache, ptr);

    tn_biased_lock_release(&cache->lock);
    return freed;
}

/* ---- with the heap's lock ---- */

/* The heap's counters in the order of a quota's. */
static void list_counters(struct tn_counters *counters, struct tn_counter *list[TN_QUOTA_COUNTERS])
{
    list[0] = &counters->blocks.out;
    list[1] = &counters->bytes.out;
    list[2] = &counters->requested;
    list[3] = &counters->split;
    list[4] = &counters->split_bytes;
}

/* Takes a quota off the peaks. */
static void cache_grant(struct tn_stream_cache *cache, struct tn_counter *list[TN_QUOTA_COUNTERS],
                        const struct tn_quota *share)
{
    for (int c = 0; c < TN_QUOTA_COUNTERS; c++) {
        for (int stat = 0; stat < TARN_STAT_POOLS; stat++) {
            list[c]->peak[stat] -= share->of[c][stat];
        }
    }
    cache->quota = *share;
    cache_set_limits(cache);
}

/* Gives the quota back, and counts what the cache did. */
static uint64_t cache_return_quota(struct tn_stream_cache *cache, struct tn_counters *counters)
{
    struct tn_counter *list[TN_QUOTA_COUNTERS];

    list_counters(counters, list);
    for (int c = 0; c < TN_QUOTA_COUNTERS; c++) {
        for (int stat = 0; stat < TARN_STAT_POOLS; stat++) {
            list[c]->peak[stat] += cache->quota.of[c][stat];
        }
    }
    cache->quota = (struct tn_quota){{{0}}};
    return tn_undo_log_count_below_peaks(&cache->log, counters);
}

/* What the cache needs to reach both ends of its log, but no more than is left. */
static struct tn_quota cache_share(const struct tn_stream_cache *cache, struct tn_quota *room)
{
    const struct tn_undo_log *log = &cache->log;
    struct tn_quota used = {{{0}}};
    struct tn_quota share = {{{0}}};

    for (uint32_t i = log->cursor; i < log->end; i++) {
        quota_add(&used, &log->entries[i], 1);
        quota_raise(&share, &used);
    }
    used = (struct tn_quota){{{0}}};
    for (uint32_t i = log->cursor; i > 0; i--) {
        quota_add(&used, &log->entries[i - 1], -1);
        quota_raise(&share, &used);
    }
    for (int c = 0; c < TN_QUOTA_COUNTERS; c++) {
        for (int stat = 0; stat < TARN_STAT_POOLS; stat++) {
            const int64_t left = room->of[c][stat];

            share.of[c][stat] = share.of[c][stat] < left ? share.of[c][stat] : left;
            room->of[c][stat] -= share.of[c][stat];
        }
    }
    return share;
}

/* The room between the current values and the peaks. */
static struct tn_quota counters_below_peaks(struct tn_counter *list[TN_QUOTA_COUNTERS])
{
    struct tn_quota room;

    for (int c = 0; c < TN_QUOTA_COUNTERS; c++) {
        const struct tn_counter *counter = list[c];

        room.of[c][TARN_STAT_ALL] = counter->peak[TARN_STAT_ALL] - tn_counter_all(counter);
        for (unsigned pool = 0; pool < TN_POOLS; pool++) {
            room.of[c][pool_stat(pool)] = counter->peak[pool_stat(pool)] - counter->current[pool];
        }
    }
    return room;
}

void tn_stream_caches_collect(struct tn_stream_caches *caches, struct tn_counters *counters)
{
    for (uint32_t i = 0; i < caches->count; i++) {
        struct tn_stream_cache *cache = caches->list[i];

        if (cache->open) { /* changes under the heap's lock only */
            tn_biased_lock_acquire_another(&cache->lock);
            caches->hits += cache_return_quota(cache, counters);
        }
    }
    caches->slow_calls++;
}

void tn_stream_caches_redistribute(struct tn_stream_caches *caches, struct tn_counters *counters)
{
    struct tn_counter *list[TN_QUOTA_COUNTERS];

    list_counters(counters, list);
    struct tn_quota room = counters_below_peaks(list);
    const uint32_t first = caches->first++; /* in turn: not always the same get enough */

    for (uint32_t i = 0; i < caches->count; i++) {
        struct tn_stream_cache *cache = caches->list[(first + i) % caches->count];

        if (cache->open) {
            const struct tn_quota share = cache_share(cache, &room);

            cache_grant(cache, list, &share);
            tn_biased_lock_leave(&cache->lock);
        }
    }
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

/* The stream's closed cache, created if need be; NULL if it cannot be. */
static struct tn_stream_cache *caches_get(struct tn_stream_caches *caches, tarn_stream stream)
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
        caches->list[count] = cache;
        atomic_store_explicit(&caches->count, count + 1, memory_order_release);
    }
    return cache;
}

/* Opens the stream's cache, collected as the others are; false when it is open or there is none. */
static bool caches_open(struct tn_stream_caches *caches, tarn_stream stream)
{
    struct tn_stream_cache *cache =
        tn_stream_caches_find(caches, stream) ? NULL : caches_get(caches, stream);

    if (cache) {
        tn_biased_lock_acquire_another(&cache->lock);
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

bool tn_stream_caches_consider_slow(struct tn_stream_caches *caches, uint32_t waits,
                                    tarn_stream stream)
{
    bool opened = false;

    if (caches->calls_left > 0) {
        caches->calls_left--;
        opened = caches_open(caches, stream);
    }
    if (waits != caches->waits_seen) {
        caches->changes += stream != caches->last_stream;
        caches->last_stream = stream;
        caches_look(caches, waits);
    }
    return opened;
}

bool tn_stream_caches_pay(struct tn_stream_caches *caches)
{
    if (tn_likely(caches->slow_calls < SLOW_CALLS_LOOK)) {
        return true;
    }
    const bool pay = caches->hits >= caches->slow_calls * HITS_THAT_PAY;

    caches->slow_calls = 0;
    caches->hits = 0;
    if (!pay && caches->patience < PATIENCE_MAX) {
        caches->patience *= 2;
    }
    return pay;
}
