/* SPDX-License-Identifier: MIT */
/* The compressions that files may have. */
#ifndef TN_BASE_PACKING_H
#define TN_BASE_PACKING_H

enum tn_packing {
    TN_PACKING_NONE,
    TN_PACKING_GZIP,
    TN_PACKING_ZSTD
};

#endif
