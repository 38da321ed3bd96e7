/* SPDX-License-Identifier: MIT */
/*
 * schedules [--seeds N] [--from SEED] [--workload NAME]
 *
 * Runs N schedules of each workload, or of the one named, from SEED on. Exit code 1 if one fails.
 */
#define _GNU_SOURCE /* personality */
#include "schedule/explore.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

static const struct workload *const workloads[] = {
    &workload_lock,    &workload_biased_lock, &workload_allocator, &workload_stream_caches,
    &workload_sinks,   &workload_pinned,      &workload_page,      &workload_devices,
    &workload_async,   &workload_sleep,       &workload_failures,  &workload_snapshots,
    &workload_tracker,
};

enum {
    WORKLOADS = sizeof workloads / sizeof workloads[0],
    SEEDS = 1000 /* of each */
};

struct options {
    uint64_t seeds;
    uint64_t from;
    const char *workload; /* NULL: all */
};

/* Addresses must not differ from run to run, because they order and hash some things. */
static void fix_addresses(char **arguments)
{
    const int now = personality(0xffffffff);

    if (now != -1 && !(now & ADDR_NO_RANDOMIZE) &&
        personality((unsigned)now | ADDR_NO_RANDOMIZE) != -1) {
        (void)execv("/proc/self/exe", arguments);
    }
}

static bool read_options(int count, char **arguments, struct options *options)
{
    *options = (struct options){.seeds = SEEDS, .from = 1};
    for (int i = 1; i < count; i += 2) {
        const char *value = i + 1 < count ? arguments[i + 1] : NULL;

        if (!value) {
            return false;
        }
        if (strcmp(arguments[i], "--seeds") == 0) {
            options->seeds = strtoull(value, NULL, 10);
        } else if (strcmp(arguments[i], "--from") == 0) {
            options->from = strtoull(value, NULL, 10);
        } else if (strcmp(arguments[i], "--workload") == 0) {
            options->workload = value;
        } else {
            return false;
        }
    }
    return true;
}

/* The same seed, the same switches: otherwise no failure could be found again. */
static bool is_repeatable(const struct workload *workload, uint64_t seed)
{
    uint64_t once = 0;
    uint64_t again = 0;

    (void)explore_one(workload, seed, &once);
    (void)explore_one(workload, seed, &again);
    if (once != again) {
        printf("FAIL %s, seed %" PRIu64 ": another schedule the second time\n", workload->name,
               seed);
    }
    return once == again;
}

int main(int count, char **arguments)
{
    struct options options;
    unsigned passed = 0;
    unsigned failed = 0;

    if (!read_options(count, arguments, &options)) {
        (void)fprintf(stderr, "usage: schedules [--seeds N] [--from SEED] [--workload NAME]\n");
        return 2;
    }
    fix_addresses(arguments);
    for (unsigned i = 0; i < WORKLOADS; i++) {
        if (options.workload && strcmp(options.workload, workloads[i]->name) != 0) {
            continue;
        }
        const bool well = explore(workloads[i], options.from, options.seeds) &&
                          is_repeatable(workloads[i], options.from);

        passed += well;
        failed += !well;
        printf("%s %s: %" PRIu64 " schedules from seed %" PRIu64 "\n", well ? "ok" : "not ok",
               workloads[i]->name, options.seeds, options.from);
    }
    printf("%u passed, %u failed\n", passed, failed);
    return failed > 0 || passed == 0;
}
