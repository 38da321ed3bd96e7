/* SPDX-License-Identifier: MIT */
#include "fleet/rank_record.h"

#include "analysis/group_key.h"
#include "base/errinfo.h"
#include "fleet/fleet.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS_MAX = 4096, /* of one list in a line */
    SIZE_BITS = 62   /* sizes are below 2^62, and so are their sums */
};

void tn_record_reader_init(struct tn_record_reader *reader)
{
    *reader = (struct tn_record_reader){.budget = {.limit = 0}};
    tn_json_tree_init(&reader->tree);
    tn_arena_init(&reader->arena, &reader->budget);
    tn_vec_init(&reader->record.parts, sizeof(struct tn_record_part));
    tn_vec_init(&reader->record.steps, sizeof(struct tn_record_step));
}

void tn_record_reader_fini(struct tn_record_reader *reader)
{
    tn_vec_fini(&reader->record.steps);
    tn_vec_fini(&reader->record.parts);
    tn_arena_fini(&reader->arena);
    tn_json_tree_fini(&reader->tree);
}

/* ---- values ---- */

static bool size_get(const struct tn_json_value *value, uint64_t *size_out)
{
    const int64_t number = tn_json_integer(value);

    *size_out = (uint64_t)number;
    return tn_json_is(value, TN_JSON_INTEGER) && number >= 0 && number >> SIZE_BITS == 0;
}

static bool size_at(const struct tn_json_value *object, const char *key, uint64_t *size_out)
{
    return size_get(tn_json_get(object, key), size_out);
}

static bool signed_get(const struct tn_json_value *value, int64_t *number_out)
{
    *number_out = tn_json_integer(value);
    return tn_json_is(value, TN_JSON_INTEGER) && *number_out >> SIZE_BITS >= -1 &&
           *number_out >> SIZE_BITS <= 0;
}

static bool id_get(const struct tn_json_value *value, uint64_t *id_out)
{
    const char *text = tn_json_text(value);

    return text && tn_hex_read(text, value->count, id_out) && *id_out != 0;
}

/* Both are below 2^SIZE_BITS, so 64 bits hold their sum. */
static bool sum_add(uint64_t *sum, uint64_t size)
{
    *sum += size;
    return *sum >> SIZE_BITS == 0;
}

/* ---- parts of a line ---- */

static enum tarn_status labels_read(struct tn_record_reader *reader,
                                    const struct tn_json_value *labels)
{
    enum tarn_status status = tn_json_pairs(labels) > 0 ? TARN_OK : TARN_ERR_FORMAT;

    reader->record.labels.count = 0;
    for (size_t i = 0; status == TARN_OK && i < tn_json_pairs(labels); i++) {
        const char *key = tn_json_key(labels, i);
        const char *value = tn_json_text(tn_json_pair(labels, i));

        status = value ? tn_labels_set(&reader->record.labels, &reader->arena, key, strlen(key),
                                       value, strlen(value))
                       : TARN_ERR_FORMAT;
    }
    return status;
}

static bool place_read(struct tn_rank_record *record)
{
    const char *device = tn_labels_find(&record->labels, "device");
    char *end;

    record->file = tn_labels_find(&record->labels, "file");
    if (!record->file || !device || device[0] < '0' || device[0] > '9') {
        return false;
    }
    const long number = strtol(device, &end, 10); /* of digits: not negative */

    record->device = (int)number;
    return *end == '\0' && number < INT_MAX;
}

static bool grouping_read(const struct tn_json_value *value, enum tarn_grouping *by_out)
{
    const char *text = tn_json_text(value);

    for (int by = 0; text && by <= (int)TARN_BY_MODULE; by++) {
        if (strcmp(text, tn_grouping_name((enum tarn_grouping)by)) == 0) {
            *by_out = (enum tarn_grouping)by;
            return true;
        }
    }
    return false;
}

static bool part_read(const struct tn_json_value *row, struct tn_record_part *part)
{
    return tn_json_length(row) == 3 && id_get(tn_json_at(row, 0), &part->stack) &&
           size_get(tn_json_at(row, 1), &part->bytes) &&
           size_get(tn_json_at(row, 2), &part->blocks);
}

static bool others_read(const struct tn_json_value *row, struct tn_rank_record *record)
{
    return tn_json_length(row) == 3 && size_get(tn_json_at(row, 0), &record->other_groups) &&
           size_get(tn_json_at(row, 1), &record->others.bytes) &&
           size_get(tn_json_at(row, 2), &record->others.blocks);
}

