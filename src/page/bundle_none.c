/* SPDX-License-Identifier: MIT */
/* No page around the data: of the reader inside of a page. */
#include "page/bundle.h"

const struct tn_bundle tn_bundle_viewer = {.start = {"", 0}};
const char tn_bundle_reader[1] = "";
const size_t tn_bundle_reader_size = 0;
