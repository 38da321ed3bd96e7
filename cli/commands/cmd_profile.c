/* SPDX-License-Identifier: MIT */
/* `tarn profile`: a snapshot from a profile. */
#include "tarn/profile.h"

#include "command.h"
#include "output.h"
#include "overwrite.h"

struct profile_values {
    bool force;
};

static const struct cli_opt profile_opts[] = {
    CLI_FORCE_OPT(struct profile_values),
    {0},
};

static void info_note(const struct tarn_profile_info *info)
{
    if (info->unknown > 0) {
        cli_note("memory events without address, bytes or device: %llu skipped",
                 (unsigned long long)info->unknown);
    }
    if (info->before_bytes > 0) {
        cli_note(
            "%llu bytes were allocated on GPUs before the profile started; the snapshot has only "
            "those that it frees",
            (unsigned long long)info->before_bytes);
    }
    if (info->slices == 0) {
        cli_note("the profile has no stacks of allocations; record it with with_stack=True");
    }
}

static enum cli_exit profile_run(const struct cli_call *call)
{
    const struct profile_values *values = call->values;
    struct tarn_profile_info info = {.struct_size = sizeof info};
    struct tarn_error error = {.offset = -1};
    struct tarn_snapshot *snapshot;
    const enum cli_exit checked =
        cli_overwrite_check(call->command, call->arguments[1], values->force);

    if (checked) {
        return checked;
    }
    enum tarn_status status = tarn_profile_load(call->arguments[0], NULL, &snapshot, &info, &error);

    if (status == TARN_OK) {
        info_note(&info);
        status = cli_snapshot_save(snapshot, call->arguments[1], &error);
        tarn_snapshot_destroy(snapshot);
    }
    return status ? cli_fail_status(call->command, status, &error, NULL) : CLI_EXIT_OK;
}

const struct cli_command cli_command_profile = {
    .name = "profile",
    .arguments = "TRACE OUTPUT",
    .arguments_min = 2,
    .arguments_max = 2,
    .help = "convert the memory timeline of a profile to a snapshot",
    .details = "TRACE is the Chrome trace that torch.profiler exports after a run with\n"
               "profile_memory=True (and with_stack=True, for stacks), plain, gzip or zstd.\n"
               "OUTPUT is a snapshot for the other commands: JSON if its name ends in .json,\n"
               "otherwise a pickle; - is standard output. As with PyTorch's _profile_to_snapshot\n"
               "there is one segment per device, and the CPU is the device after the last GPU.\n",
    .examples = "tarn profile profile.json.gz memory.pickle\n"
                "tarn profile profile.json.gz - | tarn peak -",
    .opts = profile_opts,
    .values_size = sizeof(struct profile_values),
    .is_unpaged = true,
    .run = profile_run,
};