/* The rows and the others add up to what is requested. */
static enum tarn_status held_read(struct tn_rank_record *record, const struct tn_json_value *held)
{
    const struct tn_json_value *rows = tn_json_get(held, "rows");
    const size_t count = tn_json_length(rows);
    bool good = tn_json_is(rows, TN_JSON_ARRAY) && count <= ROWS_MAX &&
                others_read(tn_json_get(held, "others"), record);
    uint64_t sum = record->others.bytes;

    record->parts.count = 0;
    for (size_t i = 0; good && i < count; i++) {
        struct tn_record_part part;

        good = part_read(tn_json_at(rows, i), &part) && sum_add(&sum, part.bytes);
        if (good && !tn_vec_append(&record->parts, &part, 1)) {
            return TARN_ERR_HOST_MEMORY;
        }
    }
    return good && sum == record->requested ? TARN_OK : TARN_ERR_FORMAT;
}

static enum tarn_status steps_read(struct tn_rank_record *record, const struct tn_json_value *steps)
{
    const struct tn_json_value *rows = tn_json_get(steps, "rows");
    const size_t count = tn_json_length(rows);
    bool good = tn_json_is(rows, TN_JSON_ARRAY) && count <= ROWS_MAX &&
                size_at(steps, "count", &record->step_count);

    record->steps.count = 0;
    for (size_t i = 0; good && i < count; i++) {
        const struct tn_json_value *row = tn_json_at(rows, i);
        struct tn_record_step step;

        good = tn_json_length(row) == 6 && size_get(tn_json_at(row, 0), &step.number) &&
               size_get(tn_json_at(row, 1), &step.peak) && size_get(tn_json_at(row, 2), &step.end);
        if (good && !tn_vec_append(&record->steps, &step, 1)) {
            return TARN_ERR_HOST_MEMORY;
        }
    }
    return good ? TARN_OK : TARN_ERR_FORMAT;
}

static bool growth_read(struct tn_rank_record *record, const struct tn_json_value *growth)
{
    const char *by = tn_json_text(tn_json_get(growth, "by"));
    const struct tn_json_value *rows = tn_json_get(growth, "rows");
    const struct tn_json_value *first = tn_json_at(rows, 0);

    record->has_steps = by && strcmp(by, "parts") != 0;
    record->grower = 0;
    return by && tn_json_is(rows, TN_JSON_ARRAY) &&
           signed_get(tn_json_get(growth, "per_step"), &record->growth) &&
           (!first || id_get(tn_json_at(first, 0), &record->grower));
}

static enum tarn_status rank_read(struct tn_record_reader *reader, const struct tn_json_value *rank)
{
    struct tn_rank_record *record = &reader->record;
    const struct tn_json_value *at = tn_json_get(rank, "at");
    enum tarn_status status = labels_read(reader, tn_json_get(rank, "labels"));

    if (status == TARN_OK &&
        !(place_read(record) && grouping_read(tn_json_get(rank, "by"), &record->by) &&
          tn_json_is_bool(tn_json_get(rank, "partial")) &&
          size_at(at, "requested", &record->requested) &&
          size_at(at, "left_out", &record->left_out) &&
          size_at(tn_json_get(rank, "reserved_peak"), "reserved", &record->reserved_peak) &&
          size_at(tn_json_get(rank, "counters"), "ooms", &record->ooms) &&
          growth_read(record, tn_json_get(rank, "growth")))) {
        status = TARN_ERR_FORMAT;
    }
    record->is_partial = tn_json_is(tn_json_get(rank, "partial"), TN_JSON_TRUE);
    status = status ? status : held_read(record, tn_json_get(rank, "held"));
    return status ? status : steps_read(record, tn_json_get(rank, "steps"));
}

enum tarn_status tn_record_read(struct tn_record_reader *reader, const char *line, size_t length,
                                struct tarn_error *error)
{
    tn_arena_clear(&reader->arena);
    enum tarn_status status = tn_json_parse(&reader->tree, line, length, false, error);

    if (status) {
        return status == TARN_ERR_TRUNCATED
                   ? tn_fail(error, TARN_ERR_FORMAT, "the line is no complete JSON")
                   : status;
    }
    status = rank_read(reader, tn_json_get(&reader->tree.root, "rank"));
    if (status == TARN_ERR_HOST_MEMORY) {
        return tn_fail_memory(error);
    }
    return status ? tn_fail(error, TARN_ERR_FORMAT,
                            "a value is missing, of the wrong kind, too large, or does not add up")
                  : TARN_OK;
}
