/* SPDX-License-Identifier: MIT */
#include "report/report_out.h"

#include "base/errinfo.h"
#include "snapshot/snapshot.h"

enum {
    ROWS_DEFAULT = 10
};

static bool has_entries(const struct tn_model *model)
{
    for (size_t i = 0; i < model->trace_count; i++) {
        if (model->traces[i].count > 0) {
            return true;
        }
    }
    return false;
}

enum tarn_status tn_report_check_traces(const struct tn_model *model, bool one_device, int device,
                                        struct tarn_error *error)
{
    if (!has_entries(model)) {
        return tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                       "the file has no trace, only segments; call "
                       "torch.cuda.memory._record_memory_history() before what is to be seen, and "
                       "_dump_snapshot after it");
    }
    if (one_device &&
        (device < 0 || (size_t)device >= model->trace_count || model->traces[device].count == 0)) {
        return tn_fail(error, TARN_ERR_NOT_FOUND,
                       "the file has no trace of device %d; \"tarn info\" lists the devices",
                       device);
    }
    return TARN_OK;
}

static enum tarn_status device_put(const struct tn_report_out *report, struct tn_query *query,
                                   size_t device, tn_report_device *put, struct tarn_error *error)
{
    struct tn_analysis analysis;
    enum tarn_status status = tn_analysis_init(&analysis, query, device, error);

    if (status == TARN_OK) {
        status = put(report, &analysis, error);
        tn_analysis_fini(&analysis);
    }
    if (status == TARN_ERR_HOST_MEMORY) {
        return tn_fail(error, status, "no host memory to follow the trace");
    }
    return status;
}

static enum tarn_status devices_put(const struct tn_report_out *report, struct tn_query *query,
                                    tn_report_device *put, struct tarn_error *error)
{
    const struct tarn_report_options *options = report->options;
    enum tarn_status status = TARN_OK;
    bool is_first = true;

    for (size_t i = 0; status == TARN_OK && i < report->model->trace_count; i++) {
        const bool wanted = !options->one_device || (size_t)options->device == i;

        if (!wanted || report->model->traces[i].count == 0) {
            continue;
        }
        if (!is_first && !report->json) {
            tn_text_putc(report->out, '\n');
        }
        status = device_put(report, query, i, put, error);
        is_first = false;
    }
    return status;
}

enum tarn_status tn_report_traces(const struct tarn_snapshot *snapshot,
                                  const struct tarn_report_options *given, const char *schema,
                                  tn_report_device *put, const struct tarn_writer *writer,
                                  struct tarn_error *error)
{
    static const struct tarn_report_options defaults = {.struct_size = sizeof defaults};
    const struct tarn_report_options *options = given ? given : &defaults;
    struct tn_query query;
    struct tn_text_out out;
    struct tn_json_text json = {.out = NULL};
    const struct tn_report_out report = {
        .model = tn_snapshot_model(snapshot),
        .out = &out,
        .json = options->json ? &json : NULL,
        .limit = options->rows > 0 ? options->rows : ROWS_DEFAULT,
        .options = options,
    };
    enum tarn_status status =
        tn_report_check_traces(report.model, options->one_device, options->device, error);

    if (status == TARN_OK) {
        status = tn_query_init(&query, report.model, options, error);
    }
    if (status) {
        return status;
    }
    tn_text_init(&out, writer);
    out.units = query.units;
    if (report.json) {
        tn_json_begin(&json, &out, schema);
        tn_json_open_array(&json, "devices");
    }
    status = devices_put(&report, &query, put, error);
    tn_query_fini(&query);
    if (status) {
        return status;
    }
    if (report.json) {
        tn_json_end(&json);
    }
    status = tn_text_finish(&out);
    return status ? tn_fail(error, status, "cannot write the report") : TARN_OK;
}
