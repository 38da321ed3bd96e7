/* SPDX-License-Identifier: MIT */
/*
 * The viewer: a snapshot, or many ranks, as one self-contained HTML page. The page contains all
 * data and the script that draws it; it makes no network requests, and its content security policy
 * blocks all other code. Text of the snapshot never becomes markup.
 * Snapshots are not changed: any number of threads may use one at once.
 */
#ifndef TARN_VIEWER_H
#define TARN_VIEWER_H

#include "selection.h"
#include "snapshot.h"
#include "writer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The view that the page opens with. The user can switch to the others. */
enum tarn_view {
    TARN_VIEW_TIMELINE, /* requested bytes over time */
    TARN_VIEW_BLOCKS,   /* every allocation as a rectangle in time and address */
    TARN_VIEW_MAP,      /* segments and blocks at one time point */
    TARN_VIEW_FLAME,
    TARN_VIEW_TABLE,
    TARN_VIEW_OOM,
    TARN_VIEW_INFO,
    TARN_VIEW_SEGMENTS /* the timeline of segments */
};

/* What to remove from a page that is shared. */
enum tarn_view_redact {
    TARN_VIEW_REDACT_NOTHING,
    TARN_VIEW_REDACT_PATHS, /* directories of source files */
    TARN_VIEW_REDACT_ALL    /* all text: names, files and lines, metadata, settings; sizes, times
                               and addresses stay */
};

/* Zero bytes mean the defaults. */
struct tarn_view_options {
    uint32_t struct_size; /* sizeof(struct tarn_view_options) */
    bool one_device;      /* only `device` */
    int device;
    enum tarn_view view;
    enum tarn_view_redact redact;
    const char *title;  /* UTF-8; NULL or "" = "GPU memory" */
    uint64_t max_bytes; /* of the page; 0 = no limit. If a trace does not fit, its oldest events are
                           dropped, as if the recording had started later, and the page says so */
    const struct tarn_rules *rules; /* for colours by category; NULL = the default rules */
    uint64_t *dropped_out; /* NULL, or set to the number of events dropped for max_bytes when the
                              page was written */
};

/* Writes the page. The same snapshot and options give the same bytes. `options` may be NULL. Fails
 * with TARN_ERR_NOT_FOUND when the snapshot has no data of that device, TARN_ERR_LIMIT when even a
 * page without events exceeds `max_bytes`, TARN_ERR_HOST_MEMORY, or with what the writer
 * returned. */
TARN_API enum tarn_status tarn_view_write(const struct tarn_snapshot *snapshot,
                                          const struct tarn_view_options *options,
                                          const struct tarn_writer *writer,
                                          struct tarn_error *error) TARN_MUST_CHECK;

enum {
    TARN_VIEW_RUNS_MAX = 2
};

struct tarn_tune_row;
struct tarn_oom_result;
struct tarn_frag_result;
struct tarn_steps_result;
struct tarn_findings;

/* Replays of a device under each setting, as of tarn_replay_tune with `each`: the first row is that
 * under the recorded settings. */
struct tarn_view_settings {
    int device;
    const char *missing; /* why there are no rows, else NULL */
    const struct tarn_tune_row *rows;
    size_t count;
};

/* What the page cannot find out itself, computed by replay.h and report.h with the same selection
 * of devices, and shown as its own view. Each part may be missing; the caller keeps all of it until
 * the page is written. */
struct tarn_view_answers {
    uint32_t struct_size; /* sizeof(struct tarn_view_answers) */
    const char *missing;  /* why there are none at all, which the page says; NULL: there are */
    const struct tarn_view_settings *settings;
    size_t settings_count;
    const struct tarn_oom_result *ooms; /* of tarn_oom_compute */
    size_t oom_count;
    const struct tarn_frag_result *frag; /* of tarn_frag_compute */
    size_t frag_count;
    const struct tarn_steps_result *steps; /* of tarn_steps_compute */
    size_t step_count;
    const struct tarn_findings *findings; /* of tarn_snapshot_check, or NULL */
};

/* A recording of a page. */
struct tarn_view_run {
    uint32_t struct_size; /* sizeof(struct tarn_view_run) */
    const struct tarn_snapshot *snapshot;
    const char *name; /* of the recording where there are two, UTF-8; NULL or "" = "before" of the
                         first, "after" of the second */
    const struct tarn_view_answers *answers; /* or NULL */
};

/* The same with one recording, or with two to compare: the page then opens with what grew between
 * them. Fails also with TARN_ERR_INVALID_ARGUMENT for another number of recordings, and with
 * TARN_ERR_NOT_FOUND when one of two has nothing. `max_bytes` is of the whole page; each recording
 * keeps the same share of its events. `view` TARN_VIEW_TIMELINE stands for the comparison where
 * there are two. */
TARN_API enum tarn_status tarn_view_write_runs(const struct tarn_view_run *runs, size_t count,
                                               const struct tarn_view_options *options,
                                               const struct tarn_writer *writer,
                                               struct tarn_error *error) TARN_MUST_CHECK;

/* Writes a page without data that reads snapshots in the browser: dropped or chosen, one, or two to
 * compare. It has the readers of snapshot.h, so it refuses what they refuse, and sends nothing
 * anywhere. Of the options only the title is used. TARN_ERR_NOT_SUPPORTED in a build without it
 * (TARN_READER), TARN_ERR_HOST_MEMORY, or what the writer returned. */
TARN_API enum tarn_status tarn_view_write_empty(const struct tarn_view_options *options,
                                                const struct tarn_writer *writer,
                                                struct tarn_error *error) TARN_MUST_CHECK;

struct tarn_fleet;
struct tarn_fleet_options;

/* Zero bytes mean the defaults. */
struct tarn_view_ranks_options {
    uint32_t struct_size; /* sizeof(struct tarn_view_ranks_options) */
    const char *title;    /* UTF-8; NULL or "" = "Ranks" */
    /* NULL, or asked once for each rank: writes where its own page lies, as a path from the page
     * of the fleet, UTF-8 with a NUL at the end, into `path` of `size` bytes; false: there is
     * none. `file` is the name that the rank was added with. */
    bool (*find_page)(void *context, const char *file, int device, char *path, size_t size);
    void *context;
};

/* Writes a page of many ranks: their memory over time as a heat map, those that stand out, and
 * timelines side by side. Its figures are the report that tarn_fleet_report writes as JSON with
 * `how`, which is in the page. `how` and `options` may be NULL. The same ranks give the same bytes.
 * Fails as tarn_fleet_report; TARN_ERR_NOT_SUPPORTED in a build without the page. */
TARN_API enum tarn_status tarn_view_write_ranks(struct tarn_fleet *fleet,
                                                const struct tarn_fleet_options *how,
                                                const struct tarn_view_ranks_options *options,
                                                const struct tarn_writer *writer,
                                                struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
