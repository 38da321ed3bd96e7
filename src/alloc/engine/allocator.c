/* SPDX-License-Identifier: MIT */
/* Implements tarn/allocator.h, except for creation (create.c): checks arguments, dispatches to the
 * engine. */
#include "alloc/engine/allocator.h"

#include "alloc/config/config_parse.h"
#include "alloc/config/size_class.h"
#include "alloc/engine/engine_methods.h"
#include "alloc/pool/failure.h"
#include "base/sized.h"

#include <inttypes.h>
#include <string.h>

struct tarn_device *tarn_allocator_get_device(struct tarn_allocator *allocator)
{
    return allocator->device;
}

int tarn_allocator_get_ordinal(const struct tarn_allocator *allocator)
{
    return tn_allocator_ordinal(allocator);
}

enum tarn_status tn_allocator_need_engine(struct tarn_allocator *allocator, const char *what,
                                          struct tn_engine **engine_out, struct tarn_error *error)
{
    if (tn_fork_passed(&allocator->fork)) {
        return tn_forked_refuse(error);
    }
    if (!tn_allocator_is_native(allocator)) {
        return tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                       "%s needs the caching allocator, not the engine %s", what,
                       allocator->methods->name);
    }
    *engine_out = tn_allocator_engine(allocator);
    return TARN_OK;
}

enum tarn_status tarn_allocator_alloc(struct tarn_allocator *allocator, uint64_t size,
                                      tarn_stream stream, tarn_ptr *ptr_out,
                                      struct tarn_error *error)
{
    return tn_allocator_alloc(allocator, size, stream, ptr_out, error);
}

enum tarn_status tarn_allocator_alloc_at(struct tarn_allocator *allocator, uint64_t size,
                                         tarn_stream stream, tarn_ptr address,
                                         struct tarn_error *error)
{
    const struct tn_engine_methods *methods = allocator->methods;

    if (size == 0 || address == 0 || address % TN_MIN_BLOCK_SIZE != 0) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "an allocation at an address needs a size and an address that is a multiple "
                       "of %d, not %" PRIu64 " bytes at 0x%" PRIx64,
                       (int)TN_MIN_BLOCK_SIZE, size, address);
    }
    return methods->alloc_at ? methods->alloc_at(allocator, size, stream, address, error)
                             : methods->refuse("mallocWithAddress", error);
}

enum tarn_status tarn_allocator_free(struct tarn_allocator *allocator, tarn_ptr ptr,
                                     struct tarn_error *error)
{
    return tn_allocator_free(allocator, ptr, error);
}

/* Events of this device can only be recorded on its own streams: a wrong stream is reported now,
 * not when the block is freed. Streams that passed recently are not checked again. */
static enum tarn_status stream_check(struct tarn_allocator *allocator, tarn_stream stream,
                                     struct tarn_error *error)
{
    struct tarn_device *device = allocator->device;
    _Atomic tarn_stream *known =
        &allocator->known_streams[(stream >> 4 ^ stream >> 12) % TN_KNOWN_STREAMS];

    if (stream == 0 || atomic_load_explicit(known, memory_order_relaxed) == stream) {
        return TARN_OK;
    }
    if (tn_fork_passed(&allocator->fork)) {
        return tn_forked_refuse(error);
    }
    if (tn_stream_is_per_thread(device, stream)) {
        return tn_stream_refuse_per_thread(stream, error);
    }
    const enum tarn_status st = device->ops->stream_check(device, stream);

    if (st) {
        return tn_fail(error, st, "recording a stream: %s", device->ops->last_error(device));
    }
    atomic_store_explicit(known, stream, memory_order_relaxed);
    return TARN_OK;
}

enum tarn_status tarn_allocator_record_stream(struct tarn_allocator *allocator, tarn_ptr ptr,
                                              tarn_stream stream, struct tarn_error *error)
{
    if (ptr == 0) {
        return TARN_OK;
    }
    const enum tarn_status st = stream_check(allocator, stream, error);

    return st ? st : allocator->methods->record_stream(allocator, ptr, stream, error);
}

