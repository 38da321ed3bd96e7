/* SPDX-License-Identifier: MIT */
/* Implements tarn/replay.h. */
#include "tarn/replay.h"

#include "base/errinfo.h"
#include "base/host_mem.h"
#include "replay/program.h"
#include "replay/runner.h"
#include "snapshot/snapshot.h"

#include <string.h>

struct tarn_replay {
    struct tn_program program;
    char *conf; /* of the recorded run */
};

/* First device with a trace that is not empty, or 0. */
static int first_traced_device(const struct tn_model *model)
{
    for (size_t i = 0; i < model->trace_count; i++) {
        if (model->traces[i].count > 0) {
            return (int)i;
        }
    }
    return 0;
}

enum tarn_status tarn_replay_create(const struct tarn_snapshot *snapshot, int device,
                                    struct tarn_replay **replay_out, struct tarn_error *error)
{
    const struct tn_model *model = tn_snapshot_model(snapshot);
    struct tarn_replay *replay = tn_host_alloc_zero(sizeof *replay);
    enum tarn_status st;

    if (!replay) {
        return tn_fail(error, TARN_ERR_HOST_MEMORY, "no host memory for a replay");
    }
    st = tn_program_init(&replay->program, model, device < 0 ? first_traced_device(model) : device,
                         error);
    if (st) {
        tn_host_free(replay, sizeof *replay);
        return st;
    }
    replay->conf = tn_host_strdup(tn_model_string(model, model->settings.conf).text);
    if (!replay->conf) {
        tarn_replay_destroy(replay);
        return tn_fail(error, TARN_ERR_HOST_MEMORY, "no host memory for a replay");
    }
    *replay_out = replay;
    return TARN_OK;
}

void tarn_replay_destroy(struct tarn_replay *replay)
{
    if (replay) {
        tn_program_fini(&replay->program);
        tn_host_strfree(replay->conf);
        tn_host_free(replay, sizeof *replay);
    }
}

void tarn_replay_get_info(const struct tarn_replay *replay, struct tarn_replay_info *info_out)
{
    const uint32_t asked = info_out->struct_size;
    const struct tarn_replay_info info = {
        .struct_size = asked,
        .device = replay->program.device,
        .entries = replay->program.entry_count,
        .allocations = replay->program.alloc_count,
        .ooms = replay->program.oom_count,
        .complete = replay->program.complete,
        .conf = replay->conf,
    };

    memcpy(info_out, &info, asked < sizeof info ? asked : sizeof info);
}

const char *tarn_replay_get_note(const struct tarn_replay *replay, size_t index)
{
    return index < replay->program.note_count ? replay->program.notes[index] : NULL;
}

enum tarn_status tarn_replay_run(const struct tarn_replay *replay,
                                 const struct tarn_replay_options *options,
                                 struct tarn_replay_result *result_out, struct tarn_error *error)
{
    struct tarn_replay_options wanted = {0};
    struct tarn_replay_result result = {.struct_size = sizeof result};
    struct tarn_config config;
    struct tn_runner runner;
    enum tarn_status st;

    if (!result_out || result_out->struct_size < sizeof result) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "a result with its struct_size is needed");
    }
    if (options) {
        memcpy(&wanted, options,
               options->struct_size < sizeof wanted ? options->struct_size : sizeof wanted);
    }
    st = tarn_config_parse(wanted.conf ? wanted.conf : replay->conf, &config, error);
    st = st ? st
            : tn_runner_open(
                  &runner, &replay->program, &config,
                  wanted.device_total ? wanted.device_total : replay->program.device_bound, error);
    if (st) {
        return st;
    }
    runner.check = wanted.check;
    st = tn_runner_run(&runner, &result, error);
    tn_runner_close(&runner);
    if (st == TARN_OK) {
        *result_out = result;
    }
    return st;
}
