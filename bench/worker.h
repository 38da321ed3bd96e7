/* SPDX-License-Identifier: MIT */
/*
 * A program that runs patterns through one allocator when it is told to. compare starts one for
 * each allocator and lets them take turns. On standard input come lines "PATTERN SCALE", the number
 * of a pattern and the factor of its operations; each is answered by one line "NANOSECONDS", per
 * allocation and free, or "skip" if the allocator has nothing that the pattern needs. The first
 * answer, "ready" or "ready VERSION", comes unasked. Anything else on standard output is a fault;
 * what is worth saying goes to standard error.
 */
#ifndef BENCH_WORKER_H
#define BENCH_WORKER_H

#include "patterns.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Serves until standard input ends. The program's exit status: 1 if it was asked for nonsense. */
int worker_serve(const struct bench_allocator *allocator);

#ifdef __cplusplus
}
#endif

#endif
