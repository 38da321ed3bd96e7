/* SPDX-License-Identifier: MIT */
#include "metrics.h"

#include "tarn/config.h"

#include <inttypes.h>
#include <string.h>

enum {
    LABELS_MAX = 8,
    NS_DECIMALS = 9,
    RATIO_DECIMALS = 6
};

#define RATIO_ONE 1e6

/* Labels of a subject; texts that are made here live as long. */
struct labels {
    struct cli_om_label items[LABELS_MAX];
    size_t count;
    char process[24];
    char device[16];
    char allocator[16];
    char pool[48];
    char stream[24];
};

static void labels_add(struct labels *labels, const char *name, const char *value)
{
    labels->items[labels->count++] = (struct cli_om_label){name, value};
}

/* ---- the program itself ---- */

static const struct cli_om_family process_count = {.name = "tarn_processes",
                                                   .help = "Processes whose counters are read."};
static const struct cli_om_family unreadable_count = {
    .name = "tarn_processes_unreadable",
    .help = "Processes that publish counters which cannot be read; they are left out."};
static const struct cli_om_family left_out_count = {
    .name = "tarn_processes_left_out", .help = "Processes for which there was no room."};

static bool is_shown(const struct cli_watch_process *process)
{
    return !process->ended && !process->unreadable;
}

static void print_counts(struct cli_om *om, const struct cli_watch *watch)
{
    uint64_t shown = 0;
    uint64_t unreadable = watch->unreadable;

    for (uint32_t i = 0; i < watch->count; i++) {
        shown += is_shown(watch->processes[i]);
        unreadable += !watch->processes[i]->ended && watch->processes[i]->unreadable;
    }
    cli_om_sample(om, &process_count, NULL, 0, shown);
    cli_om_sample(om, &unreadable_count, NULL, 0, unreadable);
    cli_om_sample(om, &left_out_count, NULL, 0, watch->left_out);
}

/* ---- processes ---- */

static const struct cli_om_family process_info = {
    .name = "tarn_process", .type = CLI_OM_INFO, .help = "A process and its version of libtarn."};
static const struct cli_om_family process_answers = {
    .name = "tarn_process_answers",
    .help = "1 if the process answered; 0 if it hangs, and its numbers are older."};

static void labels_of_process(struct labels *labels, const struct cli_watch_process *process)
{
    labels->count = 0;
    (void)snprintf(labels->process, sizeof labels->process, "%" PRId64, process->head.process);
    labels_add(labels, "pid", labels->process);
    labels_add(labels, "program", process->head.program);
}

static void print_processes(struct cli_om *om, const struct cli_watch *watch)
{
    struct labels labels;

    for (uint32_t i = 0; i < watch->count; i++) {
        if (is_shown(watch->processes[i])) {
            labels_of_process(&labels, watch->processes[i]);
            labels_add(&labels, "version", watch->processes[i]->head.version);
            cli_om_sample(om, &process_info, labels.items, labels.count, 1);
        }
    }
    for (uint32_t i = 0; i < watch->count; i++) {
        if (is_shown(watch->processes[i])) {
            labels_of_process(&labels, watch->processes[i]);
            cli_om_sample(om, &process_answers, labels.items, labels.count,
                          watch->processes[i]->answers);
        }
    }
}

/* ---- allocators ---- */

/* The value of a metric, if there is one. */
typedef bool (*record_value)(const struct tarn_watch_record *record, uint64_t *value_out);

struct record_metric {
    struct cli_om_family family;
    size_t at; /* of the number in the record, unless `value` is set */
    bool is_signed;
    record_value value;
    bool of_pages;  /* only under a policy with pages */
    bool of_device; /* with the label hw_id, as OpenTelemetry has it */
};

static bool device_limit(const struct tarn_watch_record *record, uint64_t *value_out)
{
    *value_out = record->device_total;
    return record->device_total > 0;
}

static bool device_usage(const struct tarn_watch_record *record, uint64_t *value_out)
{
    *value_out = record->device_total - record->device_free;
    return record->device_total > 0 && record->device_free <= record->device_total;
}

static bool device_utilization(const struct tarn_watch_record *record, uint64_t *value_out)
{
    uint64_t usage;

    if (!device_usage(record, &usage)) {
        return false;
    }
    *value_out = (uint64_t)((double)usage / (double)record->device_total * RATIO_ONE + 0.5);
    return true;
}

