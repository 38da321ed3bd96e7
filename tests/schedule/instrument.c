/* SPDX-License-Identifier: MIT */
/*
 * The functions that code compiled with -fsanitize=thread calls, in place of the sanitizer's: each
 * access is a point of the scheduler, and then what it says.
 */
#include "schedule/schedule.h"

#include <stdatomic.h>

#define HERE           ((uintptr_t)__builtin_return_address(0))
#define PLAIN_ACCESS() schedule_point(false, HERE)
#include "support/tsan_plain.def"

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
