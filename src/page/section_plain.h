/* SPDX-License-Identifier: MIT */
/*
 * Sections as they are, kept in memory: what section.c is to a page, section_plain.c is to the
 * reader inside of a page (reader.h), which hands them to the viewer. There is one list of them in
 * a program, and one thread.
 */
#ifndef TN_PAGE_SECTION_PLAIN_H
#define TN_PAGE_SECTION_PLAIN_H

#include "page/column.h"

enum {
    TN_PLAIN_SECTION_NAME_MAX = 64
};

struct tn_plain_section {
    char name[TN_PLAIN_SECTION_NAME_MAX];
    struct tn_column bytes;
};

/* Borrowed until sections are added, or all of them released. */
const struct tn_plain_section *tn_plain_sections(size_t *count_out);
void tn_plain_sections_release(void);

#endif
