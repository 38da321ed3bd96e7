/* SPDX-License-Identifier: MIT */
/*
 * Who asks for memory and gives it back at once: allocations whose free follows within a few
 * entries. Blocks of one size that come and go again and again could be one that is kept (`out=`,
 * in-place operations, a cache), so the most frequent size of each row is shown.
 */
#include "tarn/report.h"

#include "analysis/address_map.h"
#include "base/size_text.h"
#include "report/report_out.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    LIFE_MAX_DEFAULT = 64
};

/* One short-lived allocation. */
struct brief {
    uint64_t key;
    uint64_t size;
};

/* Those of one key, or of several. */
struct row {
    uint64_t key;
    uint64_t count;
    uint64_t bytes;
    uint64_t entries; /* lives, summed up */
    uint64_t size;    /* the most frequent size, the larger of equals */
    uint64_t of_size; /* how many have it */
};

struct churn {
    struct tn_vec briefs; /* struct brief */
    struct tn_vec rows;   /* struct row, most allocations first */
    struct tn_map numbers;
    struct row total;
    uint64_t allocations; /* all of the trace */
    uint64_t allocated;
    uint64_t life_max;
};

static bool row_count(struct churn *churn, uint64_t key, const struct tn_lifetime *lifetime)
{
    const uint64_t *number = tn_address_find(&churn->numbers, key);
    struct brief *brief = tn_vec_push(&churn->briefs);
    struct row *row;

    if (!brief) {
        return false;
    }
    *brief = (struct brief){key, lifetime->size};
    if (number) {
        row = (struct row *)churn->rows.items + *number;
    } else {
        if (!tn_address_put(&churn->numbers, key, churn->rows.count)) {
            return false;
        }
        row = tn_vec_push(&churn->rows);
        if (!row) {
            return false;
        }
        row->key = key;
    }
    row->count++;
    row->bytes += lifetime->size;
    row->entries += lifetime->end - lifetime->start;
    churn->total.count++;
    churn->total.bytes += lifetime->size;
    churn->total.entries += lifetime->end - lifetime->start;
    return true;
}

static int brief_compare(const void *left, const void *right)
{
    const struct brief *a = left;
    const struct brief *b = right;

    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    return (a->size > b->size) - (a->size < b->size);
}

/* Runs of one key and size, in order. */
static void sizes_find(struct churn *churn)
{
    const struct brief *briefs = churn->briefs.items;
    struct row *rows = churn->rows.items;
    size_t from = 0;

    for (size_t i = 0; i < churn->briefs.count; i++) {
        const bool ends =
            i + 1 == churn->briefs.count || brief_compare(&briefs[i], &briefs[i + 1]) != 0;

        if (!ends) {
            continue;
        }
        struct row *row = &rows[*tn_address_find(&churn->numbers, briefs[i].key)];
        const uint64_t count = i + 1 - from;

        if (count >= row->of_size) {
            row->size = briefs[i].size;
            row->of_size = count;
        }
        from = i + 1;
    }
}

static int row_compare(const void *left, const void *right)
{
    const struct row *a = left;
    const struct row *b = right;

    if (a->count != b->count) {
        return a->count > b->count ? -1 : 1;
    }
    if (a->bytes != b->bytes) {
        return a->bytes > b->bytes ? -1 : 1;
    }
    return a->key < b->key ? -1 : a->key > b->key;
}

static bool churn_fill(struct churn *churn, const struct tn_analysis *analysis)
{
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(analysis->timeline);

    for (size_t i = 0; i < analysis->timeline->lifetimes.count; i++) {
        const struct tn_lifetime *lifetime = &lifetimes[i];
        uint64_t key;

        if (lifetime->start == TN_NEVER) {
            continue;
        }
        churn->allocations++;
        churn->allocated += lifetime->size;
        if (lifetime->end != TN_NEVER && lifetime->end - lifetime->start <= churn->life_max &&
            !(tn_group_key_find(&analysis->keys, lifetime, &key) &&
              row_count(churn, key, lifetime))) {
            return false;
        }
    }
    if (churn->briefs.count > 0) {
        qsort(churn->briefs.items, churn->briefs.count, sizeof(struct brief), brief_compare);
        sizes_find(churn);
        qsort(churn->rows.items, churn->rows.count, sizeof(struct row), row_compare);
    }
    return true;
}

static struct row others_sum(const struct churn *churn, size_t limit)
{
    const struct row *rows = churn->rows.items;
    struct row others = {.count = 0};

    for (size_t i = limit; i < churn->rows.count; i++) {
        others.count += rows[i].count;
        others.bytes += rows[i].bytes;
        others.entries += rows[i].entries;
    }
    return others;
}

/* ---- text ---- */

static double percent(uint64_t part, uint64_t all)
{
    return all > 0 ? (double)part / (double)all * 100 : 0.0;
}

