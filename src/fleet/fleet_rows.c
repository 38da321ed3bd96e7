/* SPDX-License-Identifier: MIT */
#include "fleet/fleet_rows.h"

#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/order.h"
#include "fleet/rank_record.h"

#include <stdlib.h>
#include <string.h>

#define GROUP_GAP 0.01 /* of the larger: a wider gap divides groups of ranks */

enum {
    MISSING_MAX = 100,
    OUTLIER_SHARE_MIN = 2,      /* a label explains when one of so many of its ranks stands out, */
    OUTLIER_SHARE_ELSEWHERE = 4 /* and elsewhere at most one so many times rarer */
};

static struct tn_fleet_member *member_at(const struct tn_fleet_rows *rows, size_t number)
{
    return (struct tn_fleet_member *)rows->members.items + number;
}

static const char *member_label(const struct tn_fleet_member *member, const char *key)
{
    for (size_t i = 0; i < member->label_count; i++) {
        if (strcmp(member->labels[i].key, key) == 0) {
            return member->labels[i].value;
        }
    }
    return NULL;
}

/* ---- stacks ---- */

static bool is_frame(const struct tn_json_value *value)
{
    return tn_json_text(tn_json_at(value, 0)) && tn_json_text(tn_json_at(value, 1)) &&
           tn_json_is(tn_json_at(value, 2), TN_JSON_INTEGER);
}

/* Of any value: what is no array has no frames. */
static bool are_frames(const struct tn_json_value *frames)
{
    for (size_t i = 0; i < tn_json_length(frames); i++) {
        if (!is_frame(tn_json_at(frames, i))) {
            return false;
        }
    }
    return true;
}

/* Of a frame that is_frame has looked at. */
static bool string_add(struct tn_model *kept, const struct tn_json_value *value, uint32_t *out)
{
    const char *text = tn_json_text(value);

    return tn_always(text) && tn_model_add_string(kept, text, value->count, out) == TARN_OK;
}

static bool frame_add(struct tn_model *kept, const struct tn_json_value *value, uint32_t *out)
{
    struct tn_frame frame = {.line = tn_json_integer(tn_json_at(value, 2))};

    return string_add(kept, tn_json_at(value, 0), &frame.name) &&
           string_add(kept, tn_json_at(value, 1), &frame.filename) &&
           tn_model_add_frame(kept, &frame, out) == TARN_OK;
}

static bool stack_name(struct tn_fleet_rows *rows, const struct tn_json_value *frames,
                       uint32_t *name_out)
{
    struct tn_model *kept = tn_ranks_kept(rows->ranks);
    const size_t count = tn_json_length(frames);
    uint32_t *numbers = tn_arena_alloc_array(&rows->arena, count + 1, sizeof *numbers);
    struct tn_stack_label label = {.model = kept,
                                   .is_known = tn_json_is(frames, TN_JSON_ARRAY),
                                   .is_full = rows->options.full_stacks};
    uint32_t stack = TN_STACK_NONE;
    bool good = numbers != NULL;

    for (size_t i = 0; good && i < count; i++) {
        good = frame_add(kept, tn_json_at(frames, i), &numbers[i]);
    }
    if (!good || tn_model_add_stack(kept, numbers, count, &stack) != TARN_OK) {
        return false;
    }
    label.stack = tn_model_stack(kept, stack);
    return tn_name_find_stack(tn_ranks_names(rows->ranks), &label, name_out);
}

/* False: out of memory. A stack that is none names nothing: its rows are among the smaller ones. */
static bool stack_add(struct tn_fleet_rows *rows, struct tn_json_tree *tree,
                      const struct tn_line *line)
{
    const char *frames;
    size_t length;
    uint64_t id;
    uint32_t name;

    const bool is_line = tn_stack_line_check(line->text, line->length, &id, &frames, &length);

    /* Lines were checked when they came into the fleet. Of two with one number, which somebody can
     * make, the first one counts. */
    if (tn_never(!is_line) || tn_map_find(&rows->stacks, id)) {
        return true;
    }
    const enum tarn_status status = tn_json_parse(tree, frames, length, false, NULL);

    if (status) {
        return status != TARN_ERR_HOST_MEMORY;
    }
    const char *text = tn_json_text(&tree->root);

    if (!text && !are_frames(&tree->root)) {
        return true;
    }
    const bool named =
        text ? tn_name_find_text(tn_ranks_names(rows->ranks), text, tree->root.count, &name)
             : stack_name(rows, &tree->root, &name);

    if (!named || !tn_map_reserve(&rows->stacks, 1)) {
        return false;
    }
    tn_map_insert(&rows->stacks, id, (uint64_t)name + 1);
    return true;
}

