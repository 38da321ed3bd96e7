/* SPDX-License-Identifier: MIT */
/* Tables as text: JSON lines and CSV (RFC 4180, with a line of names). */
#include "analysis/fold.h"
#include "base/assertion.h"
#include "base/csv_text.h"
#include "base/escaped.h"
#include "export/export_formats.h"
#include "export/export_table.h"
#include "tarn/text.h"

#include <inttypes.h>
#include <string.h>

struct text_sink {
    struct tn_table_sink sink; /* first */
    struct tn_text_out out;
};

static struct tn_text_out *out_of(struct tn_table_sink *sink)
{
    return &((struct text_sink *)sink)->out;
}

/* ---- JSON lines ---- */

static void json_string_put(struct tn_text_out *out, const struct tn_model *model,
                            const struct tn_cell *cell)
{
    tn_text_putc(out, '"');
    if (cell->kind == TN_CELL_FRAME) {
        tn_frame_put(out, model, (uint32_t)cell->value.number, TN_ESCAPED_JSON);
    } else if (cell->kind == TN_CELL_WORD) {
        tn_text_puts(out, cell->value.word);
    } else {
        const struct tn_string text = cell->kind == TN_CELL_TEXT
                                          ? cell->value.text
                                          : tn_model_string(model, (uint32_t)cell->value.number);

        tn_text_put_escaped(out, text.text, text.length, TN_ESCAPED_JSON);
    }
    tn_text_putc(out, '"');
}

static void json_cell_put(struct tn_text_out *out, const struct tn_model *model,
                          const struct tn_column *column, const struct tn_cell *cell)
{
    tn_text_printf(out, ",\"%s\":", column->name);
    switch (cell->kind) {
    case TN_CELL_NONE:
        tn_text_puts(out, "null");
        break;
    case TN_CELL_SIGNED:
        tn_text_printf(out, "%" PRId64, cell->value.signed_number);
        break;
    case TN_CELL_UNSIGNED:
        tn_text_printf(out, column->kind == TN_COLUMN_ADDRESS ? "\"0x%" PRIx64 "\"" : "%" PRIu64,
                       cell->value.number);
        break;
    case TN_CELL_REAL:
        tn_text_printf(out, "%.1f", cell->value.real);
        break;
    case TN_CELL_WORD:
    case TN_CELL_TEXT:
    case TN_CELL_STRING:
    case TN_CELL_FRAME:
        json_string_put(out, model, cell);
        break;
    }
}

static bool jsonl_row(struct tn_table_sink *sink, const struct tn_table *table,
                      const struct tn_cell *cells)
{
    struct tn_text_out *out = out_of(sink);

    tn_text_printf(out, "{\"table\":\"%s\"", table->name);
    for (unsigned i = 0; i < table->column_count; i++) {
        json_cell_put(out, sink->model, &table->columns[i], &cells[i]);
    }
    tn_text_puts(out, "}\n");
    return out->status == TARN_OK;
}

/* ---- CSV ---- */

static bool csv_table(struct tn_table_sink *sink, const struct tn_table *table)
{
    struct tn_text_out *out = out_of(sink);

    for (unsigned i = 0; i < table->column_count; i++) {
        tn_text_printf(out, "%s%s", i > 0 ? "," : "", table->columns[i].name);
    }
    tn_text_puts(out, "\r\n");
    return out->status == TARN_OK;
}

static void csv_frame_put(struct tn_text_out *out, const struct tn_model *model, uint32_t frame)
{
    const struct tn_frame *it = tn_model_frame(model, frame);
    const struct tn_string file = tn_model_string(model, it->filename);
    const struct tn_string name = tn_model_string(model, it->name);

    tn_csv_begin(out, file.text, file.length);
    tn_csv_put_part(out, file.text, file.length);
    tn_text_printf(out, ":%" PRId64 ":", it->line);
    tn_csv_put_part(out, name.text, name.length);
    tn_text_putc(out, '"');
}

static void csv_cell_put(struct tn_text_out *out, const struct tn_model *model,
                         const struct tn_column *column, const struct tn_cell *cell)
{
    struct tn_string text = {"", 0};

    switch (cell->kind) {
    case TN_CELL_NONE:
        break;
    case TN_CELL_SIGNED:
        tn_text_printf(out, "%" PRId64, cell->value.signed_number);
        break;
    case TN_CELL_UNSIGNED:
        tn_text_printf(out, column->kind == TN_COLUMN_ADDRESS ? "0x%" PRIx64 : "%" PRIu64,
                       cell->value.number);
        break;
    case TN_CELL_REAL:
        tn_text_printf(out, "%.1f", cell->value.real);
        break;
    case TN_CELL_WORD:
        tn_text_printf(out, "\"%s\"", cell->value.word);
        break;
    case TN_CELL_TEXT:
        tn_csv_put(out, cell->value.text.text, cell->value.text.length);
        break;
    case TN_CELL_STRING:
        text = tn_model_string(model, (uint32_t)cell->value.number);
        tn_csv_put(out, text.text, text.length);
        break;
    case TN_CELL_FRAME:
        csv_frame_put(out, model, (uint32_t)cell->value.number);
        break;
    }
}

static bool csv_row(struct tn_table_sink *sink, const struct tn_table *table,
                    const struct tn_cell *cells)
{
    struct tn_text_out *out = out_of(sink);

    for (unsigned i = 0; i < table->column_count; i++) {
        if (i > 0) {
            tn_text_putc(out, ',');
        }
        csv_cell_put(out, sink->model, &table->columns[i], &cells[i]);
    }
    tn_text_puts(out, "\r\n");
    return out->status == TARN_OK;
}

/* ---- both ---- */

static enum tarn_status text_write(const struct tn_export *job, struct text_sink *text,
                                   const struct tarn_export_options *options)
{
    bool out_of_memory;

    text->sink.model = job->model;
    tn_text_init(&text->out, job->writer);
    const bool good = job->tables->send(job, &text->sink, options, &out_of_memory);

    tn_assert(good || out_of_memory || text->out.status != TARN_OK);
    return tn_export_end(job, &text->out, out_of_memory);
}

enum tarn_status tn_export_jsonl(const struct tn_export *job)
{
    struct text_sink text = {.sink = {.row = jsonl_row}};

    return text_write(job, &text, job->options);
}

enum tarn_status tn_export_csv(const struct tn_export *job)
{
    struct text_sink text = {.sink = {.table = csv_table, .row = csv_row}};
    struct tarn_export_options options = *job->options;

    if (options.table == TARN_TABLE_ALL) {
        options.table = job->tables->first;
    }
    return text_write(job, &text, &options);
}
