/* SPDX-License-Identifier: MIT */
/* Implements tarn/allocator.h: checks arguments, finds the engine. */
#include "alloc/allocator.h"

#include "alloc/core_check.h"
#include "alloc/engine_native.h"
#include "alloc/visit.h"
#include "base/host_mem.h"

#include <string.h>

enum tarn_status tarn_allocator_create(struct tarn_device *device, const struct tarn_config *config,
                                       struct tarn_allocator **allocator_out,
                                       struct tarn_error *error)
{
    struct tarn_config defaults;
    struct tarn_allocator *allocator;

    if (!device || !allocator_out) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "an allocator needs a device");
    }
    tarn_config_init(&defaults);
    allocator = tn_host_alloc_zero(sizeof *allocator);
    if (!allocator) {
        return tn_fail(error, TARN_ERR_HOST_MEMORY, "no host memory for an allocator");
    }
    allocator->engine.owner = allocator;
    tn_native_init(&allocator->engine, device, config ? config : &defaults);
    *allocator_out = allocator;
    return TARN_OK;
}

void tarn_allocator_destroy(struct tarn_allocator *allocator)
{
    if (allocator) {
        tn_native_fini(&allocator->engine);
        tn_host_free(allocator, sizeof *allocator);
    }
}

enum tarn_status tarn_allocator_alloc(struct tarn_allocator *allocator, uint64_t size,
                                      tarn_stream stream, tarn_ptr *ptr_out,
                                      struct tarn_error *error)
{
    if (size == 0) {
        *ptr_out = 0;
        return TARN_OK;
    }
    return tn_native_alloc(&allocator->engine, size, stream, ptr_out, error);
}

enum tarn_status tarn_allocator_free(struct tarn_allocator *allocator, tarn_ptr ptr,
                                     struct tarn_error *error)
{
    return ptr == 0 ? TARN_OK : tn_native_free(&allocator->engine, ptr, error);
}

enum tarn_status tarn_allocator_record_stream(struct tarn_allocator *allocator, tarn_ptr ptr,
                                              tarn_stream stream, struct tarn_error *error)
{
    return ptr == 0 ? TARN_OK : tn_native_record_stream(&allocator->engine, ptr, stream, error);
}

enum tarn_status tarn_allocator_empty_cache(struct tarn_allocator *allocator,
                                            struct tarn_error *error)
{
    return tn_native_empty_cache(&allocator->engine, (struct tarn_pool_id){0, 0}, error);
}

enum tarn_status tarn_allocator_base_allocation(struct tarn_allocator *allocator, tarn_ptr ptr,
                                                tarn_ptr *base_out, uint64_t *size_out,
                                                struct tarn_error *error)
{
    return tn_native_base_allocation(&allocator->engine, ptr, base_out, size_out, error);
}

enum tarn_status tarn_allocator_set_memory_fraction(struct tarn_allocator *allocator,
                                                    double fraction, struct tarn_error *error)
{
    return tn_native_set_fraction(&allocator->engine, fraction, error);
}

uint64_t tarn_allocator_get_limit(struct tarn_allocator *allocator)
{
    uint64_t limit;

    tn_lock_acquire(&allocator->engine.lock);
    limit = allocator->engine.limit;
    tn_lock_release(&allocator->engine.lock);
    return limit;
}

void tarn_allocator_get_stats(struct tarn_allocator *allocator, struct tarn_stats *stats_out)
{
    const uint32_t asked = stats_out->struct_size;
    const struct tarn_stats *stats = &allocator->engine.counters.stats;

    tn_lock_acquire(&allocator->engine.lock);
    memcpy(stats_out, stats, asked < sizeof *stats ? asked : sizeof *stats);
    tn_lock_release(&allocator->engine.lock);
    stats_out->struct_size = asked;
}

void tarn_allocator_reset_peak_stats(struct tarn_allocator *allocator)
{
    tn_lock_acquire(&allocator->engine.lock);
    tn_counters_reset_peaks(&allocator->engine.counters);
    tn_lock_release(&allocator->engine.lock);
}

void tarn_allocator_reset_accumulated_stats(struct tarn_allocator *allocator)
{
    tn_lock_acquire(&allocator->engine.lock);
    tn_counters_reset_accumulated(&allocator->engine.counters);
    tn_lock_release(&allocator->engine.lock);
}

