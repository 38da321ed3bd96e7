/* SPDX-License-Identifier: MIT */
/*
 * What reports share: the memory of a result, the loop over devices, rows by group and their names.
 *
 * A result is one piece of host memory after a header; what it points to is in the header's arena,
 * or, as texts of the file, in the snapshot. So a result needs no destructor of its own.
 */
#ifndef TN_REPORT_RESULT_H
#define TN_REPORT_RESULT_H

#include "analysis/analysis.h"
#include "base/arena.h"
#include "base/map.h"
#include "tarn/report.h"

struct tn_result;

/* `size` bytes, all zero, destroyed with tarn_report_destroy; NULL without host memory. */
void *tn_result_create(size_t size) TN_MUST_CHECK;
struct tn_result *tn_result_of(void *result);

/* Memory that lives as long as the result. */
struct tn_arena *tn_result_arena(struct tn_result *result);

/* Copies that live as long as the result; NULL without host memory. A text ends with a 0 byte. */
void *tn_result_copy(struct tn_result *result, const void *items, size_t count,
                     size_t size) TN_MUST_CHECK;
const char *tn_result_text(struct tn_result *result, const char *text, size_t length) TN_MUST_CHECK;

/* Collects a text: what is written to the output is copied by _end, NULL without host memory. */
struct tn_text_out *tn_result_text_begin(struct tn_result *result);
const char *tn_result_text_end(struct tn_result *result) TN_MUST_CHECK;

/* The frames by their numbers in the model; false without host memory. */
bool tn_result_frames(struct tn_result *result, const struct tn_model *model,
                      const uint32_t *numbers, size_t count,
                      struct tarn_group *group) TN_MUST_CHECK;

/* Names the group with that key; false without host memory. */
bool tn_result_group(struct tn_result *result, const struct tn_group_keys *keys,
                     struct tarn_group *group) TN_MUST_CHECK;

/* The name of a stack of the model, as for a group by stack. */
bool tn_result_stack(struct tn_result *result, const struct tn_model *model, uint32_t stack,
                     struct tarn_group *group) TN_MUST_CHECK;

struct tarn_time_point tn_result_time_point(const struct tn_time_point *at);

/* ---- devices ---- */

/* A report that is being computed. */
struct tn_report {
    const struct tarn_report_options *options; /* never NULL */
    uint64_t limit;                            /* most rows of a table */
    struct tn_result *result;
    bool for_summary; /* leaves out what a summary does not have, or has from another report: who
                         held memory at the requested peak and at failed requests, what led to
                         them, states over time. They take most of such a report's time. */
};

/* Computes the result of a device that has a trace; its head is already set. TARN_ERR_HOST_MEMORY
 * needs no text. */
typedef enum tarn_status tn_report_device(const struct tn_report *report,
                                          const struct tn_analysis *analysis, void *result_out,
                                          struct tarn_error *error);

/* What a report is about. */
enum tn_report_scope {
    TN_REPORT_TRACE, /* what happened: devices that have a trace */
    TN_REPORT_STATE, /* one time point: if the file has no traces, its devices as they are */
    TN_REPORT_TRACE_CATEGORIES /* as the first, and blocks have categories whatever the grouping */
};

/* Computes an array of results of `size` bytes, one for each device that the options select and
 * that is in the scope. `results_out` points to a pointer to the report's own struct, which begins
 * with struct tarn_report_head. `options` may be NULL. */
enum tarn_status tn_report_run(const struct tarn_snapshot *snapshot,
                               const struct tarn_report_options *options,
                               enum tn_report_scope scope, size_t size, tn_report_device *compute,
                               void *results_out, size_t *count_out,
                               struct tarn_error *error) TN_MUST_CHECK;

/* Called for a device; TARN_ERR_HOST_MEMORY needs no text. */
typedef enum tarn_status tn_report_visit(void *context, const struct tn_analysis *analysis,
                                         struct tarn_error *error);

