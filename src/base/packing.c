/* SPDX-License-Identifier: MIT */
#include "base/packing.h"

#include "base/assertion.h"

const char *tn_packing_name(enum tn_packing packing)
{
    return packing == TN_PACKING_GZIP ? "gzip" : "zstd";
}

const char *tn_packing_library(enum tn_packing packing)
{
    return packing == TN_PACKING_GZIP ? "zlib" : "libzstd";
}

const struct tn_codec *tn_packing_codec(enum tn_packing packing)
{
    switch (packing) {
    case TN_PACKING_GZIP:
        return tn_codec_gzip();
    case TN_PACKING_ZSTD:
        return tn_codec_zstd();
    case TN_PACKING_NONE: /* has no codec to ask for */
        tn_no_case();
        break;
    }
    return NULL;
}
