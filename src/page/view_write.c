/* SPDX-License-Identifier: MIT */
/*
 * A page: the bundle with the data of each source in the middle. Everything is written in one pass
 * over each trace. A page with a limit is assembled in host memory; if it turns out to be too
 * large it is made again with fewer entries.
 */
#include "tarn/viewer.h"

#include "analysis/annotation.h"
#include "analysis/category.h"
#include "base/errinfo.h"
#include "base/escaped.h"
#include "base/host_mem.h"
#include "page/bundle.h"
#include "page/section.h"
#include "page/view_head.h"
#include "snapshot/snapshot.h"

#include <inttypes.h>
#include <string.h>

enum {
    SOURCES_MAX = 256, /* devices: a page with more would be of no use */
    TRIES = 8
};

static const struct tn_trace no_trace = {0, 0};

/* A page being written. */
struct page {
    const struct tn_model *model;
    const struct tarn_view_options *options;
    struct tn_categories categories;
    struct tn_vec sources; /* struct tn_trace_source */
    uint64_t entries;      /* of all of them */
    uint64_t kept;         /* entries that the page may have */
};

/* Keeps what is written as long as it fits, and counts all of it. */
struct keeper {
    struct tn_column kept;
    uint64_t bytes;
    uint64_t limit;
};

static enum tarn_status keeper_write(void *context, const char *bytes, size_t size)
{
    struct keeper *keeper = context;

    keeper->bytes += size;
    if (keeper->bytes <= keeper->limit) {
        tn_column_put(&keeper->kept, bytes, size);
    }
    return keeper->kept.failed ? TARN_ERR_HOST_MEMORY : TARN_OK;
}

/* ---- sources ---- */

static bool source_add(struct page *page, struct tn_trace_source source)
{
    page->entries += source.trace->count;
    return tn_vec_append(&page->sources, &source, 1);
}

static bool has_source(const struct page *page, int32_t device, bool is_host)
{
    const struct tn_trace_source *sources = page->sources.items;

    for (size_t i = 0; i < page->sources.count; i++) {
        if (sources[i].device == device && sources[i].is_host == is_host) {
            return true;
        }
    }
    return false;
}

static bool is_wanted(const struct page *page, int64_t device)
{
    return !page->options->one_device || page->options->device == device;
}

/* One of the halves of the file: devices, or pinned memory. */
struct half {
    const struct tn_trace *traces;
    size_t trace_count;
    const struct tn_model_segment *segments;
    size_t segment_count;
    bool is_host;
};

static enum tarn_status half_add(struct page *page, const struct half *half)
{
    struct tn_trace_source source = {.model = page->model,
                                     .segments = half->segments,
                                     .segment_count = half->segment_count,
                                     .is_host = half->is_host};

