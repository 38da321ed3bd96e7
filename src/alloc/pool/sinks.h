/* SPDX-License-Identifier: MIT */
/*
 * The receivers of a heap's events. A sink has a slot in heap->sinks until it is removed, so that
 * the one that captures stacks can be read without the lock. While no sink is on, sink_count is 0
 * and level is TARN_CONTEXT_NEVER, and nothing else is read.
 *
 * All of this under the heap's lock with everything flushed (TN_FLUSH_ALL): the fast path sends
 * events for what it serves, so receivers may change only while it keeps nothing.
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
