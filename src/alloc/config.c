/* SPDX-License-Identifier: MIT */
#include "tarn/config.h"

#include "alloc/size_class.h"

void tarn_config_init(struct tarn_config *config_out)
{
    *config_out = (struct tarn_config){
        .struct_size = sizeof *config_out,
        .max_split_size = TARN_SIZE_UNLIMITED,
        .max_non_split_rounding = TN_LARGE_BUFFER,
        .large_segment_size = TN_LARGE_BUFFER,
    };
}
