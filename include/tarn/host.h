/* SPDX-License-Identifier: MIT */
/*
 * Host memory for the library's own records. By default malloc and free. Hooks are process-wide and
 * may be changed only while no object of the library exists.
 */
#ifndef TARN_HOST_H
#define TARN_HOST_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `alloc` returns memory at a multiple of `alignment` (a power of two), or NULL. `release` receives
 * the requested size. Both are called from any thread and must not call back into the library. */
struct tarn_host_hooks {
    uint32_t struct_size; /* sizeof(struct tarn_host_hooks) */
    void *(*alloc)(void *context, size_t size, size_t alignment);
    void (*release)(void *context, void *memory, size_t size);
    void *context;
};

struct tarn_host_usage {
    uint64_t live_bytes;  /* allocated and not yet released */
    uint64_t live_count;  /* allocations */
    uint64_t alloc_calls; /* since the process started, failed ones included */
};

/* NULL restores malloc and free. Fails with TARN_ERR_STATE while host memory is allocated. */
TARN_API enum tarn_status tarn_host_set_hooks(const struct tarn_host_hooks *hooks) TARN_MUST_CHECK;

/* Any thread; the three numbers are not read atomically together. */
TARN_API struct tarn_host_usage tarn_host_get_usage(void);

/* For tests: the n-th host allocation from now on fails once (n >= 1); 0 cancels that. */
TARN_API void tarn_host_fail_nth(uint64_t n);

#ifdef __cplusplus
}
#endif

#endif