enum tarn_status tarn_allocator_empty_cache(struct tarn_allocator *allocator,
                                            struct tarn_error *error)
{
    return allocator->methods->empty_cache(allocator, (struct tarn_pool_id){0, 0}, error);
}

enum tarn_status tarn_allocator_trim(struct tarn_allocator *allocator, uint64_t target,
                                     uint64_t *reserved_out, struct tarn_error *error)
{
    struct tarn_stats stats = {.struct_size = sizeof stats};
    const enum tarn_status st =
        allocator->methods->trim ? allocator->methods->trim(allocator, target, error) : TARN_OK;

    if (reserved_out) {
        tarn_allocator_get_stats(allocator, &stats);
        *reserved_out = (uint64_t)stats.by_pool[TARN_STAT_RESERVED_BYTES][TARN_STAT_ALL].current;
    }
    return st;
}

enum tarn_status tarn_allocator_base_allocation(struct tarn_allocator *allocator, tarn_ptr ptr,
                                                tarn_ptr *base_out, uint64_t *size_out,
                                                struct tarn_error *error)
{
    return allocator->methods->base_allocation(allocator, ptr, base_out, size_out, error);
}

enum tarn_status tarn_allocator_block_size(struct tarn_allocator *allocator, tarn_ptr ptr,
                                           uint64_t *size_out, struct tarn_error *error)
{
    const struct tn_engine_methods *methods = allocator->methods;

    return methods->block_size ? methods->block_size(allocator, ptr, size_out, error)
                               : methods->base_allocation(allocator, ptr, NULL, size_out, error);
}

enum tarn_status tarn_allocator_cache_info(struct tarn_allocator *allocator,
                                           uint64_t *largest_in_out, struct tarn_error *error)
{
    return allocator->methods->cache_info(allocator, largest_in_out, error);
}

enum tarn_status tarn_allocator_set_enabled(struct tarn_allocator *allocator, bool enabled,
                                            struct tarn_error *error)
{
    return allocator->methods->set_enabled(allocator, enabled, error);
}

bool tarn_allocator_is_enabled(struct tarn_allocator *allocator)
{
    return allocator->methods->is_enabled(allocator);
}

enum tarn_status tarn_allocator_set_memory_fraction(struct tarn_allocator *allocator,
                                                    double fraction, struct tarn_error *error)
{
    return allocator->methods->set_fraction(allocator, fraction, error);
}

uint64_t tarn_allocator_get_limit(struct tarn_allocator *allocator)
{
    return allocator->methods->get_limit(allocator);
}

double tarn_allocator_get_memory_fraction(struct tarn_allocator *allocator)
{
    const uint64_t limit = tarn_allocator_get_limit(allocator);

    return limit == TARN_SIZE_UNLIMITED ? 1.0
                                        : (double)limit / (double)allocator->device->total_memory;
}

enum tarn_status tarn_allocator_get_config_sized(struct tarn_allocator *allocator,
                                                 struct tarn_config *config_out, size_t size)
{
    struct tarn_config config;

    allocator->methods->get_config(allocator, &config);
    return tn_config_write(&config, config_out, size, NULL);
}

/* Under backend:cudaMallocAsync there are no pages to move, and a program that asked for them would
 * not learn that it goes without.
 *
 * Pages of expandable segments in the large pool are of large_segment_size. PyTorch only finds out
 * at the first of them that the device does not make pages of that size. */
enum tarn_status tn_config_check(const struct tarn_config *config, const struct tarn_device *device,
                                 struct tarn_error *error)
{
    const uint64_t unit = device->granularity;

