/* SPDX-License-Identifier: MIT */
/*
 * The line of one rank, decoded: what a report over many ranks needs of it. Lines come from files,
 * so everything is checked: kinds of values, sizes, and that the rows add up to what is said to be
 * allocated.
 */
#ifndef TN_FLEET_RANK_RECORD_H
#define TN_FLEET_RANK_RECORD_H

#include "base/json_tree.h"
#include "base/vec.h"
#include "fleet/label_table.h"

struct tn_record_part {
    uint64_t stack; /* number of its line */
    uint64_t bytes;
    uint64_t blocks;
};

struct tn_record_step {
    uint64_t number;
    uint64_t peak;
    uint64_t end; /* requested bytes */
};

struct tn_rank_record {
    struct tn_labels labels;
    enum tarn_grouping by;
    bool is_partial;
    int device;
    const char *file;
    uint64_t requested;
    uint64_t left_out;
    uint64_t reserved_peak;
    uint64_t ooms;
    struct tn_vec parts;          /* struct tn_record_part */
    uint64_t other_groups;        /* that have no part */
    struct tn_record_part others; /* their sum */
    bool has_steps;               /* growth is from step to step, not between parts of the trace */
    int64_t growth;               /* per step, of all groups that grow */
    uint64_t grower;              /* the stack that grows most; 0: none */
    uint64_t step_count;
    struct tn_vec steps; /* struct tn_record_step, at most TN_SUMMARY_STEPS of them */
};

struct tn_record_reader {
    struct tn_json_tree tree;
    struct tn_budget budget;
    struct tn_arena arena; /* of the labels */
    struct tn_rank_record record;
};

void tn_record_reader_init(struct tn_record_reader *reader);
void tn_record_reader_fini(struct tn_record_reader *reader);

/* Fills reader->record, whose texts are borrowed until the next call. TARN_ERR_FORMAT with what is
 * wrong, TARN_ERR_LIMIT, TARN_ERR_HOST_MEMORY. */
enum tarn_status tn_record_read(struct tn_record_reader *reader, const char *line, size_t length,
                                struct tarn_error *error) TN_MUST_CHECK;

#endif
