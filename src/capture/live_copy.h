/* SPDX-License-Identifier: MIT */
/*
 * A consistent copy of a live allocator: the only part of a snapshot that is made under an
 * allocator's lock. Nothing is allocated under it; if the room allocated before is too small, the
 * copy is repeated with more.
 *
 * Owns: the arrays, and until tn_live_copy_fini references to its stacks and texts.
 */
#ifndef TN_CAPTURE_LIVE_COPY_H
#define TN_CAPTURE_LIVE_COPY_H

#include "alloc/engine/page_info.h"
#include "capture/observer.h"
#include "history/history.h"
#include "tarn/capture.h"

/* Completes the caller's options, which may be NULL or of an earlier version; false for another
 * size. */
bool tn_capture_options_read(const struct tarn_capture_options *options,
                             struct tarn_capture_options *read_out) TN_MUST_CHECK;

/* A segment and the range of its blocks. */
struct tn_copied_segment {
    struct tarn_segment_info info;
    uint64_t first_block;
    uint64_t block_count;
};

struct tn_live_copy {
    struct tarn_capture_source source;
    struct tarn_pinned *pinned;     /* instead of source.allocator, where not NULL */
    struct tarn_observer *observer; /* the same */
    int device;                     /* ordinal */
    struct tarn_config config;
    struct tn_copied_segment *segments;
    uint64_t segment_count; /* total number; the array has as many as there was room for */
    uint64_t segment_capacity;
    struct tarn_block_info *blocks;
    uint64_t block_count;
    uint64_t block_capacity;
    struct tn_page_info *pages; /* of the compact policy, by address */
    uint64_t page_count;
    uint64_t page_capacity;
    struct tn_history_copy history;
    bool has_history; /* also false if an earlier copy has it */
    bool has_stacks;  /* ids of blocks and segments are those of the history */
    uint64_t held_ns; /* how long the lock was last held */
};

/* TARN_ERR_HOST_MEMORY or TARN_ERR_NOT_SUPPORTED; nothing to release then. `with_history` is false
 * if the source's history is in another copy. */
enum tarn_status tn_live_copy_init(struct tn_live_copy *copy,
                                   const struct tarn_capture_source *source,
                                   const struct tarn_capture_options *options, bool with_history,
                                   struct tarn_error *error) TN_MUST_CHECK;
/* The same for pinned memory and its history, which may be NULL. */
enum tarn_status tn_live_copy_pinned(struct tn_live_copy *copy, struct tarn_pinned *pinned,
                                     struct tarn_history *history,
                                     struct tarn_error *error) TN_MUST_CHECK;
/* The same for observed memory. `with_history` as above. */
enum tarn_status tn_live_copy_observed(struct tn_live_copy *copy, struct tarn_observer *observer,
                                       bool with_history, struct tarn_error *error) TN_MUST_CHECK;
void tn_live_copy_fini(struct tn_live_copy *copy);

#endif
