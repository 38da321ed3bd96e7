/* SPDX-License-Identifier: MIT */
/* A trace of two private pools that are used one after the other, behind a block that stays. */
#ifndef TESTS_SUPPORT_TWO_POOLS_H
#define TESTS_SUPPORT_TWO_POOLS_H

#include "support/trace.h"

static const struct trace_row two_pools[] = {
    {TN_TRACE_SEGMENT_ALLOC, A, 2 * MIB, 0},
    {TN_TRACE_ALLOC, A, 512, 0},
    {TN_TRACE_SEGMENT_ALLOC, A + 2 * MIB, 2 * MIB, 0},
    {TN_TRACE_ALLOC, A + 2 * MIB, 512, 0},
    {TN_TRACE_FREE_REQUESTED, A + 2 * MIB, 512, 0},
    {TN_TRACE_FREE_COMPLETED, A + 2 * MIB, 512, 0},
    {TN_TRACE_SEGMENT_FREE, A + 2 * MIB, 2 * MIB, 0},
    {TN_TRACE_SEGMENT_ALLOC, A + 4 * MIB, 2 * MIB, 0},
    {TN_TRACE_ALLOC, A + 4 * MIB, 512, 0},
    {TN_TRACE_FREE_REQUESTED, A + 4 * MIB, 512, 0},
    {TN_TRACE_FREE_COMPLETED, A + 4 * MIB, 512, 0},
    {TN_TRACE_SEGMENT_FREE, A + 4 * MIB, 2 * MIB, 0},
};

enum {
    TWO_POOLS = sizeof two_pools / sizeof *two_pools
};

/* The segment of that block, at the end. */
static const struct tn_model_block two_pools_blocks[] = {
    {.address = A, .size = 512, .requested_size = 512, .state = TN_BLOCK_ACTIVE_ALLOCATED},
    {.address = A + 512, .size = 2 * MIB - 512}};
static const struct tn_model_segment two_pools_kept = {
    .address = A, .total_size = 2 * MIB, .blocks = two_pools_blocks, .block_count = 2};

#endif
