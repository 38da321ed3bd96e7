/* SPDX-License-Identifier: MIT */
/*
 * A snapshot of live allocators and their histories: what torch.cuda.memory._snapshot() returns,
 * ready to be looked at, reported on and saved (tarn/snapshot.h).
 */
#ifndef TARN_CAPTURE_H
#define TARN_CAPTURE_H

#include "allocator.h"
#include "history.h"
#include "pinned.h"
#include "snapshot.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An allocator, and the history that is its sink; NULL where there is none. */
struct tarn_capture_source {
    struct tarn_allocator *allocator;
    struct tarn_history *history;
};

/* Zeros mean the defaults. */
struct tarn_capture_options {
    uint32_t struct_size;     /* sizeof(struct tarn_capture_options) */
    bool without_traces;      /* one empty trace a device */
    bool only_pool;           /* segments of `pool` only */
    struct tarn_pool_id pool; /* {0, 0} is the default pools */
    uint32_t device_count;    /* traces at least, as PyTorch has one a device; 0 = as many as the
                                 highest device needs */

    /* Pinned memory as well (`host_segments` and `host_traces`); NULL: none. Its history, NULL
     * where it has none, is of its own. */
    struct tarn_pinned *pinned;
    struct tarn_history *pinned_history;
};

/* A snapshot of these allocators; those of one device, and sources with one history, may be
 * several. `options` may be NULL.
 *
 * Segments come by device and address, traces by device, oldest entry first. What one allocator
 * shows is of one moment: under its lock, segments and events are copied and nothing else is done.
 * As in PyTorch, each allocator then gets the event TARN_ACTION_SNAPSHOT, which is not part of this
 * snapshot. Settings are those of the first allocator.
 *
 * Any thread, but no sink, callback or walker. Caller owns *snapshot_out, destroy with
 * tarn_snapshot_destroy. TARN_ERR_INVALID_ARGUMENT, TARN_ERR_HOST_MEMORY; TARN_ERR_NOT_SUPPORTED
 * for backend:cudaMallocAsync. */
TARN_API enum tarn_status tarn_snapshot_capture(const struct tarn_capture_source *sources,
                                                size_t count,
                                                const struct tarn_capture_options *options,
                                                struct tarn_snapshot **snapshot_out,
                                                struct tarn_error *error) TARN_MUST_CHECK;

/* Write a flame graph of these allocators as they are now, in bytes, to a file: an SVG picture by
 * stream, segment, state and stack, or the same without the segments. As _save_segment_usage and
 * _save_memory_usage of torch.cuda.memory, which fetch a script for it. The file appears whole or
 * not at all. Errors are those of tarn_snapshot_capture, and TARN_ERR_IO. */
TARN_API enum tarn_status tarn_save_segment_usage(const struct tarn_capture_source *sources,
                                                  size_t count, const char *path,
                                                  struct tarn_error *error) TARN_MUST_CHECK;
TARN_API enum tarn_status tarn_save_memory_usage(const struct tarn_capture_source *sources,
                                                 size_t count, const char *path,
                                                 struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
