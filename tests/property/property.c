/* SPDX-License-Identifier: MIT */
/*
 * property [--operations N] [--seed S] [--length N] [--walk-every N] [--threads N]: random programs
 * of N operations in all, run on the allocator and the reference allocator at once. One that does
 * not give the same on both is shrunk and printed as a C program. With threads: programs of so many
 * threads, merged into one history for the reference (merged.h); `length` is that of a thread's
 * part between two comparisons. Says on standard output what was done; exit status 1 when something
 * differed.
 */
#include "property/merged.h"
#include "property/shrink.h"

#include <stdlib.h>
#include <string.h>

struct settings {
    uint64_t operations;
    uint64_t seed;
    uint64_t length; /* operations of one program */
    uint64_t walk_every;
    uint64_t threads; /* 0: programs of one thread */
};

static bool settings_read(struct settings *settings, int count, char **argument)
{
    const struct {
        const char *name;
        uint64_t *value;
    } options[] = {{"--operations", &settings->operations},
                   {"--seed", &settings->seed},
                   {"--length", &settings->length},
                   {"--walk-every", &settings->walk_every},
                   {"--threads", &settings->threads}};
    const size_t option_count = sizeof options / sizeof options[0];

    for (int i = 1; i + 1 < count; i += 2) {
        size_t o = 0;

        while (o < option_count && strcmp(argument[i], options[o].name) != 0) {
            o++;
        }
        if (o == option_count) {
            return false;
        }
        *options[o].value = strtoull(argument[i + 1], NULL, 10);
    }
    return count % 2 == 1 && settings->length > 0 && settings->walk_every > 0 &&
           settings->threads <= MERGED_THREADS_MAX;
}

/* Returns how many operations were done. */
static uint64_t run_threads(const struct settings *settings, bool *passed_out)
{
    uint64_t done = 0;

    *passed_out = true;
    for (uint64_t seed = settings->seed; *passed_out && done < settings->operations; seed++) {
        const struct merged_settings merged = {.config = merged_config(seed),
                                               .threads = (unsigned)settings->threads,
                                               .seed = seed,
                                               .calls = settings->length,
                                               .rounds = 10};
        char text[MERGED_TEXT_MAX] = "";

        *passed_out = merged_run(&merged, text);
        if (!*passed_out) {
            (void)printf("seed %llu: %s\n", (unsigned long long)seed, text);
        }
        done += merged.calls * merged.threads * merged.rounds;
    }
    return done;
}

/* The same for programs of one thread. */
static uint64_t run_programs(const struct settings *settings, bool *passed_out)
{
    char text[PAIR_TEXT_MAX] = "";
    uint64_t done = 0;

    *passed_out = true;
    for (uint64_t seed = settings->seed; *passed_out && done < settings->operations; seed++) {
        struct program program = program_from_seed(seed, settings->length);

        *passed_out = shrink_passes(&program, (unsigned)settings->walk_every, false, text);
        if (!*passed_out) {
            (void)printf("seed %llu: %s\n", (unsigned long long)seed, text);
            shrink(&program, text);
            program_print(&program, text, stdout);
        }
        program_fini(&program);
        done += settings->length;
    }
    return done;
}

int main(int count, char **argument)
{
    struct settings settings = {.operations = 200000, .seed = 1, .length = 2000, .walk_every = 16};
    bool passed;

    if (!settings_read(&settings, count, argument)) {
        (void)fprintf(stderr, "usage: property [--operations N] [--seed S] [--length N] "
                              "[--walk-every N] [--threads N]\n");
        return 2;
    }
    const uint64_t done =
        settings.threads > 0 ? run_threads(&settings, &passed) : run_programs(&settings, &passed);

    (void)printf("%llu operations, %s\n", (unsigned long long)done,
                 passed ? "no difference" : "the last program differs");
    return passed ? 0 : 1;
}
