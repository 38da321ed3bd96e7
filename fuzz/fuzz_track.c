/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a tracker's log. Whatever is refused, and where: the tracker must stay consistent,
 * what it knows must be writable in every form, and nothing may leak.
 */
#include "fuzz_target.h"

#include "tarn/host.h"
#include "tarn/tracker.h"

#include <stdlib.h>

static enum tarn_status drop(void *context, const char *bytes, size_t size)
{
    size_t *written = context;

    (void)bytes;
    *written += size;
    return TARN_OK;
}

static void must(bool right)
{
    if (!right) {
        abort();
    }
}

static void write_all(struct tarn_tracker *tracker)
{
    size_t written = 0;
    const struct tarn_writer writer = {drop, &written};

    for (int format = 0; format < TARN_TRACK_FORMAT_COUNT; format++) {
        must(!tarn_tracker_write_rows(tracker, TARN_TRACK_AT_END, TARN_UNITS_KIB,
                                      (enum tarn_track_format)format, &writer, NULL));
        must(!tarn_tracker_write_modules(tracker, 3, TARN_UNITS_BYTES,
                                         (enum tarn_track_format)format, &writer, NULL));
    }
    must(!tarn_tracker_write_tree(tracker, TARN_TRACK_TOTAL_PEAK, 0, TARN_UNITS_MIB, 20, &writer,
                                  NULL));
    must(!tarn_tracker_write_iterations(tracker, TARN_UNITS_GIB, &writer, NULL));
    must(!tarn_tracker_write_json(tracker, true, &writer, NULL));
    must(written > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct tarn_tracker *tracker = NULL;
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    struct tarn_error error;

    must(!tarn_tracker_create(NULL, &tracker, &error));
    const enum tarn_status status =
        tarn_tracker_replay_memory(tracker, bytes, size, NULL, NULL, &error);

    must(status == TARN_OK || error.text[0] != '\0');
    must(tarn_tracker_check(tracker, &findings) == 0);
    write_all(tracker);
    tarn_tracker_destroy(tracker);
    must(tarn_host_get_usage().live_count == 0);
    return 0;
}
