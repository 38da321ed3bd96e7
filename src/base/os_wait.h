/* SPDX-License-Identifier: MIT */
/* Sleeping until a word of memory changes: the slow path of locks. */
#ifndef TN_BASE_OS_WAIT_H
#define TN_BASE_OS_WAIT_H

#include <stdatomic.h>
#include <stdint.h>

/* Sleeps while *word == expected; may return early. */
void tn_os_wait(_Atomic uint32_t *word, uint32_t expected);

/* Wakes one thread that sleeps on the word. */
void tn_os_wake_one(_Atomic uint32_t *word);

/* Sleeps briefly: tens of microseconds for the first nap, up to a millisecond for later ones. */
void tn_os_nap(unsigned nap);

/* Tells the processor that this is a spin loop. */
#ifdef TN_SCHEDULED /* tests/schedule */
void tn_os_relax(void);
#else
static inline void tn_os_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}
#endif

#endif
