/* SPDX-License-Identifier: MIT */
#include "alloc/engine/engine_uncached.h"

#include "alloc/config/size_class.h"
#include "alloc/engine/engine_methods.h"
#include "alloc/engine/oom.h"
#include "alloc/pool/private_pool.h"
#include "base/host_mem.h"

/* `direct.lock` guards config, limit and pools too. */
struct uncached {
    struct tarn_allocator base; /* first */
    struct tn_direct_memory direct;
    struct tarn_config config;
    uint64_t limit;
    struct tn_private_pools
        pools; /* that there are, and their uses: nothing is allocated in them */
};

static const struct tn_engine_methods uncached_methods;

static struct uncached *uncached_of(struct tarn_allocator *allocator)
{
    return (struct uncached *)allocator;
}

enum tarn_status tn_uncached_create(struct tarn_device *device, const struct tarn_config *config,
                                    struct tarn_allocator **allocator_out)
{
    struct uncached *uncached = tn_host_alloc_zero(sizeof *uncached);

    if (!uncached) {
        return TARN_ERR_HOST_MEMORY;
    }
    uncached->base = (struct tarn_allocator){.methods = &uncached_methods, .device = device};
    uncached->config = *config;
    uncached->limit = TARN_SIZE_UNLIMITED;
    tn_direct_memory_init(&uncached->direct, device);
    *allocator_out = &uncached->base;
    return TARN_OK;
}

static void uncached_destroy(struct tarn_allocator *allocator)
{
    struct uncached *uncached = uncached_of(allocator);

    tn_private_pools_fini(&uncached->pools);
    tn_direct_memory_fini(&uncached->direct);
    tn_host_free(uncached, sizeof *uncached);
}

static enum tarn_status uncached_alloc(struct tarn_allocator *allocator, uint64_t size,
                                       tarn_stream stream, tarn_ptr *ptr_out,
                                       struct tarn_error *error)
{
    (void)stream;
    return size >= TN_MAX_REQUEST
               ? tn_oom_absurd(error)
               : tn_direct_memory_alloc(&uncached_of(allocator)->direct, size, ptr_out, error);
}

static enum tarn_status uncached_free(struct tarn_allocator *allocator, tarn_ptr ptr,
                                      struct tarn_error *error)
{
    return tn_direct_memory_free(&uncached_of(allocator)->direct, ptr, error);
}

/* The device's free waits for every stream. */
static enum tarn_status uncached_record_stream(struct tarn_allocator *allocator, tarn_ptr ptr,
                                               tarn_stream stream, struct tarn_error *error)
{
    (void)stream;
    return tn_direct_memory_find(&uncached_of(allocator)->direct, ptr, NULL)
               ? TARN_OK
               : tn_pointer_unknown(ptr, error);
}

static enum tarn_status uncached_empty_cache(struct tarn_allocator *allocator,
                                             struct tarn_pool_id id, struct tarn_error *error)
{
    (void)allocator;
    (void)id;
    (void)error;
    return TARN_OK;
}

static enum tarn_status uncached_base_allocation(struct tarn_allocator *allocator, tarn_ptr ptr,
                                                 tarn_ptr *base_out, uint64_t *size_out,
                                                 struct tarn_error *error)
{
    if (!tn_direct_memory_find(&uncached_of(allocator)->direct, ptr, size_out)) {
        return tn_pointer_unknown(ptr, error);
    }
    if (base_out) {
        *base_out = ptr;
    }
    return TARN_OK;
}

static enum tarn_status uncached_ipc_export(struct tarn_allocator *allocator, tarn_ptr ptr,
                                            struct tn_ipc_buffer *buffer, struct tarn_error *error)
{
    return tn_direct_memory_export(&uncached_of(allocator)->direct, ptr, buffer, error);
}

static enum tarn_status uncached_cache_info(struct tarn_allocator *allocator,
                                            uint64_t *largest_in_out, struct tarn_error *error)
{
    struct tarn_device *device = allocator->device;
    uint64_t total;

    if (*largest_in_out != 0) {
        return TARN_OK;
    }
    const enum tarn_status st = device->ops->memory_info(device, largest_in_out, &total);

    return st ? tn_device_failed(device, st, "querying free memory", error) : TARN_OK;
}

static enum tarn_status uncached_set_enabled(struct tarn_allocator *allocator, bool enabled,
                                             struct tarn_error *error)
{
    (void)allocator;
    return enabled ? tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                             "an allocator made without a cache cannot get one")
                   : TARN_OK;
}

static bool uncached_is_enabled(struct tarn_allocator *allocator)
{
    (void)allocator;
    return false;
}

static enum tarn_status uncached_set_fraction(struct tarn_allocator *allocator, double fraction,
                                              struct tarn_error *error)
{
    struct uncached *uncached = uncached_of(allocator);

