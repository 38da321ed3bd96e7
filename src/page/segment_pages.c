/* SPDX-License-Identifier: MIT */
#include "page/segment_pages.h"

#include "snapshot/page_list.h"

/* Pages that begin inside a segment. */
static uint32_t pages_inside(const struct tn_page_list *pages,
                             const struct tn_model_segment *segment)
{
    const uint64_t most =
        segment->total_size / pages->size + (segment->total_size % pages->size > 0);

    return pages->count < most ? pages->count : (uint32_t)most;
}

static void list_put(struct tn_column *column, const struct tn_page_list *pages, uint32_t count)
{
    uint64_t last = 0;

    tn_column_put_varint(column, count);
    tn_column_put_varint(column, pages->size);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t handle = tn_page_list_number(&pages->handles[i]);

        tn_column_put_step(column, last, handle);
        last = handle;
    }
    for (uint32_t i = 0; i < count; i++) {
        tn_column_put_varint(column, tn_page_list_number(&pages->times[i]));
    }
}

uint64_t tn_segment_pages_put(struct tn_column *column, const struct tn_trace_source *source,
                              uint64_t base, uint64_t unit)
{
    uint64_t total = 0;
    uint64_t last = 0;

    for (size_t i = 0; i < source->segment_count; i++) {
        const struct tn_model_segment *segment = &source->segments[i];
        struct tn_page_list pages;

        if (!tn_source_has(source, i) || !tn_page_list_find(source->model, segment, &pages)) {
            continue;
        }
        const uint32_t count = pages_inside(&pages, segment);

        if (count > 0) {
            const uint64_t at = (segment->address - base) / unit;

            tn_column_put_step(column, last, at);
            list_put(column, &pages, count);
            last = at;
            total += count;
        }
    }
    return total;
}
