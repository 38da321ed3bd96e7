/* SPDX-License-Identifier: MIT */
/*
 * A part of a snapshot as a snapshot of its own: for a bug report, small enough to send and without
 * names that are nobody's business.
 */
#ifndef TARN_TRIM_H
#define TARN_TRIM_H

#include "snapshot.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero bytes mean: all of it. */
struct tarn_trim_options {
    uint32_t struct_size; /* sizeof(struct tarn_trim_options) */
    bool one_device;      /* only segments, trace and annotations of `device` */
    int device;

    /* Entries of each trace, from 0, both ends in it. When later ones are cut off, the segments and
     * blocks are those of that moment. */
    bool has_entries;
    uint64_t first_entry;
    uint64_t last_entry;

    /* The same by time, in microseconds since the first entry of the trace that has one. Entries
     * before the first and behind the last of that time are cut off. */
    bool has_time;
    int64_t from_us;
    int64_t to_us;

    bool drop_cpp; /* leave out frames that are not Python's: files that do not end in .py */

    /* Names of functions, files and annotations and free texts become function1, file1.py, ...;
     * those of PyTorch itself stay, without the folder that it is installed in. So do actions,
     * stages and settings that are unknown: word1, setting1, and "other" within the text of the
     * settings. Times begin at 0. Sizes, addresses and known settings stay. */
    bool anonymize;
};

/* Makes a copy of that part. `options` may be NULL. Caller owns *trimmed_out, destroy with
 * tarn_snapshot_destroy; it is NULL after a failure. The copy is consistent where the snapshot is:
 * tarn_snapshot_check finds nothing in it that it did not find before. The sizes of free blocks at
 * an earlier moment are as PyTorch splits them; pinned memory is left out when entries are.
 * TARN_ERR_NOT_FOUND when there is no such device, TARN_ERR_INVALID_ARGUMENT when a part ends
 * before it begins, TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_snapshot_trim(const struct tarn_snapshot *snapshot,
                                             const struct tarn_trim_options *options,
                                             struct tarn_snapshot **trimmed_out,
                                             struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
