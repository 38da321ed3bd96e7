/* SPDX-License-Identifier: MIT */
#include "alloc/engine/watch_source.h"

#include "alloc/engine/engine_forked.h"
#include "alloc/engine/engine_methods.h"
#include "base/errinfo.h"
#include "tarn/watch.h"

#include <stdatomic.h>
#include <stdio.h>

/* ---- rows ---- */

/* Sums up segments by pool and stream. */
struct rows {
    struct tn_page_record *record;
    struct tn_page_row *row; /* of the segment shown last; NULL: left out */
};

static bool row_is_of(const struct tn_page_row *row, const struct tarn_segment_info *segment)
{
    return row->stream == segment->stream && row->pool_first == segment->pool.first &&
           row->pool_second == segment->pool.second && row->is_large == segment->is_large;
}

/* The segment's row, a new one if there is room; else NULL. */
static struct tn_page_row *rows_find(struct tn_page_record *record,
                                     const struct tarn_segment_info *segment)
{
    for (uint64_t i = 0; i < record->row_count; i++) {
        if (row_is_of(&record->rows[i], segment)) {
            return &record->rows[i];
        }
    }
    if (record->row_count == TN_PAGE_ROWS) {
        return NULL;
    }
    struct tn_page_row *row = &record->rows[record->row_count++];

    *row = (struct tn_page_row){
        .pool_first = segment->pool.first,
        .pool_second = segment->pool.second,
        .stream = segment->stream,
        .is_large = segment->is_large,
    };
    return row;
}

static bool rows_add_segment(void *context, const struct tarn_segment_info *segment)
{
    struct rows *rows = context;
    struct tn_page_row *row = rows->row;

    if (!row || !row_is_of(row, segment)) {
        row = rows_find(rows->record, segment);
    }
    rows->row = row;
    if (!row) {
        rows->record->rows_left_out++;
        return true;
    }
    row->segments++;
    row->reserved += segment->total_size;
    row->allocated += segment->allocated_size;
    row->active += segment->active_size;
    row->requested += segment->requested_size;
    return true;
}

static bool rows_add_block(void *context, const struct tarn_block_info *block)
{
    const struct rows *rows = context;

    if (rows->row && !block->active && block->size > rows->row->largest_free) {
        rows->row->largest_free = block->size;
    }
    return true;
}

/* ---- the record ---- */

static void record_put_stats(struct tn_page_record *record, const struct tarn_stats *stats)
{
    for (int kind = 0; kind < TARN_STAT_KINDS; kind++) {
        for (int pool = 0; pool < TARN_STAT_POOLS; pool++) {
            const struct tarn_stat *stat = &stats->by_pool[kind][pool];
            int64_t *numbers = record->by_pool[kind][pool];

            numbers[0] = stat->current;
            numbers[1] = stat->peak;
            numbers[2] = stat->allocated;
            numbers[3] = stat->freed;
        }
    }
    record->retries = stats->num_alloc_retries;
    record->ooms = stats->num_ooms;
    record->oom_rejections = stats->num_oom_rejections;
    record->waits = stats->num_sync_all_streams;
    record->device_allocs = stats->num_device_alloc;
    record->device_frees = stats->num_device_free;
}

static void record_put_pages(struct tn_page_record *record, const struct tarn_page_stats *pages)
{
    record->page_size = pages->page_size;
    record->pages_created = pages->created;
    record->pages_moved = pages->moved;
    record->pages_kept = pages->kept;
    record->pages_retired = pages->retired;
    record->page_requests = pages->requests;
    record->page_request_ns = pages->request_ns;
    record->page_longest_ns = pages->longest_ns;
}

/* Engines that cannot be observed in passing have counters all the same. */
static bool allocator_observe(struct tarn_allocator *allocator, struct tn_observation *observation)
{
    if (allocator->methods->observe) {
        return allocator->methods->observe(allocator, observation);
    }
    allocator->methods->get_stats(allocator, &observation->stats);
    observation->limit = allocator->methods->get_limit(allocator);
    return true;
}

