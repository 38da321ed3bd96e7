/* SPDX-License-Identifier: MIT */
/*
 * Text as a man page: the macros of man(7), everything else escaped. `status` keeps the first
 * failure of the writer.
 */
#ifndef CLI_ROFF_H
#define CLI_ROFF_H

#include "opt.h"
#include "tarn/writer.h"

struct cli_roff {
    struct tarn_writer writer;
    enum tarn_status status; /* initially TARN_OK */
};

/* Title and name of the page. */
void cli_roff_begin(struct cli_roff *roff, const char *name, const char *about);

void cli_roff_section(struct cli_roff *roff, const char *name);

/* Writes lines as filled paragraphs; lines that start with a blank, and their paragraph, are
 * written verbatim. */
void cli_roff_text(struct cli_roff *roff, const char *lines);

/* Writes lines verbatim. */
void cli_roff_code(struct cli_roff *roff, const char *lines);

/* A term in bold and its description. */
void cli_roff_item(struct cli_roff *roff, const char *word, const char *text);

/* One item per row of the table. */
void cli_roff_opts(struct cli_roff *roff, const struct cli_opt *opts);

#endif
