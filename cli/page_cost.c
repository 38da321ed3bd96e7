/* SPDX-License-Identifier: MIT */
#include "page_cost.h"

#include <inttypes.h>
#include <stdio.h>

void cli_page_cost_add(struct cli_page_cost *cost, const struct tarn_replay_result *result)
{
    cost->created += result->pages_created;
    cost->moved += result->pages_moved;
    cost->moving_ns += result->moving_ns;
    cost->longest_ns =
        result->longest_ns > cost->longest_ns ? result->longest_ns : cost->longest_ns;
}

void cli_page_cost_print(const struct cli_page_cost *cost)
{
    (void)printf("%" PRIu64 " pages of 2 MiB created, %" PRIu64 " moved;\n"
                 "    on an H200 moving takes %.1f ms, the longest request %.1f ms\n",
                 cost->created, cost->moved, (double)cost->moving_ns / 1e6,
                 (double)cost->longest_ns / 1e6);
}

void cli_page_cost_json(struct cli_json *json, const struct cli_page_cost *cost)
{
    cli_json_number(json, "pages_created", cost->created);
    cli_json_number(json, "pages_moved", cost->moved);
    cli_json_number(json, "moving_ns", cost->moving_ns);
    cli_json_number(json, "longest_request_ns", cost->longest_ns);
}

enum tarn_status cli_compact_run_add(struct cli_compact_run *run, const struct tarn_replay *replay,
                                     const struct tarn_replay_options *options,
                                     struct tarn_error *error)
{
    struct tarn_replay_options compact = *options;
    struct tarn_replay_result result = {.struct_size = sizeof result};

    compact.struct_size = sizeof compact;
    compact.conf = CLI_COMPACT;
    const enum tarn_status status = tarn_replay_run(replay, &compact, &result, error);

    if (status) {
        return status;
    }
    run->reserved += (uint64_t)result.stats.by_pool[TARN_STAT_RESERVED_BYTES][TARN_STAT_ALL].peak;
    run->ooms += (uint64_t)result.stats.num_ooms;
    cli_page_cost_add(&run->cost, &result);
    return TARN_OK;
}

void cli_compact_run_json(struct cli_json *json, const struct cli_compact_run *run)
{
    cli_json_open_object(json, "compact");
    cli_json_text(json, "conf", CLI_COMPACT);
    cli_json_number(json, "peak_reserved", run->reserved);
    cli_json_number(json, "ooms", run->ooms);
    cli_page_cost_json(json, &run->cost);
    cli_json_close(json);
}
