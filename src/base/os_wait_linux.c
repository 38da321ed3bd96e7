/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* syscall */
#include "base/os_wait.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void tn_os_wait(_Atomic uint32_t *word, uint32_t expected)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

void tn_os_wake_one(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void tn_os_nap(unsigned nap)
{
    const unsigned steps = nap < 15 ? nap + 1 : 16;
    const struct timespec time = {.tv_nsec = (long)steps * 62500};

    (void)nanosleep(&time, NULL);
}
