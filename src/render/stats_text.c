/* SPDX-License-Identifier: MIT */
/*
 * The segment summary, equal byte for byte to `_memory_viz.py stats` (`segsum`): segments by size,
 * then by allocated bytes; each from 20 MiB on as a row of letters, one letter a page of 20 MiB.
 * Fractions are added in the same order and with the same divisions as there, so that digits agree.
 */
#include "tarn/report.h"

#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/order.h"
#include "base/size_text.h"
#include "base/text_out.h"
#include "snapshot/snapshot.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_SIZE ((uint64_t)20 << 20)

/* A segment of 320 TiB; a row longer than that is not for reading. */
enum {
    PAGES_MAX = 1 << 24
};

static const char legend[] =
    "\nLegend:\n"
    "    [a     ] - a segment in the allocator\n"
    "     ^-- a page 20.0MiB of memory in the segment\n"
    "    a-z: pages filled with a single block's content\n"
    "    ' ': page is completely free\n"
    "    *: page if completely full with multiple blocks\n"
    "    0-9: page is partially full with tensors of multiple blocks (9 == 90% full)\n"
    "    (X% internal) - of the free memory, X% is free because we rounded the size of the "
    "allocation.\n";

struct sums {
    uint64_t reserved;
    uint64_t allocated;     /* requested bytes of allocated blocks */
    uint64_t free_internal; /* what rounding added to them */
    uint64_t free_external; /* all other blocks */
};

struct ranked {
    const struct tn_model_segment *segment;
    uint64_t active; /* bytes of its allocated blocks */
    size_t place;
};

static uint64_t segment_sum_allocated(const struct tn_model_segment *segment)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < segment->block_count; i++) {
        if (segment->blocks[i].state == TN_BLOCK_ACTIVE_ALLOCATED) {
            sum += segment->blocks[i].size;
        }
    }
    return sum;
}

static int ranked_compare(const void *left, const void *right)
{
    const struct ranked *a = left;
    const struct ranked *b = right;
    int order = tn_order(a->segment->total_size, b->segment->total_size);

    if (order == 0) {
        order = tn_order(a->active, b->active);
    }
    return order != 0 ? order : tn_order(a->place, b->place);
}

/* Sums of one segment; false when its blocks do not add up to its size. */
static bool segment_sum(const struct tn_model_segment *segment, struct sums *sums)
{
    *sums = (struct sums){.reserved = segment->total_size};
    for (size_t i = 0; i < segment->block_count; i++) {
        const struct tn_model_block *block = &segment->blocks[i];

        if (block->state == TN_BLOCK_ACTIVE_ALLOCATED) {
            sums->allocated += block->requested_size;
            sums->free_internal += block->size - block->requested_size;
        } else {
            sums->free_external += block->size;
        }
    }
    return sums->allocated + sums->free_internal + sums->free_external == sums->reserved;
}

static void sums_add(struct sums *total, const struct sums *more)
{
    total->reserved += more->reserved;
    total->allocated += more->allocated;
    total->free_internal += more->free_internal;
    total->free_external += more->free_external;
}

/* One page of a row. */
struct page {
    double filled; /* part of it */
    char mark;
};

/* Marks the pages that bytes [start, end) of a segment touch. */
static void row_fill(struct page *row, uint64_t page_count, uint64_t start, uint64_t end,
                     char letter)
{
    for (uint64_t i = start / PAGE_SIZE; i < page_count && i * PAGE_SIZE < end; i++) {
        const uint64_t page_start = i * PAGE_SIZE;
        const uint64_t from = start > page_start ? start : page_start;
        const uint64_t to = end < page_start + PAGE_SIZE ? end : page_start + PAGE_SIZE;
        struct page *page = &row[i];

        page->filled += (double)(to - from) / (double)PAGE_SIZE;
        const int tenths = (int)(page->filled * 10);
        const char digit = "0123456789*"[tenths < 10 ? tenths : 10];
        page->mark = (char)(page->mark == ' ' ? letter : digit);
    }
}

static void row_fill_blocks(struct page *row, uint64_t page_count,
                            const struct tn_model_segment *segment)
{
    uint64_t offset = 0;
    unsigned letter = 0;

    for (size_t i = 0; i < segment->block_count; i++) {
        const struct tn_model_block *block = &segment->blocks[i];

        if (block->state == TN_BLOCK_ACTIVE_ALLOCATED) {
            row_fill(row, page_count, offset, offset + block->requested_size,
                     (char)('a' + letter % 26));
            letter++;
        }
        offset += block->size;
    }
}

static void free_put(struct tn_text_out *out, const struct sums *sums)
{
    const uint64_t all = sums->free_external + sums->free_internal;

    tn_text_puts(out, tn_text_size_viz(out, (double)all).text);
    if (all != 0) {
        tn_text_printf(out, " (%.1f%% internal)", (double)sums->free_internal / (double)all * 100);
    }
}