static bool device_time(const struct tarn_watch_record *record, uint64_t *value_out)
{
    *value_out = record->device_time_ns;
    return record->device_time_ns > 0;
}

static bool limit(const struct tarn_watch_record *record, uint64_t *value_out)
{
    *value_out = record->limit;
    return record->limit != TARN_SIZE_UNLIMITED;
}

static bool cached(const struct tarn_watch_record *record, uint64_t *value_out)
{
    *value_out = cli_watch_cached(
        cli_watch_number(cli_watch_stat(record, TARN_STAT_RESERVED_BYTES)->current),
        cli_watch_number(cli_watch_stat(record, TARN_STAT_ALLOCATED_BYTES)->current));
    return true;
}

static bool largest_free(const struct tarn_watch_record *record, uint64_t *value_out)
{
    *value_out = 0;
    for (uint32_t i = 0; i < record->row_count; i++) {
        const uint64_t here = record->rows[i].largest_free;

        *value_out = here > *value_out ? here : *value_out;
    }
    return record->rows_time_ns > 0;
}

static bool rows_time(const struct tarn_watch_record *record, uint64_t *value_out)
{
    *value_out = record->rows_time_ns;
    return record->rows_time_ns > 0;
}

static bool ooms(const struct tarn_watch_record *record, uint64_t *value_out)
{
    *value_out = cli_watch_ooms(record);
    return true;
}

static bool last_oom_time(const struct tarn_watch_record *record, uint64_t *value_out)
{
    *value_out = record->oom.time_ns;
    return record->oom.time_ns > 0;
}

static bool last_oom_requested(const struct tarn_watch_record *record, uint64_t *value_out)
{
    *value_out = record->oom.requested;
    return record->oom.time_ns > 0;
}

#define AT(member)      .at = offsetof(struct tarn_watch_record, member)
#define SIGNED(member)  AT(member), .is_signed = true
#define STAT(kind, sum) SIGNED(stats.by_pool[TARN_STAT_##kind][TARN_STAT_ALL].sum)

