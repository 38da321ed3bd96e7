/* SPDX-License-Identifier: MIT */
/* What recorded runs would need, and pay, under policy:compact, which PyTorch's own allocator does
 * not have: a replay beside those of its settings. */
#ifndef TARN_CLI_PAGE_COST_H
#define TARN_CLI_PAGE_COST_H

#include "json_out.h"
#include "tarn/replay.h"

#define CLI_COMPACT "policy:compact"

struct cli_page_cost {
    uint64_t reserved; /* bytes at the peak; all but the longest request are sums over the runs */
    uint64_t ooms;
    uint64_t created; /* pages */
    uint64_t moved;
    uint64_t moving_ns; /* on an H200, as longest_ns */
    uint64_t longest_ns;
};

/* Replays a run with these options under the policy and adds what it costs. Errors are those of
 * tarn_replay_run. */
enum tarn_status cli_page_cost_add(const struct tarn_replay *replay,
                                   const struct tarn_replay_options *options,
                                   struct cli_page_cost *cost, struct tarn_error *error);

/* "94 pages moved; on an H200 moving takes 2.9 ms, the longest request 3.0 ms" */
void cli_page_cost_print(const struct cli_page_cost *cost);

/* An object with that key. */
void cli_page_cost_json(struct cli_json *json, const char *key, const struct cli_page_cost *cost);

#endif
