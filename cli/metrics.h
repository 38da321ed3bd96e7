/* SPDX-License-Identifier: MIT */
/*
 * What `tarn watch` knows (watch_model.h) as metrics. One table per kind of subject has a row per
 * metric; docs/metrics.md explains them. The number of series is bounded: by the number of
 * processes, of their allocators and, for streams, of the rows in a page.
 */
#ifndef CLI_METRICS_H
#define CLI_METRICS_H

#include "openmetrics.h"
#include "watch_model.h"

struct cli_metrics_options {
    enum cli_om_format format;
    bool streams; /* series of each stream and private pool as well */
};

/* All processes that can be read; how many cannot is one of the metrics. */
void cli_metrics_print(const struct cli_watch *watch, const struct cli_metrics_options *options,
                       FILE *file);

#endif
