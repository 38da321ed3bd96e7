/* SPDX-License-Identifier: MIT */
#include "page/view_head.h"

#include "analysis/split_rule.h"
#include "base/escaped.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void text_put(struct tn_text_out *out, const char *text, size_t length)
{
    tn_text_putc(out, '"');
    tn_text_put_escaped(out, text, length, TN_ESCAPED_JSON);
    tn_text_putc(out, '"');
}

static void string_put(struct tn_text_out *out, const struct tn_model *model, uint32_t string)
{
    const struct tn_string text = tn_model_string(model, string);

    text_put(out, text.text, text.length);
}

static const char *word(bool value)
{
    return value ? "true" : "false";
}

static void warnings_put(struct tn_text_out *out, const struct tn_model *model)
{
    tn_text_puts(out, "\"warnings\":[");
    for (size_t i = 0; i < model->warning_count; i++) {
        tn_text_puts(out, i > 0 ? ",[" : "[");
        text_put(out, model->warnings[i].text, strlen(model->warnings[i].text));
        tn_text_printf(out, ",%" PRIu64 "]", model->warnings[i].count);
    }
    tn_text_puts(out, "],");
}

/* JSON has no infinity and no NaN. */
static void real_put(struct tn_text_out *out, double value)
{
    if (isfinite(value)) {
        tn_text_printf(out, "%.17g", value);
    } else {
        tn_text_puts(out, "null");
    }
}

static void field_put(struct tn_text_out *out, const struct tn_model *model,
                      const struct tn_field *field)
{
    tn_text_puts(out, "[");
    string_put(out, model, field->key);
    tn_text_puts(out, ",");
    switch ((enum tn_field_kind)field->kind) {
    case TN_FIELD_NONE:
        tn_text_puts(out, "null");
        break;
    case TN_FIELD_BOOL:
        tn_text_puts(out, word(field->value.boolean));
        break;
    case TN_FIELD_INT:
        tn_text_printf(out, "\"%" PRId64 "\"", field->value.integer);
        break;
    case TN_FIELD_UINT:
        tn_text_printf(out, "\"%" PRIu64 "\"", field->value.unsigned_integer);
        break;
    case TN_FIELD_FLOAT:
        real_put(out, field->value.real);
        break;
    case TN_FIELD_STRING:
        string_put(out, model, field->value.string);
        break;
    case TN_FIELD_CONTAINER:
    case TN_FIELD_STACK:
    case TN_FIELD_FRAME:
        tn_text_puts(out, "\"...\"");
        break;
    }
    tn_text_puts(out, "]");
}

static void settings_put(struct tn_text_out *out, const struct tn_model *model)
{
    const struct tn_model_settings *settings = &model->settings;

    tn_text_puts(out, "\"settings\":[");
    if (settings->present) {
        tn_text_puts(out, "[\"PYTORCH_CUDA_ALLOC_CONF\",");
        string_put(out, model, settings->conf);
        tn_text_printf(out, "],[\"max_split_size\",\"%" PRId64 "\"]", settings->max_split_size);
        tn_text_puts(out, ",[\"garbage_collection_threshold\",");
        real_put(out, settings->garbage_collection_threshold);
        tn_text_printf(out, "],[\"expandable_segments\",%s]", word(settings->expandable_segments));
        for (size_t i = 0; i < settings->field_count; i++) {
            tn_text_puts(out, ",");
            field_put(out, model, &settings->fields[i]);
        }
    }
    tn_text_puts(out, "],");
}

/* The page rounds requests as the allocator did. */
static void roundup_put(struct tn_text_out *out, const struct tn_model_settings *settings)
{
    const struct tn_split_rule rule = tn_split_rule_of(settings);

    tn_text_puts(out, "\"roundup\":[");
    for (int i = 0; i < TN_ROUNDUP_INTERVALS; i++) {
        tn_text_printf(out, "%s%" PRIu64, i > 0 ? "," : "", rule.divisions[i]);
    }
    tn_text_puts(out, "],");
}

/* Names of the categories of stacks in the page, then the guessed ones. */
static void categories_put(struct tn_text_out *out, const struct tn_categories *categories)
{
    tn_text_puts(out, "\"categories\":[");
    for (uint32_t i = 0; i < tn_category_count(categories); i++) {
        const char *hint;
        const char *name = tn_category_name(categories, i, &hint);

        tn_text_puts(out, i > 0 ? ",\"" : "\"");
        tn_text_put_escaped(out, name, strlen(name), TN_ESCAPED_JSON);
        tn_text_printf(out, "%s\"", hint);
    }
    tn_text_puts(out, "],");
}

static const char *view_word(enum tarn_view view)
{
    static const char *const words[] = {
        [TARN_VIEW_TIMELINE] = "timeline", [TARN_VIEW_BLOCKS] = "blocks",
        [TARN_VIEW_MAP] = "map",           [TARN_VIEW_FLAME] = "flame",
        [TARN_VIEW_TABLE] = "table",       [TARN_VIEW_OOM] = "oom",
        [TARN_VIEW_INFO] = "info",         [TARN_VIEW_SEGMENTS] = "segments"};

    return words[view];
}

