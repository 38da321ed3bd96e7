/* SPDX-License-Identifier: MIT */
#include "alloc/pool/private_pool.h"

#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/host_mem.h"

#include <string.h>

static enum tarn_status pool_not_found(struct tarn_pool_id id, struct tarn_error *error)
{
    return tn_fail(error, TARN_ERR_NOT_FOUND, "there is no private pool (%llu, %llu)",
                   (unsigned long long)id.first, (unsigned long long)id.second);
}

struct tn_private_pool *tn_private_pool_find(const struct tn_private_pools *pools,
                                             struct tarn_pool_id id)
{
    const struct tn_pool_record *record = tn_pool_record_find(&pools->records, id);

    return record ? record->pool : NULL;
}

/* Puts it behind another one; NULL: first. */
static void list_add(struct tn_private_pools *pools, struct tn_private_pool *pool,
                     struct tn_private_pool *prev)
{
    struct tn_private_pool *next = prev ? prev->next : pools->first;

    pool->prev = prev;
    pool->next = next;
    *(prev ? &prev->next : &pools->first) = pool;
    *(next ? &next->prev : &pools->last) = pool;
}

static void list_remove(struct tn_private_pools *pools, const struct tn_private_pool *pool)
{
    *(pool->prev ? &pool->prev->next : &pools->first) = pool->next;
    *(pool->next ? &pool->next->prev : &pools->last) = pool->prev;
}

static struct tn_private_pool *pool_create(struct tn_private_pools *pools, struct tarn_pool_id id)
{
    struct tn_pool_record *record = tn_pool_record_acquire(&pools->records, id);
    struct tn_private_pool *pool = record ? tn_host_alloc_zero(sizeof *pool) : NULL;

    if (!pool) {
        if (record) {
            tn_pool_record_tidy(&pools->records, record);
        }
        return NULL;
    }
    record->pool = pool;
    pool->record = record;
    pool->id = id;
    pool->limit = UINT64_MAX;
    tn_pool_init(&pool->small, true, pool, pools->by_age);
    tn_pool_init(&pool->large, false, pool, pools->by_age);
    pool->small.find_count = pools->find_count;
    pool->large.find_count = pools->find_count;
    list_add(pools, pool, pools->last);
    return pool;
}

enum tarn_status tn_private_pool_acquire(struct tn_private_pools *pools, struct tarn_pool_id id,
                                         struct tarn_error *error)
{
    struct tn_private_pool *pool = tn_private_pool_find(pools, id);

    if (id.first == 0 && id.second == 0) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "pool (0, 0) is the default pool and cannot be used as a private one");
    }
    if (pool && pool->freeable) {
        return tn_fail(error, TARN_ERR_STATE,
                       "private pool (%llu, %llu) was released and is being freed",
                       (unsigned long long)id.first, (unsigned long long)id.second);
    }
    if (!pool) {
        pool = pool_create(pools, id);
        if (!pool) {
            return tn_fail_memory(error);
        }
    }
    pool->use_count++;
    return TARN_OK;
}

enum tarn_status tn_private_pool_create_from(struct tn_private_pools *pools, struct tarn_pool_id id,
                                             const struct tarn_pool_source *source,
                                             struct tarn_error *error)
{
    if (tn_private_pool_find(pools, id)) {
        return tn_fail(error, TARN_ERR_STATE,
                       "private pool (%llu, %llu) exists already: only a new one can have a source",
                       (unsigned long long)id.first, (unsigned long long)id.second);
    }
    const enum tarn_status st = tn_private_pool_acquire(pools, id, error);
    struct tn_private_pool *pool = st ? NULL : tn_private_pool_find(pools, id);

    if (pool) {
        pool->source = *source;
    }
    return st;
}

static void pool_destroy(struct tn_private_pool *pool)
{
    tn_pool_fini(&pool->small);
    tn_pool_fini(&pool->large);
    if (pool->asleep) {
        pool->asleep_gone(pool->asleep);
    }
    if (pool->source.gone) {
        pool->source.gone(pool->source.context);
    }
    tn_host_free(pool, sizeof *pool);
}

enum tarn_status tn_private_pool_check_awake(const struct tn_private_pool *pool,
                                             struct tarn_error *error)
{
    return pool && pool->sleeps
               ? tn_fail(error, TARN_ERR_STATE,
                         "private pool (%llu, %llu) is asleep: wake it first",
                         (unsigned long long)pool->id.first, (unsigned long long)pool->id.second)
               : TARN_OK;
}

enum tarn_status tn_private_pool_release(struct tn_private_pools *pools, struct tarn_pool_id id,
                                         struct tarn_error *error)
{
    struct tn_private_pool *pool = tn_private_pool_find(pools, id);

