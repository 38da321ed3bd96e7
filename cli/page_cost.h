/* SPDX-License-Identifier: MIT */
/* What policy:compact does with its pages in a replay, and what recorded runs would need and pay
 * under it, which PyTorch's own allocator does not have. */
#ifndef TARN_CLI_PAGE_COST_H
#define TARN_CLI_PAGE_COST_H

#include "json_out.h"
#include "tarn/replay.h"

#define CLI_COMPACT "policy:compact"

struct cli_page_cost {
    uint64_t created; /* pages */
    uint64_t moved;
    uint64_t moving_ns; /* on an H200, as longest_ns */
    uint64_t longest_ns;
};

/* Runs under the policy, added up: all but the longest request are sums. */
struct cli_compact_run {
    uint64_t reserved; /* bytes at the peak */
    uint64_t ooms;
    struct cli_page_cost cost;
};

void cli_page_cost_add(struct cli_page_cost *cost, const struct tarn_replay_result *result);

/* Two lines, of which the first continues one: "94 pages of 2 MiB created, 41 moved;", "    on an
 * H200 moving takes 1.3 ms, the longest request 3.0 ms". */
void cli_page_cost_print(const struct cli_page_cost *cost);

/* Members of the object that is open. */
void cli_page_cost_json(struct cli_json *json, const struct cli_page_cost *cost);

/* Replays a run with these options under the policy and adds it. Errors are those of
 * tarn_replay_run. */
enum tarn_status cli_compact_run_add(struct cli_compact_run *run, const struct tarn_replay *replay,
                                     const struct tarn_replay_options *options,
                                     struct tarn_error *error);

/* The member "compact", an object. */
void cli_compact_run_json(struct cli_json *json, const struct cli_compact_run *run);

#endif