enum tarn_status tarn_allocator_cache_info(struct tarn_allocator *allocator,
                                           uint64_t *largest_in_out, struct tarn_error *error)
{
    return tn_native_cache_info(&allocator->engine, largest_in_out, error);
}

uint64_t tarn_allocator_check(struct tarn_allocator *allocator, struct tarn_findings *findings)
{
    uint64_t count;

    tn_lock_acquire(&allocator->engine.lock);
    count = tn_core_check(&allocator->engine, findings);
    tn_lock_release(&allocator->engine.lock);
    return count;
}

enum tarn_status tarn_allocator_walk(struct tarn_allocator *allocator,
                                     const struct tarn_walker *walker)
{
    tn_lock_acquire(&allocator->engine.lock);
    tn_visit(&allocator->engine, walker);
    tn_lock_release(&allocator->engine.lock);
    return TARN_OK;
}

enum tarn_status tn_allocator_add_sink(struct tarn_allocator *allocator, const struct tn_sink *sink)
{
    struct tn_engine *engine = &allocator->engine;
    enum tarn_status st = TARN_ERR_LIMIT;

    tn_lock_acquire(&engine->lock);
    const unsigned count = atomic_load_explicit(&engine->sink_count, memory_order_relaxed);

    if (count < TN_SINKS_MAX) {
        engine->sinks[count] = *sink;
        if ((int)sink->level > atomic_load_explicit(&engine->level, memory_order_relaxed)) {
            atomic_store_explicit(&engine->level, (int)sink->level, memory_order_relaxed);
        }
        atomic_store_explicit(&engine->sink_count, count + 1, memory_order_release);
        st = TARN_OK;
    }
    tn_lock_release(&engine->lock);
    return st;
}

void tn_allocator_mark_snapshot(struct tarn_allocator *allocator)
{
    tn_lock_acquire(&allocator->engine.lock);
    tn_visit_mark_snapshot(&allocator->engine);
    tn_lock_release(&allocator->engine.lock);
}

void tarn_allocator_get_config(struct tarn_allocator *allocator, struct tarn_config *config_out)
{
    tn_lock_acquire(&allocator->engine.lock);
    *config_out = allocator->engine.config;
    tn_lock_release(&allocator->engine.lock);
}

enum tarn_status tarn_allocator_set_config(struct tarn_allocator *allocator,
                                           const struct tarn_config *config,
                                           struct tarn_error *error)
{
    if (!config || config->struct_size != sizeof *config) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "the settings do not come from tarn_config_init or tarn_config_parse");
    }
    tn_lock_acquire(&allocator->engine.lock);
    if (config->memory_fraction_given &&
        (!allocator->engine.config.memory_fraction_given ||
         config->memory_fraction != allocator->engine.config.memory_fraction)) {
        tn_native_apply_fraction(&allocator->engine, config->memory_fraction);
    }
    allocator->engine.config = *config;
    tn_lock_release(&allocator->engine.lock);
    return TARN_OK;
}

enum tarn_status tarn_allocator_add_oom_observer(struct tarn_allocator *allocator,
                                                 tarn_oom_observer observer, void *context)
{
    struct tn_engine *engine = &allocator->engine;
    enum tarn_status st = TARN_ERR_LIMIT;

    tn_lock_acquire(&engine->lock);
    if (engine->observer_count < TARN_OBSERVERS_MAX) {
        engine->observers[engine->observer_count++] =
            (struct tn_oom_observer){.call = observer, .context = context};
        st = TARN_OK;
    }
    tn_lock_release(&engine->lock);
    return st;
}

enum tarn_status tarn_allocator_add_memory_callback(struct tarn_allocator *allocator,
                                                    tarn_memory_callback callback, void *context)
{
    struct tn_engine *engine = &allocator->engine;
    enum tarn_status st = TARN_ERR_LIMIT;

    tn_lock_acquire(&engine->lock);
    if (engine->callback_count < TARN_OBSERVERS_MAX) {
        engine->callbacks[engine->callback_count++] =
            (struct tn_memory_callback){.call = callback, .context = context};
        st = TARN_OK;
    }
    tn_lock_release(&engine->lock);
    return st;
}
