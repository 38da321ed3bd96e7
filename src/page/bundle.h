/* SPDX-License-Identifier: MIT */
/* The page around the data, made from the folder viewer/ by cmake/TarnBundle.cmake. Texts without
 * a NUL at the end. */
#ifndef TN_PAGE_BUNDLE_H
#define TN_PAGE_BUNDLE_H

#include <stddef.h>

extern const char tn_bundle_start[]; /* up to the scripts that its policy allows */
extern const size_t tn_bundle_start_size;
extern const char tn_bundle_policy[]; /* from there to the title */
extern const size_t tn_bundle_policy_size;
extern const char tn_bundle_middle[]; /* from the title to the data */
extern const size_t tn_bundle_middle_size;
extern const char tn_bundle_end[]; /* the program, and the end */
extern const size_t tn_bundle_end_size;

/* The reader as WebAssembly (page/reader.h), made by cmake/TarnReader.cmake; of 0 bytes in a build
 * without it. */
extern const char tn_bundle_reader[];
extern const size_t tn_bundle_reader_size;

#endif
