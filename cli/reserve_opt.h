/* SPDX-License-Identifier: MIT */
/* The option --reserve: what of a card PyTorch's allocator cannot have. */
#ifndef CLI_RESERVE_OPT_H
#define CLI_RESERVE_OPT_H

#include "command.h"

/* Measured with PyTorch 2.11 (CUDA 13.0) on an H200, memory in use outside the allocator: 619 MiB
 * after the first tensor, 703 MiB after matrix products, convolutions and attention, 1259 MiB after
 * the first collective of an NCCL group of one rank. */
#define CLI_RESERVE_DEFAULT ((uint64_t)1280 << 20)

#define CLI_RESERVE_OPT(type)                                                                      \
    {                                                                                              \
        .name = "reserve", .kind = CLI_OPT_SIZE, .at = offsetof(type, reserve), .value = "SIZE",   \
        .help = "memory of a card for CUDA, its libraries and NCCL (default: 1.25 GiB)"            \
    }

#endif