    if (!pool || pool->use_count == 0) {
        return pool_not_found(id, error);
    }
    pool->use_count--;
    if (pool->use_count == 0) {
        pool->freeable = true;
    }
    return TARN_OK;
}

static struct tn_pool_route *route_find(const struct tn_private_pools *pools,
                                        struct tarn_pool_id id)
{
    for (uint32_t i = 0; i < pools->route_count; i++) {
        if (tn_pool_id_equal(pools->routes[i].pool->id, id)) {
            return &pools->routes[i];
        }
    }
    return NULL;
}

static bool routes_reserve(struct tn_private_pools *pools)
{
    if (pools->route_count < pools->route_capacity) {
        return true;
    }
    const uint32_t wanted = pools->route_capacity ? pools->route_capacity * 2 : 4;
    struct tn_pool_route *moved =
        tn_host_resize(pools->routes, pools->route_capacity * sizeof *pools->routes,
                       wanted * sizeof *pools->routes);

    if (!moved) {
        return false;
    }
    pools->routes = moved;
    pools->route_capacity = wanted;
    return true;
}

enum tarn_status tn_private_pool_begin(struct tn_private_pools *pools, struct tarn_pool_id id,
                                       tarn_pool_filter filter, void *context,
                                       struct tarn_error *error)
{
    if (route_find(pools, id)) {
        return tn_fail(error, TARN_ERR_STATE,
                       "allocations are already routed to private pool (%llu, %llu)",
                       (unsigned long long)id.first, (unsigned long long)id.second);
    }
    if (!routes_reserve(pools)) {
        return tn_fail_memory(error);
    }
    const enum tarn_status st = tn_private_pool_acquire(pools, id, error);
    struct tn_private_pool *pool = st ? NULL : tn_private_pool_find(pools, id);

    if (pool) {
        pool->open = false; /* a graph may come to know its addresses */
        pools->routes[pools->route_count++] =
            (struct tn_pool_route){.pool = pool, .filter = filter, .context = context};
    }
    return st;
}

enum tarn_status tn_private_pool_end(struct tn_private_pools *pools, struct tarn_pool_id id,
                                     struct tarn_error *error)
{
    struct tn_pool_route *route = route_find(pools, id);

    if (!route) {
        return tn_fail(error, TARN_ERR_STATE,
                       "allocations are not routed to private pool (%llu, %llu)",
                       (unsigned long long)id.first, (unsigned long long)id.second);
    }
    pools->route_count--;
    memmove(route, route + 1, (size_t)(&pools->routes[pools->route_count] - route) * sizeof *route);
    return TARN_OK;
}

enum tarn_status tn_private_pools_mark_capture(struct tn_private_pools *pools, bool begins,
                                               struct tarn_error *error)
{
    if (begins ? pools->capture_count == UINT32_MAX : pools->capture_count == 0) {
        return tn_fail(error, TARN_ERR_STATE,
                       begins ? "too many captures are under way" : "no capture is under way");
    }
    pools->capture_count += begins ? 1U : UINT32_MAX;
    return TARN_OK;
}

struct tn_private_pool *tn_private_pool_route(const struct tn_private_pools *pools,
                                              tarn_stream stream)
{
    for (uint32_t i = pools->route_count; i > 0; i--) {
        const struct tn_pool_route *route = &pools->routes[i - 1];

        if (route->filter(route->context, stream)) {
            return route->pool;
        }
    }
    return NULL;
}

bool tn_private_pool_drop(struct tn_private_pools *pools, struct tn_private_pool *pool)
{
    tn_assert(pool->freeable && pool->use_count == 0);
    if (pool->segment_count > 0 || pool->pins > 0 || route_find(pools, pool->id)) {
        return false;
    }
    tn_assert(tn_counter_all(&pool->record->reserved) == 0);
    list_remove(pools, pool);
    tn_pool_record_leave(&pools->records, pool->record);
    pool_destroy(pool);
    return true;
}

void tn_private_pool_put_first(struct tn_private_pools *pools, struct tn_private_pool *pool)
{
    list_remove(pools, pool);
    list_add(pools, pool, NULL);
}

void tn_private_pools_fini(struct tn_private_pools *pools)
{
    while (pools->first) {
        struct tn_private_pool *pool = pools->first;

        pools->first = pool->next;
        pool_destroy(pool);
    }
    tn_pool_records_fini(&pools->records);
    tn_host_free(pools->routes, pools->route_capacity * sizeof *pools->routes);
    *pools = (struct tn_private_pools){0};
}
