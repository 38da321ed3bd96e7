/* SPDX-License-Identifier: MIT */
/*
 * Replaying a recorded run without a GPU: the requests and frees of a snapshot's trace go through
 * the allocator on a simulated device. Under the settings of the recorded run every decision comes
 * out as recorded; under others the replay says what the run would have taken.
 */
#ifndef TARN_REPLAY_H
#define TARN_REPLAY_H

#include "snapshot.h"
#include "stats.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A trace made ready to run. Immutable: any number of threads may run it at once. */
struct tarn_replay;

/* Makes a replay of one device's trace; `device` -1 takes the first device that has one. The
 * snapshot may be destroyed afterwards. Caller owns *replay_out, free with tarn_replay_destroy.
 * Fails with TARN_ERR_NOT_FOUND when there is no trace. */
TARN_API enum tarn_status tarn_replay_create(const struct tarn_snapshot *snapshot, int device,
                                             struct tarn_replay **replay_out,
                                             struct tarn_error *error) TARN_MUST_CHECK;
TARN_API void tarn_replay_destroy(struct tarn_replay *replay);

struct tarn_replay_info {
    uint32_t struct_size; /* in: sizeof(struct tarn_replay_info) */
    int device;
    uint64_t entries;     /* of the trace */
    uint64_t allocations; /* requests that succeeded when recorded */
    uint64_t ooms;        /* requests that failed when recorded */
    bool complete;        /* the trace begins with an empty allocator */
    const char *conf;     /* settings of the recorded run; borrowed from the replay */

    /* What the recorded run was limited to, in bytes; 0 when no limit shows in the trace or none
     * was found. It is not in the file: of the limits that are possible it is the roundest under
     * which the recorded run comes out exactly. */
    uint64_t memory_limit;
    bool limit_is_device; /* it is what the device had left, not the allocator's limit */
};

/* Fills *info_out; fields that do not fit in its struct_size are left out. */
TARN_API void tarn_replay_get_info(const struct tarn_replay *replay,
                                   struct tarn_replay_info *info_out);

/* What is not known about the recorded run, a sentence each; NULL beyond the last. Borrowed from
 * the replay. */
TARN_API const char *tarn_replay_get_note(const struct tarn_replay *replay, size_t index);

/* Zero bytes mean: the recorded settings, a device large enough (1 TiB, or as large as the recorded
 * addresses allow). */
struct tarn_replay_options {
    uint32_t struct_size;  /* sizeof(struct tarn_replay_options) */
    const char *conf;      /* settings; NULL = those of the recorded run */
    uint64_t device_total; /* bytes of the simulated device; 0 = large enough */
    bool check;            /* check every invariant after every operation: slow */
    uint64_t memory_limit; /* bytes that the allocator may reserve; 0 = as the recorded run when
                              device_total is 0, too; UINT64_MAX = no limit */
    uint64_t base_address; /* where the simulated device begins, a multiple of 2 MiB below 2^57; 0 =
                              segments get the recorded addresses */
    uint64_t entries;      /* of the trace to replay, from its first on; 0 = all */
};

struct tarn_replay_result {
    uint32_t struct_size;    /* in: sizeof(struct tarn_replay_result) */
    struct tarn_stats stats; /* at the end; peaks since the beginning of the trace */
    uint64_t operations;
    uint64_t allocations;  /* requests made */
    uint64_t same_address; /* of these, placed where the recorded run had them */
    int64_t first_other;   /* trace entry of the first one placed elsewhere or answered otherwise,
                              -1 = none */
    int64_t first_oom;     /* trace entry of the first request that failed, -1 = none */
    uint64_t wall_ns;      /* of the run alone */
    bool start_failed;     /* what was there before the trace does not fit: nothing was run, which
                              counts as one request that failed, at entry 0 */
};

/* Runs the replay once. Fails with TARN_ERR_CONFIG for bad settings; running out of simulated
 * memory is no failure but part of the result. */
TARN_API enum tarn_status tarn_replay_run(const struct tarn_replay *replay,
                                          const struct tarn_replay_options *options,
                                          struct tarn_replay_result *result_out,
                                          struct tarn_error *error) TARN_MUST_CHECK;

/* The same, and what the allocator then holds, with the trace of the replay: each event has the
 * stack, texts and time of the recorded entry that led to it (a free that waited: of the request
 * in which the allocator noticed that it was done). `recorded` is the snapshot that the
 * replay was made of. Caller owns *snapshot_out, destroy with tarn_snapshot_destroy. Fails with
 * TARN_ERR_INVALID_ARGUMENT for another snapshot, and with TARN_ERR_NOT_SUPPORTED for
 * backend:cudaMallocAsync, which shows no segments. */
TARN_API enum tarn_status tarn_replay_capture(const struct tarn_replay *replay,
                                              const struct tarn_snapshot *recorded,
                                              const struct tarn_replay_options *options,
                                              struct tarn_replay_result *result_out,
                                              struct tarn_snapshot **snapshot_out,
                                              struct tarn_error *error) TARN_MUST_CHECK;

/* The smallest device on which the whole trace runs under these settings, requests that failed
 * when it was recorded included: bytes, a multiple of 2 MiB, found by bisection and tried out.
 * `conf` NULL = the recorded settings. CUDA's own memory (a few hundred MiB) comes on top.
 * TARN_ERR_CONFIG, TARN_ERR_HOST_MEMORY; TARN_ERR_OUT_OF_MEMORY when not even 1 TiB is enough. */
TARN_API enum tarn_status tarn_replay_fit(const struct tarn_replay *replay, const char *conf,
                                          uint64_t *capacity_out,
                                          struct tarn_error *error) TARN_MUST_CHECK;

