/* SPDX-License-Identifier: MIT */
/* No page around the data: of the reader inside of a page. */
#include "page/bundle.h"

const char tn_bundle_start[1] = "";
const size_t tn_bundle_start_size = 0;
const char tn_bundle_policy[1] = "";
const size_t tn_bundle_policy_size = 0;
const char tn_bundle_middle[1] = "";
const size_t tn_bundle_middle_size = 0;
const char tn_bundle_end[1] = "";
const size_t tn_bundle_end_size = 0;
const char tn_bundle_reader[1] = "";
const size_t tn_bundle_reader_size = 0;
