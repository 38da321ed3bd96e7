/* SPDX-License-Identifier: MIT */
/*
 * Requests with options, tries that fail cheaply, and why a request would fail.
 *
 * A try takes what is free, or grows if it may, and gives up otherwise: it gives nothing back,
 * calls nobody, counts no failure, sends no event, writes no text and does not ask the device what
 * is free. tarn_alloc_explain makes the report when somebody wants it. Every function may be called
 * from any thread.
 */
#ifndef TARN_REQUEST_H
#define TARN_REQUEST_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_allocator;
struct tarn_oom;
struct tarn_pool;

/* How a request may be served; 0: as tarn_allocator_alloc does it. */
enum tarn_alloc_flags {
    TARN_ALLOC_TRY = 1,           /* from free blocks, or by growing within the limits */
    TARN_ALLOC_WITHIN_BUDGET = 2, /* a try that grows up to the soft limit only (pressure.h) */
    TARN_ALLOC_NEVER_GROW = 4     /* a try that takes free blocks only */
};

/* Allocates `size` bytes on `stream` if that is cheap; `flags` of enum tarn_alloc_flags, a try also
 * without any. TARN_ERR_OUT_OF_MEMORY when there is no free block and the device may not be asked
 * or has no memory. For a moment after the device refused, it is not asked again for as much, until
 * this allocator gives something back. The device is asked under the allocator's lock unless
 * release_lock_on_cudamalloc is set. Engines without a cache ask the device and fail as
 * tarn_allocator_alloc does; with TARN_ALLOC_NEVER_GROW they refuse everything. */
TARN_API enum tarn_status tarn_alloc_try(struct tarn_allocator *allocator, uint64_t size,
                                         tarn_stream stream, unsigned flags,
                                         tarn_ptr *ptr_out) TARN_MUST_CHECK;

/* The same from a pool. */
TARN_API enum tarn_status tarn_pool_alloc_try(struct tarn_pool *pool, uint64_t size,
                                              tarn_stream stream, unsigned flags,
                                              tarn_ptr *ptr_out) TARN_MUST_CHECK;

/* Zero bytes after struct_size are the defaults. */
struct tarn_alloc_options {
    uint32_t struct_size;   /* sizeof(struct tarn_alloc_options) */
    unsigned flags;         /* of enum tarn_alloc_flags */
    struct tarn_pool *pool; /* of this allocator; NULL = the default one */
    uint64_t alignment;     /* a power of two; 0 and up to 512: every address has it */
    const char *name;       /* user metadata of the block's ALLOC event: histories and snapshots
                               show it; NULL = that of the thread */
};

/* Allocates with options (NULL: none). A larger alignment needs as much more room while it searches
 * and returns the rest; TARN_ERR_NOT_SUPPORTED where the settings (max_split_size, no_split) forbid
 * to split the block found. TARN_ERR_INVALID_ARGUMENT for an alignment that is no power of two,
 * unknown flags and a pool of another allocator. */
TARN_API enum tarn_status tarn_alloc_with(struct tarn_allocator *allocator, uint64_t size,
                                          tarn_stream stream,
                                          const struct tarn_alloc_options *options,
                                          tarn_ptr *ptr_out,
                                          struct tarn_error *error) TARN_MUST_CHECK;

/* Writes into `error` what tarn_allocator_alloc would if such a request ran out of memory now, and
 * returns TARN_ERR_OUT_OF_MEMORY. Allocates, counts and sends nothing. Asks the device and the
 * driver about other processes, without the allocator's lock: milliseconds. */
TARN_API enum tarn_status tarn_alloc_explain(struct tarn_allocator *allocator, uint64_t size,
                                             tarn_stream stream, struct tarn_error *error);

/* Writes the text of an out-of-memory error in place of PyTorch's: at most `size` bytes with the
 * NUL. Called on the failing thread with no lock held. */
typedef void (*tarn_oom_writer)(void *context, const struct tarn_oom *oom, char *text, size_t size);

/* Replaces the text (NULL: PyTorch's again). Set it before other threads allocate. */
TARN_API enum tarn_status tarn_allocator_set_oom_writer(struct tarn_allocator *allocator,
                                                        tarn_oom_writer writer,
                                                        void *context) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
