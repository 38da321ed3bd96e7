/* SPDX-License-Identifier: MIT */
/*
 * What is known about one block and about sizes; the cache of one stream. Every function may be
 * called from any thread.
 */
#ifndef TARN_BLOCK_H
#define TARN_BLOCK_H

#include "graph_pool.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_allocator;

/* An allocated block. */
struct tarn_block {
    uint32_t struct_size; /* in: sizeof(struct tarn_block) */
    bool is_large;        /* of the pool for requests above 1 MiB */
    bool is_expandable;   /* part of an expandable segment */
    uint64_t address;
    uint64_t size;            /* usable bytes */
    uint64_t requested;       /* bytes that were asked for */
    tarn_stream stream;       /* that it was allocated for */
    struct tarn_pool_id pool; /* {0, 0} is the default pool */
    uint64_t segment;         /* address of the segment */
    uint64_t segment_size;    /* bytes; of an expandable segment all reserved addresses */
    uint64_t stack;           /* id from the event sink, 0 = none */
    void *user;               /* tarn_allocator_set_user_data */
    uint64_t user_tag;
};

/* What is known about the block at `ptr`. Fields beyond struct_size are not written.
 * TARN_ERR_INVALID_ARGUMENT if that is not set; TARN_ERR_INVALID_POINTER as tarn_allocator_free and
 * for a block that bypassed the cache (tarn_allocator_set_enabled); TARN_ERR_NOT_SUPPORTED under
 * backend:cudaMallocAsync and without a cache. */
TARN_API enum tarn_status tarn_allocator_find_block(struct tarn_allocator *allocator, tarn_ptr ptr,
                                                    struct tarn_block *block_out,
                                                    struct tarn_error *error) TARN_MUST_CHECK;

/* Attaches a pointer and a number of the program's to the allocated block at `ptr`, in place of
 * what it has; NULL and 0 take it off. The library keeps both until the block is freed, shows them
 * in struct tarn_block and in walks, and never looks behind the pointer. Files do not have them.
 * The call and the free of such a block take the way of blocks that other streams use; others cost
 * what they did. Fails as tarn_allocator_find_block, and with TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_allocator_set_user_data(struct tarn_allocator *allocator,
                                                       tarn_ptr ptr, void *user, uint64_t tag,
                                                       struct tarn_error *error) TARN_MUST_CHECK;

/* Bytes usable at `ptr`, 0 when nothing is allocated there. */
TARN_API uint64_t tarn_allocator_usable_size(struct tarn_allocator *allocator, tarn_ptr ptr);

/* The least size that wastes nothing for a request of `size` bytes: what such a request is rounded
 * up to. The block may still be larger (tarn_allocator_usable_size). */
TARN_API uint64_t tarn_allocator_good_size(struct tarn_allocator *allocator, uint64_t size);

/* Returns what is cached for one stream to the device, after waiting for the frees that are
 * pending: before the stream is destroyed, or when it goes idle. Other streams keep their cache,
 * and graphs their pools. During a capture nothing is returned. On failure what was returned
 * before stays returned. TARN_ERR_NOT_SUPPORTED where the engine caches nothing by stream. */
TARN_API enum tarn_status tarn_allocator_release_stream(struct tarn_allocator *allocator,
                                                        tarn_stream stream,
                                                        struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