    if (!(fraction >= 0.0 && fraction <= 1.0)) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "invalid fraction:%g. Please set within [0, 1].", fraction);
    }
    tn_lock_acquire(&uncached->direct.lock);
    uncached->limit = fraction < 1.0
                          ? (uint64_t)(fraction * (double)allocator->device->total_memory)
                          : TARN_SIZE_UNLIMITED;
    tn_lock_release(&uncached->direct.lock);
    return TARN_OK;
}

static uint64_t uncached_get_limit(struct tarn_allocator *allocator)
{
    struct uncached *uncached = uncached_of(allocator);

    tn_lock_acquire(&uncached->direct.lock);
    const uint64_t limit = uncached->limit;

    tn_lock_release(&uncached->direct.lock);
    return limit;
}

static void uncached_get_config(struct tarn_allocator *allocator, struct tarn_config *config_out)
{
    struct uncached *uncached = uncached_of(allocator);

    tn_lock_acquire(&uncached->direct.lock);
    *config_out = uncached->config;
    tn_lock_release(&uncached->direct.lock);
}

static void uncached_set_config(struct tarn_allocator *allocator, const struct tarn_config *config)
{
    struct uncached *uncached = uncached_of(allocator);

    tn_lock_acquire(&uncached->direct.lock);
    uncached->config = *config;
    tn_lock_release(&uncached->direct.lock);
}

static void uncached_get_stats(struct tarn_allocator *allocator, struct tarn_stats *stats_out)
{
    (void)allocator;
    (void)stats_out;
}

static void uncached_nothing(struct tarn_allocator *allocator)
{
    (void)allocator;
}

static uint64_t uncached_check(struct tarn_allocator *allocator, struct tarn_findings *findings)
{
    return tn_direct_memory_check(&uncached_of(allocator)->direct, findings);
}

static enum tarn_status uncached_walk(struct tarn_allocator *allocator,
                                      const struct tarn_pool_id *pool,
                                      const struct tarn_walker *walker, struct tarn_error *error)
{
    (void)allocator;
    (void)pool;
    (void)walker;
    (void)error;
    return TARN_OK;
}

/* There is nothing to walk. */
static enum tarn_status uncached_look(struct tarn_allocator *allocator,
                                      const struct tarn_pool_id *pool, const struct tn_look *look,
                                      struct tarn_error *error)
{
    (void)allocator;
    (void)pool;
    (void)error;
    look->begin(look->context);
    (void)look->end(look->context);
    return TARN_OK;
}

static enum tarn_status uncached_add_sink(struct tarn_allocator *allocator,
                                          const struct tarn_sink *sink, struct tarn_error *error)
{
    (void)allocator;
    (void)sink;
    (void)error;
    return TARN_OK;
}

static enum tarn_status uncached_set_sink(struct tarn_allocator *allocator, const void *context,
                                          bool on, enum tarn_context_level level,
                                          struct tarn_error *error)
{
    (void)allocator;
    (void)context;
    (void)on;
    (void)level;
    (void)error;
    return TARN_OK;
}

static enum tarn_status uncached_remove_sink(struct tarn_allocator *allocator, const void *context,
                                             struct tarn_error *error)
{
    (void)allocator;
    (void)context;
    (void)error;
    return TARN_OK;
}

/* There are no receivers. */
static enum tarn_status uncached_annotate(struct tarn_allocator *allocator, tarn_ptr ptr,
                                          const char *text, struct tarn_error *error)
{
    (void)text;
    return uncached_base_allocation(allocator, ptr, NULL, NULL, error);
}

static enum tarn_status uncached_add_oom_observer(struct tarn_allocator *allocator,
                                                  tarn_oom_observer observer, void *context)
{
    (void)allocator;
    (void)observer;
    (void)context;
    return TARN_OK;
}

static enum tarn_status uncached_add_memory_callback(struct tarn_allocator *allocator,
                                                     tarn_memory_callback callback, void *context)
{
    (void)allocator;
    (void)callback;
    (void)context;
    return TARN_OK;
}

/* ---- private pools: as in PyTorch they come and go, and requests go past them ---- */

static enum tarn_status uncached_begin_pool(struct tarn_allocator *allocator,
                                            struct tarn_pool_id id, tarn_pool_filter filter,
                                            void *context, struct tarn_error *error)
{
    struct uncached *uncached = uncached_of(allocator);

    tn_lock_acquire(&uncached->direct.lock);
    const enum tarn_status st = tn_private_pool_begin(&uncached->pools, id, filter, context, error);

    tn_lock_release(&uncached->direct.lock);
    return st;
}

typedef enum tarn_status pool_action(struct tn_private_pools *pools, struct tarn_pool_id id,
                                     struct tarn_error *error);

