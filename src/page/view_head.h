/* SPDX-License-Identifier: MIT */
/* The section "head" of a page, as JSON: what the page needs to read the other sections, and
 * what concerns the whole file. Numbers that may be 2^53 and more are texts. */
#ifndef TN_PAGE_VIEW_HEAD_H
#define TN_PAGE_VIEW_HEAD_H

#include "page/record.h"

struct tn_view_head {
    struct tn_text_out out;
    struct tarn_writer writer;
    struct tn_column column;
    bool is_first; /* source */
};

/* What the head says of the recording beside its model. */
struct tn_view_label {
    const char *name; /* of the recording */
    size_t runs;      /* recordings of the page */
};

/* Begins the head: the file. */
void tn_view_head_init(struct tn_view_head *head, const struct tn_model *model,
                       const struct tn_categories *categories,
                       const struct tarn_view_options *options, struct tn_view_label label);
void tn_view_head_fini(struct tn_view_head *head);

/* Adds a source that has been written. */
void tn_view_head_add(struct tn_view_head *head, const struct tn_record *record);

/* Ends it and writes the section; false when host memory is, or was, missing. */
bool tn_view_head_put(struct tn_view_head *head, const struct tn_pool_stream_table *pool_streams,
                      const struct tn_section_out *out) TN_MUST_CHECK;

#endif
