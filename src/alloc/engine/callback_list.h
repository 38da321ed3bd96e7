/* SPDX-License-Identifier: MIT */
/*
 * Functions of the user that an engine calls, of one kind, with their contexts, in the order in
 * which they were added. Whoever calls them copies the list under the engine's lock first and calls
 * without the lock, so that they may be added and removed meanwhile. Types of functions are erased:
 * the owner of a list casts back to the one it stores. Guarded by the engine's lock.
 */
#ifndef TN_ALLOC_ENGINE_CALLBACK_LIST_H
#define TN_ALLOC_ENGINE_CALLBACK_LIST_H

#include "tarn/allocator.h"

typedef void (*tn_any_function)(void);

struct tn_callback {
    tn_any_function call;
    void *context;
};

struct tn_callback_list {
    struct tn_callback items[TARN_OBSERVERS_MAX];
    unsigned count;
};

/* TARN_ERR_INVALID_ARGUMENT for NULL, TARN_ERR_LIMIT when the list is full. */
enum tarn_status tn_callback_add(struct tn_callback_list *list, tn_any_function call,
                                 void *context);

/* Removes the most recent one with this function and context; TARN_ERR_NOT_FOUND when there is
 * none. */
enum tarn_status tn_callback_remove(struct tn_callback_list *list, tn_any_function call,
                                    const void *context);

#endif
