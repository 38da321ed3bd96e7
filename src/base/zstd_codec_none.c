/* SPDX-License-Identifier: MIT */
/* A build without zstd. */
#include "base/codec.h"

const struct tn_codec *tn_codec_zstd(void)
{
    return NULL;
}