/* In an order that does not depend on that of the files: it breaks ties. */
static bool stacks_add(struct tn_fleet_rows *rows)
{
    struct tn_json_tree tree;
    struct tn_vec sorted; /* struct tn_line */

    tn_json_tree_init(&tree);
    tn_vec_init(&sorted, sizeof(struct tn_line));
    bool good = tn_fleet_sorted_stacks(rows->fleet, &sorted);

    for (size_t i = 0; good && i < sorted.count; i++) {
        good = stack_add(rows, &tree, (const struct tn_line *)sorted.items + i);
    }
    tn_vec_fini(&sorted);
    tn_json_tree_fini(&tree);
    return good;
}

/* ---- ranks ---- */

/* Room for one rank's parts, and the name of what has none. */
struct adding {
    struct tn_fleet_rows *rows;
    struct tn_record_reader reader;
    struct tn_vec parts; /* struct tn_rank_part */
    uint32_t smaller;
};

static bool parts_add(struct adding *adding, const struct tn_rank_record *record)
{
    const struct tn_record_part *parts = record->parts.items;

    adding->parts.count = 0;
    for (size_t i = 0; i <= record->parts.count; i++) {
        const bool is_last = i == record->parts.count;
        const struct tn_record_part *from = is_last ? &record->others : &parts[i];
        const uint64_t *name = is_last ? NULL : tn_map_find(&adding->rows->stacks, from->stack);
        const struct tn_rank_part part = {.name = name ? (uint32_t)(*name - 1) : adding->smaller,
                                          .bytes = from->bytes,
                                          .blocks = from->blocks};

        if ((!is_last || from->blocks > 0 || from->bytes > 0) &&
            !tn_vec_append(&adding->parts, &part, 1)) {
            return false;
        }
    }
    return true;
}

static bool labels_keep(struct tn_fleet_rows *rows, struct tn_fleet_member *member,
                        const struct tn_labels *labels)
{
    struct tarn_label *kept =
        tn_arena_alloc_array(&rows->arena, labels->count, sizeof(struct tarn_label));

    for (size_t i = 0; kept && i < labels->count; i++) {
        kept[i].key =
            tn_arena_copy_text(&rows->arena, labels->items[i].key, strlen(labels->items[i].key));
        kept[i].value = tn_arena_copy_text(&rows->arena, labels->items[i].value,
                                           strlen(labels->items[i].value));
        if (!kept[i].key || !kept[i].value) {
            return false;
        }
    }
    member->labels = kept;
    member->label_count = labels->count;
    member->file = kept ? member_label(member, "file") : NULL;
    return member->file != NULL;
}

/* The first step that counts is that number, or the first one that the line has after it. */
static void change_set(const struct tn_fleet_rows *rows, struct tn_fleet_member *member,
                       const struct tn_rank_record *record)
{
    const struct tn_record_step *steps = record->steps.items;
    size_t first = 0;

    while (first < record->steps.count && steps[first].number < rows->how.since_step) {
        first++;
    }
    if (first < record->steps.count) {
        member->since = steps[first].number;
        member->change = (int64_t)steps[record->steps.count - 1].end - (int64_t)steps[first].end;
    }
}

static bool grower_set(struct tn_fleet_rows *rows, struct tn_fleet_member *member, uint64_t stack)
{
    const uint64_t *found = stack ? tn_map_find(&rows->stacks, stack) : NULL;

    member->stack = "";
    if (found) {
        const struct tn_name *name =
            tn_name_at(tn_ranks_names(rows->ranks), (uint32_t)(*found - 1));

        member->stack = tn_arena_copy_text(&rows->arena, name->shown, name->shown_length);
    }
    return member->stack != NULL;
}

