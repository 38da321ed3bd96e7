/* SPDX-License-Identifier: MIT */
/* Implements tarn/replay.h: creates and runs replays. */
#include "replay/replay.h"

#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/size_text.h"
#include "replay/compile.h"
#include "replay/limit.h"
#include "replay/outcome.h"
#include "replay/pool_search.h"
#include "replay/rules_search.h"
#include "replay/run.h"
#include "snapshot/snapshot.h"

#include <string.h>

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

static void note_limit(struct tn_program *program)
{
    const struct tn_limit *limit = &program->limit;

    if (limit->bytes) {
        tn_program_note(program,
                        "the recorded run had %s of %s (%llu bytes), inferred from its trace: "
                        "with this limit the replay is exact",
                        limit->by_device ? "device memory" : "a memory limit",
                        tn_size_text_message(limit->bytes).text, (unsigned long long)limit->bytes);
    } else if (tn_limit_shows(limit)) {
        tn_program_note(program,
                        "the run was short of memory, at a limit between %llu and %llu bytes that "
                        "is not in the file; with none of these the replay is exact, so memory is "
                        "released where the recorded run released it; see --memory-limit",
                        (unsigned long long)limit->at_least, (unsigned long long)limit->below);
    }
}

/* Creates a replay without searching for a limit. On failure there is nothing to release. */
static enum tarn_status replay_make(const struct tn_model *model, int device, const char *conf,
                                    const struct tarn_config *config,
                                    struct tarn_replay **replay_out, struct tarn_error *error)
{
    struct tarn_replay *replay = tn_host_alloc_zero(sizeof *replay);
    enum tarn_status st;

    if (!replay) {
        return tn_fail_memory(error);
    }
    replay->config = *config;
    st = tn_program_compile(&replay->program, model, device, config, error);
    if (st) {
        tn_host_free(replay, sizeof *replay);
        return st;
    }
    replay->conf = tn_host_strdup(conf);
    if (!replay->conf) {
        tarn_replay_destroy(replay);
        return tn_fail_memory(error);
    }
    *replay_out = replay;
    return TARN_OK;
}

/* Finds what no snapshot records. Without the right pools there may be no limit that reproduces the
 * run exactly. */
static enum tarn_status find_out(struct tarn_replay *replay, const struct tn_model *model,
                                 struct tarn_error *error)
{
    struct tn_program *program = &replay->program;
    struct tarn_config *config = &replay->config;
    enum tarn_status st = tn_limit_search(program, config, error);

    st = st ? st : tn_pool_search(program, model, config, error);
    if (st == TARN_OK && program->limit.bytes == 0) {
        st = tn_limit_search(program, config, error);
    }
    return st ? st : tn_rules_search(program, config, error);
}

enum tarn_status tarn_replay_create(const struct tarn_snapshot *snapshot, int device,
                                    struct tarn_replay **replay_out, struct tarn_error *error)
{
    const struct tn_model *model = tn_snapshot_model(snapshot);
    const char *conf = tn_model_string(model, model->settings.conf).text;
    struct tarn_replay *replay = NULL;
    struct tarn_config config;

    /* Invalid settings are reported when they are used. */
    const bool readable = tarn_config_parse(conf, &config, NULL) == TARN_OK;
    const enum tarn_status set = readable ? TARN_OK : tarn_config_parse("", &config, error);

    tn_assert(set == TARN_OK); /* the defaults can be read */
    (void)set;
    enum tarn_status st = replay_make(model, device < 0 ? first_traced_device(model) : device, conf,
                                      &config, &replay, error);

    if (st) {
        return st;
    }
    tn_assert(replay);
    if (readable) {
        st = find_out(replay, model, error);
    }
    if (st) {
        tarn_replay_destroy(replay);
        return st;
    }
    note_limit(&replay->program);
    *replay_out = replay;
    return TARN_OK;
}

bool tn_replay_is_of(const struct tarn_replay *replay, const struct tn_model *model)
{
    const size_t device = (size_t)replay->program.device;

    return device < model->trace_count &&
           model->traces[device].count == replay->program.entry_count;
}

enum tarn_status tn_replay_repeat(const struct tarn_replay *replay, const struct tn_model *model,
                                  struct tarn_replay **replay_out, struct tarn_error *error)
{
    const enum tarn_status st = replay_make(model, replay->program.device, replay->conf,
                                            &replay->config, replay_out, error);

