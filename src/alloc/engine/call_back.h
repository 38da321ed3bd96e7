/* SPDX-License-Identifier: MIT */
/*
 * Whose functions this thread is inside of: a memory callback or an observer that asks the
 * allocator for memory, which runs out again, would be called again, until the stack ends. What is
 * noted is a list on the stack, one entry a call, so that two allocators whose callbacks ask each
 * other are found as well. Only looked at when no free block fits. Cost: O(calls inside each
 * other).
 */
#ifndef TN_ALLOC_ENGINE_CALL_BACK_H
#define TN_ALLOC_ENGINE_CALL_BACK_H

#include <stdbool.h>

struct tn_engine;

enum tn_call_back_kind {
    TN_CALL_MEMORY_CALLBACK,
    TN_CALL_OOM_OBSERVER
};

struct tn_call_back {
    const struct tn_engine *engine;
    enum tn_call_back_kind kind;
    struct tn_call_back *outer;
};

/* Around the calls; on the same thread, and ended in the reverse order. */
void tn_call_back_begin(struct tn_call_back *call, const struct tn_engine *engine,
                        enum tn_call_back_kind kind);
void tn_call_back_end(const struct tn_call_back *call);

/* Whether this thread is inside of such a function of that allocator. */
bool tn_call_back_is_inside(const struct tn_engine *engine, enum tn_call_back_kind kind);

#endif
