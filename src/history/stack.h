/* SPDX-License-Identifier: MIT */
/*
 * The calling thread's return addresses, innermost first.
 *
 * By frame pointers: follows the chain of saved frame pointers and reads nothing but the thread's
 * own stack between here and its end, and takes only addresses in modules' code, so that a chain
 * that code without frame pointers broke ends early, seldom shows a wrong function, and never
 * faults. A thread that runs on another stack than its own (a coroutine) shows one frame.
 *
 * By unwinding: asks the compiler's unwinder, which needs no frame pointers, reads tables of every
 * module on the way and costs ten times as much.
 *
 * Neither takes a lock of this library nor its memory. Cost by frame pointers: 2 ns a frame.
 */
#ifndef TN_HISTORY_STACK_H
#define TN_HISTORY_STACK_H

#include "base/attr.h"

#include <stddef.h>
#include <stdint.h>

/* Writes at most `max` addresses; returns how many. *hash_io is mixed with them. */
size_t tn_stack_walk(uint64_t *addresses, size_t max, uint64_t *hash_io);
size_t tn_stack_unwind(uint64_t *addresses, size_t max, uint64_t *hash_io);

static inline uint64_t tn_stack_hash(uint64_t hash, uint64_t word)
{
    const uint64_t mixed = (hash ^ word) * 0x9e3779b97f4a7c15u;

    return mixed ^ mixed >> 29;
}

#endif
