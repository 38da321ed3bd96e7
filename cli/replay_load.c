/* SPDX-License-Identifier: MIT */
#include "replay_load.h"

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

struct tarn_replay *cli_replay_load(const struct cli_command *command, const char *path, int device,
                                    int *exit_out)
{
    struct tarn_snapshot *snapshot = cli_load_recording(command, path, exit_out);
    struct tarn_replay *replay = NULL;
    struct tarn_error error;

    if (!snapshot) {
        return NULL;
    }
    const enum tarn_status status = tarn_replay_create(snapshot, device, &replay, &error);

    tarn_snapshot_destroy(snapshot);
    if (status) {
        *exit_out = (int)cli_fail_status(command, status, &error, path);
        return NULL;
    }
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
