/* SPDX-License-Identifier: MIT */
/* The smallest device for a trace. */
#include "base/errinfo.h"
#include "tarn/replay.h"

#define LARGEST ((uint64_t)1 << 40)
#define UNIT    ((uint64_t)2 << 20)

static enum tarn_status run_on(const struct tarn_replay *replay, const char *conf, uint64_t device,
                               struct tarn_replay_result *result, struct tarn_error *error)
{
    const struct tarn_replay_options options = {
        .struct_size = sizeof options, .conf = conf, .device_total = device};

    result->struct_size = sizeof *result;
    return tarn_replay_run(replay, &options, result, error);
}

/* A device of the reserved peak is always large enough: it refuses nothing. One below the peak of
 * requested bytes never is. */
enum tarn_status tarn_replay_fit(const struct tarn_replay *replay, const char *conf,
                                 uint64_t *capacity_out, struct tarn_error *error)
{
    struct tarn_replay_result result;
    enum tarn_status st = run_on(replay, conf, LARGEST, &result, error);

    if (st) {
        return st;
    }
    if (result.first_oom >= 0) {
        return tn_fail(error, TARN_ERR_OUT_OF_MEMORY,
                       "event %lld of the trace does not fit a device of 1 TiB",
                       (long long)result.first_oom);
    }
    const struct tarn_stat *peaks[] = {
        &result.stats.by_pool[TARN_STAT_RESERVED_BYTES][TARN_STAT_ALL],
        &result.stats.by_pool[TARN_STAT_REQUESTED_BYTES][TARN_STAT_ALL]};
    uint64_t enough = ((uint64_t)peaks[0]->peak + UNIT - 1) / UNIT;
    uint64_t too_small = (uint64_t)peaks[1]->peak / UNIT;

    while (st == TARN_OK && enough - too_small > 1) {
        const uint64_t middle = too_small + (enough - too_small) / 2;

        st = run_on(replay, conf, middle * UNIT, &result, error);
        if (result.first_oom < 0) {
            enough = middle;
        } else {
            too_small = middle;
        }
    }
    *capacity_out = enough * UNIT;
    return st;
}
