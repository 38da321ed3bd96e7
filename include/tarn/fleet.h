/* SPDX-License-Identifier: MIT */
/*
 * Many ranks of one job: each snapshot becomes a summary of some ten kilobytes, summaries merge,
 * and a report compares what they have. Merging is exact: the bytes depend on neither the order nor
 * the number of the parts. Threads: a fleet is guarded by its owner; different fleets are
 * independent.
 *
 *     struct tarn_fleet *fleet;
 *
 *     if (tarn_fleet_create(&fleet, &error) == TARN_OK &&
 *         tarn_fleet_load(fleet, "a.tsum", NULL, &error) == TARN_OK &&
 *         tarn_fleet_load(fleet, "b.tsum", NULL, &error) == TARN_OK) {
 *         status = tarn_fleet_write(fleet, &writer, &error);
 *     }
 *     tarn_fleet_destroy(fleet);
 *
 * The format of summaries is in docs/fleet.md. Files need not be trusted.
 */
#ifndef TARN_FLEET_H
#define TARN_FLEET_H

#include "report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Summaries of ranks. */
struct tarn_fleet;

/* Where a rank ran and what it was: "host" "n12", "pp" "3". */
struct tarn_label {
    const char *key;   /* letters, digits and '_', at most 64 bytes */
    const char *value; /* at most 256 bytes */
};

/* Zero bytes mean: every device, all blocks, by stack, at the peak. */
struct tarn_summary_options {
    uint32_t struct_size; /* sizeof(struct tarn_summary_options) */
    size_t label_count;
    const struct tarn_label *labels;          /* beside those in the file's name; these win */
    const struct tarn_report_options *report; /* its selection, grouping and rules; or NULL */
};

enum {
    TARN_LABELS_MAX = 32 /* of a rank */
};

/* An empty fleet. Caller owns *fleet_out, destroy with tarn_fleet_destroy. TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_fleet_create(struct tarn_fleet **fleet_out,
                                            struct tarn_error *error) TARN_MUST_CHECK;

/* NULL is allowed. */
TARN_API void tarn_fleet_destroy(struct tarn_fleet *fleet);

/* Adds a summary of each device of a snapshot that has a trace. `name` is what reports call it;
 * labels are read from it: "rank12", "host-3", "pp_1" and "KEY=VALUE" between '/', ',' and the
 * like. The snapshot is not used after the call. `options` may be NULL. TARN_ERR_INVALID_ARGUMENT
 * for a label that is none, TARN_ERR_LIMIT for too many, else as the reports on traces
 * (tarn/report.h); nothing was added then. */
TARN_API enum tarn_status tarn_fleet_add(struct tarn_fleet *fleet,
                                         const struct tarn_snapshot *snapshot, const char *name,
                                         const struct tarn_summary_options *options,
                                         struct tarn_error *error) TARN_MUST_CHECK;

/* Adds the summaries of a file, one that tarn_fleet_write wrote, plain or compressed; "-" is
 * standard input. Of `limits`, which may be NULL, `max_bytes` (0: 16 GiB), `max_ratio` and
 * `max_memory` (0: 2 GiB for the whole fleet) count. TARN_ERR_IO; TARN_ERR_FORMAT for a file that
 * is no summary, is damaged, contradicts itself or is of a later version; TARN_ERR_TRUNCATED when
 * its end is missing; TARN_ERR_LIMIT; TARN_ERR_HOST_MEMORY. Nothing was added then. */
TARN_API enum tarn_status tarn_fleet_load(struct tarn_fleet *fleet, const char *path,
                                          const struct tarn_read_limits *limits,
                                          struct tarn_error *error) TARN_MUST_CHECK;

/* The same from memory, which is not used after the call. */
TARN_API enum tarn_status tarn_fleet_load_memory(struct tarn_fleet *fleet, const void *bytes,
                                                 size_t size, const struct tarn_read_limits *limits,
                                                 struct tarn_error *error) TARN_MUST_CHECK;

/* Whether a file begins as a summary does. False as well for one that cannot be read, and for "-",
 * which could not be read again. */
TARN_API bool tarn_fleet_is_summary(const char *path);

/* How many ranks it has: devices of snapshots. */
TARN_API size_t tarn_fleet_rank_count(const struct tarn_fleet *fleet);

/* Writes one summary of all. Equal ranks, in any order, give equal bytes. Fails with what the
 * writer returned or with TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_fleet_write(struct tarn_fleet *fleet,
                                           const struct tarn_writer *writer,
                                           struct tarn_error *error) TARN_MUST_CHECK;

/* Reads a table of labels, CSV: the first line names the columns, and the first column is the label
 * that ranks are found by, such as "rank" or "file"; the others are added to those ranks in the
 * report. TARN_ERR_IO, TARN_ERR_INVALID_ARGUMENT with the line, TARN_ERR_LIMIT,
 * TARN_ERR_HOST_MEMORY. A second table takes the place of the first. */
TARN_API enum tarn_status tarn_fleet_load_labels(struct tarn_fleet *fleet, const char *path,
                                                 struct tarn_error *error) TARN_MUST_CHECK;

/* Zero bytes mean: nothing is known of the device, and growth counts from the first step. */
struct tarn_fleet_options {
    uint32_t struct_size;  /* sizeof(struct tarn_fleet_options) */
    uint64_t device_total; /* bytes; 0: unknown */
    uint64_t since_step;   /* what grew since the end of that step, from 1; 0: not shown */
};

/* The ranks side by side: those that stand out and what they hold that others do not, which labels
 * they have in common, groups of like ranks, growth, and which rank fails first. `options` (format,
 * rows, units and form of text) and `how` may be NULL. TARN_ERR_STATE without a rank;
 * TARN_ERR_MISMATCH when ranks are grouped in different ways; TARN_ERR_HOST_MEMORY, or what the
 * writer returned. */
TARN_API enum tarn_status tarn_fleet_report(struct tarn_fleet *fleet,
                                            const struct tarn_report_options *options,
                                            const struct tarn_fleet_options *how,
                                            const struct tarn_writer *writer,
                                            struct tarn_error *error) TARN_MUST_CHECK;

enum {
    TARN_FLEET_EXTREMES = 8 /* enough for every reason and some groups */
};

/* A rank whose trace stands for others when settings are tried. */
struct tarn_fleet_extreme {
    const char *file; /* the name that its snapshot was added with */
    int device;
    const char *why; /* "most reserved"; static storage */
};

/* The ranks whose traces are to be replayed (tarn/replay.h) for settings that suit the whole fleet:
 * most requested, most reserved, most reserved beyond that, most failed requests, the one nearest
 * to the median, and the largest of groups of like ranks. Stores at most `capacity`, each once, in
 * that order, and their number in *count_out. Files are borrowed until the end of the fleet. Fails
 * as tarn_fleet_report. */
TARN_API enum tarn_status tarn_fleet_find_extremes(struct tarn_fleet *fleet,
                                                   struct tarn_fleet_extreme *extremes,
                                                   size_t capacity, size_t *count_out,
                                                   struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
