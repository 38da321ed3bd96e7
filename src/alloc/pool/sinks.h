/* SPDX-License-Identifier: MIT */
/*
 * Who receives an engine's events. A sink has a place in heap->sinks until it is removed, so that
 * the one that captures stacks can be read without the lock. While no sink is on, sink_count is 0
 * and level is TARN_CONTEXT_NEVER: nothing else is looked at.
 *
 * All of this under the engine's lock with every trail forgotten (tn_engine_lock): what a trail
 * does is told to those who listen, so they may change only between two trails.
 */
#ifndef TN_ALLOC_POOL_SINKS_H
#define TN_ALLOC_POOL_SINKS_H

#include "alloc/pool/heap.h"

/* As the public functions of these names. */
enum tarn_status tn_sinks_add(struct tn_heap *heap, const struct tarn_sink *sink,
                              struct tarn_error *error) TN_MUST_CHECK;
enum tarn_status tn_sinks_set(struct tn_heap *heap, const void *context, bool on,
                              enum tarn_context_level level,
                              struct tarn_error *error) TN_MUST_CHECK;
enum tarn_status tn_sinks_remove(struct tn_heap *heap, const void *context,
                                 struct tarn_error *error) TN_MUST_CHECK;

#endif
