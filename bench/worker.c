/* SPDX-License-Identifier: MIT */
#include "worker.h"

#include <stdio.h>
#include <stdlib.h>

int worker_serve(const struct bench_allocator *allocator)
{
    char line[80];

    (void)printf("ready%s%s\n", allocator->version ? " " : "",
                 allocator->version ? allocator->version : "");
    (void)fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        char *rest = line;
        const unsigned long pattern = strtoul(line, &rest, 10);
        const double scale = strtod(rest, NULL);

        if (pattern >= bench_pattern_count() || !(scale > 0)) {
            (void)fprintf(stderr, "%s: cannot run \"%s\"\n", allocator->name, line);
            return 1;
        }
        if (bench_pattern_has_situation(pattern) && !allocator->enter) {
            (void)printf("skip\n");
        } else {
            (void)printf("%.3f\n", bench_pattern_run(pattern, allocator, scale));
        }
        (void)fflush(stdout);
    }
    return 0;
}
