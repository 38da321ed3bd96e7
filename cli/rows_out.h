/* SPDX-License-Identifier: MIT */
/*
 * The rows of a report one by one, for other tools: as JSON lines, or as CSV. They are made of the
 * report's JSON document, so they say the same. A row has the device, the table that it is from
 * ("requested_peak.groups"), and what part of it it is: a row, its others, or its total.
 *
 * In CSV all tables share one line of names; stacks are one cell, outermost frame first, joined by
 * ';'. Text that a spreadsheet would take for a formula begins with "'", and what does not show is
 * written as \u202e.
 */
#ifndef CLI_ROWS_OUT_H
#define CLI_ROWS_OUT_H

#include "tarn/writer.h"

#include <stddef.h>

enum cli_rows_format {
    CLI_ROWS_NONE,
    CLI_ROWS_JSONL,
    CLI_ROWS_CSV
};

/* Collects a document. */
struct cli_rows_out {
    char *text;
    size_t size;
    size_t room;
};

/* What the report writes to. */
struct tarn_writer cli_rows_writer(struct cli_rows_out *rows);

/* Writes the rows of the document. TARN_ERR_HOST_MEMORY, TARN_ERR_LIMIT for a number beyond 2^63,
 * or what the writer returns. */
enum tarn_status cli_rows_write(const struct cli_rows_out *rows, enum cli_rows_format format,
                                const struct tarn_writer *writer, struct tarn_error *error);

void cli_rows_fini(struct cli_rows_out *rows);

#endif
