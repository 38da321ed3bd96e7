/* SPDX-License-Identifier: MIT */
#include "watch_text.h"

#include "escape.h"
#include "size_text.h"
#include "tree_row.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

enum {
    SILENT_NS_PER_MS = 1000000,
    OLD_MS = 1500, /* numbers older than that are an alert */
    FULL_PERCENT = 95,
    IDLE_PERCENT = 50, /* of reserved memory that is cached, from IDLE_BYTES on */
    IDLE_BYTES = 1 << 30,
    BAR_COLUMNS = 40,
    TIMELINE_COLUMNS = 60,
    HEIGHTS = 8 /* of a column of the timeline */
};

__attribute__((format(printf, 3, 4))) static void put(const struct cli_watch_lines *lines,
                                                      enum cli_style style, const char *format, ...)
{
    char text[CLI_WATCH_LINE_MAX];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    lines->put(lines->context, style, text);
}

/* ---- numbers ---- */

struct short_text {
    char text[24];
};

/* "12.3 s", "4 min", "3 h" since that time. */
static struct short_text age_text(uint64_t now_ns, uint64_t then_ns)
{
    const double seconds = now_ns > then_ns ? (double)(now_ns - then_ns) / 1e9 : 0;
    struct short_text age;

    if (seconds < 120) {
        (void)snprintf(age.text, sizeof age.text, "%.1f s", seconds);
    } else if (seconds < 7200) {
        (void)snprintf(age.text, sizeof age.text, "%.0f min", seconds / 60);
    } else {
        (void)snprintf(age.text, sizeof age.text, "%.0f h", seconds / 3600);
    }
    return age;
}

/* At most five characters: 950, 12.3k, 4.5M. */
static struct short_text rate_text(double rate)
{
    struct short_text text;