static void row_put(struct tn_text_out *out, const struct churn *churn, const struct row *row)
{
    const int width = tn_text_size_width(out);

    tn_text_printf(out, "  %8" PRIu64 "  %5.1f%%", row->count,
                   percent(row->count, churn->total.count));
    tn_text_put_size(out, (double)row->bytes);
    if (row->count == 0) {
        tn_text_printf(out, "       -  %*s          ", width, "-");
        return;
    }
    tn_text_printf(out, "  %6.1f", (double)row->entries / (double)row->count);
    if (row->of_size == 0) {
        tn_text_printf(out, "  %*s           ", width, "-");
    } else {
        tn_text_put_size(out, (double)row->size);
        tn_text_printf(out, "  %6.1f%%  ", percent(row->of_size, row->count));
    }
}

static void churn_put(const struct tn_report_out *report, const struct tn_analysis *analysis,
                      const struct churn *churn, size_t limit)
{
    const struct row *rows = churn->rows.items;
    struct tn_text_out *out = report->out;

    tn_text_printf(out, "device %" PRId64 "\n", analysis->timeline->device);
    tn_analysis_put_selection(out, analysis);
    tn_text_printf(out,
                   "%" PRIu64 " of %" PRIu64 " allocations (%.1f%%) were freed within %" PRIu64
                   " entries, ",
                   churn->total.count, churn->allocations,
                   percent(churn->total.count, churn->allocations), churn->life_max);
    tn_text_printf(out, "%s of ", tn_text_size(out, (double)churn->total.bytes).text);
    tn_text_printf(out, "%s asked for\n\n", tn_text_size(out, (double)churn->allocated).text);
    tn_text_put_head(out, "    blocks   share#bytes    life#mostly of  so many  ");
    tn_text_printf(out, "%s\n", tn_grouping_heading(analysis->keys.by));
    for (size_t i = 0; i < limit; i++) {
        row_put(out, churn, &rows[i]);
        tn_group_key_put(out, &analysis->keys, rows[i].key);
        tn_text_putc(out, '\n');
    }
    if (limit < churn->rows.count) {
        const struct row others = others_sum(churn, limit);

        row_put(out, churn, &others);
        tn_text_printf(out, "others (%zu %s)\n", churn->rows.count - limit,
                       tn_grouping_plural(analysis->keys.by));
    }
    row_put(out, churn, &churn->total);
    tn_text_puts(out, "total\n");
}

/* ---- JSON ---- */

static void row_members(struct tn_json_text *json, const struct row *row)
{
    tn_json_number(json, "blocks", row->count);
    tn_json_number(json, "bytes", row->bytes);
    tn_json_number(json, "entries_from_allocation_to_free", row->entries);
}

static void churn_put_json(const struct tn_report_out *report, const struct tn_analysis *analysis,
                           const struct churn *churn, size_t limit)
{
    const struct row *rows = churn->rows.items;
    const struct row others = others_sum(churn, limit);
    struct tn_json_text *json = report->json;

    tn_json_open_object(json, NULL);
    tn_json_signed(json, "device", analysis->timeline->device);
    tn_analysis_put_selection_json(json, analysis);
    tn_json_number(json, "life_max_entries", churn->life_max);
    tn_json_number(json, "allocations", churn->allocations);
    tn_json_number(json, "allocated_bytes", churn->allocated);
    tn_json_open_array(json, "groups");
    for (size_t i = 0; i < limit; i++) {
        tn_json_open_object(json, NULL);
        row_members(json, &rows[i]);
        tn_json_number(json, "most_frequent_size_bytes", rows[i].size);
        tn_json_number(json, "blocks_of_that_size", rows[i].of_size);
        tn_group_key_put_json(json, &analysis->keys, rows[i].key);
        tn_json_close(json);
    }
    tn_json_close(json);
    tn_json_open_object(json, "others");
    tn_json_number(json, tn_grouping_plural(analysis->keys.by), churn->rows.count - limit);
    row_members(json, &others);
    tn_json_close(json);
    tn_json_open_object(json, "total");
    row_members(json, &churn->total);
    tn_json_close(json);
    tn_json_close(json);
}

/* ---- devices ---- */

static enum tarn_status device_put(const struct tn_report_out *report,
                                   const struct tn_analysis *analysis, struct tarn_error *error)
{
    const uint64_t wanted = report->options->life_max;
    struct churn churn = {.life_max = wanted > 0 ? wanted : LIFE_MAX_DEFAULT};

    (void)error;
    tn_vec_init(&churn.briefs, sizeof(struct brief));
    tn_vec_init(&churn.rows, sizeof(struct row));
    const bool good = churn_fill(&churn, analysis);

    if (good) {
        const size_t limit =
            report->limit < churn.rows.count ? (size_t)report->limit : churn.rows.count;

        if (report->json) {
            churn_put_json(report, analysis, &churn, limit);
        } else {
            churn_put(report, analysis, &churn, limit);
        }
    }
    tn_map_fini(&churn.numbers);
    tn_vec_fini(&churn.rows);
    tn_vec_fini(&churn.briefs);
    return good ? TARN_OK : TARN_ERR_HOST_MEMORY;
}

enum tarn_status tarn_report_churn(const struct tarn_snapshot *snapshot,
                                   const struct tarn_report_options *options,
                                   const struct tarn_writer *writer, struct tarn_error *error)
{
    return tn_report_traces(snapshot, options, "tarn.churn/1", device_put, writer, error);
}
