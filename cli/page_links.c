/* SPDX-License-Identifier: MIT */
#include "page_links.h"

#include "page_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The folder of a file that need not exist. */
static bool folder_of(char folder[PATH_MAX], const char *file)
{
    const char *slash = strrchr(file, '/');
    const size_t length = slash ? (size_t)(slash - file) + 1 : 0;

    if (strcmp(file, "-") == 0 || length == 0) {
        (void)snprintf(folder, PATH_MAX, ".");
        return true;
    }
    return snprintf(folder, PATH_MAX, "%.*s", (int)length, file) < PATH_MAX;
}

/* How many characters of two absolute paths are the same folders. */
static size_t common_length(const char *a, const char *b)
{
    size_t common = 0;
    size_t i = 0;

    for (; a[i] && a[i] == b[i]; i++) {
        common = a[i] == '/' ? i : common;
    }
    const bool ends = (a[i] == '\0' || a[i] == '/') && (b[i] == '\0' || b[i] == '/');

    return ends ? i : common;
}

static bool append(char text[PATH_MAX], size_t *length, const char *more)
{
    const int added = snprintf(text + *length, PATH_MAX - *length, "%s", more);

    if (added < 0 || (size_t)added >= PATH_MAX - *length) {
        return false;
    }
    *length += (size_t)added;
    return true;
}

/* Up from `base` as often as needed, then down to `target`: both are absolute, without "..". */
static bool way_find(char way[PATH_MAX], const char *base, const char *target)
{
    const size_t common = common_length(base, target);
    const char *down = target + common + (target[common] == '/' ? 1 : 0);
    size_t length = 0;
    bool good = true;

    way[0] = '\0';
    for (const char *at = base + common; good && *at; at++) {
        if (*at == '/' && at[1] != '\0') {
            good = append(way, &length, "../");
        }
    }
    return good && (!*down || (append(way, &length, down) && append(way, &length, "/")));
}

bool cli_page_links_init(struct cli_page_links *links, const char *folder, const char *page)
{
    char base[PATH_MAX];
    char base_found[PATH_MAX];
    char target_found[PATH_MAX];

    links->folder = folder;
    links->from_page[0] = '\0';
    if (!realpath(folder, target_found)) {
        return false;
    }
    /* Without a folder of its own the page is not written, and whoever opens it says so. */
    return !folder_of(base, page) || !realpath(base, base_found) ||
           way_find(links->from_page, base_found, target_found);
}

bool cli_page_links_find(void *context, const char *file, int device, char *path, size_t size)
{
    const struct cli_page_links *links = context;
    const char *stem;
    const size_t length = cli_page_stem(file, &stem);
    char found[PATH_MAX];
    struct stat about;

    (void)device; /* a page has all of them */
    if (length > NAME_MAX ||
        snprintf(found, sizeof found, "%s/%.*s.html", links->folder, (int)length, stem) >=
            (int)sizeof found ||
        stat(found, &about) != 0 || !S_ISREG(about.st_mode)) {
        return false;
    }
    return snprintf(path, size, "%s%.*s.html", links->from_page, (int)length, stem) < (int)size;
}
