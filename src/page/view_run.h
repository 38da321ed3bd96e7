/* SPDX-License-Identifier: MIT */
/*
 * A recording of a page: its devices, and their sections, written in one pass over each trace.
 *
 * Borrows the model and what the page shares; owns the answers of the rules and the list of
 * devices.
 */
#ifndef TN_PAGE_VIEW_RUN_H
#define TN_PAGE_VIEW_RUN_H

#include "page/names.h"

/* What the recordings of a page share. */
struct tn_view_shared {
    const struct tarn_view_options *options;
    size_t runs;                   /* recordings */
    double share;                  /* of the events that the page has, the latest ones */
    struct tn_hidden_texts hidden; /* of the page that is being written */
};

struct tn_view_run {
    const struct tarn_view_run *asked;
    struct tn_view_shared *shared;
    const struct tn_model *model;
    size_t number; /* from 0 */
    struct tn_categories categories;
    struct tn_vec sources; /* struct tn_trace_source */
    uint64_t entries;      /* of all of them */
};

/* TARN_ERR_NOT_FOUND, TARN_ERR_LIMIT or TARN_ERR_HOST_MEMORY; then there is nothing to release. */
enum tarn_status tn_view_run_init(struct tn_view_run *run, const struct tarn_view_run *asked,
                                  struct tn_view_shared *shared, size_t number,
                                  struct tarn_error *error) TN_MUST_CHECK;
void tn_view_run_fini(struct tn_view_run *run);

/* Events that the page leaves out. */
uint64_t tn_view_run_dropped(const struct tn_view_run *run);

/* Writes the sections; false when host memory is, or was, missing. */
bool tn_view_run_put(struct tn_view_run *run, struct tn_text_out *out) TN_MUST_CHECK;

#endif
