/* SPDX-License-Identifier: MIT */
/*
 * A page: the bundle with the data of each recording in the middle. A page with a limit is
 * assembled in host memory; if it turns out to be too large it is made again with fewer events.
 */
#include "page/view_write.h"

#include "base/errinfo.h"
#include "page/bundle.h"
#include "page/view_run.h"

#include <inttypes.h>
#include <string.h>

enum {
    TRIES = 8
};

static const struct tarn_view_options default_options = {.struct_size = sizeof default_options};

/* A page being written. */
struct page {
    struct tn_view_shared shared;
    struct tn_view_run runs[TARN_VIEW_RUNS_MAX];
    uint64_t entries; /* of all of them */
    uint64_t kept;    /* of these, those that the page may have */
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

static bool runs_put(struct page *page, struct tn_text_out *out)
{
    bool good = true;

    page->shared.share =
        page->kept < page->entries ? (double)page->kept / (double)page->entries : 1;
    tn_hidden_texts_init(&page->shared.hidden);
    for (size_t i = 0; good && i < page->shared.runs; i++) {
        good = tn_view_run_put(&page->runs[i], out);
    }
    tn_hidden_texts_fini(&page->shared.hidden);
    return good;
}

static void start_put(struct tn_text_out *out, const struct tarn_view_options *options,
                      const char *policy)
{
    const char *title = options->title && *options->title ? options->title : "GPU memory";

    tn_bundle_begin(&tn_bundle_viewer, out, title, policy);
}

static enum tarn_status page_put(struct page *page, const struct tarn_writer *writer)
{
    struct tn_text_out out;

    tn_text_init(&out, writer);
    start_put(&out, page->shared.options, "");
    const bool good = runs_put(page, &out);

    if (!good) {
        return TARN_ERR_HOST_MEMORY;
    }
    tn_bundle_end(&tn_bundle_viewer, &out);
    return tn_text_finish(&out);
}

/* ---- the limit ---- */

/* The page with as many entries as fit. A guess how many comes from the data of the page before. */
static enum tarn_status page_fit(struct page *page, struct keeper *keeper, struct tarn_error *error)
{
    const struct tarn_writer writer = {keeper_write, keeper};
    const uint64_t bundle_size = tn_bundle_size(&tn_bundle_viewer);

    for (int i = 0;; i++) { /* the last try is without the trace */
        tn_column_clear(&keeper->kept);
        keeper->bytes = 0;
        const enum tarn_status status = page_put(page, &writer);

        if (status) {
            return tn_fail_memory(error);
        }
        if (keeper->bytes <= keeper->limit) {
            return TARN_OK;
        }
        if (page->kept == 0 || keeper->limit <= bundle_size) {
            break;
        }
        const double share =
            (double)(keeper->limit - bundle_size) / (double)(keeper->bytes - bundle_size) * 0.97;

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
    struct keeper keeper = {.limit = page->shared.options->max_bytes};

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
    page->kept = page->entries;
    if (page->shared.options->max_bytes > 0) {
        return page_write_limited(page, writer, error);
    }
    const enum tarn_status status = page_put(page, writer);

    if (status == TARN_ERR_HOST_MEMORY) {
        return tn_fail_memory(error);
    }
    return status ? tn_fail(error, status, "cannot write the page") : TARN_OK;
}

/* ---- a page without data ---- */

enum tarn_status tarn_view_write_empty(const struct tarn_view_options *options,
                                       const struct tarn_writer *writer, struct tarn_error *error)
{
    return tn_view_write_reader(tn_bundle_reader, tn_bundle_reader_size, options, writer, error);
}

enum tarn_status tn_view_write_reader(const char *reader, size_t size,
                                      const struct tarn_view_options *options,
                                      const struct tarn_writer *writer, struct tarn_error *error)
{
    const struct tarn_view_options *asked = options ? options : &default_options;
    struct tn_text_out out;
    const struct tn_section_out sections = {&out, ""};
    struct tn_section section;

    if (size == 0) {
        return tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                       "cannot write an empty page: this tarn was built without its reader; build "
                       "it with clang, lld and wasi-libc");
    }
    tn_text_init(&out, writer);
    start_put(&out, asked, " 'wasm-unsafe-eval'");
    if (!tn_section_begin(&section, &sections, "reader", size)) {
        return tn_fail_memory(error);
    }
    tn_section_add(&section, (const uint8_t *)reader, size);
    if (!tn_section_end(&section)) {
        return tn_fail_memory(error);
    }
    tn_bundle_end(&tn_bundle_viewer, &out);
    const enum tarn_status status = tn_text_finish(&out);

    return status ? tn_fail(error, status, "cannot write the page") : TARN_OK;
}

/* ---- pages of recordings ---- */

static void page_fini(struct page *page)
{
    while (page->shared.runs > 0) {
        tn_view_run_fini(&page->runs[--page->shared.runs]);
    }
}

/* Finds what there is to write. */
static enum tarn_status page_init(struct page *page, const struct tarn_view_run *runs, size_t count,
                                  const struct tarn_view_options *options, struct tarn_error *error)
{
    *page =
        (struct page){.shared = {.options = options ? options : &default_options, .runs = count}};
    for (size_t i = 0; i < count; i++) {
        const enum tarn_status status =
            tn_view_run_init(&page->runs[i], &runs[i], &page->shared, i, error);

        if (status) {
            page->shared.runs = i;
            page_fini(page);
            return status;
        }
        page->entries += page->runs[i].entries;
    }
    return TARN_OK;
}

enum tarn_status tarn_view_write_runs(const struct tarn_view_run *runs, size_t count,
                                      const struct tarn_view_options *options,
                                      const struct tarn_writer *writer, struct tarn_error *error)
{
    struct page page;

    if (count < 1 || count > TARN_VIEW_RUNS_MAX) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "a page has one or two recordings");
    }
    enum tarn_status status = page_init(&page, runs, count, options, error);

    if (status) {
        return status;
    }
    status = page_write(&page, writer, error);
    if (status == TARN_OK && page.shared.options->dropped_out) {
        *page.shared.options->dropped_out = 0;
        for (size_t i = 0; i < count; i++) {
            *page.shared.options->dropped_out += tn_view_run_dropped(&page.runs[i]);
        }
    }
    page_fini(&page);
    return status;
}

enum tarn_status tarn_view_write(const struct tarn_snapshot *snapshot,
                                 const struct tarn_view_options *options,
                                 const struct tarn_writer *writer, struct tarn_error *error)
{
    const struct tarn_view_run run = {.struct_size = sizeof run, .snapshot = snapshot};

    return tarn_view_write_runs(&run, 1, options, writer, error);
}
