/* SPDX-License-Identifier: MIT */
/*
 * The engine over a shared object's functions: remembers what is allocated, and forwards calls.
 *
 * Locks: `lock` (rank TN_LOCK_ALLOCATOR) guards the records, the counters and the settings, and is
 * never held while the library is called. A block's record leaves the map before its memory is
 * freed, because another thread may be given the address at once.
 */
#include "alloc/engine/pluggable.h"

#include "alloc/engine/allocator.h"
#include "alloc/engine/check_number.h"
#include "alloc/engine/engine_methods.h"
#include "base/host_mem.h"
#include "base/lock.h"
#include "base/map.h"

#include <inttypes.h>

struct pluggable {
    struct tarn_allocator base;             /* first */
    const struct tarn_pluggable *functions; /* constant */
    struct tn_lock lock;
    struct tn_map blocks; /* struct record, by address */
    uint64_t pending;     /* records still to be entered, whose room is reserved */
    struct tarn_stat count;
    struct tarn_stat bytes;
    struct tarn_config config;
};

struct record {
    uint64_t size;
    tarn_stream stream;
};

static const struct tn_engine_methods pluggable_methods;

static struct pluggable *pluggable_of(struct tarn_allocator *allocator)
{
    return (struct pluggable *)allocator;
}

static void *memory_of(tarn_ptr ptr)
{
    return (void *)(uintptr_t)ptr;
}

static void *stream_of(tarn_stream stream)
{
    return (void *)(uintptr_t)stream;
}

static struct record *record_of(uint64_t value)
{
    return (struct record *)(uintptr_t)value;
}

static enum tarn_status refuse(const char *what, struct tarn_error *error)
{
    return tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                   "a pluggable allocator does not support %s: its library has no function for it",
                   what);
}

enum tarn_status tn_pluggable_create(const struct tarn_pluggable *functions,
                                     struct tarn_device *device,
                                     struct tarn_allocator **allocator_out)
{
    struct pluggable *pluggable = tn_host_alloc_zero(sizeof *pluggable);

    if (!pluggable) {
        return TARN_ERR_HOST_MEMORY;
    }
    pluggable->base = (struct tarn_allocator){.methods = &pluggable_methods, .device = device};
    pluggable->functions = functions;
    tarn_config_init(&pluggable->config);
    tn_lock_init(&pluggable->lock, TN_LOCK_ALLOCATOR);
    *allocator_out = &pluggable->base;
    return TARN_OK;
}

static void memory_free(const struct pluggable *pluggable, tarn_ptr ptr, struct record *record)
{
    pluggable->functions->free(memory_of(ptr), record->size, pluggable->base.device->ordinal,
                               stream_of(record->stream));
    tn_host_free(record, sizeof *record);
}

static void pluggable_destroy(struct tarn_allocator *allocator)
{
    struct pluggable *pluggable = pluggable_of(allocator);

    for (uint64_t i = 0; i < pluggable->blocks.capacity; i++) {
        const struct tn_map_slot *slot = &pluggable->blocks.slots[i];

        if (slot->key != 0) {
            memory_free(pluggable, slot->key, record_of(slot->value));
        }
    }
    tn_map_fini(&pluggable->blocks);
    tn_lock_fini(&pluggable->lock);
    tn_host_free(pluggable, sizeof *pluggable);
}

/* ---- allocating and freeing ---- */

static void stat_add(struct tarn_stat *stat, int64_t amount)
{
    stat->current += amount;
    stat->allocated += amount;
    stat->peak = stat->current > stat->peak ? stat->current : stat->peak;
}

static void stat_take(struct tarn_stat *stat, int64_t amount)
{
    stat->current -= amount;
    stat->freed += amount;
}

/* Reserves room for one more record, besides those of calls that are waiting for the library. */
static bool room_take(struct pluggable *pluggable)
{
    tn_lock_acquire(&pluggable->lock);
    const bool there = tn_map_reserve(&pluggable->blocks, pluggable->pending + 1);

    pluggable->pending += there;
    tn_lock_release(&pluggable->lock);
    return there;
}

/* Enters what the library returned (0: nothing); false if that is allocated already. */
static bool room_use(struct pluggable *pluggable, tarn_ptr ptr, struct record *record)
{
    tn_lock_acquire(&pluggable->lock);
    const bool is_new = ptr == 0 || !tn_map_find(&pluggable->blocks, ptr);

    pluggable->pending--;
    if (is_new && ptr != 0) {
        tn_map_insert(&pluggable->blocks, ptr, (uint64_t)(uintptr_t)record);
        stat_add(&pluggable->count, 1);
        stat_add(&pluggable->bytes, (int64_t)record->size);
    }
    tn_lock_release(&pluggable->lock);
    return is_new;
}