void tn_view_head_init(struct tn_view_head *head, const struct tn_model *model,
                       const struct tn_categories *categories,
                       const struct tarn_view_options *options, struct tn_view_label label)
{
    static const char *const redactions[] = {[TARN_VIEW_REDACT_NOTHING] = "nothing",
                                             [TARN_VIEW_REDACT_PATHS] = "paths",
                                             [TARN_VIEW_REDACT_ALL] = "all"};
    struct tn_text_out *out = &head->out;
    const char *title = options->title && *options->title ? options->title : "GPU memory";

    tn_column_init(&head->column);
    head->writer = tn_column_writer(&head->column);
    head->is_first = true;
    tn_text_init(out, &head->writer);
    tn_text_printf(out, "{\"format\":4,\"tool\":\"%s\",\"title\":", tarn_version());
    text_put(out, title, strlen(title));
    tn_text_printf(out, ",\"runs\":%zu,\"name\":", label.runs);
    text_put(out, label.name, strlen(label.name));
    tn_text_printf(out, ",\"view\":\"%s\",\"redacted\":\"%s\",", view_word(options->view),
                   redactions[options->redact]);
    tn_text_printf(out, "\"partial\":%s,\"list\":%s,\"legacy\":%s,\"traces\":%s,",
                   word(model->is_partial), word(model->is_list_only), word(model->is_legacy),
                   word(model->has_traces));
    roundup_put(out, &model->settings);
    if (options->redact == TARN_VIEW_REDACT_ALL) {
        tn_text_puts(out, "\"warnings\":[],\"settings\":[],");
    } else {
        warnings_put(out, model);
        settings_put(out, model);
    }
    categories_put(out, categories);
    tn_text_puts(out, "\"sources\":[");
}

void tn_view_head_fini(struct tn_view_head *head)
{
    tn_column_fini(&head->column);
}

/* A column in which nothing happens is as the one before ended: at most its maximum, so the value
 * is that of its last entry's column. */
static void overview_put(struct tn_text_out *out, const struct tn_record *record)
{
    uint64_t requested = 0;
    uint64_t reserved = record->reserved_before;

    tn_text_puts(out, "\"overview\":[");
    for (int i = 0; i < TN_OVERVIEW; i++) {
        if (record->overview[0][i] != TN_OVERVIEW_NONE) {
            requested = record->overview[0][i];
            reserved = record->overview[1][i];
        }
        tn_text_printf(out, "%s[%" PRIu64 ",%" PRIu64 "]", i > 0 ? "," : "",
                       requested + record->requested_before, reserved);
    }
    tn_text_puts(out, "]}");
}

void tn_view_head_add(struct tn_view_head *head, const struct tn_record *record)
{
    struct tn_text_out *out = &head->out;

    tn_text_printf(out, "%s{\"device\":%" PRId32 ",\"host\":%s,", head->is_first ? "" : ",",
                   record->source->device, word(record->source->is_host));
    head->is_first = false;
    tn_text_printf(out, "\"entries\":%" PRIu64 ",\"skipped\":%" PRIu64 ",\"chunks\":%zu,",
                   record->source->trace->count - record->first, record->first, record->chunks);
    tn_text_printf(
        out, "\"lifetimes\":%" PRIu64 ",\"carried\":%" PRIu64 ",\"survivors\":%" PRIu64 ",",
        record->lifetimes.walk.count + record->survivors, record->carried, record->survivors);
    tn_text_printf(out, "\"base\":\"%" PRIu64 "\",\"unit\":%" PRIu64 ",", record->base,
                   record->unit);
    if (record->time_first == TN_TIME_NONE) {
        tn_text_puts(out, "\"time\":null,\"span\":0,");
    } else {
        tn_text_printf(out, "\"time\":%" PRId64 ",\"span\":%" PRIu64 ",", record->time_first,
                       (uint64_t)record->time_last - (uint64_t)record->time_first);
        if (record->time_first > record->time_begun) {
            tn_text_printf(out, "\"since\":%" PRIu64 ",",
                           (uint64_t)record->time_first - (uint64_t)record->time_begun);
        }
    }
    if (record->ooms > 0) {
        tn_text_printf(out, "\"ooms\":%" PRIu64 ",", record->ooms);
    }
    tn_text_printf(out, "\"requested\":%" PRIu64 ",\"reserved\":%" PRIu64 ",",
                   record->requested_before, record->reserved_before);
    if (record->pages > 0) {
        tn_text_printf(out, "\"pages\":%" PRIu64 ",", record->pages);
    }
    overview_put(out, record);
}

bool tn_view_head_put(struct tn_view_head *head, const struct tn_pool_stream_table *pool_streams,
                      const struct tn_section_out *out)
{
    const struct tn_pool_stream_row *pool_stream = pool_streams->rows.items;

    tn_text_puts(&head->out, "],\"pool_streams\":[");
    for (size_t i = 0; i < pool_streams->rows.count; i++) {
        tn_text_printf(&head->out, "%s[\"%" PRIu64 "\",\"%" PRIu64 "\",\"%" PRIu64 "\"]",
                       i > 0 ? "," : "", pool_stream[i].stream, pool_stream[i].pool.id[0],
                       pool_stream[i].pool.id[1]);
    }
    tn_text_puts(&head->out, "]}");
    return tn_text_finish(&head->out) == TARN_OK && tn_section_put(out, "head", &head->column);
}