static const struct record_metric record_metrics[] = {
    {{"hw_gpu_memory_limit_bytes", CLI_OM_GAUGE, "bytes", 0, "Size of the GPU memory."},
     .value = device_limit,
     .of_device = true},
    {{"hw_gpu_memory_usage_bytes", CLI_OM_GAUGE, "bytes", 0,
      "GPU memory used, by all processes, as of tarn_device_asked_timestamp_seconds."},
     .value = device_usage,
     .of_device = true},
    {{"hw_gpu_memory_utilization_ratio", CLI_OM_GAUGE, "ratio", RATIO_DECIMALS,
      "Fraction of GPU memory used, as of the same time."},
     .value = device_utilization,
     .of_device = true},
    {{"tarn_device_asked_timestamp_seconds", CLI_OM_GAUGE, "seconds", NS_DECIMALS,
      "When NVML, or the driver by the allocator, was asked for the device's memory."},
     .value = device_time},
    {{"tarn_updated_timestamp_seconds", CLI_OM_GAUGE, "seconds", NS_DECIMALS,
      "When the process published these numbers."},
     AT(time_ns)},
    {{"tarn_updates_missed", CLI_OM_GAUGE, NULL, 0,
      "How often since then the allocator's lock was held for too long to look."},
     AT(missed)},
    {{"tarn_limit_bytes", CLI_OM_GAUGE, "bytes", 0,
      "Bytes that may be reserved; absent without a limit."},
     .value = limit},
    {{"tarn_memory_allocated_bytes", CLI_OM_GAUGE, "bytes", 0, "Bytes of allocated blocks."},
     STAT(ALLOCATED_BYTES, current)},
    {{"tarn_memory_allocated_peak_bytes", CLI_OM_GAUGE, "bytes", 0,
      "The most bytes of allocated blocks so far."},
     STAT(ALLOCATED_BYTES, peak)},
    {{"tarn_memory_reserved_bytes", CLI_OM_GAUGE, "bytes", 0, "Bytes taken from the device."},
     STAT(RESERVED_BYTES, current)},
    {{"tarn_memory_reserved_peak_bytes", CLI_OM_GAUGE, "bytes", 0,
      "The most bytes taken from the device so far."},
     STAT(RESERVED_BYTES, peak)},
    {{"tarn_memory_active_bytes", CLI_OM_GAUGE, "bytes", 0,
      "Bytes of blocks that are allocated or wait for streams."},
     STAT(ACTIVE_BYTES, current)},
    {{"tarn_memory_requested_bytes", CLI_OM_GAUGE, "bytes", 0,
      "Bytes that were requested for the active blocks."},
     STAT(REQUESTED_BYTES, current)},
    {{"tarn_memory_cached_bytes", CLI_OM_GAUGE, "bytes", 0,
      "Reserved bytes that are not allocated."},
     .value = cached},
    {{"tarn_memory_inactive_split_bytes", CLI_OM_GAUGE, "bytes", 0,
      "Free bytes in segments that are partly in use."},
     STAT(INACTIVE_SPLIT_BYTES, current)},
    {{"tarn_largest_free_block_bytes", CLI_OM_GAUGE, "bytes", 0,
      "The largest free block; absent where blocks are not counted."},
     .value = largest_free},
    {{"tarn_blocks", CLI_OM_GAUGE, NULL, 0, "Allocated blocks."}, STAT(ALLOCATION, current)},
    {{"tarn_segments", CLI_OM_GAUGE, NULL, 0, "Segments taken from the device."},
     STAT(SEGMENT, current)},
    {{"tarn_allocations", CLI_OM_COUNTER, NULL, 0, "Blocks allocated."},
     STAT(ALLOCATION, allocated)},
    {{"tarn_frees", CLI_OM_COUNTER, NULL, 0, "Blocks freed."}, STAT(ALLOCATION, freed)},
    {{"tarn_allocated_bytes", CLI_OM_COUNTER, "bytes", 0, "Bytes of all blocks allocated."},
     STAT(ALLOCATED_BYTES, allocated)},
    {{"tarn_freed_bytes", CLI_OM_COUNTER, "bytes", 0, "Bytes of all blocks freed."},
     STAT(ALLOCATED_BYTES, freed)},
    {{"tarn_device_allocations", CLI_OM_COUNTER, NULL, 0, "Segments allocated and ranges mapped."},
     SIGNED(stats.num_device_alloc)},
    {{"tarn_device_frees", CLI_OM_COUNTER, NULL, 0, "Segments freed and ranges unmapped."},
     SIGNED(stats.num_device_free)},
    {{"tarn_retries", CLI_OM_COUNTER, NULL, 0,
      "Device allocations that were tried again after the cache was emptied."},
     SIGNED(stats.num_alloc_retries)},
    {{"tarn_stream_waits", CLI_OM_COUNTER, NULL, 0, "Waits for the work of all pending frees."},
     SIGNED(stats.num_sync_all_streams)},
    {{"tarn_out_of_memory", CLI_OM_COUNTER, NULL, 0, "Requests that failed."}, .value = ooms},
    {{"tarn_last_out_of_memory_timestamp_seconds", CLI_OM_GAUGE, "seconds", NS_DECIMALS,
      "When a request last failed; absent if none has."},
     .value = last_oom_time},
    {{"tarn_last_out_of_memory_requested_bytes", CLI_OM_GAUGE, "bytes", 0,
      "Bytes that the last request to fail asked for."},
     .value = last_oom_requested},
    {{"tarn_page_size_bytes", CLI_OM_GAUGE, "bytes", 0, "Size of a page of the compact policy."},
     AT(pages.page_size),
     .of_pages = true},
    {{"tarn_page_creations", CLI_OM_COUNTER, NULL, 0, "Pages taken from the device."},
     AT(pages.created),
     .of_pages = true},
    {{"tarn_page_moves", CLI_OM_COUNTER, NULL, 0, "Free pages mapped at another address."},
     AT(pages.moved),
     .of_pages = true},
    {{"tarn_pages_kept", CLI_OM_GAUGE, NULL, 0,
      "Pages mapped nowhere, left over from requests that failed."},
     AT(pages.kept),
     .of_pages = true},
    {{"tarn_pages_retired", CLI_OM_GAUGE, NULL, 0,
      "Old addresses of pages that stay mapped until work in progress is done."},
     AT(pages.retired),
     .of_pages = true},
    {{"tarn_page_requests", CLI_OM_COUNTER, NULL, 0,
      "Requests for which pages were created or moved, or that failed."},
     AT(pages.requests),
     .of_pages = true},
    {{"tarn_page_request_seconds", CLI_OM_COUNTER, "seconds", NS_DECIMALS,
      "Time of these requests on the host, waits included."},
     AT(pages.request_ns),
     .of_pages = true},
    {{"tarn_page_request_longest_seconds", CLI_OM_GAUGE, "seconds", NS_DECIMALS,
      "Time of the longest one."},
     AT(pages.longest_ns),
     .of_pages = true},
    {{"tarn_streams_updated_timestamp_seconds", CLI_OM_GAUGE, "seconds", NS_DECIMALS,
      "When pools and streams were last counted; absent if never."},
     .value = rows_time},
    {{"tarn_segments_left_out", CLI_OM_GAUGE, NULL, 0,
      "Segments of streams and pools that the page has no room for."},
     AT(rows_left_out)},
};

