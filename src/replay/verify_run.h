/* SPDX-License-Identifier: MIT */
/*
 * The state of one verification: an allocator on a simulated device that answers as the recorded
 * one did, and what the allocator reported during the current call.
 *
 * What is the device's doing is taken from the log: addresses of segments, when an event completes
 * (unless the log is settled: then that follows), when a full device refuses. So are the orders
 * that come from hash tables: of streams whose events complete in one call, of frees that were
 * deferred, of private pools, of segments of a checkpoint. Everything else must come out of the
 * rules.
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

/* A pool that the log routes to, or has a checkpoint of. */
struct tn_verify_pool {
    struct tarn_pool_id id;
    tarn_stream stream; /* whose requests go there */
    bool captured;      /* those of all streams in its capture do */
    struct tarn_device *device;
    struct tarn_checkpoint *checkpoint;
};

/* A free that the log completes: `place` is line << 20 | event. */
struct tn_completion {
    uint64_t address;
    uint64_t place;
};

/* What the log allocated: the block that an id stands for. */
struct tn_verify_block {
    tarn_ptr ptr;  /* 0 = none */
    uint64_t size; /* bytes written there; 0 when its contents are not known */
    uint64_t line; /* whose request it was, and what was written */
};

struct tn_verify_run {
    struct tn_decision_log log;
    struct tarn_device *device;
    unsigned char *contents; /* buffer for what is written and read; NULL: there is no memory */
    struct tarn_allocator *allocator;
    struct tn_decision call; /* the current one */

    struct tn_map id_places; /* id + 1 to its place in `ids`: ids cost by number, not by value */
    struct tn_vec ids;       /* struct tn_verify_block, in the order in which their ids came */

    struct tn_vec events; /* struct tarn_trace_event: sent during the current call */
    bool no_host_memory;  /* during the current call */

    bool blocked[TN_LOG_STREAMS_MAX]; /* streams of the log, by index */

    struct tn_vec completions; /* struct tn_completion: of the whole log, by (address, place) */

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

/* Makes the current call, which was read from the log, and compares; run->result says how that
 * went. */
enum tarn_status tn_verify_call(struct tn_verify_run *run, struct tarn_error *error) TN_MUST_CHECK;

/* Collects the completions of the log at `path`; none of standard input. */
enum tarn_status tn_verify_read_ahead(struct tn_verify_run *run, const char *path,
                                      struct tarn_error *error) TN_MUST_CHECK;

/* Makes the device answer as the log says. */
void tn_verify_device_attach(struct tn_verify_run *run);

/* After every event, too: whether a full device gives memory next. */
void tn_verify_device_refuse(struct tn_verify_run *run);

/* Work that does not finish is queued on the current call's stream, or finishes now. */
enum tarn_status tn_verify_block_stream(struct tn_verify_run *run, bool block,
                                        struct tarn_error *error) TN_MUST_CHECK;

/* The current call begins or ends a capture, or adds to its graph. */
enum tarn_status tn_verify_capture(struct tn_verify_run *run,
                                   struct tarn_error *error) TN_MUST_CHECK;

/* Whether the pool gets the requests of the stream. */
bool tn_verify_pool_takes(const struct tn_verify_pool *pool, tarn_stream stream);

/* Before the current call: tells the allocator the orders that the log shows. */
void tn_verify_prepare(struct tn_verify_run *run);

/* Fills the orders in which the recorded restoring took its segments; the arrays are `buffer`,
 * which has room for one number an event. */
struct tn_checkpoint_order tn_verify_checkpoint_order(const struct tn_verify_run *run,
                                                      uint64_t *buffer);

/* Pointer of an id, 0 if unknown. */
tarn_ptr tn_verify_ptr(const struct tn_verify_run *run, uint64_t id);
enum tarn_status tn_verify_set_ptr(struct tn_verify_run *run, uint64_t id, tarn_ptr ptr,
                                   struct tarn_error *error) TN_MUST_CHECK;

/* The block of an id that is known; NULL else. Borrowed until the next id is set. */
struct tn_verify_block *tn_verify_block(const struct tn_verify_run *run, uint64_t id);

/* Where there is memory: fills the block of the current call's id with what belongs to the call,
 * and looks whether a block that is to be freed still holds that. */
enum tarn_status tn_verify_contents_open(struct tn_verify_run *run,
                                         struct tarn_error *error) TN_MUST_CHECK;
void tn_verify_contents_close(struct tn_verify_run *run);
enum tarn_status tn_verify_contents_write(struct tn_verify_run *run,
                                          struct tarn_error *error) TN_MUST_CHECK;
enum tarn_status tn_verify_contents_read(struct tn_verify_run *run,
                                         struct tarn_error *error) TN_MUST_CHECK;
/* What blocks hold is not known any more: a checkpoint brought back blocks whose memory others have
 * used. */
void tn_verify_contents_forget(struct tn_verify_run *run);

/* The pool's record, made when it is new; NULL when there are too many. */
struct tn_verify_pool *tn_verify_pool(struct tn_verify_run *run, struct tarn_pool_id id);

/* Notes a difference of the current call, as a line that is safe to show. */
void tn_verify_differs(struct tn_verify_run *run, const char *format, ...) TN_PRINTF(2, 3);

/* Compare with the current call's record: the events, the counters after it, and for their calls
 * all counters and the snapshot. */
void tn_verify_compare_events(struct tn_verify_run *run);
void tn_verify_compare_brief(struct tn_verify_run *run);
void tn_verify_compare_stats(struct tn_verify_run *run);
void tn_verify_compare_snapshot(struct tn_verify_run *run);
void tn_verify_compare_message(struct tn_verify_run *run, const char *message);

#endif
