/* SPDX-License-Identifier: MIT */
/*
 * An allocator on a simulated device that a program can be run on (run.h).
 */
#ifndef TN_REPLAY_RUNNER_H
#define TN_REPLAY_RUNNER_H

#include "alloc/engine/allocator.h"
#include "replay/device_lag.h"
#include "replay/program.h"
#include "tarn/replay.h"

/* Memory of the run. Zeros mean: the largest possible device of the recorded run, no limit, the
 * recorded addresses. */
struct tn_runner_room {
    uint64_t device;       /* bytes of the device */
    uint64_t limit;        /* bytes that the allocator may reserve */
    uint64_t base_address; /* the device chooses addresses from here upwards */
    uint32_t lag_ms;       /* of the device behind the program */
};

struct tn_runner {
    const struct tn_program *program;
    struct tarn_device *device;
    struct tarn_allocator *allocator;
    struct tn_engine *engine; /* the allocator's, called directly; NULL: not the native one */
    tarn_ptr *ptrs;           /* by slot; 0 = nothing */
    uint64_t *events;         /* by slot: event of a pending free */
    bool check;               /* check all invariants after each operation */
    uint64_t entries;         /* number of trace entries to replay */
    bool stop_at_other;       /* stop at the first difference from the recorded run */
    bool stop_at_oom;         /* stop after the first request that fails */
    bool is_limited;          /* the allocator itself notices when memory is short */
    bool keeps_addresses;
    uint64_t start_address; /* of the range being restored; 0 = none */
    uint64_t maps_seen;     /* ranges so far: the next expandable segment begins at the next one */
    tarn_ptr other;         /* address of the first request that differs; 0 = none */
    struct tn_device_lag lag; /* of the streams' work under the compact policy */
    uint64_t entry;           /* of the trace: the current operation's */
    struct tarn_replay_result *result;
};

/* The room under the limit found for the recorded run, or without one. */
struct tn_runner_room tn_runner_room_recorded(const struct tn_limit *limit);

/* On failure there is nothing to close. */
enum tarn_status tn_runner_open(struct tn_runner *runner, const struct tn_program *program,
                                const struct tarn_config *config, const struct tn_runner_room *room,
                                struct tarn_error *error) TN_MUST_CHECK;
void tn_runner_close(struct tn_runner *runner);

/* Gives the next plain segment this address. The device chooses if no segment can have it, or if
 * the run does not keep addresses. */
enum tarn_status tn_runner_script_segment(struct tn_runner *runner, uint64_t address,
                                          struct tarn_error *error) TN_MUST_CHECK;

#endif
