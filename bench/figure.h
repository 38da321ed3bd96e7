/* SPDX-License-Identifier: MIT */
/*
 * A figure: what several measurements of the same thing say, and the line of CSV that keeps it,
 *
 *     date,machine,commit,allocator,pattern,unit,median,fastest,slowest
 *
 * The first three are one text, `origin`, that whoever starts the program knows (origin.sh);
 * without it lines begin with the allocator.
 */
#ifndef BENCH_FIGURE_H
#define BENCH_FIGURE_H

#include <stddef.h>
#include <stdio.h>

struct bench_figure {
    double median;
    double fastest; /* the smallest; of bytes as of nanoseconds */
    double slowest;
};

/* Nanoseconds from some moment on. */
double bench_now_ns(void);

/* Sorts `values`; count >= 1. */
struct bench_figure bench_figure_of(double *values, size_t count);

/* A figure that was taken once. */
struct bench_figure bench_figure_once(double value);

/* Writes the line and flushes, so that nothing is lost if the program is stopped. `origin` may be
 * NULL. */
void bench_figure_print(FILE *out, const char *origin, const char *allocator, const char *pattern,
                        const char *unit, const struct bench_figure *figure);

/* calloc, or a message and the end of the program. Caller frees. */
void *bench_must_alloc(size_t count, size_t size);

#endif
