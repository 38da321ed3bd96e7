/* SPDX-License-Identifier: MIT */
/*
 * Allocators from a shared object: two functions found by name, as
 * torch.cuda.memory.CUDAPluggableAllocator has them.
 *
 *     void *my_alloc(size_t size, int device, cudaStream_t stream);
 *     void my_free(void *memory, size_t size, int device, cudaStream_t stream);
 *
 * Both are called from any thread, several at once, and without any lock of the library. `size` is
 * what the caller asked for, never 0; `my_free` gets the size, device and stream of the allocation.
 * What `my_alloc` returns must not be handed out already; NULL means that there is no memory.
 *
 * Such an allocator hands memory on as it comes: it counts allocations and their bytes, and what a
 * library has no function for fails with TARN_ERR_NOT_SUPPORTED. Only empty_cache, which then does
 * nothing, and base_allocation, which gives the block itself, need none.
 */
#ifndef TARN_PLUGGABLE_H
#define TARN_PLUGGABLE_H

#include "allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_pluggable;

/* Opens the shared object and finds both functions. It stays loaded until the process ends. Caller
 * owns *pluggable_out, close with tarn_pluggable_close. Any thread. TARN_ERR_NOT_FOUND when the
 * file cannot be loaded or has no function of that name, TARN_ERR_HOST_MEMORY; the text says which.
 */
TARN_API enum tarn_status tarn_pluggable_open(const char *path, const char *alloc_name,
                                              const char *free_name,
                                              struct tarn_pluggable **pluggable_out,
                                              struct tarn_error *error) TARN_MUST_CHECK;

/* Its allocators must have been destroyed. If it is the current one, libtarn's own allocators are
 * current again. NULL is allowed. */
TARN_API void tarn_pluggable_close(struct tarn_pluggable *pluggable);

/* What else a library may have: the setters of torch's _CUDAAllocator. */
enum tarn_pluggable_hook {
    TARN_PLUGGABLE_RESET,           /* void (void): empty_cache */
    TARN_PLUGGABLE_MEMORY_FRACTION, /* void (double fraction, int device) */
    TARN_PLUGGABLE_BASE_ALLOC,      /* void *(void *memory, size_t *size): base_allocation */
    TARN_PLUGGABLE_RECORD_STREAM,   /* void (void *memory, cudaStream_t stream) */
    TARN_PLUGGABLE_HOOKS
};

/* Uses the function of that name for it. Before the first allocator is made. TARN_ERR_NOT_FOUND
 * when there is none, TARN_ERR_INVALID_ARGUMENT for a hook that there is not. */
TARN_API enum tarn_status tarn_pluggable_set_hook(struct tarn_pluggable *pluggable,
                                                  enum tarn_pluggable_hook hook, const char *name,
                                                  struct tarn_error *error) TARN_MUST_CHECK;

/* An allocator that takes its memory from the library, for that device. Both are borrowed and must
 * outlive it. Caller owns *allocator_out, free with tarn_allocator_destroy, which frees what is
 * still handed out. TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_pluggable_create_allocator(const struct tarn_pluggable *pluggable,
                                                          struct tarn_device *device,
                                                          struct tarn_allocator **allocator_out,
                                                          struct tarn_error *error) TARN_MUST_CHECK;

/* torch.cuda.memory.change_current_allocator: from now on tarn_allocator_create and tarn_open make
 * allocators of this kind, whatever their settings; NULL: libtarn's own again. It is borrowed while
 * it is current. TARN_ERR_STATE while an allocator made by those two exists: what it has handed out
 * belongs to it. PyTorch has the same rule, and never forgets that it has begun. Any thread. */
TARN_API enum tarn_status tarn_change_current_allocator(const struct tarn_pluggable *pluggable,
                                                        struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
