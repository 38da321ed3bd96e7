/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a profile. What is accepted is a snapshot that can be written, exported and cut, and
 * nothing may leak.
 */
#include "fuzz_target.h"

#include "tarn/export.h"
#include "tarn/host.h"
#include "tarn/profile.h"
#include "tarn/report.h"
#include "tarn/trim.h"

#include <stdlib.h>

static enum tarn_status swallow(void *context, const char *bytes, size_t size)
{
    (void)context;
    (void)bytes;
    (void)size;
    return TARN_OK;
}

static void snapshot_use(const struct tarn_snapshot *snapshot)
{
    static const struct tarn_trim_options part = {
        .struct_size = sizeof part, .has_events = true, .last_event = 3, .anonymize = true};
    const struct tarn_writer writer = {swallow, NULL};
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    struct tarn_snapshot *cut = NULL;

    if (tarn_export(snapshot, TARN_EXPORT_JSONL, NULL, &writer, NULL) ||
        tarn_export(snapshot, TARN_EXPORT_PICKLE, NULL, &writer, NULL) ||
        tarn_snapshot_trim(snapshot, &part, &cut, NULL) ||
        tarn_snapshot_check(cut, &findings, NULL)) {
        abort();
    }
    tarn_snapshot_destroy(cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const struct tarn_read_limits limits = {
        .struct_size = sizeof limits, .max_memory = 64 << 20, .max_bytes = 1 << 20};
    struct tarn_snapshot *snapshot;
    struct tarn_error error;

    if (tarn_profile_load_memory(bytes, size, &limits, &snapshot, NULL, &error) == TARN_OK) {
        snapshot_use(snapshot);
        tarn_snapshot_destroy(snapshot);
    }
    if (tarn_host_get_usage().live_count != 0) {
        abort();
    }
    return 0;
}
