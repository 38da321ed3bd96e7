/* SPDX-License-Identifier: MIT */
/*
 * Which callbacks this thread is inside. A memory callback or an observer whose own request runs
 * out of memory would be called again, and so on until the stack overflows. The calls form a list
 * on the stack, one entry per call, so that two allocators whose callbacks use each other are
 * detected, too. Read only when no free block fits. Cost: O(depth of nested calls).
 */
#ifndef TN_ALLOC_ENGINE_CALL_BACK_H
#define TN_ALLOC_ENGINE_CALL_BACK_H

#include <stdbool.h>

struct tn_engine;

enum tn_call_back_kind {
    TN_CALL_MEMORY_CALLBACK,
    TN_CALL_PRESSURE,
    TN_CALL_OOM_OBSERVER
};

struct tn_call_back {
    const struct tn_engine *engine;
    enum tn_call_back_kind kind;
    struct tn_call_back *outer;
};

/* Around the calls: on the same thread, and ended in reverse order. */
void tn_call_back_begin(struct tn_call_back *call, const struct tn_engine *engine,
                        enum tn_call_back_kind kind);
void tn_call_back_end(const struct tn_call_back *call);

/* Whether this thread is inside such a callback of that engine. */
bool tn_call_back_is_inside(const struct tn_engine *engine, enum tn_call_back_kind kind);

#endif
