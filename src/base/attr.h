/* SPDX-License-Identifier: MIT */
/* Compiler attributes, in one place. */
#ifndef TN_BASE_ATTR_H
#define TN_BASE_ATTR_H

/* No stack protector, for functions on the fast path whose only addressable locals have a fixed
 * size and are always written whole: they cannot overflow, and the guard costs 3 % of an
 * allocation. */
#if defined(__has_attribute)
#if __has_attribute(no_stack_protector)
#define TN_NO_STACK_GUARD __attribute__((no_stack_protector))
#endif
#endif
#ifndef TN_NO_STACK_GUARD
#define TN_NO_STACK_GUARD
#endif

/* For the memory sanitizer: a library that it does not see into has written these bytes. */
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
#define tn_written_outside(p, size) __msan_unpoison((p), (size))
#endif
#endif
#ifndef tn_written_outside
#define tn_written_outside(p, size) ((void)0)
#endif

#define tn_likely(x)       __builtin_expect(!!(x), 1)
#define tn_unlikely(x)     __builtin_expect(!!(x), 0)
#define TN_PRINTF(fmt, at) __attribute__((format(printf, fmt, at)))
#define TN_NORETURN        _Noreturn
#define TN_NOINLINE        __attribute__((noinline))
#define TN_INLINE          inline __attribute__((always_inline)) /* part of a fast path */
#define TN_COLD            __attribute__((cold, noinline))
#define TN_MUST_CHECK      __attribute__((warn_unused_result))
#define tn_prefetch(p)     __builtin_prefetch(p) /* NULL is harmless */
#define TN_CACHE_LINE      64

#endif
