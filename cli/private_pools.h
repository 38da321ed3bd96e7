/* SPDX-License-Identifier: MIT */
/* The private pools of a recorded run at its reserved peak, and an estimate of more such pools, for
 * `tarn fit` and `tarn scale`. */
#ifndef CLI_PRIVATE_POOLS_H
#define CLI_PRIVATE_POOLS_H

#include "card.h"
#include "json_out.h"
#include "tarn/report.h"

enum {
    CLI_POOL_COUNTS_MAX = 16,
    CLI_POOL_COUNT_MAX = 100000
};

/* Numbers of pools to estimate. */
struct cli_pool_counts {
    uint64_t items[CLI_POOL_COUNTS_MAX];
    int count;
};

/* From "N[,N...]"; false for anything else. */
bool cli_pool_counts_read(struct cli_pool_counts *counts, const char *text);

/* Those of one device; destroy with tarn_report_destroy. A device that the file does not have gives
 * *pools_out NULL, as do files that no report reads. TARN_ERR_HOST_MEMORY. */
enum tarn_status cli_private_pools_find(const struct tarn_snapshot *snapshot, int device,
                                        struct tarn_private_pools_result **pools_out,
                                        struct tarn_error *error);

/* The table; nothing when there are no pools or `pools` is NULL. */
void cli_private_pools_print(const struct tarn_private_pools_result *pools);
void cli_private_pools_json(struct cli_json *json, const struct tarn_private_pools_result *pools);

/* What so many pools like these would reserve, and what the run with them; there is at least one.
 * `room` is what the card has, 0 without one. */
void cli_pool_counts_print(const struct cli_pool_counts *counts,
                           const struct tarn_private_pools_result *pools, uint64_t room);
void cli_pool_counts_json(struct cli_json *json, const struct cli_pool_counts *counts,
                          const struct tarn_private_pools_result *pools);

#endif
