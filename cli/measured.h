/* SPDX-License-Identifier: MIT */
/* Figures measured on a GPU, to compare with a replay: a JSON list with one object per run. */
#ifndef CLI_MEASURED_H
#define CLI_MEASURED_H

#include "tarn/stats.h"
#include "tarn/status.h"

/* One figure that both the file and the replay have. */
struct cli_measured_figure {
    const char *name; /* PyTorch's key, e.g. "reserved_bytes.all.peak" */
    int64_t measured;
    int64_t replayed;
};

enum {
    CLI_MEASURED_MAX = 16
};

struct cli_measured {
    struct cli_measured_figure figures[CLI_MEASURED_MAX];
    int count;
};

/* Reads the run of that workload and settings string from the file and pairs its figures with the
 * counters. Fails when the file cannot be opened (TARN_ERR_IO), is not a list of runs
 * (TARN_ERR_FORMAT), or has no such run (TARN_ERR_NOT_FOUND; the text lists the existing ones). */
enum tarn_status cli_measured_read(const char *path, const char *workload, const char *conf,
                                   const struct tarn_stats *stats,
                                   struct cli_measured *measured_out, struct tarn_error *error);

#endif