static enum tarn_status pluggable_alloc(struct tarn_allocator *allocator, uint64_t size,
                                        tarn_stream stream, tarn_ptr *ptr_out,
                                        struct tarn_error *error)
{
    struct pluggable *pluggable = pluggable_of(allocator);
    struct record *record = tn_host_alloc(sizeof *record);
    const int device = allocator->device->ordinal;
    enum tarn_status st = TARN_OK;

    if (!record || !room_take(pluggable)) {
        tn_host_free(record, sizeof *record);
        return tn_fail_memory(error);
    }
    *record = (struct record){size, stream};
    const tarn_ptr ptr =
        (tarn_ptr)(uintptr_t)pluggable->functions->alloc(size, device, stream_of(stream));

    if (!room_use(pluggable, ptr, record)) {
        st = tn_fail(error, TARN_ERR_STATE,
                     "the pluggable allocator's library gave 0x%" PRIx64
                     ", which is allocated already",
                     ptr);
    } else if (ptr == 0) {
        st = tn_fail(error, TARN_ERR_OUT_OF_MEMORY,
                     "the pluggable allocator's library has no %" PRIu64 " bytes for device %d",
                     size, device);
    }
    if (st) {
        tn_host_free(record, sizeof *record);
        return st;
    }
    *ptr_out = ptr;
    return TARN_OK;
}

static enum tarn_status pluggable_free(struct tarn_allocator *allocator, tarn_ptr ptr,
                                       struct tarn_error *error)
{
    struct pluggable *pluggable = pluggable_of(allocator);
    uint64_t value = 0;

    tn_lock_acquire(&pluggable->lock);
    const bool known = tn_map_take(&pluggable->blocks, ptr, &value);

    if (known) {
        stat_take(&pluggable->count, 1);
        stat_take(&pluggable->bytes, (int64_t)record_of(value)->size);
    }
    tn_lock_release(&pluggable->lock);
    if (!known) {
        return tn_pointer_unknown(ptr, error);
    }
    memory_free(pluggable, ptr, record_of(value));
    return TARN_OK;
}

/* Bytes of a block; false where nothing is allocated. */
static bool size_find(struct pluggable *pluggable, tarn_ptr ptr, uint64_t *size_out)
{
    tn_lock_acquire(&pluggable->lock);
    const uint64_t *value = tn_map_find(&pluggable->blocks, ptr);

    if (value) {
        *size_out = record_of(*value)->size;
    }
    tn_lock_release(&pluggable->lock);
    return value != NULL;
}

static enum tarn_status pluggable_record_stream(struct tarn_allocator *allocator, tarn_ptr ptr,
                                                tarn_stream stream, struct tarn_error *error)
{
    struct pluggable *pluggable = pluggable_of(allocator);
    uint64_t size;

    if (!size_find(pluggable, ptr, &size)) {
        return tn_pointer_unknown(ptr, error);
    }
    if (!pluggable->functions->record_stream) {
        return refuse("recordStream", error);
    }
    pluggable->functions->record_stream(memory_of(ptr), stream_of(stream));
    return TARN_OK;
}

static enum tarn_status pluggable_base_allocation(struct tarn_allocator *allocator, tarn_ptr ptr,
                                                  tarn_ptr *base_out, uint64_t *size_out,
                                                  struct tarn_error *error)
{
    struct pluggable *pluggable = pluggable_of(allocator);
    void *base = memory_of(ptr);
    uint64_t known;

    if (!size_find(pluggable, ptr, &known)) {
        return tn_pointer_unknown(ptr, error);
    }
    size_t size = known;

    if (pluggable->functions->base_alloc) {
        base = pluggable->functions->base_alloc(base, &size);
    }
    if (base_out) {
        *base_out = (tarn_ptr)(uintptr_t)base;
    }
    if (size_out) {
        *size_out = size;
    }
    return TARN_OK;
}

static enum tarn_status pluggable_empty_cache(struct tarn_allocator *allocator,
                                              struct tarn_pool_id id, struct tarn_error *error)
{
    const struct tarn_pluggable *functions = pluggable_of(allocator)->functions;

    (void)id;
    (void)error;
    if (functions->reset) {
        functions->reset();
    }
    return TARN_OK;
}

static enum tarn_status pluggable_set_fraction(struct tarn_allocator *allocator, double fraction,
                                               struct tarn_error *error)
{
    const struct tarn_pluggable *functions = pluggable_of(allocator)->functions;

    if (!(fraction >= 0.0 && fraction <= 1.0)) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "invalid fraction:%g. Please set within [0, 1].", fraction);
    }
    if (!functions->memory_fraction) {
        return refuse("setMemoryFraction", error);
    }
    functions->memory_fraction(fraction, allocator->device->ordinal);
    return TARN_OK;
}

/* The library knows its limit, if it has one. */
static uint64_t pluggable_get_limit(struct tarn_allocator *allocator)
{
    (void)allocator;
    return TARN_SIZE_UNLIMITED;
}

/* ---- settings and counters ---- */

