/* SPDX-License-Identifier: MIT */
/* What the reports on traces share: one result per device, the selection, time points. */
#ifndef TN_RENDER_DOCUMENT_H
#define TN_RENDER_DOCUMENT_H

#include "render/table.h"
#include "report/reports.h"

/* A report on the devices that have a trace. */
struct tn_device_report {
    const char *schema;
    tn_report_device *compute;
    size_t result_size;                       /* of one device */
    const struct tn_row_table *const *tables; /* end with NULL; see tn_document_begin */

    /* What comes below the device's heading in text, and after the selection in JSON. */
    void (*put)(struct tn_document *document, const struct tarn_report_options *options,
                const void *result);
    enum tn_report_scope scope;
    bool has_own_heading; /* in text `put` writes it */
};

/* Columns of struct tarn_report_head that tell rows apart: the device. */
extern const struct tn_row_column tn_device_context[];

/* Computes and writes it. `options` may be NULL. */
enum tarn_status tn_devices_report(const struct tn_device_report *report,
                                   const struct tarn_snapshot *snapshot,
                                   const struct tarn_report_options *options,
                                   const struct tarn_writer *writer,
                                   struct tarn_error *error) TN_MUST_CHECK;

/* A line, where the peak of what is selected, `at`, is not that of all blocks, `whole`. */
void tn_own_peak_put(struct tn_text_out *out, const struct tarn_report_head *head,
                     const struct tarn_time_point *at, const struct tarn_time_point *whole);

/* The selection as a line of text, and as members of the open object. */
void tn_selection_put(struct tn_text_out *out, const struct tarn_report_options *options,
                      const struct tarn_report_head *head);
void tn_selection_put_json(struct tn_json_text *json, const struct tarn_report_options *options,
                           const struct tarn_report_head *head);

/* A time point as a line of text, and as members of the open object. */
void tn_time_point_put(struct tn_text_out *out, const struct tarn_report_head *head,
                       const char *what, const struct tarn_time_point *at);
void tn_time_point_put_json(struct tn_json_text *json, const struct tarn_time_point *at);

#endif
