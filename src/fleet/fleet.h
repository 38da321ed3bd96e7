/* SPDX-License-Identifier: MIT */
/*
 * A fleet: lines of ranks and the lines of the stacks that they name. A line is kept as its text,
 * and decoded again when a report needs it: 10,000 ranks then take some tens of megabytes.
 *
 * Invariants: no two stack lines are equal; equal rank lines are equal ranks and stay apart. Each
 * line was written here, or was decoded once without an error.
 */
#ifndef TN_FLEET_FLEET_H
#define TN_FLEET_FLEET_H

#include "base/arena.h"
#include "base/id_table.h"
#include "base/stable_hash.h"
#include "base/vec.h"
#include "fleet/label_table.h"
#include "tarn/fleet.h"
#include "tarn/selection.h"

enum {
    TN_LINE_MAX = 1 << 20 /* bytes of a line of a file */
};

#define TN_SUMMARY_HEAD  "{\"format\":\"tarn summary\",\"version\":"
#define TN_SUMMARY_STACK "{\"stack\":\""
#define TN_SUMMARY_RANK  "{\"rank\":"
#define TN_SUMMARY_END   "{\"end\":\""

enum {
    TN_SUMMARY_VERSION = 2
};

struct tn_line {
    const char *text; /* without its newline, not NUL-terminated; the fleet's */
    size_t length;
};

struct tarn_fleet {
    struct tn_budget budget;
    struct tn_arena arena;
    struct tn_vec stacks; /* struct tn_line */
    struct tn_id_table stack_ids;
    struct tn_vec ranks; /* struct tn_line */
    struct tn_label_table labels;
    struct tarn_rules *rules; /* the default ones, once a snapshot was added; else NULL */
};

/* Both copy the text; false without host memory, or beyond the budget. A stack that is there
 * already is not added again. */
bool tn_fleet_add_stack(struct tarn_fleet *fleet, const char *text, size_t length) TN_MUST_CHECK;
bool tn_fleet_add_rank(struct tarn_fleet *fleet, const char *text, size_t length) TN_MUST_CHECK;

/* Takes back what was added since there were so many lines. */
void tn_fleet_cut(struct tarn_fleet *fleet, size_t stack_count, size_t rank_count);

bool tn_fleet_has_stack(const struct tarn_fleet *fleet, const char *text, size_t length);

/* Sorted copies of the stack lines, so that the numbers of the fleet's own stay; `sorted` is
 * initialised. False without host memory. */
bool tn_fleet_sorted_stacks(const struct tarn_fleet *fleet, struct tn_vec *sorted) TN_MUST_CHECK;

/* Sorts the ranks: from here on their order depends on nothing else. */
void tn_fleet_sort(struct tarn_fleet *fleet);

/* ---- lines, summary_line.c ---- */

/* The checksum of lines up to this one and its end; `hash` is that of the lines before,
 * TN_STABLE_HASH_BEGIN at first. */
uint64_t tn_line_hash(uint64_t hash, const char *line, size_t length);

/* The number by which ranks name a stack: of its frames as JSON. Never 0. */
uint64_t tn_stack_line_id(const char *frames, size_t length);

/* Whether a line is that of a stack with the right number; sets it, and where the frames are. */
bool tn_stack_line_check(const char *line, size_t length, uint64_t *id_out, const char **frames_out,
                         size_t *frames_length_out);

/* 16 digits; false for anything else. */
bool tn_hex_read(const char *text, size_t length, uint64_t *number_out);

bool tn_line_begins(const char *line, size_t length, const char *begin);

#endif