static enum tarn_status pluggable_set_enabled(struct tarn_allocator *allocator, bool enabled,
                                              struct tarn_error *error)
{
    (void)allocator;
    return enabled ? refuse("enable", error) : TARN_OK;
}

static bool pluggable_is_enabled(struct tarn_allocator *allocator)
{
    (void)allocator;
    return false;
}

static void pluggable_get_config(struct tarn_allocator *allocator, struct tarn_config *config_out)
{
    struct pluggable *pluggable = pluggable_of(allocator);

    tn_lock_acquire(&pluggable->lock);
    *config_out = pluggable->config;
    tn_lock_release(&pluggable->lock);
}

static void pluggable_set_config(struct tarn_allocator *allocator, const struct tarn_config *config)
{
    struct pluggable *pluggable = pluggable_of(allocator);

    tn_lock_acquire(&pluggable->lock);
    pluggable->config = *config;
    tn_lock_release(&pluggable->lock);
}

static void pluggable_get_stats(struct tarn_allocator *allocator, struct tarn_stats *stats_out)
{
    struct pluggable *pluggable = pluggable_of(allocator);

    tn_lock_acquire(&pluggable->lock);
    stats_out->by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL] = pluggable->count;
    stats_out->by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL] = pluggable->bytes;
    tn_lock_release(&pluggable->lock);
}

static void pluggable_reset_peak_stats(struct tarn_allocator *allocator)
{
    struct pluggable *pluggable = pluggable_of(allocator);

    tn_lock_acquire(&pluggable->lock);
    pluggable->count.peak = pluggable->count.current;
    pluggable->bytes.peak = pluggable->bytes.current;
    tn_lock_release(&pluggable->lock);
}

static void pluggable_reset_accumulated_stats(struct tarn_allocator *allocator)
{
    struct pluggable *pluggable = pluggable_of(allocator);

    tn_lock_acquire(&pluggable->lock);
    pluggable->count.allocated = pluggable->count.freed = 0;
    pluggable->bytes.allocated = pluggable->bytes.freed = 0;
    tn_lock_release(&pluggable->lock);
}

static uint64_t pluggable_check(struct tarn_allocator *allocator, struct tarn_findings *findings)
{
    struct pluggable *pluggable = pluggable_of(allocator);
    const uint64_t before = findings->count;
    uint64_t count = 0;
    uint64_t bytes = 0;

    tn_lock_acquire(&pluggable->lock);
    for (uint64_t i = 0; i < pluggable->blocks.capacity; i++) {
        if (pluggable->blocks.slots[i].key != 0) {
            count++;
            bytes += record_of(pluggable->blocks.slots[i].value)->size;
        }
    }
    tn_check_number("pluggable allocator: blocks", (uint64_t)pluggable->count.current, count,
                    findings);
    tn_check_number("pluggable allocator: bytes", (uint64_t)pluggable->bytes.current, bytes,
                    findings);
    tn_lock_release(&pluggable->lock);
    return findings->count - before;
}

/* ---- not supported ---- */

static enum tarn_status pluggable_cache_info(struct tarn_allocator *allocator,
                                             uint64_t *largest_in_out, struct tarn_error *error)
{
    (void)allocator;
    (void)largest_in_out;
    return refuse("cacheInfo", error);
}

static enum tarn_status pluggable_walk(struct tarn_allocator *allocator,
                                       const struct tarn_pool_id *pool,
                                       const struct tarn_walker *walker, struct tarn_error *error)
{
    (void)allocator;
    (void)pool;
    (void)walker;
    return refuse("snapshot", error);
}

static enum tarn_status pluggable_look(struct tarn_allocator *allocator,
                                       const struct tarn_pool_id *pool, const struct tn_look *look,
                                       struct tarn_error *error)
{
    (void)allocator;
    (void)pool;
    (void)look;
    return refuse("snapshot", error);
}

static const struct tn_engine_methods pluggable_methods = {
    .name = "pluggable",
    .backend = "pluggable",
    .refuse = refuse,
    .destroy = pluggable_destroy,
    .alloc = pluggable_alloc,
    .free = pluggable_free,
    .record_stream = pluggable_record_stream,
    .empty_cache = pluggable_empty_cache,
    .base_allocation = pluggable_base_allocation,
    .cache_info = pluggable_cache_info,
    .set_enabled = pluggable_set_enabled,
    .is_enabled = pluggable_is_enabled,
    .set_fraction = pluggable_set_fraction,
    .get_limit = pluggable_get_limit,
    .get_config = pluggable_get_config,
    .set_config = pluggable_set_config,
    .get_stats = pluggable_get_stats,
    .reset_peak_stats = pluggable_reset_peak_stats,
    .reset_accumulated_stats = pluggable_reset_accumulated_stats,
    .check = pluggable_check,
    .walk = pluggable_walk,
    .look = pluggable_look,
};
