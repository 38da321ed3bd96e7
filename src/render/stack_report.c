/* SPDX-License-Identifier: MIT */
/* The stack of one trace entry. */
#include "analysis/group_key.h"
#include "report/result.h"
#include "snapshot/snapshot.h"

enum tarn_status tarn_report_stack(const struct tarn_snapshot *snapshot, int device, uint64_t event,
                                   const struct tarn_writer *writer)
{
    const struct tn_model *model = tn_snapshot_model(snapshot);
    struct tn_text_out out;

    if (device < 0 || (size_t)device >= model->trace_count ||
        event >= model->traces[device].count) {
        return TARN_ERR_NOT_FOUND;
    }
    tn_text_init(&out, writer);
    tn_stack_put(&out, model, tn_trace_at(model, &model->traces[device], event)->stack);
    return tn_text_finish(&out);
}