/* Visits each device that is in the scope and that the options ask for, until a visit fails. */
enum tarn_status tn_report_devices(const struct tn_model *model,
                                   const struct tarn_report_options *options,
                                   enum tn_report_scope scope, tn_report_visit *visit,
                                   void *context, struct tarn_error *error) TN_MUST_CHECK;

/* The same; TARN_ERR_NOT_FOUND when the selection picks blocks and no device has one. */
enum tarn_status tn_report_devices_found(const struct tn_model *model,
                                         const struct tarn_report_options *options,
                                         enum tn_report_scope scope, tn_report_visit *visit,
                                         void *context, struct tarn_error *error) TN_MUST_CHECK;

/* The number of devices that tn_report_devices visits. */
size_t tn_report_device_count(const struct tn_model *model,
                              const struct tarn_report_options *options,
                              enum tn_report_scope scope);

/* The most rows that a table has, and how many of `count` rows it shows. */
uint64_t tn_report_limit(const struct tarn_report_options *options);
size_t tn_report_rows(const struct tn_report *report, size_t count);

struct tarn_report_head tn_report_head_of(const struct tn_analysis *analysis);

/* TARN_ERR_NOT_SUPPORTED when the file has no trace at all, TARN_ERR_NOT_FOUND when it has none of
 * the one device that is wanted. */
enum tarn_status tn_report_check_traces(const struct tn_model *model, bool one_device, int device,
                                        struct tarn_error *error) TN_MUST_CHECK;

/* The median of numbers, which it sorts; of an even count the mean of both in the middle. */
double tn_median(double *numbers, size_t count);

/* ---- rows ---- */

/* Rows by key: structs that begin with struct tarn_group. `sum_count` members, uint64_t or int64_t,
 * can be summed: they must stay next to each other in the public struct. */
struct tn_row_set {
    struct tn_vec rows;
    struct tn_vec small;   /* uint32_t, by key below a limit, as stacks have: row + 1, 0 = none */
    struct tn_map numbers; /* of other keys */
    size_t sums_at;        /* of the first such member */
    size_t sum_count;
};

void tn_row_set_init(struct tn_row_set *set, size_t row_size, size_t sums_at, size_t sum_count);
void tn_row_set_fini(struct tn_row_set *set);

/* The row of a key, NULL if it has none yet. */
void *tn_row_known(const struct tn_row_set *set, uint64_t key);

/* tn_row_get of a key that may be new. */
void *tn_row_get_any(struct tn_row_set *set, uint64_t key) TN_MUST_CHECK;

/* The row of a key, all zero at first; NULL without host memory. Borrowed until the next one.
 * Without a call for most blocks, whose row is there. */
TN_MUST_CHECK static inline void *tn_row_get(struct tn_row_set *set, uint64_t key)
{
    const uint32_t *small = set->small.items;

    return key < set->small.count && small[key] > 0
               ? (char *)set->rows.items + (small[key] - 1) * set->rows.item_size
               : tn_row_get_any(set, key);
}

/* Sorts the rows. Afterwards neither must be called: they would find wrong rows. */
void tn_row_set_sort(struct tn_row_set *set, int (*compare)(const void *, const void *));

/* Adds the numbers of all rows from number `first` on to those of a row. */
void tn_rows_sum(const struct tn_row_set *set, size_t first, void *row);

/* The row of a key, NULL when there is none. Cost: O(rows). */
const void *tn_row_find(const struct tn_row_set *set, uint64_t key);

/* The rows as a tree of calls, an array in the result of structs of the same type, with
 * `struct tarn_call` at `call_at`; ranked by the first of the numbers that can be summed, which are
 * at most TN_CALL_NUMBERS. NULL without host memory. */
void *tn_tree_collect(const struct tn_report *report, const struct tn_group_keys *keys,
                      const struct tn_row_set *set, size_t call_at,
                      size_t *count_out) TN_MUST_CHECK;

#endif
