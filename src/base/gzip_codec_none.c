/* SPDX-License-Identifier: MIT */
/* A build without zlib. */
#include "base/codec.h"

const struct tn_codec *tn_codec_gzip(void)
{
    return NULL;
}
