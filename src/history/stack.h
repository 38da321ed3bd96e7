/* SPDX-License-Identifier: MIT */
/*
 * The calling thread's return addresses, innermost first. Those of this library at the beginning
 * are left out, if it is a library of its own: callers want to know who called it.
 *
 * By frame pointers: follows the chain of saved frame pointers, reads only the thread's own stack
 * between here and its end, and accepts only addresses in modules' code. So a chain broken by code
 * without frame pointers ends early, rarely yields a wrong function, and never faults. A thread
 * that runs on a different stack (a coroutine) gets one frame.
 *
 * By unwinding: needs no frame pointers. By libunwind, 5 ns per frame, once tn_libunwind_load has
 * found it and while it can be trusted (libunwind.h); else by the compiler's unwinder, which reads
 * tables of every module on the way, 120 ns per frame.
 *
 * Neither takes locks or memory of this library. Cost by frame pointers: 2 ns per frame.
 */
#ifndef TN_HISTORY_STACK_H
#define TN_HISTORY_STACK_H

#include "base/attr.h"

#include <stddef.h>
#include <stdint.h>

/* Writes at most `max` addresses, of TARN_STACK_FRAMES_MAX at most; returns their number and mixes
 * them into *hash_io. */
size_t tn_stack_walk(uint64_t *addresses, size_t max, uint64_t *hash_io);
size_t tn_stack_unwind(uint64_t *addresses, size_t max, uint64_t *hash_io);

static inline uint64_t tn_stack_hash(uint64_t hash, uint64_t word)
{
    const uint64_t mixed = (hash ^ word) * 0x9e3779b97f4a7c15u;

    return mixed ^ mixed >> 29;
}

#endif