/* Which requests of a trace would be of another size, were the run larger or smaller. */
enum tarn_scale_what {
    TARN_SCALE_BATCH, /* made and freed within the trace and not by an optimizer: what grows with
                       * the batch, and gradients that do not outlive the trace */
    TARN_SCALE_ALL,   /* every request of the trace */
    TARN_SCALE_MATCH, /* with a frame whose function or file `pattern` matches */
    TARN_SCALE_CHOSEN /* that `chooses` picks, by category for example (selection.h) */
};

struct tarn_scale_rule {
    enum tarn_scale_what what;
    const char *pattern; /* POSIX extended regular expression; only for TARN_SCALE_MATCH */
    double factor;       /* 2^-10 to 2^10; sizes are rounded up to whole bytes */

    /* Whether the request that is this entry of the trace is scaled; only for TARN_SCALE_CHOSEN. */
    bool (*chooses)(void *context, uint64_t entry);
    void *context;
};

/* What was scaled. An optimizer's are requests with a frame whose file lies in a folder `optim` or
 * whose function has `optimizer` in its name. */
struct tarn_scale_info {
    uint32_t struct_size;    /* in: sizeof(struct tarn_scale_info) */
    uint64_t requests;       /* of the trace, those that failed when recorded included */
    uint64_t selected;       /* of these, the ones that got a factor */
    uint64_t bytes;          /* sum of what was asked for */
    uint64_t bytes_selected; /* sum of what the selected asked for */
    uint64_t bytes_unscaled; /* of blocks that were there before the trace: they stay as they are */
};

/* Makes a replay in which the sizes of selected requests are multiplied; a request gets the factor
 * of the first rule that selects it. `snapshot` is the one that `replay` was made of. What runs is
 * an ESTIMATE: a larger run may ask for other things, too (other algorithms, other workspaces).
 * The new replay keeps the limit that was found for the recorded run, not its addresses. Caller
 * owns *scaled_out, free with tarn_replay_destroy; `info_out` may be NULL.
 * TARN_ERR_INVALID_ARGUMENT for another snapshot, no rule, a factor out of bounds, a pattern that
 * is none or no function that chooses; TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_replay_scale(const struct tarn_replay *replay,
                                            const struct tarn_snapshot *snapshot,
                                            const struct tarn_scale_rule *rules, size_t count,
                                            struct tarn_replay **scaled_out,
                                            struct tarn_scale_info *info_out,
                                            struct tarn_error *error) TARN_MUST_CHECK;

/* The largest factor, given to all rules instead of their own, with which no request fails under
 * these options: by bisection, to 1/128, each step tried out. 0 when even the smallest factor is
 * too large, 1024 when the largest is not. Errors as above and those of tarn_replay_run. */
TARN_API enum tarn_status
tarn_replay_scale_largest(const struct tarn_replay *replay, const struct tarn_snapshot *snapshot,
                          const struct tarn_scale_rule *rules, size_t count,
                          const struct tarn_replay_options *options, double *factor_out,
                          struct tarn_error *error) TARN_MUST_CHECK;

/* What is to be small. What settings have in common is decided by the others, in this order; before
 * all of them come requests that fail. */
enum tarn_tune_goal {
    TARN_TUNE_RESERVED,     /* the peak of reserved bytes */
    TARN_TUNE_DEVICE_CALLS, /* allocations and frees of the device */
    TARN_TUNE_CAPACITY      /* the device that is needed, as tarn_replay_fit says */
};

/* Zero bytes mean: the least reserved memory, 200 settings, all processors. */
struct tarn_tune_options {
    uint32_t struct_size; /* sizeof(struct tarn_tune_options) */
    enum tarn_tune_goal goal;
    uint32_t tries;        /* settings that are tried at most */
    uint32_t threads;      /* the result does not depend on it */
    uint64_t memory_limit; /* these two as in struct tarn_replay_options */
    uint64_t device_total;
    struct tarn_progress progress; /* settings begun, of those that will be tried at most */
    bool each; /* no search: every setting by itself, in an order that is always the same */
};

enum {
    TARN_TUNE_CONF_MAX = 1024 /* as TARN_CONFIG_TEXT_MAX */
};

/* Settings and what the traces took under them; sums over all traces. */
struct tarn_tune_row {
    char conf[TARN_TUNE_CONF_MAX];
    uint64_t peak_reserved;  /* bytes */
    uint64_t peak_allocated; /* bytes of blocks */
    uint64_t peak_requested; /* bytes asked for; the difference is lost to rounding */
    uint64_t device_calls;
    uint64_t ooms;
    uint64_t capacity; /* bytes; only for TARN_TUNE_CAPACITY */
};

/* Searches the settings that exist (growing segments, the size from which blocks are not split,
 * rounding, collection, size of segments) for those that suit these traces best: first each by
 * itself, then on from the best. The same traces and options give the same rows. The first row is
 * each trace under its own recorded settings, named as those of the first; the others come best
 * first, of those with the same results only the one with the fewest options. With `each` they are
 * the defaults and then every setting. At most `capacity` rows are stored in `rows`, *count_out
 * says how many.
 * TARN_ERR_INVALID_ARGUMENT for no trace or no room for rows, TARN_ERR_CANCELLED when the progress
 * was answered so, TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_replay_tune(const struct tarn_replay *const *replays, size_t count,
                                           const struct tarn_tune_options *options,
                                           struct tarn_tune_row *rows, size_t capacity,
                                           size_t *count_out,
                                           struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
