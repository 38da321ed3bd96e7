/* SPDX-License-Identifier: MIT */
/*
 * What a report on a fleet says: the comparison of report/ranks.h, and what the ranks have in
 * common. Owns its memory; borrows the fleet. Everything depends on the set of ranks alone, not on
 * their order. Cost: O(lines), and O(labels log labels).
 */
#ifndef TN_FLEET_FLEET_ROWS_H
#define TN_FLEET_FLEET_ROWS_H

#include "base/map.h"
#include "fleet/fleet.h"
#include "report/ranks.h"

/* A label of which most ranks stand out, and few elsewhere. */
struct tn_label_row {
    const char *key;
    const char *value;
    uint64_t ranks; /* with it */
    uint64_t outliers;
    uint64_t other_ranks; /* with another value of the key */
    uint64_t other_outliers;
};

/* Ranks whose requested bytes follow each other closely. */
struct tn_group_row {
    uint64_t ranks;
    uint64_t outliers;
    uint64_t least; /* requested bytes */
    uint64_t most;
    const char *labels; /* "pp=1 host=3": those that all of it have, but not all ranks; or "" */
    const char *file;   /* the first one */
};

struct tn_growth_row {
    const char *file;
    int device;
    int64_t per_step;
    uint64_t since;      /* step */
    int64_t change;      /* of what is allocated at the end of a step, since that one */
    const char *stack;   /* what grows most; "" when unknown */
    uint64_t headroom;   /* TARN_NONE: the size of the device is unknown */
    uint64_t steps_left; /* until the headroom is used up; TARN_NONE: it does not grow */
};

/* One rank, beside what report/ranks.h keeps. */
struct tn_fleet_member {
    const struct tarn_label *labels; /* those of the table among them */
    size_t label_count;
    const char *file;
    int device;
    uint64_t requested;
    uint64_t reserved_peak;
    uint64_t ooms;
    bool is_partial; /* its snapshot was cut off */
    double distance;
    bool is_outlier;
    size_t group; /* in the groups */
    bool has_steps;
    int64_t growth;
    uint64_t since;
    int64_t change;
    const char *stack;
};

struct tn_fleet_rows {
    struct tarn_fleet *fleet;
    struct tarn_report_options options;
    struct tarn_fleet_options how;
    struct tn_budget budget; /* without a limit */
    struct tn_arena arena;
    struct tn_map stacks;  /* number of a stack: its name, plus 1 */
    struct tn_vec members; /* struct tn_fleet_member: one for each line of the fleet */
    struct tn_ranks *ranks;
    struct tn_ranks_result *result;
    struct tn_vec labels;   /* struct tn_label_row */
    struct tn_vec groups;   /* struct tn_group_row, most requested first */
    struct tn_vec growth;   /* struct tn_growth_row, most first */
    struct tn_vec headroom; /* the same, the rank that fails first is the first; empty when the
                               size of the device is unknown */
    struct tn_vec missing;  /* uint64_t: ranks of which there is nothing, at most 100 */
    uint64_t missing_count;
    uint64_t highest_rank;
    uint64_t partial; /* ranks whose snapshot was cut off */
    uint64_t doubled; /* ranks that are there more than once */
    uint64_t ooms;    /* ranks with failed requests */
};

/* Both options may be NULL. Fails as tarn_fleet_report; release in any case. */
enum tarn_status tn_fleet_rows_make(struct tn_fleet_rows *rows, struct tarn_fleet *fleet,
                                    const struct tarn_report_options *options,
                                    const struct tarn_fleet_options *how,
                                    struct tarn_error *error) TN_MUST_CHECK;
void tn_fleet_rows_fini(struct tn_fleet_rows *rows);

/* Writes them as tarn_fleet_report does: fleet_report.c. */
enum tarn_status tn_fleet_rows_put(const struct tn_fleet_rows *rows,
                                   const struct tarn_writer *writer,
                                   struct tarn_error *error) TN_MUST_CHECK;

#endif