    for (size_t i = 0; i < half->trace_count && i < INT32_MAX; i++) {
        source.trace = &half->traces[i];
        source.device = (int32_t)i;
        if (source.trace->count > 0 && is_wanted(page, source.device)) {
            if (page->sources.count >= SOURCES_MAX) {
                return TARN_ERR_LIMIT;
            }
            if (!source_add(page, source)) {
                return TARN_ERR_HOST_MEMORY;
            }
        }
    }
    source.trace = &no_trace;
    for (size_t i = 0; i < half->segment_count; i++) {
        source.device = half->segments[i].device;
        if (is_wanted(page, source.device) && !has_source(page, source.device, half->is_host)) {
            if (page->sources.count >= SOURCES_MAX) {
                return TARN_ERR_LIMIT;
            }
            if (!source_add(page, source)) {
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

    if (a->is_host != b->is_host) {
        return a->is_host ? 1 : -1;
    }
    return a->device < b->device ? -1 : a->device > b->device;
}

static enum tarn_status sources_find(struct page *page, struct tarn_error *error)
{
    const struct tn_model *model = page->model;
    const struct half halves[] = {
        {model->traces, model->trace_count, model->segments, model->segment_count, false},
        {model->host_traces, model->host_trace_count, model->host_segments,
         model->host_segment_count, true}};

    for (size_t i = 0; i < sizeof halves / sizeof halves[0]; i++) {
        const enum tarn_status status = half_add(page, &halves[i]);

        if (status == TARN_ERR_LIMIT) {
            return tn_fail(error, status,
                           "the file has more than %d devices; choose one with --device",
                           SOURCES_MAX);
        }
        if (status) {
            return tn_fail_memory(error);
        }
    }
    if (page->options->one_device && page->sources.count == 0) {
        return tn_fail(error, TARN_ERR_NOT_FOUND,
                       "the file has nothing of device %d; \"tarn info\" lists the devices",
                       page->options->device);
    }
    tn_vec_sort(&page->sources, source_compare);
    return TARN_OK;
}

/* ---- sections ---- */

static uint64_t first_of(const struct page *page, const struct tn_trace_source *source)
{
    const uint64_t count = source->trace->count;

    if (page->kept >= page->entries) {
        return 0;
    }
    return count - (uint64_t)((double)count * ((double)page->kept / (double)page->entries));
}

/* Events that the page leaves out. */
static uint64_t page_dropped(const struct page *page)
{
    const struct tn_trace_source *sources = page->sources.items;
    uint64_t dropped = 0;

    for (size_t i = 0; i < page->sources.count; i++) {
        dropped += first_of(page, &sources[i]);
    }
    return dropped;
}

static bool annotations_put(const struct page *page, struct tn_names *names,
                            struct tn_text_out *out)
{
    struct tn_column column;
    int64_t time = 0;

    tn_column_init(&column);
    for (size_t i = 0; i < page->model->annotation_count; i++) {
        const struct tn_annotation *annotation = &page->model->annotations[i];
        const struct tn_string stage = tn_model_string(page->model, annotation->stage);

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

static bool source_put(const struct page *page, size_t number, struct tables *tables,
                       struct tn_view_head *head, struct tn_text_out *out)
{
    const struct tn_trace_source *source =
        (const struct tn_trace_source *)page->sources.items + number;
    struct tn_record *record = tn_host_alloc(sizeof *record);
    uint64_t first_step = 0;

    if (!source->is_host &&
        !tn_trace_first_step(page->model, source->trace, source->device, &first_step)) {
        tn_host_free(record, sizeof *record);
        return false;
    }
    if (!record || !tn_record_init(record, source, &tables->names, &tables->pool_streams,
                                   &tables->sizes, first_of(page, source), first_step)) {
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

static bool sections_put(const struct page *page, struct tables *tables, struct tn_view_head *head,
                         struct tn_text_out *out)
{
    const struct tn_trace_source *sources = page->sources.items;

    for (size_t i = 0; i < page->sources.count; i++) {
        tn_size_table_note(&tables->sizes, &sources[i], first_of(page, &sources[i]));
    }
    tn_size_table_sort(&tables->sizes);
    for (size_t i = 0; i < page->sources.count && out->status == TARN_OK; i++) {
        if (!source_put(page, i, tables, head, out)) {
            return false;
        }
    }
    return annotations_put(page, &tables->names, out) && tn_names_put(&tables->names, out) &&
           !tables->pool_streams.failed && !tables->sizes.failed &&
           tn_section_put(out, "sizes", &tables->sizes.column) &&
           tn_view_head_put(head, &tables->pool_streams, out);
}

static bool data_put(struct page *page, struct tn_text_out *out)
{
    struct tables tables;
    struct tn_view_head *head = tn_host_alloc(sizeof *head);

    if (!head ||
        !tn_names_init(&tables.names, page->model, &page->categories, page->options->redact)) {
        tn_host_free(head, sizeof *head);
        return false;
    }
    tn_pool_stream_table_init(&tables.pool_streams);
    tn_size_table_init(&tables.sizes);
    tn_view_head_init(head, page->model, &page->categories, page->options);
    const bool good = sections_put(page, &tables, head, out);

    tn_view_head_fini(head);
    tn_size_table_fini(&tables.sizes);
    tn_pool_stream_table_fini(&tables.pool_streams);
    tn_names_fini(&tables.names);
    tn_host_free(head, sizeof *head);
    return good;
}

static enum tarn_status page_put(struct page *page, const struct tarn_writer *writer)
{
    const char *title =
        page->options->title && *page->options->title ? page->options->title : "GPU memory";
    struct tn_text_out out;

    tn_text_init(&out, writer);
    tn_text_put(&out, tn_bundle_start, tn_bundle_start_size);
    tn_text_put_escaped(&out, title, strlen(title), TN_ESCAPED_XML);
    tn_text_put(&out, tn_bundle_middle, tn_bundle_middle_size);
    const bool good = data_put(page, &out);

    if (!good && out.status == TARN_OK) {
        return TARN_ERR_HOST_MEMORY;
    }
    tn_text_put(&out, tn_bundle_end, tn_bundle_end_size);
    return tn_text_finish(&out);
}

/* ---- the limit ---- */

/* Bytes of a page beside its data. */
static uint64_t bundle_size(void)
{
    return (uint64_t)tn_bundle_start_size + tn_bundle_middle_size + tn_bundle_end_size;
}

/* The page with as many entries as fit. A guess how many comes from the data of the page before. */
static enum tarn_status page_fit(struct page *page, struct keeper *keeper, struct tarn_error *error)
{
    const struct tarn_writer writer = {keeper_write, keeper};

    for (int i = 0; i < TRIES; i++) {
        tn_column_clear(&keeper->kept);
        keeper->bytes = 0;
        const enum tarn_status status = page_put(page, &writer);

        if (status) {
            return tn_fail_memory(error);
        }
        if (keeper->bytes <= keeper->limit) {
            return TARN_OK;
        }
        if (page->kept == 0 || keeper->limit <= bundle_size()) {
            break;
        }
        const double share = (double)(keeper->limit - bundle_size()) /
                             (double)(keeper->bytes - bundle_size()) * 0.97;

        page->kept = i + 2 < TRIES ? (uint64_t)((double)page->kept * share) : 0;
    }
    return tn_fail(error, TARN_ERR_LIMIT,
                   "the page does not fit into %" PRIu64
                   " bytes, not even without the trace; give a larger --max-size",
                   keeper->limit);
}

static enum tarn_status page_write_limited(struct page *page, const struct tarn_writer *writer,
                                           struct tarn_error *error)
{
    struct keeper keeper = {.limit = page->options->max_bytes};

    tn_column_init(&keeper.kept);
    enum tarn_status status = page_fit(page, &keeper, error);

    if (status == TARN_OK) {
        status = writer->write(writer->context, keeper.kept.bytes.items, keeper.kept.bytes.count);
        if (status) {
            (void)tn_fail(error, status, "cannot write the page");
        }
    }
    tn_column_fini(&keeper.kept);
    return status;
}

static enum tarn_status page_write(struct page *page, const struct tarn_writer *writer,
                                   struct tarn_error *error)
{
    enum tarn_status status = sources_find(page, error);

    page->kept = page->entries;
    if (status || page->options->max_bytes > 0) {
        return status ? status : page_write_limited(page, writer, error);
    }
    status = page_put(page, writer);
    if (status == TARN_ERR_HOST_MEMORY) {
        return tn_fail_memory(error);
    }
    return status ? tn_fail(error, status, "cannot write the page") : TARN_OK;
}

enum tarn_status tarn_view_write(const struct tarn_snapshot *snapshot,
                                 const struct tarn_view_options *options,
                                 const struct tarn_writer *writer, struct tarn_error *error)
{
    static const struct tarn_view_options defaults = {.struct_size = sizeof defaults};
    struct page page = {.model = tn_snapshot_model(snapshot),
                        .options = options ? options : &defaults};

    enum tarn_status status =
        tn_categories_init(&page.categories, page.options->rules, page.model, error);

    if (status) {
        return status;
    }
    tn_vec_init(&page.sources, sizeof(struct tn_trace_source));
    status = page_write(&page, writer, error);
    if (status == TARN_OK && page.options->dropped_out) {
        *page.options->dropped_out = page_dropped(&page);
    }
    tn_vec_fini(&page.sources);
    tn_categories_fini(&page.categories);
    return status;
}
