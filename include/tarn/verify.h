/* SPDX-License-Identifier: MIT */
/*
 * Holding the allocator against recorded decisions: a log of calls to PyTorch's allocator on a GPU,
 * with the pointer, the events, the counters and the snapshots that each call gave. The same calls
 * run here on a simulated device that hands out the recorded addresses; every answer must be the
 * same.
 */
#ifndef TARN_VERIFY_H
#define TARN_VERIFY_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TARN_VERIFY_TEXT_MAX = 8192
};

struct tarn_verify_result {
    uint32_t struct_size; /* in: sizeof(struct tarn_verify_result) */
    uint64_t calls;
    uint64_t differing;               /* calls with any difference */
    char first[TARN_VERIFY_TEXT_MAX]; /* the first one: call, expected, got; "" when none */
};

/* Runs the log at `path` ("-" is standard input; plain, gzip or zstd). Returns TARN_OK whether or
 * not there are differences; fails when the log cannot be read or makes no sense, with the line in
 * the error's text. Any thread. */
TARN_API enum tarn_status tarn_verify_log(const char *path, struct tarn_verify_result *result_out,
                                          struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