static const struct cli_om_family allocator_info = {
    .name = "tarn_allocator",
    .type = CLI_OM_INFO,
    .help = "An allocator, its backend and its policy."};

static bool record_read(const struct tarn_watch_record *record, const struct record_metric *metric,
                        uint64_t *value_out)
{
    if (metric->of_pages && record->pages.page_size == 0) {
        return false;
    }
    if (metric->value) {
        return metric->value(record, value_out);
    }
    const char *at = (const char *)record + metric->at;

    if (metric->is_signed) {
        int64_t number;

        memcpy(&number, at, sizeof number);
        *value_out = cli_watch_number(number);
    } else {
        memcpy(value_out, at, sizeof *value_out);
    }
    return true;
}

static void labels_of_record(struct labels *labels, const struct cli_watch_process *process,
                             uint32_t index)
{
    labels_of_process(labels, process);
    (void)snprintf(labels->device, sizeof labels->device, "%d", process->records[index].device);
    (void)snprintf(labels->allocator, sizeof labels->allocator, "%" PRIu32, process->slots[index]);
    labels_add(labels, "device", labels->device);
    labels_add(labels, "allocator", labels->allocator);
}

/* Calls `print` for each allocator. */
static void each_record(const struct cli_watch *watch,
                        void (*print)(void *context, const struct tarn_watch_record *record,
                                      struct labels *labels),
                        void *context)
{
    struct labels labels;

    for (uint32_t i = 0; i < watch->count; i++) {
        const struct cli_watch_process *process = watch->processes[i];

        for (uint32_t r = 0; is_shown(process) && r < process->count; r++) {
            labels_of_record(&labels, process, r);
            print(context, &process->records[r], &labels);
        }
    }
}

struct record_printer {
    struct cli_om *om;
    const struct record_metric *metric;
};

static void print_record_info(void *context, const struct tarn_watch_record *record,
                              struct labels *labels)
{
    labels_add(labels, "backend", record->backend);
    labels_add(labels, "policy", record->policy);
    cli_om_sample(context, &allocator_info, labels->items, labels->count, 1);
}

static void print_record_metric(void *context, const struct tarn_watch_record *record,
                                struct labels *labels)
{
    const struct record_printer *printer = context;
    uint64_t value;

    if (printer->metric->of_device) {
        labels_add(labels, "hw_id", labels->device);
    }
    if (record_read(record, printer->metric, &value)) {
        cli_om_sample(printer->om, &printer->metric->family, labels->items, labels->count, value);
    }
}

static void print_records(struct cli_om *om, const struct cli_watch *watch)
{
    struct record_printer printer = {.om = om};

    each_record(watch, print_record_info, om);
    for (size_t i = 0; i < sizeof record_metrics / sizeof *record_metrics; i++) {
        printer.metric = &record_metrics[i];
        each_record(watch, print_record_metric, &printer);
    }
}

/* ---- pools and streams ---- */

struct row_metric {
    struct cli_om_family of_pool;
    struct cli_om_family of_stream;
    size_t at;
    bool is_largest; /* of several rows the largest number, not the sum */
};

#define ROW(name, unit, what, member)                                                              \
    .of_pool = {"tarn_pool_" name, CLI_OM_GAUGE, unit, 0, what ", by kind of pool."},              \
    .of_stream = {"tarn_stream_" name, CLI_OM_GAUGE, unit, 0, what ", by pool and stream."},       \
    .at = offsetof(struct tarn_watch_row, member)

