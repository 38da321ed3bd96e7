/* SPDX-License-Identifier: MIT */
/*
 * State of a verification: an allocator on a simulated device that answers like the recorded one,
 * and the events of the current call.
 *
 * The device's part is taken from the log: addresses of segments, when an event completes (unless
 * the log is settled, which determines that), when a full device refuses. So are orders that result
 * from hash tables: of streams whose events complete in one call, of deferred frees, of private
 * pools, of segments of a checkpoint. Everything else must follow from the allocator's rules.
 */
#ifndef TN_REPLAY_VERIFY_RUN_H
#define TN_REPLAY_VERIFY_RUN_H

#include "alloc/engine/allocator.h"
#include "alloc/engine/checkpoint.h"
#include "base/map.h"
#include "base/vec.h"
#include "replay/decision_log.h"
#include "tarn/verify.h"

enum {
    TN_VERIFY_POOLS_MAX = 256
};

/* A pool that requests are routed to, or that has a checkpoint. */
struct tn_verify_pool {
    struct tarn_pool_id id;
    tarn_stream stream; /* whose requests it serves */
    bool captured;      /* serves those of all streams in its capture */
    struct tarn_device *device;
    struct tarn_checkpoint *checkpoint;
};

/* A completed free in the log: `position` is line << 20, plus the event. */
struct tn_completion {
    uint64_t address;
    uint64_t position;
};

/* The block of an id of the log. */
struct tn_verify_block {
    tarn_ptr ptr;  /* 0 = none */
    uint64_t size; /* bytes written there; 0 if its contents are unknown */
    uint64_t line; /* of its request; determines the bytes written */
};

struct tn_verify_run {
    struct tn_decision_log log;
    struct tarn_device *device;
    unsigned char *contents; /* buffer for bytes written and read; NULL: no memory */
    struct tarn_allocator *allocator;
    struct tn_decision call; /* the current one */

    struct tn_map id_indices; /* id + 1 to its index in `ids`, so that large ids cost no memory */
    struct tn_vec ids;        /* struct tn_verify_block, in the order in which their ids came */

    struct tn_vec events; /* struct tarn_trace_event: sent during the current call */
    bool no_host_memory;  /* during the current call */

    bool blocked[TN_LOG_STREAMS_MAX]; /* streams of the log, by index */

    struct tn_vec completions; /* struct tn_completion: of the whole log, by (address, position) */

    struct tn_verify_pool pools[TN_VERIFY_POOLS_MAX];
    uint32_t pool_count;

    struct tarn_verify_result *result;
    size_t text_used; /* of the current call's differences in `text` */
    bool differs;     /* the current call */
    char text[TARN_VERIFY_TEXT_MAX];
};

/* Opens the log, the device and the allocator. On failure there is nothing to close. */
enum tarn_status tn_verify_open(struct tn_verify_run *run, const char *path,
                                const struct tarn_verify_options *options,
                                struct tarn_error *error) TN_MUST_CHECK;
void tn_verify_close(struct tn_verify_run *run);

/* Makes the current call, which was read from the log, and compares it; run->result has the
 * outcome. */
enum tarn_status tn_verify_call(struct tn_verify_run *run, struct tarn_error *error) TN_MUST_CHECK;

/* Collects the completions of the log at `path`; none from standard input. */
enum tarn_status tn_verify_read_ahead(struct tn_verify_run *run, const char *path,
                                      struct tarn_error *error) TN_MUST_CHECK;

/* Makes the device answer as the log says. */
void tn_verify_device_attach(struct tn_verify_run *run);

/* Sets whether a full device has memory for the next request; also called after each event. */
void tn_verify_device_refuse(struct tn_verify_run *run);

/* Queues work that does not finish on the current call's stream, or finishes it. */
enum tarn_status tn_verify_block_stream(struct tn_verify_run *run, bool block,
                                        struct tarn_error *error) TN_MUST_CHECK;

/* The current call begins or ends a capture, or adds to its graph. */
enum tarn_status tn_verify_capture(struct tn_verify_run *run,
                                   struct tarn_error *error) TN_MUST_CHECK;

/* Whether the pool serves requests of the stream. */
bool tn_verify_pool_takes(const struct tn_verify_pool *pool, tarn_stream stream);

/* Called before each call: gives the allocator the orders that the log shows. */
void tn_verify_prepare(struct tn_verify_run *run);

/* The order in which the recorded call restored its segments; the arrays are in `buffer`, which has
 * room for one number per event. */
struct tn_checkpoint_order tn_verify_checkpoint_order(const struct tn_verify_run *run,
                                                      uint64_t *buffer);

/* Pointer of an id, 0 if unknown. */
tarn_ptr tn_verify_ptr(const struct tn_verify_run *run, uint64_t id);
enum tarn_status tn_verify_set_ptr(struct tn_verify_run *run, uint64_t id, tarn_ptr ptr,
                                   struct tarn_error *error) TN_MUST_CHECK;

/* The block of an id; NULL if unknown. Borrowed until the next id is set. */
struct tn_verify_block *tn_verify_block(const struct tn_verify_run *run, uint64_t id);

/* With memory: fill the block of the current call's id with bytes determined by the call, and check
 * that a block to be freed still has them. */
enum tarn_status tn_verify_contents_open(struct tn_verify_run *run,
                                         struct tarn_error *error) TN_MUST_CHECK;
void tn_verify_contents_close(struct tn_verify_run *run);
enum tarn_status tn_verify_contents_write(struct tn_verify_run *run,
                                          struct tarn_error *error) TN_MUST_CHECK;
enum tarn_status tn_verify_contents_read(struct tn_verify_run *run,
                                         struct tarn_error *error) TN_MUST_CHECK;
/* Contents of blocks become unknown: a checkpoint restored blocks whose memory was reused. */
void tn_verify_contents_forget(struct tn_verify_run *run);

/* The pool's record, added if it is new; NULL if there are too many. */
struct tn_verify_pool *tn_verify_pool(struct tn_verify_run *run, struct tarn_pool_id id);

/* Records a difference of the current call as a printable line. */
void tn_verify_differs(struct tn_verify_run *run, const char *format, ...) TN_PRINTF(2, 3);

/* Compare with the record of the current call: its events, the counters after it; for calls that
 * return these, all counters or the snapshot. */
void tn_verify_compare_events(struct tn_verify_run *run);
void tn_verify_compare_brief(struct tn_verify_run *run);
void tn_verify_compare_stats(struct tn_verify_run *run);
void tn_verify_compare_snapshot(struct tn_verify_run *run);
void tn_verify_compare_message(struct tn_verify_run *run, const char *message);

#endif
