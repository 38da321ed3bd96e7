/* SPDX-License-Identifier: MIT */
/* A row of `tarn tree` as text: what a screen and a pipe have in common. */
#ifndef CLI_TREE_ROW_H
#define CLI_TREE_ROW_H

#include "tree_load.h"

enum {
    CLI_TREE_NUMBERS_MAX = 48,
    CLI_TREE_LABEL_MAX = 2048
};

/* "   7.96 GiB  81.9%": size and share. */
void cli_tree_size_text(char text[CLI_TREE_NUMBERS_MAX], const struct cli_tree *tree,
                        uint32_t node);

/* A bar of at most `width` columns, as UTF-8 or as '#'; filled up with blanks. */
void cli_tree_bar_text(char *text, size_t size, double share, unsigned width, bool is_utf8);

/* The label in at most `width` columns: of a chain of calls the first one stays, then the last.
 * `text` has CLI_TREE_LABEL_MAX bytes. */
void cli_tree_label_text(char *text, const char *label, unsigned width, bool is_utf8);

/* Columns of a text in UTF-8, in which each character takes one. */
unsigned cli_tree_columns(const char *text);

/* "peak: 9.72 GiB requested, 10.77 GiB reserved, event 5876 of 35860". */
void cli_tree_place_text(char *text, size_t size, const struct cli_tree_place *place,
                         const char *when);

#endif
