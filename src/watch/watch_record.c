/* SPDX-License-Identifier: MIT */
#include "watch/watch_record.h"

#include "base/errinfo.h"
#include "base/os_wait.h"

#include <limits.h>

static_assert((int)TARN_WATCH_ROWS_MAX == (int)TN_PAGE_ROWS, "the page has those rows");
static_assert((int)TARN_WATCH_ALLOCATORS == (int)TN_PAGE_SLOTS, "the page has those slots");
static_assert((int)TARN_WATCH_NAME_MAX == (int)TN_PAGE_NAME_MAX, "the page has those names");

enum {
    TRIES = 64 /* the writer publishes at most a hundred times a second */
};

/* Both are arrays of the same size. */
#define COPY_TEXT(to, from)                                                                        \
    do {                                                                                           \
        static_assert(sizeof(to) == sizeof(from), "texts are copied whole");                       \
        memcpy(to, from, sizeof(to));                                                              \
        (to)[sizeof(to) - 1] = '\0';                                                               \
    } while (false)

enum tarn_status tn_watch_head_decode(const struct tn_page_head *head,
                                      struct tarn_watch_process *process_out,
                                      struct tarn_error *error)
{
    if (memcmp(head->magic, TN_PAGE_MAGIC, sizeof head->magic) != 0) {
        return tn_fail(error, TARN_ERR_FORMAT, "this is no page of counters");
    }
    if (head->version != TN_PAGE_VERSION) {
        return tn_fail(error, TARN_ERR_FORMAT,
                       "the page of counters has version %u, and this program reads %d: use the "
                       "program of the process's own version",
                       head->version, (int)TN_PAGE_VERSION);
    }
    if (head->head_size != TN_PAGE_HEAD_SIZE || head->slot_size != TN_PAGE_SLOT_SIZE ||
        head->slot_count != TN_PAGE_SLOTS || head->process > INT_MAX) {
        return tn_fail(error, TARN_ERR_FORMAT, "the page of counters contradicts itself");
    }
    *process_out = (struct tarn_watch_process){
        .struct_size = sizeof *process_out,
        .process = (int64_t)head->process,
        .created_ns = head->created_ns,
        .controlled = head->controlled == TN_CONTROL_TAKEN,
        .wants_control = head->controlled == TN_CONTROL_WANTED,
    };
    COPY_TEXT(process_out->program, head->program);
    COPY_TEXT(process_out->version, head->tarn_version);
    return TARN_OK;
}

/* ---- records ---- */

static void stats_decode(const struct tn_page_record *from, struct tarn_stats *stats_out)
{
    *stats_out = (struct tarn_stats){
        .struct_size = sizeof *stats_out,
        .num_alloc_retries = from->retries,
        .num_ooms = from->ooms,
        .num_sync_all_streams = from->waits,
        .num_device_alloc = from->device_allocs,
        .num_device_free = from->device_frees,
        .num_oom_rejections = from->oom_rejections,
        .max_split_size = -1,
    };
    for (int kind = 0; kind < TARN_STAT_KINDS; kind++) {
        for (int pool = 0; pool < TARN_STAT_POOLS; pool++) {
            const int64_t *numbers = from->by_pool[kind][pool];

            stats_out->by_pool[kind][pool] = (struct tarn_stat){
                .current = numbers[0],
                .peak = numbers[1],
                .allocated = numbers[2],
                .freed = numbers[3],
            };
        }
    }
}

static void oom_decode(const struct tn_page_oom *from, struct tarn_watch_oom *oom_out)
{
    *oom_out = (struct tarn_watch_oom){
        .time_ns = from->time_ns,
        .requested = from->requested,
        .rounded = from->rounded,
        .segment_size = from->segment_size,
        .stream = from->stream,
        .limit = from->limit,
        .device_free = from->device_free,
        .device_total = from->device_total,
        .allocated = from->allocated,
        .reserved = from->reserved,
        .private_free = from->private_free,
        .rejected = from->rejected != 0,
    };
}

static void rows_decode(const struct tn_page_record *from, struct tarn_watch_record *record_out)
{
    const uint64_t count = from->row_count < TN_PAGE_ROWS ? from->row_count : TN_PAGE_ROWS;

    record_out->row_count = (uint32_t)count;
    for (uint64_t i = 0; i < count; i++) {
        const struct tn_page_row *row = &from->rows[i];

        record_out->rows[i] = (struct tarn_watch_row){
            .pool = {.first = row->pool_first, .second = row->pool_second},
            .stream = row->stream,
            .is_large = row->is_large != 0,
            .segments = row->segments,
            .reserved = row->reserved,
            .allocated = row->allocated,
            .active = row->active,
            .requested = row->requested,
            .largest_free = row->largest_free,
        };
    }
}

static void record_decode(const struct tn_page_record *from, struct tarn_watch_record *record_out)
{
    *record_out = (struct tarn_watch_record){
        .struct_size = sizeof *record_out,
        .closed = from->state != TN_SLOT_LIVE,
        .time_ns = from->time_ns,
        .missed = from->missed,
        .device = from->device >= 0 && from->device <= INT_MAX ? (int)from->device : -1,
        .limit = from->limit,
        .device_total = from->device_total,
        .device_free = from->device_free,
        .device_time_ns = from->device_time_ns,
        .rows_time_ns = from->rows_time_ns,
        .rows_left_out = from->rows_left_out,
    };
    COPY_TEXT(record_out->backend, from->backend);
    COPY_TEXT(record_out->policy, from->policy);
    stats_decode(from, &record_out->stats);
    record_out->pages = (struct tarn_page_stats){
        .struct_size = sizeof record_out->pages,
        .page_size = from->page_size,
        .created = from->pages_created,
        .moved = from->pages_moved,
        .kept = from->pages_kept,
        .retired = from->pages_retired,
        .requests = from->page_requests,
        .request_ns = from->page_request_ns,
        .longest_ns = from->page_longest_ns,
    };
    oom_decode(&from->oom, &record_out->oom);
    rows_decode(from, record_out);
}

enum tarn_status tn_watch_record_read(tn_latch_source read, void *context, uint32_t index,
                                      struct tarn_watch_record *record_out,
                                      struct tarn_error *error)
{
    const uint64_t offset = TN_PAGE_HEAD_SIZE + (uint64_t)index * TN_PAGE_SLOT_SIZE;
    struct tn_page_record record;
    enum tn_latch_result result = TN_LATCH_CHANGED;

    for (unsigned i = 0; i < TRIES && result == TN_LATCH_CHANGED; i++) {
        if (i > TRIES / 4) {
            tn_os_nap(i);
        }
        result = tn_latch_read(read, context, offset, &record);
    }
    if (result == TN_LATCH_CUT_OFF) {
        return tn_fail(error, TARN_ERR_TRUNCATED, "the page of counters ends early");
    }
    if (result == TN_LATCH_CHANGED) {
        return tn_fail(error, TARN_ERR_NOT_READY, "the page of counters changes all the time");
    }
    if (result == TN_LATCH_EMPTY || record.state == TN_SLOT_FREE) {
        return tn_fail(error, TARN_ERR_NOT_FOUND, "the process has no allocator %u", index);
    }
    record_decode(&record, record_out);
    return TARN_OK;
}
