/* SPDX-License-Identifier: MIT */
/*
 * The receivers of a heap's events. A sink has a slot in heap->sinks until it is removed, so that
 * the one that captures stacks can be read without the lock. While no sink is on, sink_count is 0
 * and level is TARN_CONTEXT_NEVER, and nothing else is read.
 *
 * A stack is captured without the lock and stored or dropped under it, perhaps much later. So
 * heap->captures counts the calls in between, and a sink that captures leaves in two steps: it is
 * switched off, after which no capture begins, and leaves once the count is 0. A capture raises the
 * count and then reads the level; the first step stores the level and then reads the count (both
 * sequentially consistent): either the capture sees that the sink is off, or the removal sees the
 * capture.
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

/* Removal. The lock may be released between the first step and the last. */
enum tarn_status tn_sinks_begin_removal(struct tn_heap *heap, const void *context,
                                        struct tarn_error *error) TN_MUST_CHECK;
/* Whether the sinks may go now. */
bool tn_sinks_may_leave(const struct tn_heap *heap, const void *context);
void tn_sinks_end_removal(struct tn_heap *heap, const void *context);
/* They stay, switched off. */
void tn_sinks_cancel_removal(struct tn_heap *heap, const void *context);

/* From now on the sinks with that context make way for another one that captures. */
void tn_sinks_yield(struct tn_heap *heap, const void *context);
/* The context of a sink that captures and makes way; NULL if there is none. */
const void *tn_sinks_yielding(const struct tn_heap *heap);

#endif
