/* SPDX-License-Identifier: MIT */
/*
 * The allocation functions of a shared object, and the kind of allocator that is created: libtarn's
 * own, or one over the functions that tarn_pluggable_set_current made current.
 *
 * Locks: tn_fork_hold guards which is current, and the number of allocators created since.
 */
#ifndef TN_ALLOC_ENGINE_PLUGGABLE_H
#define TN_ALLOC_ENGINE_PLUGGABLE_H

#include "tarn/pluggable.h"

/* Constant while an allocator uses it. */
struct tarn_pluggable {
    void *library;
    void *(*alloc)(size_t size, int device, void *stream);
    void (*free)(void *memory, size_t size, int device, void *stream);
    void (*reset)(void); /* this and those below may be NULL */
    void (*memory_fraction)(double fraction, int device);
    void *(*base_alloc)(void *memory, size_t *size);
    void (*record_stream)(void *memory, void *stream);
};

/* The current one, NULL for libtarn's own. Counts an allocator until tn_current_release. */
const struct tarn_pluggable *tn_current_acquire(void);
void tn_current_release(void);

/* An allocator of that kind. */
enum tarn_status tn_pluggable_create(const struct tarn_pluggable *pluggable,
                                     struct tarn_device *device,
                                     struct tarn_allocator **allocator_out) TARN_MUST_CHECK;

#endif
