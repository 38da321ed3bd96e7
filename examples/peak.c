/* SPDX-License-Identifier: MIT */
/* peak SNAPSHOT: memory at the peak, by the code that allocated it. */
#include "example.h"

#include <tarn/report.h>

#include <inttypes.h>

static void print_device(const struct tarn_peak_result *peak)
{
    const struct tarn_holders *holders = &peak->requested_peak.holders;

    (void)printf("device %d: %" PRIu64 " bytes\n", peak->head.device, holders->total.bytes);
    for (size_t i = 0; i < holders->row_count; i++) {
        (void)printf("%14" PRIu64 "  %s\n", holders->rows[i].bytes, holders->rows[i].group.text);
    }
    (void)printf("%14" PRIu64 "  others\n", holders->others.bytes);
}

int main(int argc, char **argv)
{
    struct tarn_snapshot *snapshot;
    struct tarn_peak_result *peaks;
    size_t count;
    struct tarn_error error;

    if (argc != 2) {
        (void)fprintf(stderr, "usage: peak SNAPSHOT\n");
        return 2;
    }
    CHECK(tarn_snapshot_load(argv[1], NULL, &snapshot, &error));
    CHECK(tarn_peak_compute(snapshot, NULL, &peaks, &count, &error));
    EXPECT(count > 0);
    for (size_t i = 0; i < count; i++) {
        print_device(&peaks[i]);
    }
    tarn_report_destroy(peaks);
    tarn_snapshot_destroy(snapshot);
    return 0;
}