static const struct row_metric row_metrics[] = {
    {ROW("segments", NULL, "Segments taken from the device", segments)},
    {ROW("reserved_bytes", "bytes", "Bytes taken from the device", reserved)},
    {ROW("allocated_bytes", "bytes", "Bytes of allocated blocks", allocated)},
    {ROW("active_bytes", "bytes", "Bytes of blocks that are allocated or wait for streams",
         active)},
    {ROW("requested_bytes", "bytes", "Bytes that were requested for the active blocks", requested)},
    {ROW("largest_free_block_bytes", "bytes", "The largest free block", largest_free),
     .is_largest = true},
};

static bool row_is_private(const struct tarn_watch_row *row)
{
    return row->pool.first != 0 || row->pool.second != 0;
}

static uint64_t row_read(const struct tarn_watch_row *row, const struct row_metric *metric)
{
    uint64_t value;

    memcpy(&value, (const char *)row + metric->at, sizeof value);
    return value;
}

/* All private pools are one, unless by stream: there is no end to their numbers. */
static bool row_is_like(const struct tarn_watch_row *a, const struct tarn_watch_row *b,
                        bool by_stream)
{
    if (a->is_large != b->is_large) {
        return false;
    }
    return by_stream ? a->stream == b->stream && a->pool.first == b->pool.first &&
                           a->pool.second == b->pool.second
                     : row_is_private(a) == row_is_private(b);
}

/* A series appears once, whatever rows the page has: or else nobody takes the rest either. */
static bool row_is_first(const struct tarn_watch_record *record, uint32_t index, bool by_stream)
{
    for (uint32_t i = 0; i < index; i++) {
        if (row_is_like(&record->rows[i], &record->rows[index], by_stream)) {
            return false;
        }
    }
    return true;
}

static uint64_t rows_join(const struct tarn_watch_record *record, const struct tarn_watch_row *like,
                          const struct row_metric *metric, bool by_stream)
{
    uint64_t joined = 0;

    for (uint32_t i = 0; i < record->row_count; i++) {
        const uint64_t value = row_read(&record->rows[i], metric);

        if (!row_is_like(&record->rows[i], like, by_stream)) {
            continue;
        }
        if (!metric->is_largest) {
            joined += value;
        } else if (value > joined) {
            joined = value;
        }
    }
    return joined;
}

static void labels_of_row(struct labels *labels, const struct tarn_watch_row *row, bool by_stream)
{
    if (!row_is_private(row)) {
        (void)snprintf(labels->pool, sizeof labels->pool, "default");
    } else if (!by_stream) {
        (void)snprintf(labels->pool, sizeof labels->pool, "private");
    } else {
        (void)snprintf(labels->pool, sizeof labels->pool, "%" PRIu64 ",%" PRIu64, row->pool.first,
                       row->pool.second);
    }
    labels_add(labels, "pool", labels->pool);
    labels_add(labels, "size", row->is_large ? "large" : "small");
    if (by_stream) {
        (void)snprintf(labels->stream, sizeof labels->stream, "%#" PRIx64, row->stream);
        labels_add(labels, "stream", labels->stream);
    }
}

struct row_printer {
    struct cli_om *om;
    const struct row_metric *metric;
    bool by_stream;
};

static void print_row_metric(void *context, const struct tarn_watch_record *record,
                             struct labels *labels)
{
    const struct row_printer *printer = context;
    const struct row_metric *metric = printer->metric;
    const bool by_stream = printer->by_stream;
    const size_t count = labels->count;

    for (uint32_t i = 0; i < record->row_count; i++) {
        if (row_is_first(record, i, by_stream)) {
            labels_of_row(labels, &record->rows[i], by_stream);
            cli_om_sample(printer->om, by_stream ? &metric->of_stream : &metric->of_pool,
                          labels->items, labels->count,
                          rows_join(record, &record->rows[i], metric, by_stream));
            labels->count = count;
        }
    }
}

static void print_rows(struct cli_om *om, const struct cli_watch *watch, bool by_stream)
{
    struct row_printer printer = {.om = om, .by_stream = by_stream};

    for (size_t i = 0; i < sizeof row_metrics / sizeof *row_metrics; i++) {
        printer.metric = &row_metrics[i];
        each_record(watch, print_row_metric, &printer);
    }
}

void cli_metrics_print(const struct cli_watch *watch, const struct cli_metrics_options *options,
                       FILE *file)
{
    struct cli_om om = {.file = file, .format = options->format};

    print_counts(&om, watch);
    print_processes(&om, watch);
    print_records(&om, watch);
    print_rows(&om, watch, false);
    if (options->streams) {
        print_rows(&om, watch, true);
    }
    cli_om_end(&om);
}
