/* SPDX-License-Identifier: MIT */
/* The texts of `tarn explain`. */
#ifndef CLI_EXPLAIN_TOPICS_H
#define CLI_EXPLAIN_TOPICS_H

struct cli_topic {
    const char *name; /* words joined by '-' */
    const char *about;
    const char *text; /* lines of at most 80 characters */
};

/* Ends with a row without a name. */
extern const struct cli_topic cli_topics[];

/* Their names; ends with NULL. */
extern const char *const cli_topic_names[];

/* Ignores case; '_' and ' ' match '-'. NULL if there is no such topic. */
const struct cli_topic *cli_topic_find(const char *name);

#endif
