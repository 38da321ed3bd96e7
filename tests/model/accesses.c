/* SPDX-License-Identifier: MIT */
/*
 * The functions that code compiled with -fsanitize=thread calls, in place of the sanitizer's. Plain
 * memory is of no interest, and an operation that no model has ends the program. The names and
 * signatures are the compiler's (as in tests/schedule/instrument.c).
 */
#include "model/accesses.h"

#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

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

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
    (void)caller;
}

void __tsan_func_exit(void)
{
}

#define PLAIN(name)                                                                                \
    void name(void *address)                                                                       \
    {                                                                                              \
        (void)address;                                                                             \
    }
#define PLAIN_SIZES(size)                                                                          \
    PLAIN(__tsan_read##size)                                                                       \
    PLAIN(__tsan_write##size)                                                                      \
    PLAIN(__tsan_unaligned_read##size)                                                             \
    PLAIN(__tsan_unaligned_write##size)

PLAIN_SIZES(1)
PLAIN_SIZES(2)
PLAIN_SIZES(4)
PLAIN_SIZES(8)
PLAIN_SIZES(16)

void __tsan_read_range(void *address, unsigned long size)
{
    (void)address;
    (void)size;
}

void __tsan_write_range(void *address, unsigned long size)
{
    (void)address;
    (void)size;
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

void __tsan_atomic_signal_fence(int order)
{
    (void)order;
}
