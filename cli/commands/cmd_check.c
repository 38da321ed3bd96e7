/* SPDX-License-Identifier: MIT */
/* `tarn check`: whether a snapshot agrees with itself. */
#include "command.h"
#include "json_out.h"
#include "output.h"
#include "tarn/report.h"
#include "tarn/snapshot.h"

struct check_values {
    bool json;
};

static const struct cli_opt check_opts[] = {
    {.name = "json",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct check_values, json),
     .help = "print JSON"},
    {0},
};

static uint64_t findings_kept(const struct tarn_findings *findings)
{
    return findings->count < TARN_FINDINGS_KEPT ? findings->count : TARN_FINDINGS_KEPT;
}

static void findings_print_json(const struct tarn_findings *findings)
{
    struct cli_json json;

    cli_json_begin(&json, stdout, "tarn.check/1", false);
    cli_json_number(&json, "contradictions", findings->count);
    cli_json_open_array(&json, "first");
    for (uint64_t i = 0; i < findings_kept(findings); i++) {
        cli_json_text(&json, NULL, findings->text[i]);
    }
    cli_json_end(&json);
}

static void findings_print(const struct tarn_findings *findings)
{
    for (uint64_t i = 0; i < findings_kept(findings); i++) {
        (void)printf("%s\n", findings->text[i]);
    }
    (void)printf("contradictions: %llu\n", (unsigned long long)findings->count);
}

static enum cli_exit check_run(const struct cli_call *call)
{
    const struct check_values *values = call->values;
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    struct tarn_error error;
    int code;
    struct tarn_snapshot *snapshot = cli_load_snapshot(call->command, call->arguments[0], &code);

    if (!snapshot) {
        return (enum cli_exit)code;
    }
    const enum tarn_status status = tarn_snapshot_check(snapshot, &findings, &error);

    tarn_snapshot_destroy(snapshot);
    if (status) {
        return cli_fail_status(call->command, status, &error, NULL);
    }
    if (values->json) {
        findings_print_json(&findings);
    } else {
        findings_print(&findings);
    }
    return code == 0 && findings.count > 0 ? CLI_EXIT_GATE : (enum cli_exit)code;
}

const struct cli_command cli_command_check = {
    .name = "check",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "look for contradictions in a snapshot",
    .details = "Blocks must add up to their segments, segments must not overlap, and the trace\n"
               "must allocate only free memory and free only allocated memory. Exits with 1 if\n"
               "there are contradictions, 4 if the file asks to run something, and 5 if it is\n"
               "truncated.\n",
    .examples = "tarn check dump.pickle\n"
                "tarn check --json dump.pickle",
    .is_redirected = true,
    .opts = check_opts,
    .values_size = sizeof(struct check_values),
    .run = check_run,
};
