/* SPDX-License-Identifier: MIT */
/* The compressions that files may have. */
#ifndef TN_BASE_PACKING_H
#define TN_BASE_PACKING_H

#include "base/codec.h"

enum tn_packing {
    TN_PACKING_NONE,
    TN_PACKING_GZIP,
    TN_PACKING_ZSTD
};

/* "gzip", "zstd", and the library that a build needs for it: "zlib", "libzstd". Not for
 * TN_PACKING_NONE. */
const char *tn_packing_name(enum tn_packing packing);
const char *tn_packing_library(enum tn_packing packing);

/* NULL for TN_PACKING_NONE, and where the build is without that library. */
const struct tn_codec *tn_packing_codec(enum tn_packing packing);

#endif
