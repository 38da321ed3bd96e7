/* SPDX-License-Identifier: MIT */
/*
 * Allocators from a shared object: two functions found by name, as
 * torch.cuda.memory.CUDAPluggableAllocator has them.
 *
 *     void *my_alloc(size_t size, int device, cudaStream_t stream);
 *     void my_free(void *memory, size_t size, int device, cudaStream_t stream);
 *
 * Both are called from any thread, several at once, and without any lock of the library. `size` is
 * the requested size, never 0; `my_free` receives the size, device and stream of the allocation.
 * `my_alloc` must not return memory that is still allocated; NULL means out of memory.
 *
 * Such an allocator passes requests through and counts allocations and their bytes. Operations for
 * which the library has no function fail with TARN_ERR_NOT_SUPPORTED, except empty_cache, which
 * then does nothing, and base_allocation, which returns the block itself.
 */
#ifndef TARN_PLUGGABLE_H
#define TARN_PLUGGABLE_H

#include "allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_pluggable;

/* Loads the shared object and looks up both functions. It stays loaded until the process ends.
 * Caller owns *pluggable_out, close with tarn_pluggable_close. Any thread. TARN_ERR_NOT_FOUND when
 * the file cannot be loaded or has no function of that name, TARN_ERR_HOST_MEMORY; the text says
 * which.
 */
TARN_API enum tarn_status tarn_pluggable_open(const char *path, const char *alloc_name,
                                              const char *free_name,
                                              struct tarn_pluggable **pluggable_out,
                                              struct tarn_error *error) TARN_MUST_CHECK;

/* Its allocators must have been destroyed. If it is current, libtarn's own allocators become
 * current again. NULL is allowed. */
TARN_API void tarn_pluggable_close(struct tarn_pluggable *pluggable);

/* Optional functions of a library, those that torch's _CUDAAllocator has setters for. */
enum tarn_pluggable_hook {
    TARN_PLUGGABLE_RESET,           /* void (void): empty_cache */
    TARN_PLUGGABLE_MEMORY_FRACTION, /* void (double fraction, int device) */
    TARN_PLUGGABLE_BASE_ALLOC,      /* void *(void *memory, size_t *size): base_allocation */
    TARN_PLUGGABLE_RECORD_STREAM,   /* void (void *memory, cudaStream_t stream) */
    TARN_PLUGGABLE_HOOKS
};

/* Uses the function of that name as a hook. Call it before the first allocator is created.
 * TARN_ERR_NOT_FOUND when there is no such function, TARN_ERR_INVALID_ARGUMENT for an unknown
 * hook. */
TARN_API enum tarn_status tarn_pluggable_set_hook(struct tarn_pluggable *pluggable,
                                                  enum tarn_pluggable_hook hook, const char *name,
                                                  struct tarn_error *error) TARN_MUST_CHECK;

/* Creates an allocator for that device on top of the library. Both are borrowed and must outlive
 * it. Caller owns *allocator_out, free with tarn_allocator_destroy, which frees remaining
 * allocations. TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_pluggable_create_allocator(const struct tarn_pluggable *pluggable,
                                                          struct tarn_device *device,
                                                          struct tarn_allocator **allocator_out,
                                                          struct tarn_error *error) TARN_MUST_CHECK;

/* torch.cuda.memory.change_current_allocator: from now on tarn_allocator_create and
 * tarn_allocator_create_on create allocators of this kind, whatever their settings; NULL restores
 * libtarn's own. `pluggable` is borrowed while it is current. TARN_ERR_STATE while an allocator
 * created by those two exists, because it must free its own blocks. PyTorch has the same rule, but
 * never allows a change once its allocator has been used. Any thread. */
TARN_API enum tarn_status tarn_pluggable_set_current(const struct tarn_pluggable *pluggable,
                                                     struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
