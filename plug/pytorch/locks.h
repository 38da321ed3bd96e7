/* SPDX-License-Identifier: MIT */
/*
 * Every lock of the plug, in one place: another thread may hold some while the process is forked,
 * and has no copy in the child that could release them. The child's first act makes them anew.
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

/* In a forked child, while it has one thread. */
void tn_torch_locks_renew(void);

#endif
