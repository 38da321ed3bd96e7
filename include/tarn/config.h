/* SPDX-License-Identifier: MIT */
/*
 * Allocator settings, as PyTorch's PYTORCH_CUDA_ALLOC_CONF knows them. A settings string is parsed
 * into this plain struct; the allocator keeps a copy. Sizes are bytes.
 */
#ifndef TARN_CONFIG_H
#define TARN_CONFIG_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TARN_SIZE_UNLIMITED UINT64_MAX

/* Intervals of roundup_power2_divisions: below 2 MiB, [2, 4) MiB, ... from 32 GiB on. */
enum {
    TARN_ROUNDUP_INTERVALS = 16
};

struct tarn_config {
    uint32_t struct_size;            /* sizeof(struct tarn_config) */
    uint64_t max_split_size;         /* blocks of this size and more are not split;
                                         TARN_SIZE_UNLIMITED = no such limit */
    uint64_t max_non_split_rounding; /* how much larger than the request a block that is not split
                                         may be */
    uint64_t large_segment_size;     /* segment for requests above 1 and below 10 MiB */
    double garbage_collection_threshold;                       /* share of the limit, 0 = off */
    uint32_t roundup_power2_divisions[TARN_ROUNDUP_INTERVALS]; /* 0 and 1 = off */
    bool expandable_segments;
    bool release_lock_on_device_alloc; /* release_lock_on_cudamalloc */
};

/* The defaults: PyTorch's. */
TARN_API void tarn_config_init(struct tarn_config *config_out);

/* Parses a settings string ("name:value,name:value") over the defaults. On failure *config_out is
 * untouched and the error names the option and the position. */
TARN_API enum tarn_status tarn_config_parse(const char *text, struct tarn_config *config_out,
                                            struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
