/* SPDX-License-Identifier: MIT */
/*
 * The table of torch.cuda.memory_summary, byte for byte. Lines are 75 columns between two bars. The
 * unit of a column is chosen by the metric's `all` row, so that the rows of the pools compare:
 * bytes are divided by 1024 while the (float-divided) amount is 768 x 1024 or more, counts by 1000
 * while it is 750,000 or more.
 */
#include "tarn/report.h"

#include "base/text_out.h"

#include <stdio.h>
#include <string.h>

enum {
    SUMMARY_WIDTH = 75,
    SUMMARY_COLUMNS = 4,
    CELL_MAX = 48
};

/* Rows of the table, in order. */
static const struct metric {
    const char *name;
    enum tarn_stat_kind kind;
    bool is_bytes;
} metrics[] = {
    {"Allocated memory", TARN_STAT_ALLOCATED_BYTES, true},
    {"Active memory", TARN_STAT_ACTIVE_BYTES, true},
    {"Requested memory", TARN_STAT_REQUESTED_BYTES, true},
    {"GPU reserved memory", TARN_STAT_RESERVED_BYTES, true},
    {"Non-releasable memory", TARN_STAT_INACTIVE_SPLIT_BYTES, true},
    {"Allocations", TARN_STAT_ALLOCATION, false},
    {"Active allocs", TARN_STAT_ACTIVE, false},
    {"GPU reserved segments", TARN_STAT_SEGMENT, false},
    {"Non-releasable allocs", TARN_STAT_INACTIVE_SPLIT, false},
};

enum {
    METRICS = sizeof metrics / sizeof metrics[0]
};

static void put_rule(struct tn_text_out *out, char c)
{
    char line[SUMMARY_WIDTH];

    memset(line, c, sizeof line);
    tn_text_putc(out, '|');
    tn_text_put(out, line, sizeof line);
    tn_text_puts(out, "|\n");
}

static int64_t stat_value(const struct tarn_stat *stat, int column)
{
    const int64_t values[SUMMARY_COLUMNS] = {stat->current, stat->peak, stat->allocated,
                                             stat->freed};

    return values[column];
}

/* One cell: `value` in the unit that suits `preference`. Division of the value truncates as
 * Python's floor division does for the counters, which are never negative. */
static void format_cell(char *cell, int64_t value, int64_t preference, bool is_bytes)
{
    static const char *const byte_units[] = {"B  ", "KiB", "MiB", "GiB", "TiB", "PiB"};
    static const char *const count_units[] = {" ", "K", "M"};
    const int last = is_bytes ? 5 : 2;
    const int64_t step = is_bytes ? 1024 : 1000;
    const double enough = is_bytes ? 768.0 * 1024.0 : 750.0 * 1000.0;
    double amount = (double)preference;
    int unit = 0;

    while (unit < last && amount >= enough) {
        value /= step;
        amount /= (double)step;
        unit++;
    }
    if (is_bytes) {
        (void)snprintf(cell, CELL_MAX, "%6lld %s", (long long)value, byte_units[unit]);
    } else {
        (void)snprintf(cell, CELL_MAX, "%7lld %s ", (long long)value, count_units[unit]);
    }
}

static void put_row(struct tn_text_out *out, const char *name, const struct tarn_stat *stat,
                    const struct tarn_stat *preference, bool is_bytes)
{
    tn_text_printf(out, "| %-21s ", name);
    for (int column = 0; column < SUMMARY_COLUMNS; column++) {
        char cell[CELL_MAX];

        format_cell(cell, stat_value(stat, column), stat_value(preference, column), is_bytes);
        tn_text_printf(out, "| %s ", cell);
    }
    tn_text_puts(out, "|\n");
}

static void put_metric(struct tn_text_out *out, const struct metric *metric,
                       const struct tarn_stats *stats, bool abbreviated)
{
    const struct tarn_stat *by_pool = stats->by_pool[metric->kind];
    const struct tarn_stat *all = &by_pool[TARN_STAT_ALL];

    put_rule(out, '-');
    put_row(out, metric->name, all, all, metric->is_bytes);
    if (!abbreviated) {
        put_row(out, "      from large pool", &by_pool[TARN_STAT_LARGE_POOL], all,
                metric->is_bytes);
        put_row(out, "      from small pool", &by_pool[TARN_STAT_SMALL_POOL], all,
                metric->is_bytes);
    }
}

static void put_head(struct tn_text_out *out, const struct tarn_stats *stats, int device)
{
    put_rule(out, '=');
    tn_text_printf(out, "|                  PyTorch CUDA memory summary, device ID %-17d |\n",
                   device);
    put_rule(out, '-');
    tn_text_printf(out, "|            CUDA OOMs: %-12lld |        cudaMalloc retries: %-8lld  |\n",
                   (long long)stats->num_ooms, (long long)stats->num_alloc_retries);
    put_rule(out, '=');
    tn_text_puts(out,
                 "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n");
}

enum tarn_status tarn_report_summary(const struct tarn_stats *stats, int device, bool abbreviated,
                                     const struct tarn_writer *writer)
{
    struct tn_text_out out;

    tn_text_init(&out, writer);
    put_head(&out, stats, device);
    for (int i = 0; i < METRICS; i++) {
        put_metric(&out, &metrics[i], stats, abbreviated);
    }
    put_rule(&out, '-');
    put_row(&out, "Oversize allocations", &stats->oversize_allocations,
            &stats->oversize_allocations, false);
    put_rule(&out, '-');
    put_row(&out, "Oversize GPU segments", &stats->oversize_segments, &stats->oversize_segments,
            false);
    put_rule(&out, '=');
    return tn_text_finish(&out);
}
