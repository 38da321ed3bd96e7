/* SPDX-License-Identifier: MIT */
/*
 * Text as a manual page: the macros of man(7), everything else escaped. The first failure of the
 * writer sticks in `status`.
 */
#ifndef CLI_ROFF_H
#define CLI_ROFF_H

#include "opt.h"
#include "tarn/writer.h"

struct cli_roff {
    struct tarn_writer writer;
    enum tarn_status status; /* TARN_OK to begin with */
};

/* Title and name of the page. */
void cli_roff_begin(struct cli_roff *roff, const char *name, const char *about);

void cli_roff_section(struct cli_roff *roff, const char *name);

/* Lines as a filled paragraph; lines that begin with a blank, and those between empty lines, stay
 * as they are. */
void cli_roff_text(struct cli_roff *roff, const char *lines);

/* Lines as they are. */
void cli_roff_code(struct cli_roff *roff, const char *lines);

/* A word in bold and what it means. */
void cli_roff_item(struct cli_roff *roff, const char *word, const char *text);

/* An item a row of the table. */
void cli_roff_opts(struct cli_roff *roff, const struct cli_opt *opts);

#endif
