/* SPDX-License-Identifier: MIT */
/* Pages around the data, made from the folder viewer/ by cmake/TarnBundle.cmake: what is in their
 * files, cut where the program puts something in. */
#ifndef TN_PAGE_BUNDLE_H
#define TN_PAGE_BUNDLE_H

#include "base/text_out.h"

#include <stddef.h>

/* Text without a NUL at the end. */
struct tn_bundle_piece {
    const char *text;
    size_t size;
};

struct tn_bundle {
    struct tn_bundle_piece start;  /* up to the scripts that its policy allows */
    struct tn_bundle_piece policy; /* from there to the title */
    struct tn_bundle_piece middle; /* from the title to the data */
    struct tn_bundle_piece end;    /* the program, and the end */
};

extern const struct tn_bundle tn_bundle_viewer; /* of recordings */
extern const struct tn_bundle tn_bundle_ranks;  /* of a fleet */

/* All before the data. The policy of the page allows its own script, and what `policy` names. */
void tn_bundle_begin(const struct tn_bundle *bundle, struct tn_text_out *out, const char *title,
                     const char *policy);
void tn_bundle_end(const struct tn_bundle *bundle, struct tn_text_out *out);

/* Bytes of a page beside its data and its title. */
size_t tn_bundle_size(const struct tn_bundle *bundle);

/* The reader as WebAssembly (page/reader.h), made by cmake/TarnReader.cmake; of 0 bytes in a build
 * without it. */
extern const char tn_bundle_reader[];
extern const size_t tn_bundle_reader_size;

#endif
