/* SPDX-License-Identifier: MIT */
/*
 * Functions of a shared object that allocate, and which kind of allocator is made: libtarn's own,
 * or the current one of tarn_change_current_allocator.
 *
 * Locks: one of rank TN_LOCK_REGISTRY guards which is current, and how many allocators there are
 * that were made while it was.
 */
#ifndef TN_ALLOC_ENGINE_PLUGGABLE_H
#define TN_ALLOC_ENGINE_PLUGGABLE_H

#include "tarn/pluggable.h"

/* Constant while an allocator uses it. */
struct tarn_pluggable {
    void *library;
    void *(*alloc)(size_t size, int device, void *stream);
    void (*free)(void *memory, size_t size, int device, void *stream);
    void (*reset)(void); /* NULL where there is none, as below */
    void (*memory_fraction)(double fraction, int device);
    void *(*base_alloc)(void *memory, size_t *size);
    void (*record_stream)(void *memory, void *stream);
};

/* The current one, NULL for libtarn's own; one allocator more is there until the second call. */
const struct tarn_pluggable *tn_current_acquire(void);
void tn_current_release(void);

/* An allocator of that kind. */
enum tarn_status tn_pluggable_create(const struct tarn_pluggable *pluggable,
                                     struct tarn_device *device,
                                     struct tarn_allocator **allocator_out) TARN_MUST_CHECK;

#endif
