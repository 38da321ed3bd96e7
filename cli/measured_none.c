/* SPDX-License-Identifier: MIT */
/* A build without jansson. */
#include "json_memory.h"
#include "measured.h"

#include <stdio.h>

void cli_json_memory_init(void)
{
}

enum tarn_status cli_measured_read(const char *path, const char *workload, const char *conf,
                                   const struct tarn_stats *stats,
                                   struct cli_measured *measured_out, struct tarn_error *error)
{
    (void)workload;
    (void)conf;
    (void)stats;
    measured_out->count = 0;
    error->status = TARN_ERR_NOT_SUPPORTED;
    error->offset = -1;
    (void)snprintf(error->text, sizeof error->text,
                   "cannot read %s: this tarn was not built with jansson", path);
    return error->status;
}