/* A released pool goes once no request is routed to it. */
static enum tarn_status pool_apply(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                   pool_action *action, struct tarn_error *error)
{
    struct uncached *uncached = uncached_of(allocator);

    tn_lock_acquire(&uncached->direct.lock);
    const enum tarn_status st = action(&uncached->pools, id, error);
    struct tn_private_pool *pool = tn_private_pool_find(&uncached->pools, id);

    if (pool && pool->freeable) {
        (void)tn_private_pool_drop(&uncached->pools, pool);
    }
    tn_lock_release(&uncached->direct.lock);
    return st;
}

static enum tarn_status uncached_end_pool(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                          struct tarn_error *error)
{
    return pool_apply(allocator, id, tn_private_pool_end, error);
}

static enum tarn_status uncached_acquire_pool(struct tarn_allocator *allocator,
                                              struct tarn_pool_id id, struct tarn_error *error)
{
    return pool_apply(allocator, id, tn_private_pool_acquire, error);
}

static enum tarn_status uncached_release_pool(struct tarn_allocator *allocator,
                                              struct tarn_pool_id id, struct tarn_error *error)
{
    return pool_apply(allocator, id, tn_private_pool_release, error);
}

static enum tarn_status uncached_mark_capture(struct tarn_allocator *allocator, bool begins,
                                              struct tarn_error *error)
{
    struct uncached *uncached = uncached_of(allocator);

    tn_lock_acquire(&uncached->direct.lock);
    const enum tarn_status st = tn_private_pools_mark_capture(&uncached->pools, begins, error);

    tn_lock_release(&uncached->direct.lock);
    return st;
}

/* The source is never asked for memory, and told when the pool goes. */
static enum tarn_status uncached_create_pool_from(struct tarn_allocator *allocator,
                                                  struct tarn_pool_id id,
                                                  const struct tarn_pool_source *source,
                                                  struct tarn_error *error)
{
    struct uncached *uncached = uncached_of(allocator);

    tn_lock_acquire(&uncached->direct.lock);
    const enum tarn_status st = tn_private_pool_create_from(&uncached->pools, id, source, error);

    tn_lock_release(&uncached->direct.lock);
    return st;
}

static uint64_t uncached_pool_use_count(struct tarn_allocator *allocator, struct tarn_pool_id id)
{
    struct uncached *uncached = uncached_of(allocator);

    tn_lock_acquire(&uncached->direct.lock);
    const struct tn_private_pool *pool = tn_private_pool_find(&uncached->pools, id);
    const uint64_t count = pool ? (uint64_t)pool->use_count : 0;

    tn_lock_release(&uncached->direct.lock);
    return count;
}

/* What the pool allows makes no difference. */
static enum tarn_status uncached_allow(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                       bool is_allowed)
{
    (void)is_allowed;
    return uncached_pool_use_count(allocator, id) > 0 ? TARN_OK : TARN_ERR_NOT_FOUND;
}

/* ---- not supported ---- */

static enum tarn_status uncached_refuse(const char *what, struct tarn_error *error)
{
    (void)what;
    return tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                   "private pools have no memory without a cache: no checkpoint, handle or sleep");
}

static const struct tn_engine_methods uncached_methods = {
    .name = "uncached",
    .backend = "native",
    .refuse = uncached_refuse,
    .destroy = uncached_destroy,
    .alloc = uncached_alloc,
    .free = uncached_free,
    .record_stream = uncached_record_stream,
    .empty_cache = uncached_empty_cache,
    .base_allocation = uncached_base_allocation,
    .cache_info = uncached_cache_info,
    .ipc_export = uncached_ipc_export,
    .set_enabled = uncached_set_enabled,
    .is_enabled = uncached_is_enabled,
    .set_fraction = uncached_set_fraction,
    .get_limit = uncached_get_limit,
    .get_config = uncached_get_config,
    .set_config = uncached_set_config,
    .get_stats = uncached_get_stats,
    .reset_peak_stats = uncached_nothing,
    .reset_accumulated_stats = uncached_nothing,
    .check = uncached_check,
    .walk = uncached_walk,
    .look = uncached_look,
    .add_sink = uncached_add_sink,
    .set_sink = uncached_set_sink,
    .remove_sink = uncached_remove_sink,
    .annotate = uncached_annotate,
    .mark_snapshot = uncached_nothing,
    .add_oom_observer = uncached_add_oom_observer,
    .add_memory_callback = uncached_add_memory_callback,
    .begin_pool = uncached_begin_pool,
    .end_pool = uncached_end_pool,
    .mark_capture = uncached_mark_capture,
    .acquire_pool = uncached_acquire_pool,
    .create_pool_from = uncached_create_pool_from,
    .release_pool = uncached_release_pool,
    .pool_use_count = uncached_pool_use_count,
    .set_pool_use_on_oom = uncached_allow,
    .set_pool_no_split = uncached_allow,
};
