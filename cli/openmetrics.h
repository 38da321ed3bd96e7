/* SPDX-License-Identifier: MIT */
/*
 * Writes metrics in the OpenMetrics text format 1.0, or in Prometheus' older text format 0.0.4, to
 * a stdio stream. The older one has no units, no type "info" and no end mark, and describes a
 * counter under its sample's name.
 *
 * All samples of a family must be written one after the other: the format forbids a family to
 * appear twice.
 */
#ifndef CLI_OPENMETRICS_H
#define CLI_OPENMETRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum cli_om_format {
    CLI_OM_OPENMETRICS,
    CLI_OM_PROMETHEUS /* 0.0.4 */
};

/* What an HTTP server declares. */
const char *cli_om_content_type(enum cli_om_format format);

enum cli_om_type {
    CLI_OM_GAUGE,
    CLI_OM_COUNTER,
    CLI_OM_INFO /* its value is 1; what it says is in its labels */
};

/* `name` is without the suffix of the type (`_total`, `_info`), and ends in `_UNIT` if there is a
 * unit. Samples are numbers of 10^-decimals. */
struct cli_om_family {
    const char *name;
    enum cli_om_type type;
    const char *unit; /* "bytes", "seconds", "ratio", or NULL */
    unsigned decimals;
    const char *help; /* a sentence */
};

/* A value is any bytes. As in all output of the program, invisible characters and invalid UTF-8
 * appear as escapes (tarn/text.h, TARN_TEXT_PLAIN); the format's own escapes come on top. */
struct cli_om_label {
    const char *name;
    const char *value;
};

struct cli_om {
    FILE *file;
    enum cli_om_format format;
    const struct cli_om_family *family; /* of the last sample */
};

/* Writes a sample, before it the family's description if it is the first one. */
void cli_om_sample(struct cli_om *om, const struct cli_om_family *family,
                   const struct cli_om_label *labels, size_t label_count, uint64_t value);

/* Writes the end mark, if the format has one. */
void cli_om_end(const struct cli_om *om);

#endif
