/* SPDX-License-Identifier: MIT */
/*
 * Host memory for the library's own records, through the hooks of tarn/host.h, with counters and
 * fault injection. All memory of the library comes from here, so that a test can make the N-th
 * allocation fail and check that nothing leaks.
 *
 * Owns: the counters and the failure plan (atomics). Thread-safe. Cost: malloc plus two relaxed
 * atomic additions.
 */
#ifndef TN_BASE_HOST_MEM_H
#define TN_BASE_HOST_MEM_H

#include "base/attr.h"

#include <stddef.h>

/* Uninitialised memory or NULL; size 0 gives NULL. Aligned to 64 bytes when size >= 64, otherwise
 * suitably for any type. Caller owns, free with tn_host_free and the same size. */
void *tn_host_alloc(size_t size) TN_MUST_CHECK;

/* Aligned to `alignment`, a power of two of at most 1 MiB. Free with tn_host_free. */
void *tn_host_alloc_aligned(size_t size, size_t alignment) TN_MUST_CHECK;

/* tn_host_alloc with every byte 0. */
void *tn_host_alloc_zero(size_t size) TN_MUST_CHECK;

/* memory may be NULL. */
void tn_host_free(void *memory, size_t size);

/* Grows or shrinks, keeping the contents up to the smaller size. On failure returns NULL and leaves
 * `memory` unchanged. */
void *tn_host_resize(void *memory, size_t old_size, size_t new_size) TN_MUST_CHECK;

/* Copy of a NUL-terminated string or NULL; free with tn_host_free(copy, strlen(copy) + 1). */
char *tn_host_strdup(const char *text) TN_MUST_CHECK;

/* NULL allowed. */
void tn_host_strfree(char *text);

/* For zlib's `zalloc` and `zfree`: a piece carries its size, as zlib frees without one. */
void *tn_host_zlib_alloc(void *context, unsigned count, unsigned size);
void tn_host_zlib_free(void *context, void *memory);

#endif
