/* SPDX-License-Identifier: MIT */
#include "figure.h"

#include <stdlib.h>
#include <time.h>

double bench_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

struct bench_figure bench_figure_of(double *values, size_t count)
{
    qsort(values, count, sizeof values[0], compare_doubles);
    return (struct bench_figure){
        .median = values[count / 2], .fastest = values[0], .slowest = values[count - 1]};
}

struct bench_figure bench_figure_once(double value)
{
    return (struct bench_figure){.median = value, .fastest = value, .slowest = value};
}

void bench_figure_print(FILE *out, const char *origin, const char *allocator, const char *pattern,
                        const char *unit, const struct bench_figure *figure)
{
    (void)fprintf(out, "%s%s%s,%s,%s,%.1f,%.1f,%.1f\n", origin ? origin : "", origin ? "," : "",
                  allocator, pattern, unit, figure->median, figure->fastest, figure->slowest);
    (void)fflush(out);
}

void *bench_must_alloc(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    if (!memory) {
        (void)fprintf(stderr, "bench: no host memory\n");
        exit(1);
    }
    return memory;
}
