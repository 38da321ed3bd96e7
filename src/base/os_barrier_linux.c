/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* syscall */
#include "base/os_barrier.h"

#include "base/assertion.h"

#include <linux/membarrier.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

enum barrier_state {
    BARRIER_UNASKED,
    BARRIER_MISSING,
    BARRIER_PRESENT
};

static bool membarrier_call(int command)
{
    return syscall(SYS_membarrier, command, 0, 0) == 0;
}

bool tn_os_barrier_available(void)
{
    static _Atomic int state = BARRIER_UNASKED;
    int known = atomic_load_explicit(&state, memory_order_relaxed);

    if (known == BARRIER_UNASKED) { /* racing threads get the same answer */
        known = membarrier_call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) ? BARRIER_PRESENT
                                                                           : BARRIER_MISSING;
        atomic_store_explicit(&state, known, memory_order_relaxed);
    }
    return known == BARRIER_PRESENT;
}

void tn_os_barrier(void)
{
    /* The slower command needs no registration, which a fork may have lost. */
    if (!membarrier_call(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) {
        const bool done = membarrier_call(MEMBARRIER_CMD_GLOBAL);

        tn_assert(done);
        (void)done;
    }
}
