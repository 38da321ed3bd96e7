/* SPDX-License-Identifier: MIT */
/*
 * Names of groups that outlive their snapshot and mean the same in another: the path in full, and
 * the short form that tables show. Equal paths have one number.
 *
 * Owns: the texts. Guarded by its owner. Cost: O(length of the path) a name.
 */
#ifndef TN_REPORT_NAME_TABLE_H
#define TN_REPORT_NAME_TABLE_H

#include "analysis/group_key.h"
#include "base/arena.h"
#include "base/chunked_vec.h"
#include "base/id_table.h"

struct tn_name {
    const char *path; /* not NUL-terminated; can be shown */
    size_t path_length;
    const char *shown;
    size_t shown_length;
    struct tn_stack_label label; /* by stack; `model` NULL for other groupings */
};

struct tn_name_table {
    struct tn_budget budget; /* without a limit */
    struct tn_arena arena;
    struct tn_chunked_vec names; /* struct tn_name */
    struct tn_id_table ids;
    struct tn_path_format format;
    struct tn_vec text; /* char: a name being written */
};

/* Borrows the prefix of the form. */
void tn_name_table_init(struct tn_name_table *table, const struct tn_path_format *format);
void tn_name_table_fini(struct tn_name_table *table);

/* The number of a key's name, made at first sight; false when host memory is missing. Labels of
 * stacks are borrowed from the model of the keys, which is to last as long as they are used. */
bool tn_name_find(struct tn_name_table *table, const struct tn_group_keys *keys, uint64_t key,
                  uint32_t *name_out) TN_MUST_CHECK;

/* The same of a stack whose model lives as long as the table, and of a text that is its own path
 * and can be shown. */
bool tn_name_find_stack(struct tn_name_table *table, const struct tn_stack_label *label,
                        uint32_t *name_out) TN_MUST_CHECK;
bool tn_name_find_text(struct tn_name_table *table, const char *text, size_t length,
                       uint32_t *name_out) TN_MUST_CHECK;

static inline const struct tn_name *tn_name_at(const struct tn_name_table *table, uint32_t name)
{
    return tn_chunked_vec_at(&table->names, name);
}

#endif
