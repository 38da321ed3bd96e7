/* SPDX-License-Identifier: MIT */
/* A table of labels: CSV without line breaks in cells. */
#include "fleet/label_table.h"

#include "base/errinfo.h"
#include "base/input_line.h"

#include <stdlib.h>
#include <string.h>

enum {
    TABLE_LINE_MAX = 16384,
    TABLE_ROWS_MAX = 1000000
};

void tn_label_table_init(struct tn_label_table *table)
{
    *table = (struct tn_label_table){.budget = {.limit = 0}};
    tn_arena_init(&table->arena, &table->budget);
    tn_vec_init(&table->columns, sizeof(const char *));
    tn_vec_init(&table->cells, sizeof(const char *));
}

void tn_label_table_fini(struct tn_label_table *table)
{
    tn_vec_fini(&table->cells);
    tn_vec_fini(&table->columns);
    tn_arena_fini(&table->arena);
}

/* ---- reading ---- */

/* One cell from *at on, quoted or not; moves *at behind its comma, to NULL after the last one. The
 * line ends with a 0 byte, and the cell is unquoted in place. */
static char *cell_take(char **at)
{
    char *cell = *at;
    char *to = cell;
    bool quoted = cell[0] == '"';
    char *from = cell + (quoted ? 1 : 0);

    while (*from != '\0' && (quoted || *from != ',')) {
        if (quoted && from[0] == '"' && from[1] != '"') {
            quoted = false;
            from++;
            continue;
        }
        from += quoted && from[0] == '"' ? 1 : 0;
        *to++ = *from++;
    }
    *at = *from == ',' ? from + 1 : NULL;
    *to = '\0';
    return cell;
}

static enum tarn_status row_read(struct tn_label_table *table, struct tn_vec *cells, char *line,
                                 size_t *count_out)
{
    *count_out = 0;
    for (char *at = line; at; ++*count_out) {
        const char *cell = cell_take(&at);
        const char *kept = tn_arena_copy_text(&table->arena, cell, strlen(cell));

        if (!kept || !tn_vec_append(cells, &kept, 1)) {
            return TARN_ERR_HOST_MEMORY;
        }
    }
    return TARN_OK;
}

static enum tarn_status line_take(struct tn_label_table *table, const char *line, size_t length,
                                  uint64_t number, struct tarn_error *error)
{
    const bool is_head = table->columns.count == 0;
    char *text = tn_arena_copy_text(&table->arena, line, length);
    size_t count;

    if (!text || row_read(table, is_head ? &table->columns : &table->cells, text, &count)) {
        return tn_fail_memory(error);
    }
    if (is_head ? count < 2 || count > TARN_LABELS_MAX : count != table->columns.count) {
        return tn_fail(
            error, TARN_ERR_INVALID_ARGUMENT, "line %llu of the table of labels has %zu cells; %s",
            (unsigned long long)number, count,
            is_head ? "2 to 32 columns are needed" : "its first line has another number");
    }
    return table->cells.count / table->columns.count <= TABLE_ROWS_MAX
               ? TARN_OK
               : tn_fail(error, TARN_ERR_LIMIT, "the table of labels has more than %d lines",
                         TABLE_ROWS_MAX);
}

static int row_compare(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Columns may be no keys; then the first rank would fail. */
static enum tarn_status columns_check(struct tn_label_table *table, struct tarn_error *error)
{
    const char *const *columns = table->columns.items;
    struct tn_labels labels = {.count = 0};

    for (size_t i = 0; i < table->columns.count; i++) {
        const enum tarn_status status =
            tn_labels_set(&labels, &table->arena, columns[i], strlen(columns[i]), "", 0);

        if (status == TARN_ERR_HOST_MEMORY) {
            return tn_fail_memory(error);
        }
        if (status) {
            return tn_fail(error, status,
                           "\"%s\" in line 1 of the table of labels is no label: "
                           "letters, digits and '_' make one",
                           columns[i]);
        }
    }
    return table->columns.count > 0
               ? TARN_OK
               : tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "the table of labels is empty");
}

static enum tarn_status table_read(struct tn_label_table *table, struct tn_input *input,
                                   struct tarn_error *error)
{
    enum tarn_status status = TARN_OK;
    const char *line;
    size_t length;

    for (uint64_t number = 1; status == TARN_OK; number++) {
        status = tn_input_line(input, TABLE_LINE_MAX, &line, &length, error);
        if (status == TARN_OK && length > 0 && line[length - 1] == '\r') {
            length--;
        }
        if (status == TARN_OK && length > 0) {
            status = line_take(table, line, length, number, error);
        }
    }
    if (status != TARN_ERR_NOT_FOUND) {
        return status;
    }
    status = columns_check(table, error);
    if (status == TARN_OK && table->cells.count > 0) {
        qsort(table->cells.items, table->cells.count / table->columns.count,
              table->columns.count * sizeof(const char *), row_compare);
    }
    return status;
}

enum tarn_status tn_label_table_load(struct tn_label_table *table, const char *path,
                                     struct tarn_error *error)
{
    const struct tn_unpack_limits limits = {.max_bytes = (uint64_t)1 << 30, .max_ratio = 2000};
    struct tn_input input;
    enum tarn_status status = tn_input_open(&input, path, &limits, error);

    if (status) {
        return status;
    }
    status = table_read(table, &input, error);
    tn_input_close(&input);
    return status;
}

/* ---- use ---- */

bool tn_label_table_apply(const struct tn_label_table *table, struct tn_labels *labels,
                          struct tn_arena *arena)
{
    const char *const *columns = table->columns.items;
    const size_t width = table->columns.count;
    const char *key =
        width > 0 && table->cells.count > 0 ? tn_labels_find(labels, columns[0]) : NULL;
    const char *const *row = key ? bsearch(&key, table->cells.items, table->cells.count / width,
                                           width * sizeof(const char *), row_compare)
                                 : NULL;

    for (size_t i = 1; row && i < width; i++) {
        if (tn_labels_set(labels, arena, columns[i], strlen(columns[i]), row[i], strlen(row[i])) ==
            TARN_ERR_HOST_MEMORY) {
            return false;
        }
    }
    return true;
}
