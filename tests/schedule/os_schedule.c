/* SPDX-License-Identifier: MIT */
/* What src/base asks of the system while threads wait for each other, on the scheduler, and a clock
 * by which no schedule differs from its repetition. */
#include "base/clock.h"
#include "base/os_barrier.h"
#include "base/os_wait.h"
#include "schedule/schedule.h"

#define HERE ((uintptr_t)__builtin_return_address(0))

uint64_t tn_clock_now_ns(void)
{
    enum {
        STEP_NS = 1000 /* from one question to the next */
    };
    static uint64_t now;

    return now += STEP_NS;
}

void tn_os_wait(_Atomic uint32_t *word, uint32_t expected)
{
    schedule_sleep(word, expected, HERE);
}

void tn_os_wake_one(_Atomic uint32_t *word)
{
    schedule_wake_one(word);
}

void tn_os_nap(unsigned nap)
{
    (void)nap;
    schedule_yield(HERE);
}

void tn_os_relax(void)
{
    schedule_yield(HERE);
}

bool tn_os_barrier_available(void)
{
    return true;
}

/* Threads run one after another, so that each sees what all before it have written. */
void tn_os_barrier(void)
{
    schedule_point(true, HERE);
}
