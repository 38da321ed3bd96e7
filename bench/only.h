/* SPDX-License-Identifier: MIT */
/* Which patterns a run takes: all, or those whose name matches a regular expression. */
#ifndef BENCH_ONLY_H
#define BENCH_ONLY_H

#include <stdbool.h>

/* An extended regular expression of POSIX; a bad one is a message and the end of the program. */
void bench_only_set(const char *expression);

bool bench_only_wants(const char *pattern);

#endif
