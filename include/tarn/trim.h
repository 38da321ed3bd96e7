/* SPDX-License-Identifier: MIT */
/*
 * Extracts a part of a snapshot as a new snapshot: small enough to attach to a bug report, and
 * without confidential names.
 * Snapshots are not changed: any number of threads may use one at once.
 */
#ifndef TARN_TRIM_H
#define TARN_TRIM_H

#include "snapshot.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero bytes mean the whole snapshot. */
struct tarn_trim_options {
    uint32_t struct_size; /* sizeof(struct tarn_trim_options) */
    bool one_device;      /* only segments, trace and annotations of `device` */
    int device;

    /* Events of each trace, from 0, inclusive at both ends. When later ones are cut off, segments
     * and blocks are those right after the last event. */
    bool has_events;
    uint64_t first_event;
    uint64_t last_event;

    /* The same by time, in microseconds since the first event of the trace with a timestamp. */
    bool has_time;
    int64_t from_us;
    int64_t to_us;

    bool drop_cpp; /* drop frames outside Python: files that do not end in .py */

    /* Names of functions, files and annotations and free texts become function1, file1.py, ...;
     * PyTorch's own stay, without its installation directory. Unknown actions, stages and settings
     * are also replaced: word1, setting1, and "other" within the settings string. Times start at 0.
     * Sizes, addresses and known settings stay. */
    bool anonymize;

    /* Leave out events about blocks that the part of the trace both allocates and frees, so that
     * what is left is what was not freed. A free counts when it is completed. */
    bool drop_freed;
};

/* Copies that part. `options` may be NULL. Caller owns *trimmed_out, destroy with
 * tarn_snapshot_destroy; it is NULL after a failure. The copy is as consistent as the snapshot:
 * tarn_snapshot_check reports nothing new. Free blocks at an earlier time point have the sizes that
 * PyTorch's splitting gives; pinned memory is omitted when events are. TARN_ERR_NOT_FOUND when
 * there is no such device, TARN_ERR_INVALID_ARGUMENT when a range ends before it starts,
 * TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_snapshot_trim(const struct tarn_snapshot *snapshot,
                                             const struct tarn_trim_options *options,
                                             struct tarn_snapshot **trimmed_out,
                                             struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
