/* SPDX-License-Identifier: MIT */
/*
 * Blocks used on streams other than their own. `record` remembers the stream; when the block is
 * freed, an event is recorded on each such stream, and the block becomes reusable when all of them
 * are done. Events wait in one queue per stream and are polled in order, so that one slow stream
 * does not hold up the others.
 *
 * While a graph is being captured no event may be recorded or queried: blocks freed then are
 * deferred until no capture is under way. Uses recorded during a capture need no event afterwards:
 * the work that was captured did not run. With graph_capture_record_stream_reuse a deferred block
 * can be reused within the capture, once the graph proves that it is safe (capture_order.h).
 *
 * A record also holds what a program attaches to a block: the free of a block with a record leaves
 * the fast path anyway, so nothing else has to look for it.
 *
 * Owns: the records (one per block with uses or user data, referred to by index), the queues, a
 * pool of events. Guarded by the engine's lock. Cost: nothing for blocks without uses.
 */
#ifndef TN_ALLOC_ENGINE_STREAM_USE_H
#define TN_ALLOC_ENGINE_STREAM_USE_H

#include "alloc/engine/capture_order.h"
#include "alloc/pool/heap.h"
#include "base/attr.h"
#include "device/device_ops.h"

struct tn_used_stream {
    tarn_stream stream;
    bool captured; /* recorded during a capture */
};

/* Uses of one block, and what the program attached to it. */
struct tn_stream_uses {
    struct tn_block *block; /* NULL: the record is free */
    struct tn_used_stream *streams;
    uint32_t count;
    uint32_t capacity;
    uint32_t event_count; /* events that it waits for; streams are empty then */
    uint32_t next_free;
    struct tn_capture_marks marks; /* deferred: what the graph has to prove */
    void *user;                    /* allocated: the program's (tarn/block.h) */
    uint64_t user_tag;
};

struct tn_pending_event {
    tn_event_handle event;
    struct tn_block *block;
};

/* Events of one stream, oldest first, in a ring. */
struct tn_event_queue {
    tarn_stream stream;
    struct tn_pending_event *ring;
    uint32_t head;
    uint32_t count;
    uint32_t capacity;
};

/* All zero but `heap` is empty. */
struct tn_stream_waits {
    struct tn_heap *heap;           /* constant: of the blocks */
    struct tn_stream_uses *records; /* index 0 is not used */
    uint32_t record_count;
    uint32_t record_capacity;
    uint32_t free_record;

    struct tn_event_queue *queues; /* in the order in which they are polled */
    uint32_t queue_count;
    uint32_t queue_capacity;

    struct tn_block **deferred; /* freed during a capture, oldest first */
    uint32_t deferred_count;
    uint32_t deferred_capacity;

    tn_event_handle *events; /* ready to use */
    uint32_t event_count;
    uint32_t event_capacity;

    uint64_t pending;              /* events in all queues */
    enum tarn_status failed_query; /* of is_any_done; tn_stream_waits_process reports it */

    struct tn_capture_order order; /* of the work captured so far */
};

/* Destroys pooled and pending events; no block is touched. */
void tn_stream_waits_fini(struct tn_stream_waits *waits);

/* Records that the block, which is allocated, is used on the stream. `capturing`: a capture is
 * under way. */
enum tarn_status tn_stream_use_record(struct tn_stream_waits *waits, struct tn_block *block,
                                      tarn_stream stream, bool capturing) TN_MUST_CHECK;

/* Attaches the program's data to an allocated block until it is freed; NULL and 0 take it off.
 * TARN_ERR_HOST_MEMORY, and nothing changed. */
enum tarn_status tn_stream_use_set_user(struct tn_stream_waits *waits, struct tn_block *block,
                                        void *user, uint64_t tag) TN_MUST_CHECK;

/* The data attached to a block, *tag_out included; NULL and 0 for none. */
void *tn_stream_use_user(const struct tn_stream_waits *waits, const struct tn_block *block,
                         uint64_t *tag_out);

