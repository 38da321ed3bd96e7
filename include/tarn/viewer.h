/* SPDX-License-Identifier: MIT */
/*
 * The viewer: a snapshot as one HTML page, to look at in a browser. The page holds all the data and
 * the program that draws it; it asks no network for anything, and its own security policy lets
 * nothing else run. Text of the snapshot is shown in it and never becomes markup.
 */
#ifndef TARN_VIEWER_H
#define TARN_VIEWER_H

#include "selection.h"
#include "snapshot.h"
#include "writer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the page shows first. The reader can go to the others. */
enum tarn_view {
    TARN_VIEW_TIMELINE, /* bytes in use over time */
    TARN_VIEW_BLOCKS,   /* every allocation as a rectangle of time and address */
    TARN_VIEW_MAP,      /* segments and blocks at one moment */
    TARN_VIEW_FLAME,
    TARN_VIEW_TABLE,
    TARN_VIEW_OOM,
    TARN_VIEW_INFO,
    TARN_VIEW_SEGMENTS /* the timeline, of segments */
};

/* What is left out of a page that is given away. */
enum tarn_view_redact {
    TARN_VIEW_REDACT_NOTHING,
    TARN_VIEW_REDACT_PATHS, /* folders of source files */
    TARN_VIEW_REDACT_ALL    /* every text of the file: names, files and lines, metadata, settings;
                               sizes, times and addresses stay */
};

/* Zero bytes mean the defaults. */
struct tarn_view_options {
    uint32_t struct_size; /* sizeof(struct tarn_view_options) */
    bool one_device;      /* only `device` */
    int device;
    enum tarn_view view;
    enum tarn_view_redact redact;
    const char *title;  /* UTF-8; NULL or "" = "GPU memory" */
    uint64_t max_bytes; /* of the page; 0 = no limit. The oldest entries of a trace that does not
                           fit are left out, as if the recording had begun later, and the page
                           says so */
    const struct tarn_rules *rules; /* for colours by category; NULL = the default ones */
};

/* Writes the page. The same snapshot and options give the same bytes. `options` may be NULL. Fails
 * with TARN_ERR_NOT_FOUND when the file has nothing of that device, TARN_ERR_LIMIT when not even a
 * page without entries fits into `max_bytes`, TARN_ERR_HOST_MEMORY, or with what the writer
 * returned. */
TARN_API enum tarn_status tarn_view_write(const struct tarn_snapshot *snapshot,
                                          const struct tarn_view_options *options,
                                          const struct tarn_writer *writer,
                                          struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
