/* SPDX-License-Identifier: MIT */
/* Implements the flame graphs of tarn/capture.h: a capture and a report, into a file. */
#include "tarn/capture.h"

#include "tarn/report.h"

static enum tarn_status flame_save(const struct tarn_snapshot *snapshot, enum tarn_flame_view view,
                                   const char *path, struct tarn_error *error)
{
    struct tarn_file *file = NULL;
    const enum tarn_status opened = tarn_file_create(path, &file, error);

    if (opened) {
        return opened;
    }
    const struct tarn_writer writer = tarn_file_writer(file);

    return tarn_file_finish(file, tarn_report_flame(snapshot, view, NULL, &writer, error), error);
}

static enum tarn_status usage_save(const struct tarn_capture_source *sources, size_t count,
                                   enum tarn_flame_view view, const char *path,
                                   struct tarn_error *error)
{
    const struct tarn_capture_options options = {.struct_size = sizeof options,
                                                 .without_traces = true};
    struct tarn_snapshot *snapshot = NULL;
    enum tarn_status st = tarn_snapshot_capture(sources, count, &options, &snapshot, error);

    if (st == TARN_OK) {
        st = flame_save(snapshot, view, path, error);
        tarn_snapshot_destroy(snapshot);
    }
    return st;
}

enum tarn_status tarn_save_segment_usage(const struct tarn_capture_source *sources, size_t count,
                                         const char *path, struct tarn_error *error)
{
    return usage_save(sources, count, TARN_FLAME_SEGMENTS, path, error);
}

enum tarn_status tarn_save_memory_usage(const struct tarn_capture_source *sources, size_t count,
                                        const char *path, struct tarn_error *error)
{
    return usage_save(sources, count, TARN_FLAME_MEMORY, path, error);
}