static bool member_add(struct tn_fleet_rows *rows, const struct tn_rank_record *record)
{
    struct tn_fleet_member member = {.device = record->device,
                                     .requested = record->requested,
                                     .reserved_peak = record->reserved_peak,
                                     .ooms = record->ooms,
                                     .is_partial = record->is_partial,
                                     .has_steps = record->has_steps && record->steps.count > 1,
                                     .growth = record->growth};

    change_set(rows, &member, record);
    rows->partial += record->is_partial ? 1 : 0;
    rows->ooms += record->ooms > 0 ? 1 : 0;
    return labels_keep(rows, &member, &record->labels) &&
           grower_set(rows, &member, record->grower) && tn_vec_append(&rows->members, &member, 1);
}

static enum tarn_status rank_add(struct adding *adding, const struct tn_line *line,
                                 struct tarn_error *error)
{
    struct tn_fleet_rows *rows = adding->rows;
    struct tn_rank_record *record = &adding->reader.record;
    const enum tarn_status status =
        tn_record_read(&adding->reader, line->text, line->length, error);

    if (status) {
        return status;
    }
    if (rows->members.count == 0) {
        rows->options.by = record->by;
    } else if (rows->options.by != record->by) {
        return tn_fail(error, TARN_ERR_MISMATCH, "ranks are grouped by %s and by %s",
                       tn_grouping_name(rows->options.by), tn_grouping_name(record->by));
    }
    const struct tn_rank shown = {.file = record->file,
                                  .device = record->device,
                                  .requested = record->requested,
                                  .left_out = record->left_out,
                                  .reserved_peak = record->reserved_peak};

    return tn_label_table_apply(&rows->fleet->labels, &record->labels, &adding->reader.arena) &&
                   parts_add(adding, record) && member_add(rows, record) &&
                   tn_ranks_add_parts(rows->ranks, &shown, adding->parts.items, adding->parts.count)
               ? TARN_OK
               : tn_fail_memory(error);
}

