/* SPDX-License-Identifier: MIT */
#include "base/ticks.h"

#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>

#define LEAF_POWER    0x80000007u /* of cpuid */
#define INVARIANT_TSC 0x100u      /* in edx */

bool tn_ticks_are_counted(void)
{
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;

    (void)__get_cpuid(LEAF_POWER, &a, &b, &c, &d); /* changes nothing where there is no such leaf */
    return (d & INVARIANT_TSC) != 0;
}
#elif defined(__aarch64__)
bool tn_ticks_are_counted(void)
{
    return true;
}
#else
bool tn_ticks_are_counted(void)
{
    return false;
}
#endif

static int64_t epoch_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Takes the closest pair of readings out of several tries, because the thread may be preempted in
 * between. */
struct tn_tick_origin tn_tick_origin(bool counted)
{
    enum {
        TRIES = 5
    };
    struct tn_tick_origin best = {.counted = counted};
    uint64_t closest = UINT64_MAX;

    for (int i = 0; i < TRIES; i++) {
        const uint64_t before = tn_ticks_now(counted);
        const uint64_t clock_ns = tn_clock_now_ns();
        const int64_t epoch_ns = epoch_now_ns();
        const uint64_t took = tn_ticks_now(counted) - before;

        if (took < closest) {
            closest = took;
            best.ticks = before + took / 2;
            best.clock_ns = clock_ns;
            best.epoch_ns = epoch_ns;
        }
    }
    return best;
}

double tn_tick_length(const struct tn_tick_origin *from, const struct tn_tick_origin *to)
{
    if (!from->counted || to->ticks <= from->ticks) {
        return 1.0;
    }
    return (double)(to->clock_ns - from->clock_ns) / (double)(to->ticks - from->ticks);
}

int64_t tn_tick_time_us(const struct tn_tick_origin *origin, double length, uint64_t ticks)
{
    const double since =
        (double)(int64_t)(ticks - origin->ticks) * length; /* ns, may be negative */

    return (origin->epoch_ns + (int64_t)since) / 1000;
}
