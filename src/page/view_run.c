/* SPDX-License-Identifier: MIT */
#include "page/view_run.h"

#include "analysis/annotation.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "page/answers.h"
#include "page/view_head.h"
#include "snapshot/snapshot.h"

#include <string.h>

enum {
    SOURCES_MAX = 256 /* devices: a page with more would be of no use */
};

static const struct tn_trace no_trace = {0, 0};

/* ---- sources ---- */

static bool source_add(struct tn_view_run *run, struct tn_trace_source source)
{
    run->entries += source.trace->count;
    return tn_vec_append(&run->sources, &source, 1);
}

static bool has_source(const struct tn_view_run *run, int32_t device, bool is_host)
{
    const struct tn_trace_source *sources = run->sources.items;

    for (size_t i = 0; i < run->sources.count; i++) {
        if (sources[i].device == device && sources[i].is_host == is_host) {
            return true;
        }
    }
    return false;
}

static bool is_wanted(const struct tn_view_run *run, int64_t device)
{
    return !run->shared->options->one_device || run->shared->options->device == device;
}

/* One of the halves of the file: devices, or pinned memory. */
struct half {
    const struct tn_trace *traces;
    size_t trace_count;
    const struct tn_model_segment *segments;
    size_t segment_count;
    bool is_host;
};

static enum tarn_status half_add(struct tn_view_run *run, const struct half *half)
{
    struct tn_trace_source source = {.model = run->model,
                                     .segments = half->segments,
                                     .segment_count = half->segment_count,
                                     .is_host = half->is_host};

    for (size_t i = 0; i < half->trace_count; i++) { /* TN_DEVICES_MAX at most */
        source.trace = &half->traces[i];
        source.device = (int32_t)i;
        if (source.trace->count > 0 && is_wanted(run, source.device)) {
            if (run->sources.count >= SOURCES_MAX) {
                return TARN_ERR_LIMIT;
            }
            if (!source_add(run, source)) {
                return TARN_ERR_HOST_MEMORY;
            }
        }
    }
    source.trace = &no_trace;
    for (size_t i = 0; i < half->segment_count; i++) {
        source.device = half->segments[i].device;
        if (is_wanted(run, source.device) && !has_source(run, source.device, half->is_host)) {
            if (run->sources.count >= SOURCES_MAX) {
                return TARN_ERR_LIMIT;
            }
            if (!source_add(run, source)) {
                return TARN_ERR_HOST_MEMORY;
            }
        }
    }
    return TARN_OK;
}

static int source_compare(const void *left, const void *right)
{
    const struct tn_trace_source *a = left;
    const struct tn_trace_source *b = right;

    const int by_half = (int)a->is_host - (int)b->is_host;

    return by_half ? by_half : (a->device > b->device) - (a->device < b->device);
}

static const char *file_word(const struct tn_view_run *run)
{
    static const char *const words[TARN_VIEW_RUNS_MAX] = {"the first file", "the second file"};

    return run->shared->runs > 1 ? words[run->number] : "the file";
}

/* A page of one empty file says so; two are there to be compared. */
static enum tarn_status nothing_found(const struct tn_view_run *run, struct tarn_error *error)
{
    const struct tarn_view_options *options = run->shared->options;

    if (options->one_device) {
        return tn_fail(error, TARN_ERR_NOT_FOUND,
                       "%s has nothing of device %d; \"tarn info\" lists the devices",
                       file_word(run), options->device);
    }
    return run->shared->runs == 1
               ? TARN_OK
               : tn_fail(error, TARN_ERR_NOT_FOUND, "%s has no segments and no trace to compare",
                         file_word(run));
}

static enum tarn_status sources_find(struct tn_view_run *run, struct tarn_error *error)
{
    const struct tn_model *model = run->model;
    const struct half halves[] = {
        {model->traces, model->trace_count, model->segments, model->segment_count, false},
        {model->host_traces, model->host_trace_count, model->host_segments,
         model->host_segment_count, true}};

    enum tarn_status status = TARN_OK;

    for (size_t i = 0; i < sizeof halves / sizeof halves[0]; i++) {
        status = half_add(run, &halves[i]);

        if (status == TARN_ERR_LIMIT) {
            return tn_fail(error, status, "%s has more than %d devices; choose one with --device",
                           file_word(run), SOURCES_MAX);
        }
        if (status) {
            return tn_fail_memory(error);
        }
    }
    if (run->sources.count == 0) {
        status = nothing_found(run, error);
    }
    if (status) {
        return status;
    }
    tn_vec_sort(&run->sources, source_compare);
    return TARN_OK;
}

/* ---- sections ---- */

static uint64_t first_of(const struct tn_trace_source *source, double share)
{
    const uint64_t count = source->trace->count;

    return share >= 1 ? 0 : count - (uint64_t)((double)count * share);
}

uint64_t tn_view_run_dropped(const struct tn_view_run *run)
{
    const struct tn_trace_source *sources = run->sources.items;
    uint64_t dropped = 0;

    for (size_t i = 0; i < run->sources.count; i++) {
        dropped += first_of(&sources[i], run->shared->share);
    }
    return dropped;
}