    if (config->policy == TARN_POLICY_COMPACT && config->backend == TARN_BACKEND_ASYNC) {
        return tn_fail(error, TARN_ERR_CONFIG,
                       "policy:compact moves pages of the native backend: it cannot be combined "
                       "with backend:cudaMallocAsync");
    }
    if (config->backend != TARN_BACKEND_NATIVE || config->no_caching ||
        config->policy == TARN_POLICY_COMPACT || !config->expandable_segments ||
        config->large_segment_size % unit == 0) {
        return TARN_OK;
    }
    return tn_fail(error, TARN_ERR_CONFIG,
                   "expandable_segments:True needs a large_segment_size_mb that is a multiple of "
                   "the device's page size of %llu MiB: use %llu instead of %llu",
                   (unsigned long long)(unit >> 20),
                   (unsigned long long)((config->large_segment_size / unit + 1) * unit >> 20),
                   (unsigned long long)(config->large_segment_size >> 20));
}

static const char *backend_name(enum tarn_backend backend)
{
    return backend == TARN_BACKEND_ASYNC ? "cudaMallocAsync" : "native";
}

const char *tarn_allocator_get_backend(struct tarn_allocator *allocator)
{
    return allocator->backend;
}

enum tarn_status tarn_allocator_set_config(struct tarn_allocator *allocator,
                                           const struct tarn_config *given,
                                           struct tarn_error *error)
{
    struct tarn_config settings;
    struct tarn_config present;

    if (!given) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "no settings to change to");
    }
    enum tarn_status st = tn_config_read(given, &settings, error);

    if (st) {
        return st;
    }
    const struct tarn_config *config = &settings;

    if (tn_fork_passed(&allocator->fork)) {
        return tn_forked_refuse(error);
    }
    allocator->methods->get_config(allocator, &present); /* the fields compared never change */
    if (config->backend != present.backend) {
        return tn_fail(error, TARN_ERR_CONFIG,
                       "Allocator backend parsed at runtime != allocator backend parsed at load "
                       "time, %s != %s",
                       backend_name(config->backend), backend_name(present.backend));
    }
    if (config->policy != present.policy) {
        return tn_fail(error, TARN_ERR_CONFIG,
                       "the policy is decided when the allocator is made: it cannot become %s",
                       config->policy == TARN_POLICY_COMPACT ? "compact" : "exact");
    }
    if (config->no_caching != present.no_caching) {
        return tn_fail(error, TARN_ERR_CONFIG,
                       "whether memory is cached is decided when the allocator is made");
    }
    st = tn_config_check(config, allocator->device, error);
    if (st == TARN_OK) {
        allocator->methods->set_config(allocator, config);
    }
    return st;
}

void tarn_allocator_get_stats(struct tarn_allocator *allocator, struct tarn_stats *stats_out)
{
    struct tarn_stats stats = {0};

    allocator->methods->get_stats(allocator, &stats);
    tn_sized_write(stats_out, stats_out->struct_size, &stats, sizeof stats);
}

size_t tarn_allocator_get_pool_reserved(struct tarn_allocator *allocator,
                                        struct tarn_pool_reserved *reserved_out, size_t room)
{
    const struct tn_engine_methods *methods = allocator->methods;

    return methods->get_pool_reserved ? methods->get_pool_reserved(allocator, reserved_out, room)
                                      : 0;
}

size_t tarn_allocator_get_expandable_segments(struct tarn_allocator *allocator,
                                              struct tarn_segment_info *segments_out, size_t room)
{
    const struct tn_engine_methods *methods = allocator->methods;

    return methods->get_expandable_segments
               ? methods->get_expandable_segments(allocator, segments_out, room)
               : 0;
}

void tarn_allocator_get_page_stats(struct tarn_allocator *allocator,
                                   struct tarn_page_stats *stats_out)
{
    struct tarn_page_stats stats = {0};

    if (allocator->methods->get_page_stats) {
        allocator->methods->get_page_stats(allocator, &stats);
    }
    tn_sized_write(stats_out, stats_out->struct_size, &stats, sizeof stats);
}

