/* SPDX-License-Identifier: MIT */
/* Labels of one rank, by key, and a table of labels that is read from a file. */
#ifndef TN_FLEET_LABEL_TABLE_H
#define TN_FLEET_LABEL_TABLE_H

#include "base/arena.h"
#include "base/vec.h"
#include "tarn/fleet.h"

enum {
    TN_LABEL_KEY_MAX = 64,
    TN_LABEL_VALUE_MAX = 256
};

/* Sorted by key. The texts are an arena's. */
struct tn_labels {
    struct tarn_label items[TARN_LABELS_MAX];
    size_t count;
};

/* NULL when there is none of that key. */
const char *tn_labels_find(const struct tn_labels *labels, const char *key);

/* Sets or replaces one; copies both texts into the arena. TARN_ERR_INVALID_ARGUMENT for a key or a
 * value that is none, TARN_ERR_LIMIT for one too many, TARN_ERR_HOST_MEMORY. */
enum tarn_status tn_labels_set(struct tn_labels *labels, struct tn_arena *arena, const char *key,
                               size_t key_length, const char *value,
                               size_t value_length) TN_MUST_CHECK;

/* Those in the name of a file; see tarn_fleet_add. Beyond TARN_LABELS_MAX the later ones are left
 * out. False without host memory. */
bool tn_labels_read_name(struct tn_labels *labels, struct tn_arena *arena,
                         const char *name) TN_MUST_CHECK;

/* As JSON without the file, {"host":"3","rank":"12"}, in place of what is in `text`, chars. False
 * without host memory. */
bool tn_labels_write(const struct tarn_label *labels, size_t count,
                     struct tn_vec *text) TN_MUST_CHECK;

struct tn_label_table {
    struct tn_budget budget;
    struct tn_arena arena;
    struct tn_vec columns; /* const char *: the first is what ranks are found by */
    struct tn_vec cells;   /* const char *, row by row, sorted by the first */
};

void tn_label_table_init(struct tn_label_table *table);
void tn_label_table_fini(struct tn_label_table *table);

/* Reads a file into an empty, initialised table, which is to be released in any case. */
enum tarn_status tn_label_table_load(struct tn_label_table *table, const char *path,
                                     struct tarn_error *error) TN_MUST_CHECK;

/* Adds the labels of the table's row of that rank, if it has one. False without host memory. */
bool tn_label_table_apply(const struct tn_label_table *table, struct tn_labels *labels,
                          struct tn_arena *arena) TN_MUST_CHECK;

#endif
