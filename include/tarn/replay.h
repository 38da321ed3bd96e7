/* SPDX-License-Identifier: MIT */
/*
 * Replaying a recorded run without a GPU: the requests and frees of a snapshot's trace go through
 * the allocator on a simulated device. Under the recorded settings every decision comes out as
 * recorded; under other settings the replay shows what the run would have needed.
 */
#ifndef TARN_REPLAY_H
#define TARN_REPLAY_H

#include "snapshot.h"
#include "stats.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A trace prepared for replay. Immutable: any number of threads may run it at once. */
struct tarn_replay;

/* Prepares the trace of one device; `device` -1 selects the first device that has a trace. The
 * snapshot may be destroyed afterwards. Caller owns *replay_out, free with tarn_replay_destroy.
 * Fails with TARN_ERR_NOT_FOUND when there is no trace. */
TARN_API enum tarn_status tarn_replay_create(const struct tarn_snapshot *snapshot, int device,
                                             struct tarn_replay **replay_out,
                                             struct tarn_error *error) TARN_MUST_CHECK;
TARN_API void tarn_replay_destroy(struct tarn_replay *replay);

struct tarn_replay_info {
    uint32_t struct_size; /* in: sizeof(struct tarn_replay_info) */
    int device;
    uint64_t entries;     /* events of the trace */
    uint64_t allocations; /* requests that succeeded when recorded */
    uint64_t ooms;        /* requests that failed when recorded */
    bool complete;        /* the trace starts with an empty allocator */
    const char *conf;     /* settings of the recorded run; borrowed from the replay */

    /* The memory limit of the recorded run in bytes; 0 when the trace shows no limit or none was
     * found. The file does not contain it: this is the roundest of the possible limits that
     * reproduce the recorded run exactly. */
    uint64_t memory_limit;
    bool limit_is_device; /* it is the memory left on the device, not the allocator's limit */
    uint32_t lag_ms;      /* that the device was seen to be behind the program, by frees that waited
                             for other streams; 0 = was not seen */
};

/* Fills *info_out; fields that do not fit in its struct_size are left out. */
TARN_API void tarn_replay_get_info(const struct tarn_replay *replay,
                                   struct tarn_replay_info *info_out);

/* What is unknown about the recorded run, one sentence per index; NULL past the last. Borrowed from
 * the replay. */
TARN_API const char *tarn_replay_get_note(const struct tarn_replay *replay, size_t index);

/* Zero bytes mean the recorded settings and a device that is large enough (1 TiB, or as large as
 * the recorded addresses allow). */
struct tarn_replay_options {
    uint32_t struct_size;  /* sizeof(struct tarn_replay_options) */
    const char *conf;      /* settings; NULL = those of the recorded run. `rules` not named in them
                              are those of the recorded run, too */
    uint64_t device_total; /* bytes of the simulated device; 0 = large enough */
    bool check;            /* check every invariant after every operation: slow */
    uint64_t memory_limit; /* bytes that the allocator may reserve; 0 = that of the recorded run if
                              device_total is also 0; UINT64_MAX = no limit */
    uint64_t base_address; /* where the simulated device begins, a multiple of 2 MiB below 2^57; 0 =
                              segments get the recorded addresses */
    uint64_t entries;      /* replay only this many events from the start of the trace; 0 = all */
    uint32_t lag_ms;       /* policy:compact: milliseconds that the device is behind the program on
                              every stream; 0 = what was freed can be used elsewhere at once */
    bool stops_at_oom;     /* ends after the first request that fails */
};

struct tarn_replay_result {
    uint32_t struct_size;    /* in: sizeof(struct tarn_replay_result) */
    struct tarn_stats stats; /* at the end; peaks since the start of the trace */
    uint64_t operations;
    uint64_t allocations;  /* requests made */
    uint64_t same_address; /* of these, placed at the recorded address */
    int64_t first_other;   /* index of the first event whose address or outcome differs, -1 =
                              none */
    int64_t first_oom;     /* index of the first event whose request failed, -1 = none */
    uint64_t wall_ns;      /* of the run alone */
    bool start_failed;     /* the blocks from before the trace do not fit: nothing was replayed,
                              counted as one failed request at event 0 */