static bool annotations_put(const struct tn_view_run *run, struct tn_names *names,
                            const struct tn_section_out *out)
{
    struct tn_column column;
    int64_t time = 0;

    tn_column_init(&column);
    for (size_t i = 0; i < run->model->annotation_count; i++) {
        const struct tn_annotation *annotation = &run->model->annotations[i];
        const struct tn_string stage = tn_model_string(run->model, annotation->stage);

        tn_column_put_byte(&column, stage.length > 0 && stage.text[0] == 'E');
        tn_column_put_varint(&column, tn_names_text(names, annotation->name, TN_TEXT_OTHER));
        tn_column_put_step(&column, 0, (uint64_t)(int64_t)annotation->device);
        tn_column_put_step(&column, (uint64_t)time, (uint64_t)annotation->time_us);
        time = annotation->time_us;
    }
    const bool good = tn_section_put(out, "annotations", &column);

    tn_column_fini(&column);
    return good;
}

/* What all sections number the same way. */
struct tables {
    struct tn_names names;
    struct tn_pool_stream_table pool_streams;
    struct tn_size_table sizes;
};

static bool source_put(const struct tn_view_run *run, size_t number, struct tables *tables,
                       struct tn_view_head *head, const struct tn_section_out *out)
{
    const struct tn_trace_source *source =
        (const struct tn_trace_source *)run->sources.items + number;
    struct tn_record *record = tn_host_alloc(sizeof *record);
    uint64_t first_step = 0;

    if (!source->is_host &&
        !tn_trace_first_step(run->model, source->trace, source->device, &first_step)) {
        tn_host_free(record, sizeof *record);
        return false;
    }
    if (!record ||
        !tn_record_init(record, source, &tables->names, &tables->pool_streams, &tables->sizes,
                        first_of(source, run->shared->share), first_step)) {
        tn_host_free(record, sizeof *record);
        return false;
    }
    const bool good = tn_record_put(record, number, out);

    if (good) {
        tn_view_head_add(head, record);
    }
    tn_record_fini(record);
    tn_host_free(record, sizeof *record);
    return good;
}

static bool sections_put(const struct tn_view_run *run, struct tables *tables,
                         struct tn_view_head *head, const struct tn_section_out *out)
{
    const struct tn_trace_source *sources = run->sources.items;

    for (size_t i = 0; i < run->sources.count; i++) {
        tn_size_table_note(&tables->sizes, &sources[i], first_of(&sources[i], run->shared->share));
    }
    tn_size_table_sort(&tables->sizes);
    for (size_t i = 0; i < run->sources.count && out->text->status == TARN_OK; i++) {
        if (!source_put(run, i, tables, head, out)) {
            return false;
        }
    }
    return annotations_put(run, &tables->names, out) && tn_names_put(&tables->names, out) &&
           !tables->pool_streams.failed && !tables->sizes.failed &&
           tn_section_put(out, "sizes", &tables->sizes.column) &&
           tn_answers_put(run->asked->answers, run->shared->options->redact, out) &&
           tn_view_head_put(head, &tables->pool_streams, out);
}

static struct tn_view_label label_of(const struct tn_view_run *run)
{
    static const char *const words[TARN_VIEW_RUNS_MAX] = {"before", "after"};
    const char *name = run->asked->name;

    return (struct tn_view_label){name && *name ? name : words[run->number], run->shared->runs};
}

bool tn_view_run_put(struct tn_view_run *run, struct tn_text_out *text)
{
    const struct tn_section_out out = {text, run->number > 0 ? "after." : ""};
    const struct tarn_view_options *options = run->shared->options;
    struct tables tables;
    struct tn_view_head *head = tn_host_alloc(sizeof *head);

    if (!head || !tn_names_init(&tables.names, run->model, &run->categories, options->redact,
                                &run->shared->hidden)) {
        tn_host_free(head, sizeof *head);
        return false;
    }
    tn_pool_stream_table_init(&tables.pool_streams);
    tn_size_table_init(&tables.sizes);
    tn_view_head_init(head, run->model, &run->categories, options, label_of(run));
    const bool good = sections_put(run, &tables, head, &out);

    tn_view_head_fini(head);
    tn_size_table_fini(&tables.sizes);
    tn_pool_stream_table_fini(&tables.pool_streams);
    tn_names_fini(&tables.names);
    tn_host_free(head, sizeof *head);
    return good;
}

/* ---- beginning and end ---- */

enum tarn_status tn_view_run_init(struct tn_view_run *run, const struct tarn_view_run *asked,
                                  struct tn_view_shared *shared, size_t number,
                                  struct tarn_error *error)
{
    *run = (struct tn_view_run){.asked = asked,
                                .shared = shared,
                                .model = tn_snapshot_model(asked->snapshot),
                                .number = number};
    enum tarn_status status =
        tn_categories_init(&run->categories, shared->options->rules, run->model, error);

    if (status) {
        return status;
    }
    tn_vec_init(&run->sources, sizeof(struct tn_trace_source));
    status = sources_find(run, error);
    if (status) {
        tn_view_run_fini(run);
    }
    return status;
}

void tn_view_run_fini(struct tn_view_run *run)
{
    tn_vec_fini(&run->sources);
    tn_categories_fini(&run->categories);
}
