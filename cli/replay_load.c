/* SPDX-License-Identifier: MIT */
#include "replay_load.h"

#include "device_opt.h"
#include "escape.h"
#include "output.h"
#include "tarn/verify.h"

#include <stdio.h>

struct tarn_snapshot *cli_load_recording(const struct cli_command *command, const char *path,
                                         int *exit_out)
{
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error;

    if (!tarn_verify_is_log(path)) {
        return cli_load_snapshot(command, path, exit_out);
    }
    const enum tarn_status status = tarn_verify_snapshot(path, &snapshot, &error);

    *exit_out = status ? (int)cli_fail_status(command, status, &error, path) : (int)CLI_EXIT_OK;
    return snapshot;
}

/* A run of several devices is not the run of one. */
static void devices_note(const struct tarn_snapshot *snapshot, const char *path, int replayed)
{
    char list[128] = "";
    size_t used = 0;
    size_t others = 0;
    const size_t count = tarn_snapshot_device_count(snapshot);
    uint64_t left = tarn_snapshot_entry_count(snapshot);

    for (size_t i = 0; left > 0 && i < count; i++) {
        const uint64_t length = tarn_snapshot_trace_length(snapshot, i);

        left -= length;
        if (length > 0 && i != (size_t)replayed) {
            others++;
            if (used + 16 < sizeof list) {
                used += (size_t)snprintf(list + used, sizeof list - used, "%s%zu",
                                         others > 1 ? ", " : "", i);
            }
        }
    }
    if (others > 0) {
        cli_note("%s: only device %d is replayed; --device selects another of those with a trace "
                 "(%s)",
                 path, replayed, list);
    }
}

struct tarn_replay *cli_replay_create(const struct cli_command *command,
                                      const struct tarn_snapshot *snapshot, const char *path,
                                      uint64_t device, int *exit_out)
{
    struct tarn_replay_info info = {.struct_size = sizeof info};
    struct tarn_replay *replay = NULL;
    struct tarn_error error;
    int number;
    const bool is_given = cli_device_is_given(device, &number);
    const enum tarn_status status =
        tarn_replay_create(snapshot, is_given ? number : -1, &replay, &error);

    if (status) {
        *exit_out = (int)cli_fail_status(command, status, &error, path);
        return NULL;
    }
    if (!is_given) {
        tarn_replay_get_info(replay, &info);
        devices_note(snapshot, path, info.device);
    }
    return replay;
}

struct tarn_replay *cli_replay_load(const struct cli_command *command, const char *path,
                                    uint64_t device, int *exit_out)
{
    struct tarn_snapshot *snapshot = cli_load_recording(command, path, exit_out);

    if (!snapshot) {
        return NULL;
    }
    struct tarn_replay *replay = cli_replay_create(command, snapshot, path, device, exit_out);

    tarn_snapshot_destroy(snapshot);
    return replay;
}

void cli_replay_print_notes(const struct tarn_replay *replay)
{
    const char *note;

    for (size_t i = 0; (note = tarn_replay_get_note(replay, i)) != NULL; i++) {
        (void)fputs("note: ", stdout);
        cli_put_escaped(stdout, note);
        (void)putchar('\n');
    }
}

const char *cli_conf_name(const char *conf)
{
    return conf[0] ? conf : "(default)";
}
