/* SPDX-License-Identifier: MIT */
/*
 * property [--operations N] [--seed S] [--length N] [--walk-every N]: random programs of N
 * operations in all, run on the allocator and the reference allocator at once. One that does not
 * give the same on both is shrunk and printed as a C program. Says on standard output what was
 * done; exit status 1 when something differed.
 */
#include "property/shrink.h"

#include <stdlib.h>
#include <string.h>

struct settings {
    uint64_t operations;
    uint64_t seed;
    uint64_t length; /* operations of one program */
    uint64_t walk_every;
};

static bool settings_read(struct settings *settings, int count, char **argument)
{
    const struct {
        const char *name;
        uint64_t *value;
    } options[] = {{"--operations", &settings->operations},
                   {"--seed", &settings->seed},
                   {"--length", &settings->length},
                   {"--walk-every", &settings->walk_every}};

    for (int i = 1; i + 1 < count; i += 2) {
        size_t o = 0;

        while (o < 4 && strcmp(argument[i], options[o].name) != 0) {
            o++;
        }
        if (o == 4) {
            return false;
        }
        *options[o].value = strtoull(argument[i + 1], NULL, 10);
    }
    return count % 2 == 1 && settings->length > 0 && settings->walk_every > 0;
}

int main(int count, char **argument)
{
    struct settings settings = {200000, 1, 2000, 16};
    char text[PAIR_TEXT_MAX] = "";
    uint64_t done = 0;
    bool passed = true;

    if (!settings_read(&settings, count, argument)) {
        (void)fprintf(stderr, "usage: property [--operations N] [--seed S] [--length N] "
                              "[--walk-every N]\n");
        return 2;
    }
    for (; passed && done < settings.operations; done += settings.length, settings.seed++) {
        struct program program = program_from_seed(settings.seed, settings.length);

        passed = shrink_passes(&program, (unsigned)settings.walk_every, false, text);
        if (!passed) {
            (void)printf("seed %llu: %s\n", (unsigned long long)settings.seed, text);
            shrink(&program, text);
            program_print(&program, text, stdout);
        }
        program_fini(&program);
    }
    (void)printf("%llu operations, %s\n", (unsigned long long)done,
                 passed ? "no difference" : "the last program differs");
    return passed ? 0 : 1;
}
