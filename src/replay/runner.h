/* SPDX-License-Identifier: MIT */
/*
 * An allocator on a simulated device that a program can be run on (run.h).
 */
#ifndef TN_REPLAY_RUNNER_H
#define TN_REPLAY_RUNNER_H

#include "alloc/engine/allocator.h"
#include "replay/program.h"
#include "tarn/replay.h"

/* What the run has. Zero bytes mean: as large a device as the recorded one can have been, no limit,
 * the recorded addresses. */
struct tn_runner_room {
    uint64_t device;       /* bytes of the device */
    uint64_t limit;        /* bytes that the allocator may reserve */
    uint64_t base_address; /* the device chooses its addresses from here on */
};

struct tn_runner {
    const struct tn_program *program;
    struct tarn_device *device;
    struct tarn_allocator *allocator;
    struct tn_engine *engine; /* the allocator's, called without detour; NULL: it has none */
    tarn_ptr *ptrs;           /* by slot; 0 = nothing */
    uint64_t *events;         /* by slot: event of a free that waits */
    bool check;               /* every invariant after every operation */
    uint64_t entries;         /* of the trace that are replayed, from its first on */
    bool stop_at_other;       /* end where the run first differs from the recorded one */
    bool is_limited;          /* the allocator decides itself when it is short */
    bool keeps_addresses;
    uint64_t start_address; /* of the range that is rebuilt; 0 = none is */
    uint64_t maps_seen; /* ranges so far: a new growing segment begins at the next one's address */
    tarn_ptr other;     /* what the first request that was placed elsewhere got; 0 = nothing */
    uint64_t entry;     /* of the trace, which the operation at hand stands for */
    struct tarn_replay_result *result;
};

/* On failure there is nothing to close. */
enum tarn_status tn_runner_open(struct tn_runner *runner, const struct tn_program *program,
                                const struct tarn_config *config, const struct tn_runner_room *room,
                                struct tarn_error *error) TN_MUST_CHECK;
void tn_runner_close(struct tn_runner *runner);

/* The next plain segment gets this address. The device chooses instead of an address that no
 * segment can have, or where the run does not keep them. */
enum tarn_status tn_runner_script_segment(struct tn_runner *runner, uint64_t address,
                                          struct tarn_error *error) TN_MUST_CHECK;

#endif
