/* SPDX-License-Identifier: MIT */
/*
 * A snapshot of live allocators and their histories: what torch.cuda.memory._snapshot() returns, to
 * inspect, report on and save (tarn/snapshot.h).
 */
#ifndef TARN_CAPTURE_H
#define TARN_CAPTURE_H

#include "allocator.h"
#include "history.h"
#include "observer.h"
#include "pinned.h"
#include "snapshot.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An allocator and the history that is its sink; NULL = no history. */
struct tarn_capture_source {
    struct tarn_allocator *allocator;
    struct tarn_history *history;
};

/* Zeros mean the defaults. */
struct tarn_capture_options {
    uint32_t struct_size;     /* sizeof(struct tarn_capture_options) */
    bool without_traces;      /* one empty trace per device */
    bool only_pool;           /* segments of `pool` only */
    struct tarn_pool_id pool; /* {0, 0} is the default pools */
    uint32_t device_count;    /* minimum number of traces (PyTorch writes one per device); 0 =
                                 highest device + 1 */

    /* Also captures pinned memory (`host_segments` and `host_traces`); NULL = none. Pinned memory
     * has its own history, NULL = none. */
    struct tarn_pinned *pinned;
    struct tarn_history *pinned_history;

    /* Also captures what these observe (tarn/observer.h), as segments of their devices. They may
     * share a history with each other and with the allocators. */
    struct tarn_observer *const *observers;
    size_t observer_count;
    struct tarn_observer *host_observer; /* of pinned memory, instead of `pinned`, with a history
                                            of its own; NULL = none */
};

/* Takes a snapshot of these allocators, of which there may be none if there are observers. Several
 * may be on the same device or share a history. `options` may be NULL.
 *
 * Segments are sorted by device and address, traces by device with the oldest event first. The data
 * of one allocator is consistent: its segments and events are copied in one critical section that
 * does nothing else. As in PyTorch, each allocator then reports TARN_ACTION_SNAPSHOT, which is not
 * part of this snapshot. Settings are those of the first allocator.
 *
 * Any thread, but not from a sink, callback or walker. Caller owns *snapshot_out, destroy with
 * tarn_snapshot_destroy. TARN_ERR_INVALID_ARGUMENT, TARN_ERR_HOST_MEMORY; TARN_ERR_NOT_SUPPORTED
 * for backend:cudaMallocAsync. */
TARN_API enum tarn_status tarn_snapshot_capture(const struct tarn_capture_source *sources,
                                                size_t count,
                                                const struct tarn_capture_options *options,
                                                struct tarn_snapshot **snapshot_out,
                                                struct tarn_error *error) TARN_MUST_CHECK;

/* An annotation of a history. */
struct tarn_captured_annotation {
    int device;
    enum tarn_annotation_stage stage;
    const char *name;
    int64_t time_us; /* since 1970 */
    const struct tarn_annotation_field *fields;
    size_t field_count;
};

/* Receives the contents of a live allocator; everything is valid during the call. `host_stack` is
 * the number that the history's host language assigned to the stack (struct tarn_host_frames), 0 =
 * none. Any function may be NULL. */
struct tarn_capture_visitor {
    uint32_t struct_size; /* sizeof(struct tarn_capture_visitor) */
    void *context;
    void (*segment)(void *context, const struct tarn_segment_info *segment, uint64_t host_stack);
    void (*block)(void *context, const struct tarn_block_info *block, uint64_t host_stack);
    void (*event)(void *context, const struct tarn_history_entry *entry, uint64_t host_stack);
    void (*annotation)(void *context, const struct tarn_captured_annotation *annotation);
};

/* Visits what tarn_snapshot_capture would copy from one source, for programs that make a snapshot
 * of their own: each segment followed by its blocks, in address order, then the events and the
 * annotations, oldest first. It is copied in one critical section, and visited without a lock. Then
 * the allocator reports TARN_ACTION_SNAPSHOT. `options` may be NULL; its device count and pinned
 * memory are ignored. Stacks of the history stay resolvable (tarn_history_visit_stack) meanwhile.
 * Any thread, but not from a sink, callback or walker. Errors are those of
 * tarn_snapshot_capture. */
TARN_API enum tarn_status tarn_capture_visit(const struct tarn_capture_source *source,
                                             const struct tarn_capture_options *options,
                                             const struct tarn_capture_visitor *visitor,
                                             struct tarn_error *error) TARN_MUST_CHECK;

/* Write a flame graph of the current bytes of these allocators as an SVG file: by stream, segment,
 * state and stack, or the same without segments. The counterparts of _save_segment_usage and
 * _save_memory_usage in torch.cuda.memory, which download a script to do it. The file appears whole
 * or not at all. Errors are those of tarn_snapshot_capture, and TARN_ERR_IO. */
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
