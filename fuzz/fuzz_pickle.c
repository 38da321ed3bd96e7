/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a snapshot: packed or not, whole or cut. Whatever the loader accepts must also
 * survive the reports, and nothing may leak.
 */
#include "fuzz_target.h"

#include "tarn/host.h"
#include "tarn/report.h"
#include "tarn/viewer.h"

#include <stdlib.h>

static enum tarn_status count_bytes(void *context, const char *bytes, size_t size)
{
    size_t *sum = context;

    (void)bytes;
    *sum += size;
    return *sum > (size_t)1 << 22 ? TARN_ERR_LIMIT : TARN_OK;
}

static bool visit_warning(void *context, const struct tarn_snapshot_warning *warning)
{
    (void)context;
    return warning->text[0] != '\0' && warning->count > 0;
}

/* Every report, as far as 4 MiB of it. */
static void reports_write(const struct tarn_snapshot *snapshot, bool json)
{
    size_t written = 0;
    const struct tarn_writer writer = {count_bytes, &written};
    const struct tarn_flame_options flame = {.struct_size = sizeof flame, .folded = json};
    const struct tarn_report_options options = {.struct_size = sizeof options,
                                                .format =
                                                    json ? TARN_REPORT_JSON : TARN_REPORT_TEXT,
                                                .device_total = (uint64_t)80 << 30};
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    struct tarn_error error;

    (void)!tarn_report_stats(snapshot, TARN_UNITS_IEC, &writer, &error);
    (void)!tarn_report_trace(snapshot, NULL, &writer, &error);
    (void)!tarn_report_flame(snapshot, TARN_FLAME_SEGMENTS, &flame, &writer, &error);
    (void)!tarn_report_compare(snapshot, snapshot, &flame, &writer, &error);
    (void)!tarn_report_compare_lists(snapshot, snapshot, &flame, &writer, NULL, &error);
    (void)!tarn_view_write(snapshot, NULL, &writer, &error);
    (void)!tarn_report_info(snapshot, &options, &writer, &error);
    (void)!tarn_report_peak(snapshot, &options, &writer, &error);
    (void)!tarn_report_top(snapshot, &options, &writer, &error);
    (void)!tarn_report_oom(snapshot, &options, &writer, &error);
    (void)!tarn_snapshot_check(snapshot, &findings, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const struct tarn_read_limits limits = {
        .struct_size = sizeof limits, .max_memory = 64 << 20, .max_bytes = 16 << 20};
    struct tarn_snapshot *snapshot;
    struct tarn_error error;
    const enum tarn_status status =
        tarn_snapshot_load_memory(bytes, size, &limits, &snapshot, &error);

    if (snapshot) {
        (void)tarn_snapshot_walk_warnings(snapshot, visit_warning, NULL);
        reports_write(snapshot, false);
        reports_write(snapshot, true);
    }
    if ((status == TARN_OK) != (snapshot && !tarn_snapshot_is_partial(snapshot))) {
        abort();
    }
    tarn_snapshot_destroy(snapshot);
    if (tarn_host_get_usage().live_count != 0) {
        abort();
    }
    return 0;
}
