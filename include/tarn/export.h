/* SPDX-License-Identifier: MIT */
/*
 * Snapshots and fleets for other programs: databases, spreadsheets, trace viewers, flame graphs.
 * Invisible characters in their texts are escaped (\x1b, \u202e), and no cell of a table can act
 * as a formula. The same snapshot gives the same bytes.
 * Snapshots are not changed: any number of threads may use one at once.
 */
#ifndef TARN_EXPORT_H
#define TARN_EXPORT_H

#include "fleet.h"
#include "snapshot.h"
#include "writer.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tarn_export_format {
    TARN_EXPORT_JSON,       /* the snapshot with PyTorch's keys, on one line */
    TARN_EXPORT_JSONL,      /* rows of the tables below, one object per line */
    TARN_EXPORT_CSV,        /* one table */
    TARN_EXPORT_SQLITE,     /* a database with all tables, and views */
    TARN_EXPORT_PERFETTO,   /* a Chrome trace, for ui.perfetto.dev: counters and slices */
    TARN_EXPORT_SPEEDSCOPE, /* stacks by bytes, for speedscope.app */
    TARN_EXPORT_FOLDED,     /* folded stacks, the input of flame graphs */
    TARN_EXPORT_PICKLE      /* the snapshot as PyTorch writes it, protocol 4 */
};

/* Tables; docs/export.md has their columns. */
enum tarn_export_table {
    TARN_TABLE_ALL,         /* JSONL only; CSV writes the events, or the ranks */
    TARN_TABLE_EVENTS,      /* the events of the traces */
    TARN_TABLE_ALLOCATIONS, /* lifetime of each block: first and last event */
    TARN_TABLE_SEGMENTS,
    TARN_TABLE_BLOCKS,
    TARN_TABLE_STACKS, /* one row per frame */
    TARN_TABLE_ANNOTATIONS,
    TARN_TABLE_RANKS,    /* this and the following: of a fleet, which also has stacks */
    TARN_TABLE_HOLDERS,  /* what each rank held at its peaks, by stack and by category */
    TARN_TABLE_STEPS,    /* the steps of each rank */
    TARN_TABLE_TIMELINE, /* the sketch of each rank's timeline */
    TARN_TABLE_OOMS      /* failed requests of each rank, by verdict */
};

/* Zero bytes mean: every device, all tables. */
struct tarn_export_options {
    uint32_t struct_size; /* sizeof(struct tarn_export_options) */
    bool one_device;      /* only `device`; ignored for JSON and PICKLE, which are complete */
    int device;
    enum tarn_export_table table; /* for JSONL and CSV */
};

/* Writes a snapshot in that format. `options` may be NULL. A database is built in host memory that
 * tarn_host_get_usage does not count. Fails with TARN_ERR_INVALID_ARGUMENT for a table that a
 * snapshot does not have, with TARN_ERR_HOST_MEMORY, with TARN_ERR_LIMIT when a database would
 * become too large, or with what the writer returned. */
TARN_API enum tarn_status tarn_export(const struct tarn_snapshot *snapshot,
                                      enum tarn_export_format format,
                                      const struct tarn_export_options *options,
                                      const struct tarn_writer *writer,
                                      struct tarn_error *error) TARN_MUST_CHECK;

/* Writes the tables of a fleet as JSONL, CSV or SQLITE; equal ranks, in any order, give equal
 * bytes. `options` as above; labels of tarn_fleet_load_labels are among those of the ranks. Fails
 * as tarn_export, also with TARN_ERR_INVALID_ARGUMENT for another format, and as
 * tarn_fleet_report. */
TARN_API enum tarn_status tarn_export_fleet(struct tarn_fleet *fleet,
                                            enum tarn_export_format format,
                                            const struct tarn_export_options *options,
                                            const struct tarn_writer *writer,
                                            struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
