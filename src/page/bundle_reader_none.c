/* SPDX-License-Identifier: MIT */
/* A build without the reader. */
#include "page/bundle.h"

const char tn_bundle_reader[1] = "";
const size_t tn_bundle_reader_size = 0;