    if (st == TARN_OK) {
        (*replay_out)->program.limit = replay->program.limit;
        note_limit(&(*replay_out)->program);
    }
    return st;
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
        .memory_limit = replay->program.limit.bytes,
        .limit_is_device = replay->program.limit.by_device,
        .lag_ms = replay->program.lag_ms,
    };

    memcpy(info_out, &info, asked < sizeof info ? asked : sizeof info);
}

const char *tarn_replay_get_note(const struct tarn_replay *replay, size_t index)
{
    return index < replay->program.note_count ? replay->program.notes[index] : NULL;
}

/* Memory of a run: the caller's choice, else that of the recorded run. */
static struct tn_runner_room room_of(const struct tarn_replay *replay,
                                     const struct tarn_replay_options *options)
{
    const struct tn_runner_room recorded = tn_runner_room_recorded(&replay->program.limit);
    struct tn_runner_room room = {.device = options->device_total,
                                  .limit = options->memory_limit,
                                  .base_address = options->base_address,
                                  .lag_ms = options->lag_ms};

    if (options->memory_limit == UINT64_MAX) {
        room.limit = 0;
    } else if (options->memory_limit == 0 && options->device_total == 0) {
        room.device = recorded.device;
        room.limit = recorded.limit;
    }
    return room;
}

/* Runs the program and, with a recorded model, captures the result. */
static enum tarn_status run_and_capture(struct tn_runner *runner, const struct tn_model *recorded,
                                        struct tarn_replay_result *result,
                                        struct tarn_snapshot **snapshot_out,
                                        struct tarn_error *error)
{
    struct tn_outcome outcome;
    enum tarn_status st = tn_run_begin(runner, result, error);

    if (st || !recorded) {
        return st ? st : tn_run_finish(runner, error);
    }
    st = tn_outcome_attach(&outcome, recorded, runner, error);
    if (st) {
        return st;
    }
    st = tn_run_finish(runner, error);
    st = st ? st : tn_outcome_capture(&outcome, snapshot_out, error);
    tn_outcome_detach(&outcome);
    return st;
}

static enum tarn_status replay_run(const struct tarn_replay *replay,
                                   const struct tn_model *recorded,
                                   const struct tarn_replay_options *options,
                                   struct tarn_replay_result *result_out,
                                   struct tarn_snapshot **snapshot_out, struct tarn_error *error)
{
    struct tarn_replay_options wanted = {0};
    struct tarn_replay_result result = {.struct_size = sizeof result};
    struct tarn_config config;
    struct tn_runner runner;
    enum tarn_status st;

    if (!result_out || result_out->struct_size < sizeof result) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "a result with its struct_size is required");
    }
    if (options) {
        memcpy(&wanted, options,
               options->struct_size < sizeof wanted ? options->struct_size : sizeof wanted);
    }
    tarn_config_init(&config);
    config.rules = replay->config.rules; /* unless the settings name others */
    st = tarn_config_update(wanted.conf ? wanted.conf : replay->conf, &config, error);
    const struct tn_runner_room room = room_of(replay, &wanted);

    if (st == TARN_OK && recorded && config.backend == TARN_BACKEND_ASYNC) {
        st = tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                     "backend:cudaMallocAsync has no segments for a snapshot: leave out the "
                     "snapshot, or replay under other settings");
    }
    st = st ? st : tn_runner_open(&runner, &replay->program, &config, &room, error);
    if (st) {
        return st;
    }
    runner.check = wanted.check;
    runner.stop_at_oom = wanted.stops_at_oom;
    if (wanted.entries > 0) {
        runner.entries = wanted.entries;
    }
    st = run_and_capture(&runner, recorded, &result, snapshot_out, error);
    tn_runner_close(&runner);
    if (st == TARN_OK) {
        *result_out = result;
    }
    return st;
}

enum tarn_status tarn_replay_run(const struct tarn_replay *replay,
                                 const struct tarn_replay_options *options,
                                 struct tarn_replay_result *result_out, struct tarn_error *error)
{
    return replay_run(replay, NULL, options, result_out, NULL, error);
}

enum tarn_status tarn_replay_capture(const struct tarn_replay *replay,
                                     const struct tarn_snapshot *recorded,
                                     const struct tarn_replay_options *options,
                                     struct tarn_replay_result *result_out,
                                     struct tarn_snapshot **snapshot_out, struct tarn_error *error)
{
    const struct tn_model *model = recorded ? tn_snapshot_model(recorded) : NULL;

    if (!model || !tn_replay_is_of(replay, model)) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "the replay was not created from this snapshot");
    }
    return replay_run(replay, model, options, result_out, snapshot_out, error);
}