static void row_put(struct tn_text_out *out, const struct page *row, uint64_t page_count,
                    const struct sums *sums, uint64_t stream)
{
    tn_text_putc(out, '[');
    for (uint64_t i = 0; i < page_count; i++) {
        tn_text_putc(out, row[i].mark);
    }
    tn_text_printf(out, "] %s allocated, ", tn_text_size_viz(out, (double)sums->reserved).text);
    free_put(out, sums);
    tn_text_puts(out, " free");
    if (stream != 0) {
        tn_text_printf(out, " stream_%" PRIu64, stream);
    }
    tn_text_putc(out, '\n');
}

static enum tarn_status segment_put(struct tn_text_out *out, const struct tn_model_segment *segment,
                                    const struct sums *sums, struct tarn_error *error)
{
    const uint64_t page_count = (segment->total_size - 1) / PAGE_SIZE + 1;

    if (page_count > PAGES_MAX) {
        return tn_fail(error, TARN_ERR_LIMIT, "a segment of %s is too large to draw",
                       tn_text_size_viz(out, (double)segment->total_size).text);
    }
    const size_t size = (size_t)page_count * sizeof(struct page);
    struct page *row = tn_host_alloc(size);
    if (!row) {
        return tn_fail(error, TARN_ERR_HOST_MEMORY, "no host memory for a row of %" PRIu64 " pages",
                       page_count);
    }
    for (uint64_t i = 0; i < page_count; i++) {
        row[i] = (struct page){0.0, ' '};
    }
    row_fill_blocks(row, page_count, segment);
    row_put(out, row, page_count, sums, segment->stream);
    tn_host_free(row, size);
    return TARN_OK;
}

static enum tarn_status segments_put(struct tn_text_out *out, const struct ranked *ranked,
                                     size_t count, struct sums *total, struct tarn_error *error)
{
    enum tarn_status status = TARN_OK;

    for (size_t i = 0; i < count && status == TARN_OK; i++) {
        const struct tn_model_segment *segment = ranked[i].segment;
        struct sums sums;

        if (!segment_sum(segment, &sums)) {
            return tn_fail(error, TARN_ERR_MISMATCH,
                           "the blocks of the segment at %" PRIu64 " do not add up to its size of "
                           "%" PRIu64 " bytes",
                           segment->address, segment->total_size);
        }
        sums_add(total, &sums);
        if (segment->total_size >= PAGE_SIZE) {
            status = segment_put(out, segment, &sums, error);
        }
    }
    return status;
}

static void totals_put(struct tn_text_out *out, size_t segment_count, const struct sums *total)
{
    tn_text_printf(out, "segments: %zu\n", segment_count);
    tn_text_printf(out, "total_reserved: %s\n",
                   tn_text_size_viz(out, (double)total->reserved).text);
    tn_text_printf(out, "total_allocated: %s\n",
                   tn_text_size_viz(out, (double)total->allocated).text);
    tn_text_puts(out, "total_free: ");
    free_put(out, total);
    tn_text_putc(out, '\n');
    tn_text_puts(out, legend);
}

static struct ranked *segments_rank(const struct tn_model *model)
{
    struct ranked *ranked = tn_host_alloc((model->segment_count + 1) * sizeof *ranked);

    for (size_t i = 0; ranked && i < model->segment_count; i++) {
        ranked[i] =
            (struct ranked){&model->segments[i], segment_sum_allocated(&model->segments[i]), i};
    }
    if (ranked && model->segment_count > 0) {
        qsort(ranked, model->segment_count, sizeof *ranked, ranked_compare);
    }
    return ranked;
}

enum tarn_status tarn_report_stats(const struct tarn_snapshot *snapshot, enum tarn_units units,
                                   const struct tarn_writer *writer, struct tarn_error *error)
{
    const struct tn_model *model = tn_snapshot_model(snapshot);
    struct ranked *ranked = segments_rank(model);
    struct sums total = {0};
    struct tn_text_out out;

    if (!ranked) {
        return tn_fail_memory(error);
    }
    tn_text_init(&out, writer);
    out.units = units;
    tn_text_printf(&out, "Summary of segments >= %s in size\n",
                   tn_text_size_viz(&out, PAGE_SIZE).text);
    enum tarn_status status = segments_put(&out, ranked, model->segment_count, &total, error);
    if (status == TARN_OK) {
        totals_put(&out, model->segment_count, &total);
    }
    const enum tarn_status written = tn_text_finish(&out);
    if (status == TARN_OK && written != TARN_OK) {
        status = tn_fail(error, written, "cannot write the report");
    }
    tn_host_free(ranked, (model->segment_count + 1) * sizeof *ranked);
    return status;
}