    /* policy:compact; else 0. Times are those that an H200 needs. */
    uint64_t pages_moved;   /* pages of 2 MiB taken from where they were free */
    uint64_t pages_created; /* taken from the device */
    uint64_t moving_ns;     /* for all pages moved */
    uint64_t longest_ns;    /* for the pages of the request that needed the longest */
    uint64_t retired_most;  /* pages still mapped at an old address as well, at one time */
};

/* Runs the replay once. Fails with TARN_ERR_CONFIG for invalid settings; running out of simulated
 * memory is a result, not a failure. */
TARN_API enum tarn_status tarn_replay_run(const struct tarn_replay *replay,
                                          const struct tarn_replay_options *options,
                                          struct tarn_replay_result *result_out,
                                          struct tarn_error *error) TARN_MUST_CHECK;

/* The same, and returns a snapshot of the allocator's final state with the trace of the replay.
 * Each event has the stack, texts and timestamp of the recorded event that caused it (for a
 * deferred free: of the request in which the allocator found that it had completed). `recorded` is
 * the snapshot that the replay was created from. Caller owns *snapshot_out, destroy with
 * tarn_snapshot_destroy. Fails with TARN_ERR_INVALID_ARGUMENT for any other snapshot, and with
 * TARN_ERR_NOT_SUPPORTED for backend:cudaMallocAsync, which has no segments. */
TARN_API enum tarn_status tarn_replay_capture(const struct tarn_replay *replay,
                                              const struct tarn_snapshot *recorded,
                                              const struct tarn_replay_options *options,
                                              struct tarn_replay_result *result_out,
                                              struct tarn_snapshot **snapshot_out,
                                              struct tarn_error *error) TARN_MUST_CHECK;

/* The smallest device on which the whole trace runs under these settings, including requests that
 * failed in the recording: bytes, a multiple of 2 MiB, found by bisection and verified. `conf` NULL
 * = the recorded settings. CUDA itself needs a few hundred MiB more. TARN_ERR_CONFIG,
 * TARN_ERR_HOST_MEMORY; TARN_ERR_OUT_OF_MEMORY when even 1 TiB is not enough. */
TARN_API enum tarn_status tarn_replay_fit(const struct tarn_replay *replay, const char *conf,
                                          uint64_t *capacity_out,
                                          struct tarn_error *error) TARN_MUST_CHECK;

/* Which requests of a trace change in size with the size of the run. */
enum tarn_scale_what {
    TARN_SCALE_BATCH, /* allocated and freed within the trace and not by an optimizer: what grows
                         with the batch, and gradients that do not outlive the trace */
    TARN_SCALE_ALL,   /* every request of the trace */
    TARN_SCALE_MATCH, /* requests with a frame whose function or file matches `pattern` */
    TARN_SCALE_CHOSEN /* requests that `chooses` selects, for example by category (selection.h) */
};

struct tarn_scale_rule {
    enum tarn_scale_what what;
    const char *pattern; /* POSIX extended regular expression; only for TARN_SCALE_MATCH */
    double factor;       /* 2^-10 to 2^10; sizes are rounded up to whole bytes */

    /* Whether the request of this event of the trace is scaled; only for TARN_SCALE_CHOSEN. */
    bool (*chooses)(void *context, uint64_t entry);
    void *context;
};

/* What was scaled. A request belongs to an optimizer if a frame's file is in a folder `optim` or
 * its function has `optimizer` in its name. */
struct tarn_scale_info {
    uint32_t struct_size;    /* in: sizeof(struct tarn_scale_info) */
    uint64_t requests;       /* of the trace, including those that failed in the recording */
    uint64_t selected;       /* of these, the ones that a rule selects */
    uint64_t bytes;          /* sum of requested bytes */
    uint64_t bytes_selected; /* sum of requested bytes of the selected ones */
    uint64_t bytes_unscaled; /* of blocks from before the trace, which keep their sizes */
};

