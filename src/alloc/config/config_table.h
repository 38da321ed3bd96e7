/* SPDX-License-Identifier: MIT */
/*
 * The one table of options: what is public about an option, where its value is stored, and its
 * bounds. Parsing, printing, `tarn config` and docs/config.md all follow from it. README.md lists
 * what a new option needs.
 */
#ifndef TN_ALLOC_CONFIG_CONFIG_TABLE_H
#define TN_ALLOC_CONFIG_CONFIG_TABLE_H

#include "tarn/config.h"

struct tn_config_row {
    struct tarn_config_option option;
    size_t at;       /* offset of the field: bool, uint64_t bytes (MIB), uint32_t (COUNT), double,
                         the array of divisions or enum tarn_backend, as the kind says */
    size_t given_at; /* offset of a bool that is set with it; 0 = none */
    uint64_t min;    /* MIB and COUNT, as written in a settings string */
    uint64_t max;
    bool min_is_segment; /* MIB: the minimum is large_segment_size instead */
    bool is_open;        /* FRACTION: 0 and 1 themselves are not allowed */
    bool is_early;       /* read before the others, because their bounds depend on it */
};

/* NULL past the last row. */
const struct tn_config_row *tn_config_row_get(size_t index);

/* The row with this name or alias, or NULL. */
const struct tn_config_row *tn_config_row_find(const char *name);

/* The name or alias that `word` probably means, or NULL. */
const char *tn_config_name_suggest(const char *word);

#endif