/* As struct tn_publisher_source. */
static bool source_look(void *context, struct tn_page_record *record, uint64_t now_ns,
                        bool renews_rows)
{
    struct tarn_allocator *allocator = context;
    struct tn_page_record fresh = *record;
    struct rows rows = {.record = &fresh};
    const struct tarn_walker walker = {
        .context = &rows, .segment = rows_add_segment, .block = rows_add_block};
    struct tn_observation observation = {.walker = renews_rows ? &walker : NULL};

    if (renews_rows) {
        fresh.row_count = 0;
        fresh.rows_left_out = 0;
    }
    if (!allocator_observe(allocator, &observation)) {
        return false;
    }
    if (!observation.walked) {
        fresh = *record;
    } else {
        fresh.rows_time_ns = now_ns;
    }
    fresh.device = tn_allocator_ordinal(allocator);
    fresh.limit = observation.limit;
    (void)snprintf(fresh.backend, sizeof fresh.backend, "%s", allocator->backend);
    (void)snprintf(fresh.policy, sizeof fresh.policy, "%s",
                   observation.pages.page_size ? "compact" : "exact");
    record_put_stats(&fresh, &observation.stats);
    record_put_pages(&fresh, &observation.pages);
    *record = fresh;
    return true;
}

/* ---- starting and stopping ---- */

static _Atomic(const struct tn_control_hook *) control_hook;

void tn_watch_source_set_hook(const struct tn_control_hook *hook)
{
    atomic_store(&control_hook, hook);
}

/* Whether requests are taken for it now. */
static bool control_begin(struct tarn_allocator *allocator, const char *runtime)
{
    const struct tn_control_hook *hook = atomic_load(&control_hook);

    return hook && hook->added(allocator, runtime);
}

static void control_end(struct tarn_allocator *allocator)
{
    const struct tn_control_hook *hook = atomic_load(&control_hook);

    if (hook) {
        hook->removed(allocator);
    }
}

static enum tarn_status source_start(struct tarn_allocator *allocator, const char *runtime,
                                     bool control, struct tarn_error *error)
{
    struct tn_publisher_source *source = &allocator->watched;

    if (source->look) {
        return TARN_OK;
    }
    *source = (struct tn_publisher_source){
        .context = allocator, .look = source_look, .bus_id = allocator->device->bus_id, .slot = -1};
    (void)allocator->device->ops->memory_info(allocator->device, &source->device_free,
                                              &source->device_total);
    const enum tarn_status st = tn_publisher_add(source, runtime, control, error);

    if (st) {
        source->look = NULL;
    } else if (control && control_begin(allocator, runtime)) {
        tn_publisher_set_controlled();
    }
    return st;
}

enum tarn_status tarn_watch_start(struct tarn_allocator *allocator,
                                  const struct tarn_watch_options *options,
                                  struct tarn_error *error)
{
    if (!allocator || (options && options->struct_size != sizeof *options)) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "watching needs an allocator, and options of this version");
    }
    if (tn_fork_passed(&allocator->fork)) {
        return tn_forked_refuse(error);
    }
    return source_start(allocator, options ? options->runtime_folder : NULL,
                        options && options->control, error);
}

void tarn_watch_stop(struct tarn_allocator *allocator)
{
    if (allocator && !tn_fork_passed(&allocator->fork) && allocator->watched.look) {
        control_end(allocator);
        tn_publisher_remove(&allocator->watched);
        allocator->watched.look = NULL;
    }
}

bool tarn_watch_is_on(struct tarn_allocator *allocator)
{
    return !tn_fork_passed(&allocator->fork) && allocator->watched.look != NULL;
}

void tn_watch_source_begin(struct tarn_allocator *allocator, const struct tarn_config *config)
{
    if (config->watch != TARN_WATCH_OFF) {
        (void)source_start(allocator, config->watch_folder[0] ? config->watch_folder : NULL,
                           config->watch == TARN_WATCH_CONTROL, NULL);
    }
}

void tn_watch_source_end(struct tarn_allocator *allocator)
{
    tarn_watch_stop(allocator);
}

bool tn_watch_source_is_on(const struct tarn_allocator *allocator)
{
    return allocator->watched.look != NULL;
}

void tn_watch_source_note_oom(const struct tarn_allocator *allocator, const struct tarn_oom *oom)
{
    const struct tn_page_oom note = {
        .requested = oom->requested,
        .rounded = oom->rounded,
        .segment_size = oom->segment_size,
        .stream = oom->stream,
        .limit = oom->limit,
        .device_free = oom->device_free,
        .device_total = oom->device_total,
        .allocated = oom->allocated,
        .reserved = oom->reserved,
        .private_free = oom->private_free,
        .rejected = oom->rejected,
    };

    if (tn_watch_source_is_on(allocator)) {
        tn_publisher_note_oom(&allocator->watched, &note);
    }
}
