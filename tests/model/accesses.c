/* SPDX-License-Identifier: MIT */
/*
 * The functions that code compiled with -fsanitize=thread calls, in place of the sanitizer's. Plain
 * memory is of no interest, and an operation that no model has ends the program.
 */
#include "model/accesses.h"

#include <stdlib.h>
#include <string.h>

#define PLAIN_ACCESS() (void)0
#include "support/tsan_plain.def"

uint64_t memory_read(const volatile void *at, unsigned bytes)
{
    return bytes == sizeof(uint64_t) ? *(const volatile uint64_t *)at
                                     : *(const volatile uint32_t *)at;
}

void memory_write(volatile void *at, unsigned bytes, uint64_t value)
{
    if (bytes == sizeof(uint64_t)) {
        *(volatile uint64_t *)at = value;
    } else {
        *(volatile uint32_t *)at = (uint32_t)value;
    }
}

#define ATOMIC(bits, type)                                                                         \
    type __tsan_atomic##bits##_load(const volatile type *at, int order)                            \
    {                                                                                              \
        return (type)access_load(at, sizeof(type), order);                                         \
    }                                                                                              \
    void __tsan_atomic##bits##_store(volatile type *at, type value, int order)                     \
    {                                                                                              \
        access_store(at, sizeof(type), value, order);                                              \
    }                                                                                              \
    type __tsan_atomic##bits##_exchange(volatile type *at, type value, int order)                  \
    {                                                                                              \
        return (type)access_exchange(at, sizeof(type), value, order);                              \
    }

ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

void __tsan_atomic_thread_fence(int order)
{
    access_fence(order);
}
