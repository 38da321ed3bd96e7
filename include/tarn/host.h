/* SPDX-License-Identifier: MIT */
/*
 * Where the library gets host memory for its own records. By default malloc and free. Hooks are
 * process-wide and may be changed only while no object of the library exists.
 */
#ifndef TARN_HOST_H
#define TARN_HOST_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `alloc` returns memory at a multiple of `alignment` (a power of two), or NULL. `release` gets the
 * size that was asked for. Both are called from any thread and must not call back into the
 * library. */
struct tarn_host_hooks {
    uint32_t struct_size; /* sizeof(struct tarn_host_hooks) */
    void *(*alloc)(void *context, size_t size, size_t alignment);
    void (*release)(void *context, void *memory, size_t size);
    void *context;
};

struct tarn_host_usage {
    uint64_t live_bytes;  /* handed out and not yet given back */
    uint64_t live_count;  /* pieces of memory */
    uint64_t alloc_calls; /* since the process began, failed ones included */
};

/* NULL restores malloc and free. Fails with TARN_ERR_STATE while host memory is in use. */
TARN_API enum tarn_status tarn_host_set_hooks(const struct tarn_host_hooks *hooks) TARN_MUST_CHECK;

/* Any thread; the three numbers are read one after the other. */
TARN_API struct tarn_host_usage tarn_host_usage(void);

/* Testing: the n-th host allocation from now on fails, once (n >= 1); 0 clears the plan. */
TARN_API void tarn_host_fail_nth(uint64_t n);

#ifdef __cplusplus
}
#endif

#endif