static bool lines_equal(const struct tn_line *a, const struct tn_line *b)
{
    return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

/* The lines are sorted. */
static enum tarn_status ranks_add(struct tn_fleet_rows *rows, struct tarn_error *error)
{
    static const char smaller[] = "(smaller ones)";
    const struct tn_line *lines = rows->fleet->ranks.items;
    struct adding adding = {.rows = rows};
    enum tarn_status status = TARN_OK;

    tn_record_reader_init(&adding.reader);
    tn_vec_init(&adding.parts, sizeof(struct tn_rank_part));
    if (!tn_name_find_text(tn_ranks_names(rows->ranks), smaller, sizeof smaller - 1,
                           &adding.smaller)) {
        status = tn_fail_memory(error);
    }
    for (size_t i = 0; status == TARN_OK && i < rows->fleet->ranks.count; i++) {
        status = rank_add(&adding, &lines[i], error);
        rows->doubled += i > 0 && lines_equal(&lines[i - 1], &lines[i]) ? 1 : 0;
    }
    tn_vec_fini(&adding.parts);
    tn_record_reader_fini(&adding.reader);
    return status;
}

/* ---- labels that explain ---- */

struct tuple {
    const char *key;
    const char *value;
    bool is_outlier;
};

static int tuple_compare(const void *left, const void *right)
{
    const struct tuple *a = left;
    const struct tuple *b = right;
    const int order = strcmp(a->key, b->key);

    return order ? order : strcmp(a->value, b->value);
}

static bool tuples_collect(const struct tn_fleet_rows *rows, struct tn_vec *tuples)
{
    for (size_t i = 0; i < rows->members.count; i++) {
        const struct tn_fleet_member *member = member_at(rows, i);

        for (size_t k = 0; k < member->label_count; k++) {
            const struct tuple tuple = {member->labels[k].key, member->labels[k].value,
                                        member->is_outlier};

            if (strcmp(tuple.key, "file") != 0 && !tn_vec_append(tuples, &tuple, 1)) {
                return false;
            }
        }
    }
    tn_vec_sort(tuples, tuple_compare);
    return true;
}

static bool row_explains(const struct tn_label_row *row)
{
    return row->ranks > 1 && row->other_ranks > 0 && row->outliers > 0 &&
           row->outliers * OUTLIER_SHARE_MIN >= row->ranks &&
           row->other_outliers * row->ranks * OUTLIER_SHARE_ELSEWHERE <=
               row->outliers * row->other_ranks;
}

/* The values of one key: tuples [first, limit). */
static bool key_rows_add(struct tn_fleet_rows *rows, const struct tuple *tuples, size_t first,
                         size_t limit)
{
    uint64_t outliers = 0;

    for (size_t i = first; i < limit; i++) {
        outliers += tuples[i].is_outlier ? 1 : 0;
    }
    for (size_t i = first; i < limit;) {
        struct tn_label_row row = {.key = tuples[i].key, .value = tuples[i].value};

        for (; i < limit && strcmp(tuples[i].value, row.value) == 0; i++) {
            row.ranks++;
            row.outliers += tuples[i].is_outlier ? 1 : 0;
        }
        row.other_ranks = limit - first - row.ranks;
        row.other_outliers = outliers - row.outliers;
        if (row_explains(&row) && !tn_vec_append(&rows->labels, &row, 1)) {
            return false;
        }
    }
    return true;
}

/* Those with fewest outliers elsewhere first, then with most. */
static int label_compare(const void *left, const void *right)
{
    const struct tn_label_row *a = left;
    const struct tn_label_row *b = right;
    int order = tn_order(a->other_outliers, b->other_outliers);

    order = order ? order : tn_order(a->ranks - a->outliers, b->ranks - b->outliers);
    order = order ? order : tn_order(b->outliers, a->outliers);
    order = order ? order : strcmp(a->key, b->key);
    return order ? order : strcmp(a->value, b->value);
}

static bool labels_make(struct tn_fleet_rows *rows)
{
    struct tn_vec tuples;

    tn_vec_init(&tuples, sizeof(struct tuple));
    bool good = tuples_collect(rows, &tuples);
    const struct tuple *items = tuples.items;

    for (size_t first = 0, limit; good && first < tuples.count; first = limit) {
        limit = first;
        while (limit < tuples.count && strcmp(items[limit].key, items[first].key) == 0) {
            limit++;
        }
        good = key_rows_add(rows, items, first, limit);
    }
    tn_vec_fini(&tuples);
    tn_vec_sort(&rows->labels, label_compare);
    return good;
}

/* ---- groups of like ranks ---- */

static int requested_compare(const void *left, const void *right)
{
    const struct tn_fleet_member *a = *(const struct tn_fleet_member *const *)left;
    const struct tn_fleet_member *b = *(const struct tn_fleet_member *const *)right;
    const int order = tn_order(b->requested, a->requested);

    return order ? order : (a > b) - (a < b); /* by number: they lie in one array */
}

static bool all_have(struct tn_fleet_member *const *members, size_t count,
                     const struct tarn_label *label)
{
    for (size_t i = 0; i < count; i++) {
        const char *value = member_label(members[i], label->key);

        if (!value || strcmp(value, label->value) != 0) {
            return false;
        }
    }
    return true;
}

/* "pp=1 host=3": labels of the group's that are not those of all. */
static const char *group_labels(struct tn_fleet_rows *rows, struct tn_fleet_member *const *all,
                                struct tn_fleet_member *const *members, size_t count)
{
    struct tn_vec text;
    const char *kept = NULL;
    bool good = true;

    tn_vec_init(&text, 1);
    for (size_t i = 0; good && i < members[0]->label_count; i++) {
        const struct tarn_label *label = &members[0]->labels[i];

        if (strcmp(label->key, "file") != 0 && all_have(members, count, label) &&
            !all_have(all, rows->members.count, label)) {
            good = (text.count == 0 || tn_vec_append(&text, " ", 1)) &&
                   tn_vec_append(&text, label->key, strlen(label->key)) &&
                   tn_vec_append(&text, "=", 1) &&
                   tn_vec_append(&text, label->value, strlen(label->value));
        }
    }
    if (good) {
        kept = tn_arena_copy_text(&rows->arena, text.count ? text.items : "", text.count);
    }
    tn_vec_fini(&text);
    return kept;
}

static bool group_add(struct tn_fleet_rows *rows, struct tn_fleet_member *const *all, size_t first,
                      size_t limit)
{
    struct tn_group_row row = {.ranks = limit - first,
                               .least = all[limit - 1]->requested,
                               .most = all[first]->requested,
                               .file = all[first]->file,
                               .labels = group_labels(rows, all, all + first, limit - first)};

    for (size_t i = first; i < limit; i++) {
        row.outliers += all[i]->is_outlier ? 1 : 0;
        all[i]->group = rows->groups.count;
    }
    return row.labels && tn_vec_append(&rows->groups, &row, 1);
}

static bool groups_make(struct tn_fleet_rows *rows)
{
    const size_t count = rows->members.count;
    struct tn_fleet_member **all =
        tn_arena_alloc_array(&rows->arena, count, sizeof(struct tn_fleet_member *));
    bool good = all != NULL;

    for (size_t i = 0; good && i < count; i++) {
        all[i] = member_at(rows, i);
    }
    if (good) {
        qsort(all, count, sizeof(struct tn_fleet_member *), requested_compare);
    }
    for (size_t first = 0, limit; good && first < count; first = limit) {
        limit = first + 1;
        while (limit < count && (double)(all[limit - 1]->requested - all[limit]->requested) <=
                                    (double)all[limit - 1]->requested * GROUP_GAP) {
            limit++;
        }
        good = group_add(rows, all, first, limit);
    }
    return good;
}

/* ---- growth ---- */

static int growth_compare(const void *left, const void *right)
{
    const struct tn_growth_row *a = left;
    const struct tn_growth_row *b = right;

    if (a->per_step != b->per_step) {
        return a->per_step > b->per_step ? -1 : 1;
    }
    const int order = strcmp(a->file, b->file);

    return order ? order : (a->device > b->device) - (a->device < b->device);
}

static int headroom_compare(const void *left, const void *right)
{
    const struct tn_growth_row *a = left;
    const struct tn_growth_row *b = right;
    int order = tn_order(a->steps_left, b->steps_left);

    order = order ? order : tn_order(a->headroom, b->headroom);
    return order ? order : growth_compare(left, right);
}

static bool growth_make(struct tn_fleet_rows *rows)
{
    const uint64_t total = rows->how.device_total;

    for (size_t i = 0; i < rows->members.count; i++) {
        const struct tn_fleet_member *member = member_at(rows, i);
        const bool grows = member->has_steps && member->growth > 0;
        struct tn_growth_row row = {.file = member->file,
                                    .device = member->device,
                                    .per_step = grows ? member->growth : 0,
                                    .since = member->since,
                                    .change = member->change,
                                    .stack = member->stack,
                                    .headroom = TARN_NONE,
                                    .steps_left = TARN_NONE};

        if (total > 0) {
            row.headroom = total > member->reserved_peak ? total - member->reserved_peak : 0;
            row.steps_left = grows ? row.headroom / (uint64_t)member->growth : TARN_NONE;
        }
        if ((grows && !tn_vec_append(&rows->growth, &row, 1)) ||
            (total > 0 && !tn_vec_append(&rows->headroom, &row, 1))) {
            return false;
        }
    }
    tn_vec_sort(&rows->growth, growth_compare);
    tn_vec_sort(&rows->headroom, headroom_compare);
    return true;
}

/* ---- ranks that are missing ---- */

static bool number_of(const char *text, uint64_t *number_out)
{
    char *end;

    if (!text || text[0] < '0' || text[0] > '9' || strlen(text) > 9) {
        return false;
    }
    *number_out = strtoul(text, &end, 10);
    return *end == '\0';
}

static bool missing_add(struct tn_fleet_rows *rows, const uint64_t *sorted, size_t count)
{
    uint64_t next = 0;

    for (size_t i = 0; i < count; i++) {
        for (; next < sorted[i]; next++) {
            rows->missing_count++;
            if (rows->missing.count < MISSING_MAX && !tn_vec_append(&rows->missing, &next, 1)) {
                return false;
            }
            if (rows->missing.count == MISSING_MAX) {
                rows->missing_count += sorted[i] - next - 1;
                next = sorted[i] - 1;
            }
        }
        next = sorted[i] + 1;
    }
    return true;
}

/* Ranks count from 0 to the highest one there is. */
static bool missing_make(struct tn_fleet_rows *rows)
{
    struct tn_vec numbers;
    bool good = true;

    tn_vec_init(&numbers, sizeof(uint64_t));
    for (size_t i = 0; good && i < rows->members.count; i++) {
        uint64_t number;

        if (number_of(member_label(member_at(rows, i), "rank"), &number)) {
            good = tn_vec_append(&numbers, &number, 1);
            rows->highest_rank = number > rows->highest_rank ? number : rows->highest_rank;
        }
    }
    tn_vec_sort(&numbers, tn_order_numbers);
    good = good && missing_add(rows, numbers.items, numbers.count);
    tn_vec_fini(&numbers);
    return good;
}

/* ---- all of it ---- */

static void rows_init(struct tn_fleet_rows *rows, struct tarn_fleet *fleet,
                      const struct tarn_report_options *options,
                      const struct tarn_fleet_options *how)
{
    *rows = (struct tn_fleet_rows){.fleet = fleet};
    tn_arena_init(&rows->arena, &rows->budget);
    tn_vec_init(&rows->members, sizeof(struct tn_fleet_member));
    tn_vec_init(&rows->labels, sizeof(struct tn_label_row));
    tn_vec_init(&rows->groups, sizeof(struct tn_group_row));
    tn_vec_init(&rows->growth, sizeof(struct tn_growth_row));
    tn_vec_init(&rows->headroom, sizeof(struct tn_growth_row));
    tn_vec_init(&rows->missing, sizeof(uint64_t));
    if (options) {
        rows->options = *options;
    }
    if (how) {
        rows->how = *how;
    }
}

void tn_fleet_rows_fini(struct tn_fleet_rows *rows)
{
    tarn_report_destroy(rows->result);
    tn_ranks_destroy(rows->ranks);
    tn_vec_fini(&rows->missing);
    tn_vec_fini(&rows->headroom);
    tn_vec_fini(&rows->growth);
    tn_vec_fini(&rows->groups);
    tn_vec_fini(&rows->labels);
    tn_vec_fini(&rows->members);
    tn_map_fini(&rows->stacks);
    tn_arena_fini(&rows->arena);
}

static enum tarn_status compared_make(struct tn_fleet_rows *rows, struct tarn_error *error)
{
    const enum tarn_status status = tn_ranks_compare(rows->ranks, &rows->result, error);

    for (size_t i = 0; status == TARN_OK && i < rows->result->rank_count; i++) {
        struct tn_fleet_member *member = member_at(rows, tn_ranks_number(rows->ranks, i));

        member->is_outlier = rows->result->ranks[i].is_outlier;
        member->distance = rows->result->ranks[i].distance;
    }
    return status;
}

enum tarn_status tn_fleet_rows_make(struct tn_fleet_rows *rows, struct tarn_fleet *fleet,
                                    const struct tarn_report_options *options,
                                    const struct tarn_fleet_options *how, struct tarn_error *error)
{
    rows_init(rows, fleet, options, how);
    tn_fleet_sort(fleet);
    enum tarn_status status = tn_ranks_create(&rows->options, &rows->ranks, error);

    if (status == TARN_OK && !stacks_add(rows)) {
        status = tn_fail_memory(error);
    }
    status = status ? status : ranks_add(rows, error);
    status = status ? status : compared_make(rows, error);
    if (status == TARN_OK &&
        !(labels_make(rows) && groups_make(rows) && growth_make(rows) && missing_make(rows))) {
        status = tn_fail_memory(error);
    }
    return status;
}
