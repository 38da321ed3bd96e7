/* SPDX-License-Identifier: MIT */
/*
 * The page of a fleet. Sections: `report`, the JSON that `tarn ranks` prints; `head`, what the page
 * needs beside it of each rank, in the order of the report's ranks; `requested` and `reserved`, the
 * sketches of the timelines in that order, each number as the step from the same part of the rank
 * before: like ranks then take next to nothing. viewer/fleet_data.js reads them.
 */
#include "base/errinfo.h"
#include "base/json_text.h"
#include "fleet/fleet_rows.h"
#include "page/bundle.h"
#include "page/rank_sketches.h"
#include "page/section.h"
#include "tarn/viewer.h"

#include <stdio.h>
#include <string.h>

enum {
    PATH_BYTES = 1024
};

struct ranks_page {
    const struct tarn_view_ranks_options *options;
    struct tn_fleet_rows rows;
    struct tn_rank_sketches sketches;
    struct tn_column head;
    struct tn_column report;
};

static void page_init(struct ranks_page *page, const struct tarn_view_ranks_options *options)
{
    *page = (struct ranks_page){.options = options};
    tn_rank_sketches_init(&page->sketches);
    tn_column_init(&page->head);
    tn_column_init(&page->report);
}

static void page_fini(struct ranks_page *page)
{
    tn_column_fini(&page->report);
    tn_column_fini(&page->head);
    tn_rank_sketches_fini(&page->sketches);
    tn_fleet_rows_fini(&page->rows);
}

/* ---- a rank ---- */

static void labels_put(struct tn_json_text *json, const struct tn_fleet_member *member)
{
    tn_json_open_object(json, NULL);
    for (size_t i = 0; i < member->label_count; i++) {
        const struct tarn_label *label = &member->labels[i];

        if (strcmp(label->key, "file") != 0) {
            tn_json_word(json, label->key, label->value);
        }
    }
    tn_json_close(json);
}

static void page_path_put(struct tn_json_text *json, const struct ranks_page *page,
                          const struct tn_fleet_member *member)
{
    const struct tarn_view_ranks_options *options = page->options;
    char path[PATH_BYTES];

    if (options->find_page &&
        options->find_page(options->context, member->file, member->device, path, sizeof path)) {
        tn_json_word(json, NULL, path);
    } else {
        tn_json_null(json, NULL);
    }
}

/* As the table of `tarn ranks` shows it; its JSON has it not. */
static void distance_put(struct tn_json_text *json, double distance)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%.1f", distance);
    tn_json_word(json, NULL, text);
}

static enum tarn_status rank_add(struct ranks_page *page, struct tn_json_text *json, size_t number,
                                 struct tarn_error *error)
{
    const struct tn_line *lines = page->rows.fleet->ranks.items;
    const struct tn_fleet_member *members = page->rows.members.items;
    uint64_t events;
    const enum tarn_status status =
        tn_rank_sketches_add(&page->sketches, &lines[number], &events, error);

    if (status == TARN_OK) {
        tn_json_open_array(json, NULL);
        labels_put(json, &members[number]);
        tn_json_number(json, NULL, members[number].group);
        tn_json_number(json, NULL, events);
        page_path_put(json, page, &members[number]);
        distance_put(json, members[number].distance);
        tn_json_close(json);
    }
    return status;
}

/* ---- sections ---- */

static const char *title_of(const struct tarn_view_ranks_options *options)
{
    return options->title && *options->title ? options->title : "Ranks";
}

static enum tarn_status ranks_add(struct ranks_page *page, struct tarn_error *error)
{
    const struct tarn_writer writer = tn_column_writer(&page->head);
    enum tarn_status status = TARN_OK;
    struct tn_text_out out;
    struct tn_json_text json;

    tn_text_init(&out, &writer);
    tn_json_init(&json, &out, TN_JSON_COMPACT);
    tn_json_open_object(&json, NULL);
    tn_json_number(&json, "format", 1);
    tn_json_word(&json, "tool", tarn_version());
    tn_json_word(&json, "title", title_of(page->options));
    tn_json_number(&json, "points", TN_RANK_POINTS);
    tn_json_open_array(&json, "ranks"); /* labels, group, events, its page, distance */
    for (size_t i = 0; status == TARN_OK && i < page->rows.result->rank_count; i++) {
        status = rank_add(page, &json, tn_ranks_number(page->rows.ranks, i), error);
    }
    tn_json_end(&json);
    return status || tn_text_finish(&out) == TARN_OK ? status : tn_fail_memory(error);
}

static enum tarn_status page_fill(struct ranks_page *page, struct tarn_fleet *fleet,
                                  const struct tarn_fleet_options *how, struct tarn_error *error)
{
    const struct tarn_report_options options = {.struct_size = sizeof options,
                                                .format = TARN_REPORT_JSON};
    const struct tarn_writer writer = tn_column_writer(&page->report);
    enum tarn_status status = tn_fleet_rows_make(&page->rows, fleet, &options, how, error);

    status = status ? status : tn_fleet_rows_put(&page->rows, &writer, error);
    return status ? status : ranks_add(page, error);
}

static bool sections_put(const struct ranks_page *page, struct tn_text_out *out)
{
    const struct tn_section_out sections = {out, ""};

    return tn_section_put(&sections, "head", &page->head) &&
           tn_section_put(&sections, "report", &page->report) &&
           tn_section_put(&sections, "requested", &page->sketches.columns[0]) &&
           tn_section_put(&sections, "reserved", &page->sketches.columns[1]);
}

static enum tarn_status page_put(const struct ranks_page *page, const struct tarn_writer *writer,
                                 struct tarn_error *error)
{
    struct tn_text_out out;

    tn_text_init(&out, writer);
    tn_bundle_begin(&tn_bundle_ranks, &out, title_of(page->options), "");
    if (!sections_put(page, &out)) {
        return tn_fail_memory(error);
    }
    tn_bundle_end(&tn_bundle_ranks, &out);
    const enum tarn_status status = tn_text_finish(&out);

    return status ? tn_fail(error, status, "cannot write the page") : TARN_OK;
}

enum tarn_status tarn_view_write_ranks(struct tarn_fleet *fleet,
                                       const struct tarn_fleet_options *how,
                                       const struct tarn_view_ranks_options *options,
                                       const struct tarn_writer *writer, struct tarn_error *error)
{
    static const struct tarn_view_ranks_options none = {.struct_size = sizeof none};
    struct ranks_page page;

    page_init(&page, options ? options : &none);
    enum tarn_status status = page_fill(&page, fleet, how, error);

    status = status ? status : page_put(&page, writer, error);
    page_fini(&page);
    return status;
}
