/* SPDX-License-Identifier: MIT */
#include "plug/pytorch/locks.h"

#include <string.h>

static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

pthread_mutex_t tn_torch_locks[TN_TORCH_LOCK_COUNT] = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

void tn_torch_locks_renew(void)
{
    for (int i = 0; i < TN_TORCH_LOCK_COUNT; i++) {
        memcpy(&tn_torch_locks[i], &fresh, sizeof fresh);
    }
}
