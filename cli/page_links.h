/* SPDX-License-Identifier: MIT */
/*
 * Pages of single ranks beside the page of all of them: where they lie, seen from that page, so
 * that both can be moved and copied together.
 */
#ifndef CLI_PAGE_LINKS_H
#define CLI_PAGE_LINKS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct cli_page_links {
    const char *folder;       /* where the program looks */
    char from_page[PATH_MAX]; /* the same folder from that of the page, with a '/' at the end, or
                                 "" */
};

/* `page` is the file that will have the links; "-" lies in the current directory. False when the
 * folder is not there, or a path too long. */
bool cli_page_links_init(struct cli_page_links *links, const char *folder, const char *page);

/* Whether the folder has the page of a snapshot under the name that `tarn view` gives it; writes
 * its path from the other page. As tarn_view_ranks_options.find_page asks. */
bool cli_page_links_find(void *links, const char *file, int device, char *path, size_t size);

#endif
