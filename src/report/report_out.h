/* SPDX-License-Identifier: MIT */
/* What the reports on traces have in common: options, devices, text or JSON. */
#ifndef TN_REPORT_REPORT_OUT_H
#define TN_REPORT_REPORT_OUT_H

#include "analysis/analysis.h"

/* Where a report goes. */
struct tn_report_out {
    const struct tn_model *model;
    struct tn_text_out *out;
    struct tn_json_text *json; /* NULL: text */
    uint64_t limit;            /* rows of a table */
    const struct tarn_report_options *options;
};

/* Writes what there is to say of a device that has a trace. TARN_ERR_HOST_MEMORY needs no text. */
typedef enum tarn_status tn_report_device(const struct tn_report_out *report,
                                          const struct tn_analysis *analysis,
                                          struct tarn_error *error);

/* Calls it for each device that is wanted; JSON is an array "devices" in the document. A failure
 * before the first is said before anything is written. */
enum tarn_status tn_report_traces(const struct tarn_snapshot *snapshot,
                                  const struct tarn_report_options *options, const char *schema,
                                  tn_report_device *put, const struct tarn_writer *writer,
                                  struct tarn_error *error) TN_MUST_CHECK;

/* TARN_ERR_NOT_SUPPORTED when the file has no trace at all, TARN_ERR_NOT_FOUND when it has none of
 * the one device that is wanted. */
enum tarn_status tn_report_check_traces(const struct tn_model *model, bool one_device, int device,
                                        struct tarn_error *error) TN_MUST_CHECK;

#endif