    if (rate < 1000) {
        (void)snprintf(text.text, sizeof text.text, "%.0f", rate);
    } else if (rate < 1e6) {
        (void)snprintf(text.text, sizeof text.text, "%.1fk", rate / 1e3);
    } else {
        (void)snprintf(text.text, sizeof text.text, "%.1fM", rate / 1e6);
    }
    return text;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static uint64_t difference(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t current(const struct tarn_watch_record *record, enum tarn_stat_kind kind)
{
    return cli_watch_number(cli_watch_stat(record, kind)->current);
}

/* ---- the table ---- */

void cli_watch_put_headings(const struct cli_watch_lines *lines)
{
    put(lines, CLI_STYLE_FAINT, "%7s %-13s %3s %11s %11s %11s %6s %7s %3s", "PID", "PROGRAM", "GPU",
        "ALLOCATED", "PEAK", "RESERVED", "CACHED", "ALLOC/S", "OOM");
}

static struct short_text devices_text(const struct cli_watch_process *process)
{
    struct short_text text = {"-"};

    if (process->count == 1) {
        (void)snprintf(text.text, sizeof text.text, "%d", process->records[0].device);
    } else if (process->count > 1) {
        (void)snprintf(text.text, sizeof text.text, "*%u", process->count);
    }
    return text;
}

void cli_watch_put_process(const struct cli_watch_lines *lines,
                           const struct cli_watch_process *process)
{
    const uint64_t cached = cli_watch_cached(process->reserved, process->allocated);

    put(lines, process->answers ? CLI_STYLE_PLAIN : CLI_STYLE_RED,
        "%7" PRId64 " %-13.13s %3s %11s %11s %11s %4.0f %% %7s %3" PRIu64, process->head.process,
        cli_escaped(process->head.program).text, devices_text(process).text,
        cli_size_text(process->allocated).text, cli_size_text(process->peak).text,
        cli_size_text(process->reserved).text, percent(cached, process->reserved),
        rate_text(process->alloc_rate).text, process->ooms);
}

/* ---- alerts ---- */

static void alert_oom(const struct cli_watch_lines *lines, const struct tarn_watch_record *record)
{
    const struct tarn_watch_oom *oom = &record->oom;

    if (oom->time_ns != 0) {
        put(lines, CLI_STYLE_RED, "! out of memory %s ago: %s on stream %#" PRIx64 "%s",
            age_text(lines->now_ns, oom->time_ns).text, cli_size_text(oom->requested).text,
            oom->stream, oom->rejected ? ", refused by the limit" : "");
        put(lines, CLI_STYLE_RED, "  then %s was allocated, %s reserved, %s free on the device",
            cli_size_text(oom->allocated).text, cli_size_text(oom->reserved).text,
            cli_size_text(oom->device_free).text);
    }
}

static void alert_full(const struct cli_watch_lines *lines, const struct tarn_watch_record *record)
{
    const uint64_t reserved = current(record, TARN_STAT_RESERVED_BYTES);
    const uint64_t allocated = current(record, TARN_STAT_ALLOCATED_BYTES);
    const bool limited = record->limit < record->device_total;
    const uint64_t limit = limited ? record->limit : record->device_total;

    if (limit > 0 && percent(reserved, limit) >= FULL_PERCENT) {
        put(lines, CLI_STYLE_RED, "! %.0f %% of the %s is reserved", percent(reserved, limit),
            limited ? "limit" : "device");
    }
    if (reserved >= IDLE_BYTES &&
        percent(cli_watch_cached(reserved, allocated), reserved) >= IDLE_PERCENT) {
        put(lines, CLI_STYLE_RED, "! %.0f %% of reserved memory is cached, not allocated",
            percent(cli_watch_cached(reserved, allocated), reserved));
    }
    if (record->stats.num_alloc_retries > 0) {
        put(lines, CLI_STYLE_RED, "! %" PRId64 " retries: the cache was emptied to go on",
            record->stats.num_alloc_retries);
    }
}

static void alert_silence(const struct cli_watch_lines *lines,
                          const struct cli_watch_process *process)
{
    if (process->ended) {
        put(lines, CLI_STYLE_RED, "! the process has ended; these are its last numbers");
    } else if (!process->answers) {
        put(lines, CLI_STYLE_RED, "! the process does not answer; its numbers are %s old",
            age_text(lines->now_ns, process->time_ns).text);
    }
    for (uint32_t i = 0; i < process->count; i++) {
        const struct tarn_watch_record *record = &process->records[i];

        if (process->answers && record->missed > 0 &&
            difference(lines->now_ns, record->time_ns) / SILENT_NS_PER_MS > OLD_MS) {
            put(lines, CLI_STYLE_RED,
                "! device %d: a call holds the allocator's lock; the numbers are %s old",
                record->device, age_text(lines->now_ns, record->time_ns).text);
        }
    }
}

/* ---- allocators ---- */

static void put_bar(const struct cli_watch_lines *lines, const struct tarn_watch_record *record)
{
    const uint64_t allocated = current(record, TARN_STAT_ALLOCATED_BYTES);
    const uint64_t reserved = current(record, TARN_STAT_RESERVED_BYTES);
    const double whole = record->device_total > 0 ? (double)record->device_total : 1;
    char bar[BAR_COLUMNS + 1];

    for (int i = 0; i < BAR_COLUMNS; i++) {
        const double at = whole * (i + 0.5) / BAR_COLUMNS;

        bar[i] = '.';
        if (at < (double)reserved) {
            bar[i] = at < (double)allocated ? '#' : '=';
        }
    }
    bar[BAR_COLUMNS] = '\0';
    put(lines, CLI_STYLE_PLAIN, "  [%s] # allocated = cached", bar);
}

static void put_limit(const struct cli_watch_lines *lines, const struct tarn_watch_record *record)
{
    const bool limited = record->limit < record->device_total;

    put(lines, CLI_STYLE_BOLD, "device %d: %s, %s free %s ago; %s, %s; %s%s", record->device,
        cli_size_text(record->device_total).text, cli_size_text(record->device_free).text,
        age_text(lines->now_ns, record->device_time_ns).text, cli_escaped(record->backend).text,
        cli_escaped(record->policy).text, limited ? "limit " : "no limit",
        limited ? cli_size_text(record->limit).text : "");
}

static void put_numbers(const struct cli_watch_lines *lines, const struct tarn_watch_record *record)
{
    const uint64_t reserved = current(record, TARN_STAT_RESERVED_BYTES);
    const uint64_t allocated = current(record, TARN_STAT_ALLOCATED_BYTES);
    const uint64_t segments = current(record, TARN_STAT_SEGMENT); /* without expandable ones */
    char in_segments[48] = "";

    if (segments > 0) {
        (void)snprintf(in_segments, sizeof in_segments, " in %" PRIu64 " segments", segments);
    }
    put(lines, CLI_STYLE_PLAIN, "  %s allocated in %" PRIu64 " blocks, %s requested, %s active",
        cli_size_text(allocated).text, current(record, TARN_STAT_ALLOCATION),
        cli_size_text(current(record, TARN_STAT_REQUESTED_BYTES)).text,
        cli_size_text(current(record, TARN_STAT_ACTIVE_BYTES)).text);
    put(lines, CLI_STYLE_PLAIN, "  %s reserved%s, %s cached; %" PRId64 " device allocations",
        cli_size_text(reserved).text, in_segments,
        cli_size_text(cli_watch_cached(reserved, allocated)).text, record->stats.num_device_alloc);
    if (record->pages.page_size > 0) {
        put(lines, CLI_STYLE_PLAIN,
            "  pages of %s: %" PRIu64 " created, %" PRIu64 " moved, %" PRIu64
            " kept; longest request %.1f ms",
            cli_size_text(record->pages.page_size).text, record->pages.created, record->pages.moved,
            record->pages.kept, (double)record->pages.longest_ns / 1e6);
    }
}

static void put_row(const struct cli_watch_lines *lines, const struct tarn_watch_row *row)
{
    char pool[64];

    if (row->pool.first == 0 && row->pool.second == 0) {
        (void)snprintf(pool, sizeof pool, "default %s", row->is_large ? "large" : "small");
    } else {
        (void)snprintf(pool, sizeof pool, "%" PRIu64 ",%" PRIu64 " %s", row->pool.first,
                       row->pool.second, row->is_large ? "large" : "small");
    }
    put(lines, CLI_STYLE_PLAIN, "  %-15.15s %#14" PRIx64 " %5" PRIu64 " %11s %11s %14s", pool,
        row->stream, row->segments, cli_size_text(row->reserved).text,
        cli_size_text(row->allocated).text, cli_size_text(row->largest_free).text);
}

static void put_rows(const struct cli_watch_lines *lines, const struct tarn_watch_record *record)
{
    if (record->row_count == 0) {
        return;
    }
    put(lines, CLI_STYLE_FAINT, "  %-15s %14s %5s %11s %11s %14s", "POOL", "STREAM", "SEGS",
        "RESERVED", "ALLOCATED", "LARGEST FREE");
    for (uint32_t i = 0; i < record->row_count; i++) {
        put_row(lines, &record->rows[i]);
    }
    if (record->rows_left_out > 0) {
        put(lines, CLI_STYLE_FAINT, "  ... and %" PRIu64 " segments of other streams and pools",
            record->rows_left_out);
    }
}

/* ---- the timeline ---- */

static uint64_t samples_max(const struct cli_watch_process *process)
{
    uint64_t max = 0;

    for (uint32_t i = 0; i < process->sample_count; i++) {
        max = process->samples[i] > max ? process->samples[i] : max;
    }
    return max;
}

static void put_timeline(const struct cli_watch_lines *lines,
                         const struct cli_watch_process *process)
{
    static const char *const heights[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const plain[] = {" ", ".", ".", ":", ":", "-", "=", "+", "#"};
    const uint64_t max = samples_max(process);
    const uint32_t shown =
        process->sample_count < TIMELINE_COLUMNS ? process->sample_count : TIMELINE_COLUMNS;
    char text[TIMELINE_COLUMNS * 4 + 1] = "";
    size_t length = 0;

    if (process->sample_count < 2) {
        return;
    }
    for (uint32_t i = process->sample_count - shown; i < process->sample_count; i++) {
        const double part = max > 0 ? (double)process->samples[i] / (double)max : 0;
        const int height = (int)(part * HEIGHTS + 0.5);

        length += (size_t)snprintf(text + length, sizeof text - length, "%s",
                                   (lines->is_utf8 ? heights : plain)[height]);
    }
    put(lines, CLI_STYLE_PLAIN, "reserved %s", text);
    put(lines, CLI_STYLE_FAINT, "         the last %u looks; the highest is %s", shown,
        cli_size_text(max).text);
}

void cli_watch_put_details(const struct cli_watch_lines *lines,
                           const struct cli_watch_process *process)
{
    alert_silence(lines, process);
    for (uint32_t i = 0; i < process->count; i++) {
        const struct tarn_watch_record *record = &process->records[i];

        put_limit(lines, record);
        alert_oom(lines, record);
        alert_full(lines, record);
        put_bar(lines, record);
        put_numbers(lines, record);
        put_rows(lines, record);
    }
    put_timeline(lines, process);
}

/* ---- JSON ---- */

static void json_counter(struct cli_json *json, const char *key, const struct tarn_stat *stat)
{
    cli_json_open_object(json, key);
    cli_json_signed(json, "current", stat->current);
    cli_json_signed(json, "peak", stat->peak);
    cli_json_signed(json, "allocated", stat->allocated);
    cli_json_signed(json, "freed", stat->freed);
    cli_json_close(json);
}

static void json_stats(struct cli_json *json, const struct tarn_stats *stats)
{
    cli_json_open_object(json, "counters");
    for (int kind = 0; kind < TARN_STAT_KINDS; kind++) {
        cli_json_open_object(json, tarn_stat_kind_name((enum tarn_stat_kind)kind));
        for (int pool = 0; pool < TARN_STAT_POOLS; pool++) {
            json_counter(json, tarn_stat_pool_name((enum tarn_stat_pool)pool),
                         &stats->by_pool[kind][pool]);
        }
        cli_json_close(json);
    }
    cli_json_signed(json, "num_alloc_retries", stats->num_alloc_retries);
    cli_json_signed(json, "num_ooms", stats->num_ooms);
    cli_json_signed(json, "num_oom_rejections", stats->num_oom_rejections);
    cli_json_signed(json, "num_sync_all_streams", stats->num_sync_all_streams);
    cli_json_signed(json, "num_device_alloc", stats->num_device_alloc);
    cli_json_signed(json, "num_device_free", stats->num_device_free);
    cli_json_close(json);
}

static void json_pages(struct cli_json *json, const struct tarn_page_stats *pages)
{
    if (pages->page_size == 0) {
        cli_json_text(json, "pages", NULL);
        return;
    }
    cli_json_open_object(json, "pages");
    cli_json_number(json, "page_size", pages->page_size);
    cli_json_number(json, "created", pages->created);
    cli_json_number(json, "moved", pages->moved);
    cli_json_number(json, "kept", pages->kept);
    cli_json_number(json, "retired", pages->retired);
    cli_json_number(json, "requests", pages->requests);
    cli_json_number(json, "request_ns", pages->request_ns);
    cli_json_number(json, "longest_ns", pages->longest_ns);
    cli_json_close(json);
}

static void json_oom(struct cli_json *json, const struct tarn_watch_oom *oom)
{
    if (oom->time_ns == 0) {
        cli_json_text(json, "last_oom", NULL);
        return;
    }
    cli_json_open_object(json, "last_oom");
    cli_json_number(json, "time_ns", oom->time_ns);
    cli_json_number(json, "requested", oom->requested);
    cli_json_number(json, "rounded", oom->rounded);
    cli_json_number(json, "segment_size", oom->segment_size);
    cli_json_number(json, "stream", oom->stream);
    cli_json_number(json, "device_free", oom->device_free);
    cli_json_number(json, "device_total", oom->device_total);
    cli_json_number(json, "allocated", oom->allocated);
    cli_json_number(json, "reserved", oom->reserved);
    cli_json_number(json, "private_free", oom->private_free);
    cli_json_bool(json, "rejected", oom->rejected);
    cli_json_close(json);
}

static void json_rows(struct cli_json *json, const struct tarn_watch_record *record)
{
    cli_json_open_array(json, "streams");
    for (uint32_t i = 0; i < record->row_count; i++) {
        const struct tarn_watch_row *row = &record->rows[i];
        char pool[48];

        (void)snprintf(pool, sizeof pool, "%" PRIu64 ",%" PRIu64, row->pool.first,
                       row->pool.second);
        cli_json_open_object(json, NULL);
        cli_json_text(json, "pool", pool);
        cli_json_bool(json, "is_large", row->is_large);
        cli_json_number(json, "stream", row->stream);
        cli_json_number(json, "segments", row->segments);
        cli_json_number(json, "reserved", row->reserved);
        cli_json_number(json, "allocated", row->allocated);
        cli_json_number(json, "active", row->active);
        cli_json_number(json, "requested", row->requested);
        cli_json_number(json, "largest_free", row->largest_free);
        cli_json_close(json);
    }
    cli_json_close(json);
    cli_json_number(json, "streams_time_ns", record->rows_time_ns);
    cli_json_number(json, "segments_left_out", record->rows_left_out);
}

static void json_record(struct cli_json *json, const struct tarn_watch_record *record)
{
    cli_json_open_object(json, NULL);
    cli_json_signed(json, "device", record->device);
    cli_json_text(json, "backend", record->backend);
    cli_json_text(json, "policy", record->policy);
    cli_json_number(json, "time_ns", record->time_ns);
    cli_json_number(json, "missed", record->missed);
    cli_json_number(json, "device_total", record->device_total);
    cli_json_number(json, "device_free", record->device_free);
    cli_json_number(json, "device_time_ns", record->device_time_ns);
    if (record->limit == UINT64_MAX) {
        cli_json_text(json, "limit", NULL);
    } else {
        cli_json_number(json, "limit", record->limit);
    }
    json_stats(json, &record->stats);
    json_pages(json, &record->pages);
    json_oom(json, &record->oom);
    json_rows(json, record);
    cli_json_close(json);
}

void cli_watch_print_json(const struct cli_watch *watch, FILE *file)
{
    struct cli_json json;

    cli_json_begin(&json, file, "tarn.watch/1", false);
    cli_json_open_array(&json, "processes");
    for (uint32_t i = 0; i < watch->count; i++) {
        const struct cli_watch_process *process = watch->processes[i];

        cli_json_open_object(&json, NULL);
        cli_json_signed(&json, "process", process->head.process);
        cli_json_text(&json, "program", process->head.program);
        cli_json_text(&json, "version", process->head.version);
        cli_json_number(&json, "created_ns", process->head.created_ns);
        cli_json_bool(&json, "answers", process->answers);
        cli_json_open_array(&json, "allocators");
        for (uint32_t r = 0; r < process->count; r++) {
            json_record(&json, &process->records[r]);
        }
        cli_json_close(&json);
        cli_json_close(&json);
    }
    cli_json_close(&json);
    cli_json_end(&json);
}
