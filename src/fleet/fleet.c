/* SPDX-License-Identifier: MIT */
#include "fleet/fleet.h"

#include "base/byte_out.h"
#include "base/errinfo.h"
#include "base/host_mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum tarn_status tarn_fleet_create(struct tarn_fleet **fleet_out, struct tarn_error *error)
{
    struct tarn_fleet *fleet = tn_host_alloc_zero(sizeof *fleet);

    *fleet_out = fleet;
    if (!fleet) {
        return tn_fail_memory(error);
    }
    tn_arena_init(&fleet->arena, &fleet->budget);
    tn_vec_init(&fleet->stacks, sizeof(struct tn_line));
    tn_id_table_init(&fleet->stack_ids, &fleet->budget);
    tn_vec_init(&fleet->ranks, sizeof(struct tn_line));
    tn_label_table_init(&fleet->labels);
    return TARN_OK;
}

void tarn_fleet_destroy(struct tarn_fleet *fleet)
{
    if (!fleet) {
        return;
    }
    tarn_rules_destroy(fleet->rules);
    tn_label_table_fini(&fleet->labels);
    tn_vec_fini(&fleet->ranks);
    tn_id_table_fini(&fleet->stack_ids);
    tn_vec_fini(&fleet->stacks);
    tn_arena_fini(&fleet->arena);
    tn_host_free(fleet, sizeof *fleet);
}

size_t tarn_fleet_rank_count(const struct tarn_fleet *fleet)
{
    return fleet->ranks.count;
}

enum tarn_status tarn_fleet_load_labels(struct tarn_fleet *fleet, const char *path,
                                        struct tarn_error *error)
{
    struct tn_label_table table;

    tn_label_table_init(&table);
    const enum tarn_status status = tn_label_table_load(&table, path, error);

    if (status) {
        tn_label_table_fini(&table);
        return status;
    }
    tn_label_table_fini(&fleet->labels);
    fleet->labels = table;
    fleet->labels.arena.budget = &fleet->labels.budget;
    return TARN_OK;
}

/* ---- lines ---- */

static bool line_keep(struct tarn_fleet *fleet, struct tn_vec *lines, const char *text,
                      size_t length)
{
    const struct tn_line line = {tn_arena_copy(&fleet->arena, text, length, 1), length};

    return line.text && tn_vec_append(lines, &line, 1);
}

static bool line_equal(const void *owner, uint32_t id, const void *key)
{
    const struct tarn_fleet *fleet = owner;
    const struct tn_line *line = (const struct tn_line *)fleet->stacks.items + id;
    const struct tn_line *wanted = key;

    /* Numbers of lines that were cut off stay in the table. */
    return id < fleet->stacks.count && line->length == wanted->length &&
           memcmp(line->text, wanted->text, line->length) == 0;
}

static bool stack_is_known(const struct tarn_fleet *fleet, uint32_t hash, const char *text,
                           size_t length)
{
    const struct tn_line line = {text, length};
    uint32_t found;

    return tn_id_table_find(&fleet->stack_ids, hash, line_equal, fleet, &line, &found);
}

bool tn_fleet_has_stack(const struct tarn_fleet *fleet, const char *text, size_t length)
{
    return stack_is_known(fleet, tn_hash_bytes(text, length), text, length);
}

bool tn_fleet_add_stack(struct tarn_fleet *fleet, const char *text, size_t length)
{
    const uint32_t hash = tn_hash_bytes(text, length);

    if (stack_is_known(fleet, hash, text, length)) {
        return true;
    }
    if (!line_keep(fleet, &fleet->stacks, text, length)) {
        return false;
    }
    if (tn_id_table_add(&fleet->stack_ids, hash, (uint32_t)fleet->stacks.count - 1)) {
        return true;
    }
    fleet->stacks.count--;
    return false;
}

void tn_fleet_cut(struct tarn_fleet *fleet, size_t stack_count, size_t rank_count)
{
    fleet->stacks.count = stack_count;
    fleet->ranks.count = rank_count;
}

bool tn_fleet_add_rank(struct tarn_fleet *fleet, const char *text, size_t length)
{
    return line_keep(fleet, &fleet->ranks, text, length);
}

static int line_compare(const void *left, const void *right)
{
    const struct tn_line *a = left;
    const struct tn_line *b = right;
    const int order = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);

    return order ? order : (a->length > b->length) - (a->length < b->length);
}

bool tn_fleet_sorted_stacks(const struct tarn_fleet *fleet, struct tn_vec *sorted)
{
    if (!tn_vec_append(sorted, fleet->stacks.items, fleet->stacks.count)) {
        return false;
    }
    tn_vec_sort(sorted, line_compare);
    return true;
}

void tn_fleet_sort(struct tarn_fleet *fleet)
{
    tn_vec_sort(&fleet->ranks, line_compare);
}

/* ---- writing ---- */

struct output {
    struct tn_byte_out bytes;
    uint64_t hash; /* of what was written */
};

static void line_put(struct output *out, const char *text, size_t length)
{
    out->hash = tn_line_hash(out->hash, text, length);
    tn_bytes_put(&out->bytes, text, length);
    tn_bytes_put(&out->bytes, "\n", 1);
}

static void lines_put(struct output *out, const struct tn_line *lines, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        line_put(out, lines[i].text, lines[i].length);
    }
}

static enum tarn_status output_write(struct output *out, const struct tarn_fleet *fleet,
                                     const struct tn_vec *stacks, const struct tarn_writer *writer)
{
    char text[sizeof TN_SUMMARY_HEAD + 32];

    tn_bytes_init(&out->bytes, writer);
    out->hash = TN_STABLE_HASH_BEGIN;
    int length = snprintf(text, sizeof text, "%s%d}", TN_SUMMARY_HEAD, TN_SUMMARY_VERSION);

    line_put(out, text, (size_t)length);
    lines_put(out, stacks->items, stacks->count);
    lines_put(out, fleet->ranks.items, fleet->ranks.count);
    length = snprintf(text, sizeof text, "%s%016" PRIx64 "\"}\n", TN_SUMMARY_END, out->hash);
    tn_bytes_put(&out->bytes, text, (size_t)length);
    return tn_bytes_finish(&out->bytes);
}

enum tarn_status tarn_fleet_write(struct tarn_fleet *fleet, const struct tarn_writer *writer,
                                  struct tarn_error *error)
{
    struct output *out = tn_host_alloc(sizeof *out);
    struct tn_vec stacks; /* sorted; the numbers of the fleet's own stay */

    tn_vec_init(&stacks, sizeof(struct tn_line));
    if (!out || !tn_fleet_sorted_stacks(fleet, &stacks)) {
        tn_vec_fini(&stacks);
        tn_host_free(out, sizeof *out);
        return tn_fail_memory(error);
    }
    tn_fleet_sort(fleet);
    const enum tarn_status status = output_write(out, fleet, &stacks, writer);

    tn_vec_fini(&stacks);
    tn_host_free(out, sizeof *out);
    return status ? tn_fail(error, status, "writing a summary failed") : TARN_OK;
}
