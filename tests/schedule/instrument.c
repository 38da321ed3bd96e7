/* SPDX-License-Identifier: MIT */
/*
 * The functions that code compiled with -fsanitize=thread calls, in place of the sanitizer's: each
 * access is a point of the scheduler, and then what it says. The names and signatures are the
 * compiler's (gcc: gcc/sanitizer.def; clang: ThreadSanitizer.cpp).
 */
#include "schedule/schedule.h"

#include <stdatomic.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define HERE ((uintptr_t)__builtin_return_address(0))

void __tsan_init(void);
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

/* ---- plain memory ---- */

#define PLAIN(name)                                                                                \
    void name(void *address)                                                                       \
    {                                                                                              \
        (void)address;                                                                             \
        schedule_point(false, HERE);                                                               \
    }
#define PLAIN_SIZES(size)                                                                          \
    PLAIN(__tsan_read##size)                                                                       \
    PLAIN(__tsan_write##size)                                                                      \
    PLAIN(__tsan_unaligned_read##size)                                                             \
    PLAIN(__tsan_unaligned_write##size)                                                            \
    PLAIN(__tsan_volatile_read##size)                                                              \
    PLAIN(__tsan_volatile_write##size)

PLAIN_SIZES(1)
PLAIN_SIZES(2)
PLAIN_SIZES(4)
PLAIN_SIZES(8)
PLAIN_SIZES(16)

void __tsan_read_range(void *address, unsigned long size)
{
    (void)address;
    (void)size;
    schedule_point(false, HERE);
}

void __tsan_write_range(void *address, unsigned long size)
{
    (void)address;
    (void)size;
    schedule_point(false, HERE);
}

/* ---- atomic operations ---- */

#define ATOMIC(bits, type)                                                                         \
    type __tsan_atomic##bits##_load(const volatile type *at, int order)                            \
    {                                                                                              \
        (void)order;                                                                               \
        schedule_point(true, HERE);                                                                \
        return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                              \
    }                                                                                              \
    void __tsan_atomic##bits##_store(volatile type *at, type value, int order)                     \
    {                                                                                              \
        (void)order;                                                                               \
        schedule_point(true, HERE);                                                                \
        __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                             \
    }                                                                                              \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile type *at, type *expected,           \
                                                      type value, int order, int failed)           \
    {                                                                                              \
        (void)order;                                                                               \
        (void)failed;                                                                              \
        schedule_point(true, HERE);                                                                \
        return __atomic_compare_exchange_n(at, expected, value, 0, __ATOMIC_SEQ_CST,               \
                                           __ATOMIC_SEQ_CST);                                      \
    }                                                                                              \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile type *at, type *expected, type value, \
                                                    int order, int failed)                         \
    {                                                                                              \
        return __tsan_atomic##bits##_compare_exchange_strong(at, expected, value, order, failed);  \
    }                                                                                              \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type *at, type expected, type value,  \
                                                    int order, int failed)                         \
    {                                                                                              \
        (void)__tsan_atomic##bits##_compare_exchange_strong(at, &expected, value, order, failed);  \
        return expected;                                                                           \
    }                                                                                              \
    ATOMIC_CHANGE(bits, type, exchange, __atomic_exchange_n)                                       \
    ATOMIC_CHANGE(bits, type, fetch_add, __atomic_fetch_add)                                       \
    ATOMIC_CHANGE(bits, type, fetch_sub, __atomic_fetch_sub)                                       \
    ATOMIC_CHANGE(bits, type, fetch_and, __atomic_fetch_and)                                       \
    ATOMIC_CHANGE(bits, type, fetch_or, __atomic_fetch_or)                                         \
    ATOMIC_CHANGE(bits, type, fetch_xor, __atomic_fetch_xor)

#define ATOMIC_CHANGE(bits, type, name, operation)                                                 \
    type __tsan_atomic##bits##_##name(volatile type *at, type value, int order)                    \
    {                                                                                              \
        (void)order;                                                                               \
        schedule_point(true, HERE);                                                                \
        return operation(at, value, __ATOMIC_SEQ_CST);                                             \
    }

ATOMIC(8, unsigned char)
ATOMIC(16, unsigned short)
ATOMIC(32, unsigned)
ATOMIC(64, unsigned long)

void __tsan_atomic_thread_fence(int order)
{
    (void)order;
    schedule_point(true, HERE);
}

void __tsan_atomic_signal_fence(int order)
{
    (void)order;
}