void tarn_allocator_reset_peak_stats(struct tarn_allocator *allocator)
{
    allocator->methods->reset_peak_stats(allocator);
}

void tarn_allocator_reset_accumulated_stats(struct tarn_allocator *allocator)
{
    allocator->methods->reset_accumulated_stats(allocator);
}

uint64_t tarn_allocator_check(struct tarn_allocator *allocator, struct tarn_findings *findings)
{
    struct tarn_findings unread;

    if (tn_fork_passed(&allocator->fork)) {
        return 0;
    }
    if (!findings) {
        unread.count = 0;
        findings = &unread;
    }
    return allocator->methods->check(allocator, findings) +
           tn_ipc_cache_check(&allocator->opened, findings);
}

enum tarn_status tn_allocator_walk(struct tarn_allocator *allocator,
                                   const struct tarn_walker *walker, struct tarn_error *error)
{
    return allocator->methods->walk(allocator, NULL, walker, error);
}

enum tarn_status tarn_allocator_walk(struct tarn_allocator *allocator,
                                     const struct tarn_walker *walker)
{
    return allocator->methods->walk(allocator, NULL, walker, NULL);
}

enum tarn_status tarn_allocator_walk_pool(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                          const struct tarn_walker *walker)
{
    return allocator->methods->walk(allocator, &id, walker, NULL);
}

enum tarn_status tarn_allocator_add_sink(struct tarn_allocator *allocator,
                                         const struct tarn_sink *sink, struct tarn_error *error)
{
    const struct tn_engine_methods *methods = allocator->methods;

    return methods->add_sink ? methods->add_sink(allocator, sink, error)
                             : methods->refuse("recordHistory", error);
}

enum tarn_status tarn_allocator_switch_sink(struct tarn_allocator *allocator, const void *context,
                                            bool on, enum tarn_context_level level,
                                            struct tarn_error *error)
{
    const struct tn_engine_methods *methods = allocator->methods;

    return methods->set_sink ? methods->set_sink(allocator, context, on, level, error)
                             : methods->refuse("recordHistory", error);
}

enum tarn_status tarn_allocator_remove_sink(struct tarn_allocator *allocator, const void *context,
                                            struct tarn_error *error)
{
    const struct tn_engine_methods *methods = allocator->methods;

    return methods->remove_sink ? methods->remove_sink(allocator, context, error)
                                : methods->refuse("recordHistory", error);
}

enum tarn_status tarn_allocator_annotate(struct tarn_allocator *allocator, tarn_ptr ptr,
                                         const char *text, struct tarn_error *error)
{
    const struct tn_engine_methods *methods = allocator->methods;

    return methods->annotate ? methods->annotate(allocator, ptr, text ? text : "", error)
                             : methods->refuse("annotate", error);
}

enum tarn_status tn_allocator_look(struct tarn_allocator *allocator,
                                   const struct tarn_pool_id *pool, const struct tn_look *look,
                                   struct tarn_error *error)
{
    return allocator->methods->look(allocator, pool, look, error);
}

void tn_allocator_mark_snapshot(struct tarn_allocator *allocator)
{
    if (allocator->methods->mark_snapshot) {
        allocator->methods->mark_snapshot(allocator);
    }
}

enum tarn_status tarn_allocator_add_oom_observer(struct tarn_allocator *allocator,
                                                 tarn_oom_observer observer, void *context)
{
    const struct tn_engine_methods *methods = allocator->methods;

    return methods->add_oom_observer ? methods->add_oom_observer(allocator, observer, context)
                                     : methods->refuse("attachOutOfMemoryObserver", NULL);
}

enum tarn_status tarn_allocator_add_memory_callback(struct tarn_allocator *allocator,
                                                    tarn_memory_callback callback, void *context)
{
    const struct tn_engine_methods *methods = allocator->methods;

    return methods->add_memory_callback ? methods->add_memory_callback(allocator, callback, context)
                                        : methods->refuse("FreeMemoryCallback", NULL);
}