/* Creates a replay in which the sizes of selected requests are multiplied by the factor of the
 * first rule that selects them. `snapshot` is the one that `replay` was created from. The result is
 * an ESTIMATE: a larger run may also make different requests (other algorithms, other workspaces).
 * The new replay keeps the memory limit found for the recorded run, but not its addresses. Caller
 * owns *scaled_out, free with tarn_replay_destroy; `info_out` may be NULL.
 * TARN_ERR_INVALID_ARGUMENT for another snapshot, no rules, a factor out of bounds, an invalid
 * pattern or a missing `chooses`; TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_replay_scale(const struct tarn_replay *replay,
                                            const struct tarn_snapshot *snapshot,
                                            const struct tarn_scale_rule *rules, size_t count,
                                            struct tarn_replay **scaled_out,
                                            struct tarn_scale_info *info_out,
                                            struct tarn_error *error) TARN_MUST_CHECK;

/* The largest factor, used for all rules instead of their own, with which no request fails under
 * these options: found by bisection to 1/128, replaying at each step. 0 when even the smallest
 * factor is too large, 1024 when the largest one fits. Errors as above and those of
 * tarn_replay_run. */
TARN_API enum tarn_status
tarn_replay_scale_largest(const struct tarn_replay *replay, const struct tarn_snapshot *snapshot,
                          const struct tarn_scale_rule *rules, size_t count,
                          const struct tarn_replay_options *options, double *factor_out,
                          struct tarn_error *error) TARN_MUST_CHECK;

/* What to minimize. Ties are broken by the other goals in this order. Fewer failed requests always
 * win. */
enum tarn_tune_goal {
    TARN_TUNE_RESERVED,     /* peak reserved bytes */
    TARN_TUNE_DEVICE_CALLS, /* device allocations and frees */
    TARN_TUNE_CAPACITY      /* the device size that tarn_replay_fit finds */
};

/* Zero bytes mean: minimize reserved memory, 200 settings, all processors. */
struct tarn_tune_options {
    uint32_t struct_size; /* sizeof(struct tarn_tune_options) */
    enum tarn_tune_goal goal;
    uint32_t tries;        /* maximum number of settings to try */
    uint32_t threads;      /* the result does not depend on it */
    uint64_t memory_limit; /* these two as in struct tarn_replay_options */
    uint64_t device_total;
    struct tarn_progress progress; /* settings started, of the maximum number to try */
    bool each;                     /* no search: try every option on its own, in a fixed order */
    bool recommends;               /* the second row is what to use, see tarn_replay_tune */
    bool stops_at_oom;             /* settings under which a request fails are not replayed further:
                                      their figures are those until then */
    bool tries_policies;           /* also policy:compact, which PyTorch's own allocator lacks */
};

enum {
    TARN_TUNE_CONF_MAX = 1024, /* as TARN_CONFIG_TEXT_MAX */
    TARN_TUNE_OPTION_MAX = 64
};

/* Settings and the results under them, summed over all traces. */
struct tarn_tune_row {
    char conf[TARN_TUNE_CONF_MAX];
    uint64_t peak_reserved;  /* bytes */
    uint64_t peak_allocated; /* bytes of blocks */
    uint64_t peak_requested; /* requested bytes; the difference is lost to rounding */
    uint64_t device_calls;
    uint64_t ooms;
    uint64_t capacity;                  /* bytes; only for TARN_TUNE_CAPACITY */
    char removed[TARN_TUNE_OPTION_MAX]; /* these are the recorded settings without this option; ""
                                           otherwise */
};

/* Searches the available options (expandable segments, maximum split size, rounding, garbage
 * collection, segment size) for the settings that suit these traces best: first each option on its
 * own, then combinations starting from the best. The result is deterministic. The first row is each
 * trace under its own recorded settings, labelled with those of the first trace; the others follow
 * best first, and of several with equal results only the one with the fewest options. With `each`
 * they are the defaults and then every option.
 *
 * With `recommends` the second row is the simplest of those within 1 % of the best: the recorded
 * settings, if all traces have the same and they are within it, else those with the fewest options.
 * If one option of the recorded settings costs 1 % or more, the third row is then the recorded
 * settings without it, unless the second is.
 *
 * Stores at most `capacity` rows in `rows` and their number in *count_out.
 * TARN_ERR_INVALID_ARGUMENT for no traces or zero capacity, TARN_ERR_CANCELLED when `progress`
 * returned false, TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_replay_tune(const struct tarn_replay *const *replays, size_t count,
                                           const struct tarn_tune_options *options,
                                           struct tarn_tune_row *rows, size_t capacity,
                                           size_t *count_out,
                                           struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