/* Whether streams other than its own use the block. */
bool tn_stream_use_has_streams(const struct tn_stream_waits *waits, const struct tn_block *block);

/* The block is about to be freed: one that no other stream uses loses its data. Whether it still
 * has uses, which tn_stream_use_release takes. */
bool tn_stream_use_end(struct tn_stream_waits *waits, struct tn_block *block);

/* The block with uses is about to be freed: records an event on each of its streams, or defers it
 * during a capture. On failure nothing changed. Afterwards the block has events instead of streams,
 * unless it was deferred. */
enum tarn_status tn_stream_use_release(struct tn_stream_waits *waits, struct tn_block *block,
                                       bool capturing, struct tarn_error *error) TN_MUST_CHECK;

/* Makes room to defer `count` more blocks; and defers one, which then cannot fail. For a free that
 * must not fail: the next call that completes frees records the events. */
bool tn_stream_waits_reserve_deferred(struct tn_stream_waits *waits, uint64_t count) TN_MUST_CHECK;
void tn_stream_use_defer(struct tn_stream_waits *waits, struct tn_block *block);

/* While a capture is under way: completes the frees of deferred blocks of this stream, where the
 * setting asks for it and the graph proves that the stream's next work comes after all their uses.
 * PyTorch's free_safe_blocks_in_capture. On failure nothing changed. */
enum tarn_status tn_stream_waits_reclaim(struct tn_stream_waits *waits, tarn_stream stream,
                                         uint64_t stack, struct tarn_error *error) TN_MUST_CHECK;

/* Records the events of deferred blocks and completes the frees of all blocks whose events are
 * done. No capture is under way. `stack`: of the operation that does it, 0 = none. */
enum tarn_status tn_stream_waits_process(struct tn_stream_waits *waits, uint64_t stack,
                                         struct tarn_error *error) TN_MUST_CHECK;

/* Whether the next call of tn_stream_waits_process has something to do: the first event of a queue
 * is done, or querying it failed. No block is deferred, no capture is under way. */
bool tn_stream_waits_is_any_done(struct tn_stream_waits *waits);

/* Waits for the oldest event of one queue and completes the frees of all blocks whose events are
 * done. False in `waited_out`: no block waits for an event. No capture is under way. */
enum tarn_status tn_stream_waits_wait_one(struct tn_stream_waits *waits, uint64_t stack,
                                          bool *waited_out, struct tarn_error *error) TN_MUST_CHECK;

/* Waits for every pending event and completes those frees: PyTorch's synchronize_and_free_events.
 * With `owner`, only events of that private pool's blocks. */
enum tarn_status tn_stream_waits_drain(struct tn_stream_waits *waits,
                                       const struct tn_private_pool *owner, uint64_t stack,
                                       struct tarn_error *error) TN_MUST_CHECK;

/* Records the events of deferred blocks; a block that needs none is freed. */
enum tarn_status tn_stream_waits_insert_deferred(struct tn_stream_waits *waits, uint64_t stack,
                                                 struct tarn_error *error) TN_MUST_CHECK;

/* For replaying recorded decisions, where these orders are those of hash tables. */

/* The stream's queue; NULL when it never had one. */
const struct tn_event_queue *tn_stream_waits_find(const struct tn_stream_waits *waits,
                                                  tarn_stream stream);

/* Whether a block that was freed during a capture will wait for the stream, or for any. */
bool tn_stream_use_will_wait(const struct tn_stream_waits *waits, const struct tn_block *block,
                             tarn_stream stream);
bool tn_stream_use_waits(const struct tn_stream_waits *waits, const struct tn_block *block);

/* Sorts the deferred blocks by their `place`. */
void tn_stream_waits_sort_deferred(struct tn_stream_waits *waits,
                                   uint64_t (*place)(void *context, const struct tn_block *block),
                                   void *context);

/* Polls these streams' queues first, in this order. */
void tn_stream_waits_order(struct tn_stream_waits *waits, const tarn_stream *streams,
                           uint32_t count);

#endif
