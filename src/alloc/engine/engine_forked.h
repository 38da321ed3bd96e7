/* SPDX-License-Identifier: MIT */
/*
 * What an allocator becomes in a forked child: its table is replaced by one whose every function
 * fails with TARN_ERR_STATE, or does nothing, and takes no lock. So the hot path of a process that
 * never forks pays nothing.
 *
 * What does not go through the table (memory of other processes, peers) checks tn_fork_passed.
 */
#ifndef TN_ALLOC_ENGINE_ENGINE_FORKED_H
#define TN_ALLOC_ENGINE_ENGINE_FORKED_H

#include "alloc/engine/allocator.h"

/* Registers a new allocator, so that a fork replaces its table. */
void tn_forked_watch(struct tarn_allocator *allocator);

#endif
