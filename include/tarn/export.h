/* SPDX-License-Identifier: MIT */
/*
 * Snapshots for other programs: databases, spreadsheets, trace viewers, flame graphs. Text of the
 * snapshot that does not show comes out as escapes (\x1b, \u202e), and no cell of a table is a
 * formula. The same snapshot gives the same bytes.
 */
#ifndef TARN_EXPORT_H
#define TARN_EXPORT_H

#include "snapshot.h"
#include "writer.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tarn_export_format {
    TARN_EXPORT_JSON,       /* the snapshot with PyTorch's keys, in one line */
    TARN_EXPORT_JSONL,      /* rows of the tables below, an object a line */
    TARN_EXPORT_CSV,        /* one table */
    TARN_EXPORT_SQLITE,     /* a database with all tables, and views */
    TARN_EXPORT_PERFETTO,   /* a Chrome trace, for ui.perfetto.dev: counters and slices */
    TARN_EXPORT_SPEEDSCOPE, /* stacks by bytes, for speedscope.app */
    TARN_EXPORT_FOLDED,     /* the lines that flame graphs are made of */
    TARN_EXPORT_PICKLE      /* the snapshot as PyTorch writes it, protocol 4 */
};

/* Tables; docs/export.md has their columns. */
enum tarn_export_table {
    TARN_TABLE_ALL,         /* JSONL only; CSV writes the events */
    TARN_TABLE_EVENTS,      /* the entries of the traces */
    TARN_TABLE_ALLOCATIONS, /* from which event to which each block was in use */
    TARN_TABLE_SEGMENTS,
    TARN_TABLE_BLOCKS,
    TARN_TABLE_STACKS, /* a row a frame */
    TARN_TABLE_ANNOTATIONS
};

/* Zero bytes mean: every device, all tables. */
struct tarn_export_options {
    uint32_t struct_size; /* sizeof(struct tarn_export_options) */
    bool one_device;      /* only `device`; not of JSON and PICKLE, which are whole */
    int device;
    enum tarn_export_table table; /* of JSONL and CSV */
};

/* Writes a snapshot in that form. `options` may be NULL. A database is put together in host memory
 * that the library does not count. Fails with TARN_ERR_HOST_MEMORY, with TARN_ERR_LIMIT when a
 * database would become too large, or with what the writer returned. */
TARN_API enum tarn_status tarn_export(const struct tarn_snapshot *snapshot,
                                      enum tarn_export_format format,
                                      const struct tarn_export_options *options,
                                      const struct tarn_writer *writer,
                                      struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
