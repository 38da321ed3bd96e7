/* SPDX-License-Identifier: MIT */
/*
 * All locks of the plug. At a fork another thread may hold some of them, and in the child no thread
 * could release them. So the child first reinitializes them.
 */
#ifndef PLUG_PYTORCH_LOCKS_H
#define PLUG_PYTORCH_LOCKS_H

#include <pthread.h>

enum tn_torch_lock {
    TN_TORCH_LOCK_DEVICES,
    TN_TORCH_LOCK_CXX,
    TN_TORCH_LOCK_NOTE,
    TN_TORCH_LOCK_METHODS,
    TN_TORCH_LOCK_OOM_FILE,
    TN_TORCH_LOCK_PY_FRAMES,
    TN_TORCH_LOCK_RECORD,
    TN_TORCH_LOCK_ROUTE,
    TN_TORCH_LOCK_COUNT
};

extern pthread_mutex_t tn_torch_locks[TN_TORCH_LOCK_COUNT];

/* Call in a forked child while it has one thread. */
void tn_torch_locks_renew(void);

#endif
