/* SPDX-License-Identifier: MIT */
/* What the test's shared object exports, and what it notes. Threads use it without a lock: only the
 * counters are read then. */
#ifndef TESTS_SUPPORT_PLUGGABLE_LIBRARY_H
#define TESTS_SUPPORT_PLUGGABLE_LIBRARY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct pluggable_log {
    _Atomic int allocs;
    _Atomic int frees;
    _Atomic int resets;
    _Atomic size_t size; /* of the last call, as the next three */
    _Atomic int device;
    void *_Atomic stream;
    void *_Atomic last;
    void *recorded;
    double fraction;
    bool full;   /* in: there is no memory */
    bool repeat; /* in: the last address is handed out again */
};

#define EXPORT __attribute__((visibility("default")))

EXPORT struct pluggable_log *library_log(void);
EXPORT void *library_alloc(size_t size, int device, void *stream);
EXPORT void library_free(void *memory, size_t size, int device, void *stream);
EXPORT void library_reset(void);
EXPORT void library_fraction(double fraction, int device);
EXPORT void *library_base(void *memory, size_t *size);
EXPORT void library_record(void *memory, void *stream);

#endif
