/* SPDX-License-Identifier: MIT */
#include "render/row.h"

#include "base/assertion.h"

const char *tn_row_text(const void *row, const struct tn_row_column *column)
{
    if (column->kind == TN_ROW_CHOICE) {
        return column->words[*(const int *)tn_row_member(row, column->at)];
    }
    return *(const char *const *)tn_row_member(row, column->at);
}

struct tn_numbers tn_row_numbers(const void *row, const struct tn_row_column *column)
{
    if (column->of == 0) {
        return (struct tn_numbers){tn_row_member(row, column->at), 2};
    }
    return (struct tn_numbers){*(const uint64_t *const *)tn_row_member(row, column->at),
                               *(const size_t *)tn_row_member(row, column->of)};
}

const char *tn_row_key(enum tarn_grouping by, const struct tn_row_column *column)
{
    if (column->key) {
        return column->key;
    }
    switch ((int)column->kind) {
    case TN_ROW_GROUP:
        return by == TARN_BY_STACK ? "frames" : "name";
    case TN_ROW_CHAIN:
        return "frames";
    default:
        return NULL;
    }
}

/* Whether rows of that kind have it, and this row does. */
bool tn_row_has(const struct tn_row_column *column, int in, const void *row)
{
    const struct tarn_call *call = tn_row_member(row, column->at);

    if (!((column->in ? column->in : TN_IN_ALL) & in)) {
        return false;
    }
    switch ((int)column->kind) {
    case TN_ROW_CHAIN:
        return call->kind == TARN_CALL_CHAIN;
    case TN_ROW_ITSELF:
        return call->kind == TARN_CALL_ITSELF;
    case TN_ROW_CALLEES:
        return call->kind == TARN_CALL_OTHERS;
    case TN_ROW_GROUP:
    case TN_ROW_FRAMES:
        return in == TN_IN_ROWS;
    default:
        return true;
    }
}

const struct tarn_group *tn_row_group(const struct tn_row_column *column, const void *row)
{
    return tn_row_member(row, column->kind == TN_ROW_CHAIN ? column->of : column->at);
}

/* ---- JSON ---- */

static void frame_put(struct tn_json_text *json, const struct tarn_report_frame *frame)
{
    tn_json_open_object(json, NULL);
    tn_json_text(json, "name", frame->name, frame->name_length);
    tn_json_text(json, "filename", frame->filename, frame->filename_length);
    tn_json_signed(json, "line", frame->line);
    tn_json_close(json);
}

static void frames_put(struct tn_json_text *json, const char *key, const struct tarn_group *group)
{
    tn_json_open_array(json, key);
    for (size_t i = 0; i < group->frame_count; i++) {
        frame_put(json, &group->frames[i]);
    }
    tn_json_close(json);
}

static void group_put(struct tn_json_text *json, const char *key, const struct tarn_group *group)
{
    if (key) {
        tn_json_open_object(json, key);
    }
    if (group->name) {
        tn_json_word(json, "name", group->name);
    } else {
        frames_put(json, "frames", group);
    }
    if (key) {
        tn_json_close(json);
    }
}

static void numbers_put(struct tn_json_text *json, const char *key, struct tn_numbers numbers)
{
    tn_json_open_array(json, key);
    for (size_t i = 0; i < numbers.count; i++) {
        tn_json_number(json, NULL, numbers.items[i]);
    }
    tn_json_close(json);
}

static void answer_put(struct tn_json_text *json, const char *key, enum tarn_answer answer)
{
    if (answer == TARN_ANSWER_UNKNOWN) {
        tn_json_null(json, key);
    } else {
        tn_json_bool(json, key, answer == TARN_ANSWER_YES);
    }
}

void tn_row_put_member(struct tn_json_text *json, const struct tn_row_column *column,
                       const void *row)
{
    const struct tarn_call *call = tn_row_member(row, column->at);
    const char *key = column->key;

    switch ((int)column->kind) {
    case TN_ROW_SIZE:
    case TN_ROW_COUNT:
    case TN_ROW_SHARE:
    case TN_ROW_PERCENT:
    case TN_ROW_MEAN:
    case TN_ROW_FRACTION:
        tn_json_number(json, key, tn_row_number(row, column->at));
        break;
    case TN_ROW_EVENT:
        tn_json_number_or_null(json, key, tn_row_number(row, column->at), TARN_NONE);
        break;
    case TN_ROW_CHANGE:
    case TN_ROW_SIGNED:
        tn_json_signed(json, key, *(const int64_t *)tn_row_member(row, column->at));
        break;
    case TN_ROW_INT:
        tn_json_signed(json, key, *(const int *)tn_row_member(row, column->at));
        break;
    case TN_ROW_ADDRESS:
        tn_json_address(json, key, tn_row_number(row, column->at));
        break;
    case TN_ROW_BOOL:
        tn_json_bool(json, key, *(const bool *)tn_row_member(row, column->at));
        break;
    case TN_ROW_ANSWER:
        answer_put(json, key, *(const enum tarn_answer *)tn_row_member(row, column->at));
        break;
    case TN_ROW_CHOICE:
    case TN_ROW_WORD:
    case TN_ROW_TEXT:
        tn_json_word(json, key, tn_row_text(row, column));
        break;
    case TN_ROW_NUMBERS:
        numbers_put(json, key, tn_row_numbers(row, column));
        break;
    case TN_ROW_FRAMES:
    case TN_ROW_CHAIN:
        frames_put(json, "frames", tn_row_group(column, row));
        break;
    case TN_ROW_GROUP:
        group_put(json, key, tn_row_group(column, row));
        break;
    case TN_ROW_ITSELF:
        tn_json_bool(json, key, true);
        break;
    case TN_ROW_CALLEES:
        tn_json_number(json, key, call->others);
        break;
    default: /* of text alone: without a key */
        tn_no_case();
        break;
    }
}

void tn_row_put_members(struct tn_json_text *json, const struct tn_row_column *columns,
                        const void *row, int in)
{
    for (const struct tn_row_column *column = columns; column->kind; column++) {
        if (tn_row_key(TARN_BY_STACK, column) && tn_row_has(column, in, row)) {
            tn_row_put_member(json, column, row);
        }
    }
}
