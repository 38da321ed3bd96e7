/* SPDX-License-Identifier: MIT */
#include "snapshot/json_read.h"

#include "base/assertion.h"
#include "base/decimal.h"
#include "base/errinfo.h"
#include "base/json_token.h"
#include "base/utf8.h"
#include "snapshot/warning.h"

#include <string.h>

/* What may follow. */
enum expected {
    EXPECT_VALUE,
    EXPECT_VALUE_OR_END, /* after [ */
    EXPECT_KEY_OR_END,   /* after { */
    EXPECT_KEY,          /* after a comma in a dict */
    EXPECT_COMMA_OR_END,
    EXPECT_NOTHING /* the value is complete */
};

struct mark {
    size_t base;     /* values below it belong to outer containers */
    uint64_t offset; /* where the container began */
    bool is_dict;
};

struct json {
    struct tn_input *input;
    struct tn_decoder *decoder;
    const struct tn_json_limits *limits;
    struct tarn_error *error;
    struct tn_budget *budget;
    struct tn_value *stack;
    size_t count;
    size_t capacity;
    struct mark marks[TN_JSON_DEPTH_MAX];
    unsigned depth;
    enum expected expected;
    char *text; /* buffer for strings with escapes */
    size_t text_capacity;
    char *repaired; /* the last string that was not UTF-8 */
    size_t repaired_capacity;
};

static enum tarn_status json_wrong(const struct json *json, const char *what)
{
    const uint64_t offset = tn_input_offset(json->input);

    return tn_fail_at(json->error, TARN_ERR_FORMAT, (int64_t)offset,
                      "malformed JSON at byte %llu: %s", (unsigned long long)offset, what);
}

static enum tarn_status json_limit(const struct json *json, const char *what)
{
    const uint64_t offset = tn_input_offset(json->input);

    return tn_fail_at(json->error, TARN_ERR_LIMIT, (int64_t)offset, "%s at byte %llu", what,
                      (unsigned long long)offset);
}

static enum tarn_status json_memory(const struct json *json)
{
    const enum tarn_status status = tn_budget_status(json->budget);

    return tn_fail(json->error, status,
                   status == TARN_ERR_LIMIT ? "the snapshot needs more memory than it may have"
                                            : "no host memory to read a snapshot");
}

/* ---- the value stack ---- */

static enum tarn_status stack_grow(struct json *json)
{
    const size_t capacity = json->capacity ? json->capacity * 2 : 1024;
    struct tn_value *stack = tn_budget_alloc(json->budget, capacity * sizeof *stack);

    if (!stack) {
        return json_memory(json);
    }
    if (json->count > 0) {
        memcpy(stack, json->stack, json->count * sizeof *stack);
    }
    tn_budget_free(json->budget, json->stack, json->capacity * sizeof *stack);
    json->stack = stack;
    json->capacity = capacity;
    return TARN_OK;
}

static enum tarn_status json_push(struct json *json, struct tn_value value)
{
    if (json->count == json->limits->max_stack) {
        return json_limit(json, "too many values in one container");
    }
    const enum tarn_status status = json->count == json->capacity ? stack_grow(json) : TARN_OK;

    if (status == TARN_OK) {
        json->stack[json->count++] = value;
    }
    return status;
}

/* Ends a value and sets what may follow. */
static enum tarn_status json_take(struct json *json, struct tn_value value)
{
    json->expected = json->depth > 0 ? EXPECT_COMMA_OR_END : EXPECT_NOTHING;
    return json_push(json, value);
}

/* ---- containers ---- */

static enum tarn_status container_begin(struct json *json, bool is_dict)
{
    if (json->depth == json->limits->max_depth) {
        return json_limit(json, "containers nested too deeply");
    }
    json->marks[json->depth++] = (struct mark){
        .base = json->count,
        .offset = tn_input_offset(json->input),
        .is_dict = is_dict,
    };
    json->input->at++;
    json->expected = is_dict ? EXPECT_KEY_OR_END : EXPECT_VALUE_OR_END;
    return TARN_OK;
}

static bool is_whole(struct tn_value value)
{
    return tn_value_kind(value) == TN_VALUE_INT || tn_value_kind(value) == TN_VALUE_UINT;
}

static enum tarn_status list_make(struct json *json, const struct mark *mark,
                                  struct tn_value *value_out)
{
    const size_t count = json->count - mark->base;
    const struct tn_value *items = count > 0 ? json->stack + mark->base : NULL;

    if (count == 2 && is_whole(items[0]) && is_whole(items[1])) {
        return tn_decode_tuple(json->decoder, items, 2, mark->offset, value_out);
    }
    enum tarn_status status =
        tn_decode_new(json->decoder, TN_OBJECT_EMPTY_LIST, mark->offset, value_out);

    if (status == TARN_OK && count > 0) {
        status = tn_decode_append(json->decoder, *value_out, items, count);
    }
    return status;
}

static enum tarn_status dict_make(struct json *json, const struct mark *mark,
                                  struct tn_value *value_out)
{
    const size_t count = json->count - mark->base;
    enum tarn_status status =
        tn_decode_new(json->decoder, TN_OBJECT_EMPTY_DICT, mark->offset, value_out);

    if (status == TARN_OK && count > 0) {
        status =
            tn_decode_set_items(json->decoder, *value_out, json->stack + mark->base, count / 2);
    }
    return status;
}

static enum tarn_status container_end(struct json *json)
{
    const struct mark mark = json->marks[json->depth - 1];
    struct tn_value value;
    const enum tarn_status status =
        mark.is_dict ? dict_make(json, &mark, &value) : list_make(json, &mark, &value);

    if (status) {
        return status;
    }
    json->input->at++;
    json->depth--;
    json->count = mark.base;
    return json_take(json, value);
}

/* ---- strings ---- */

/* Bytes between the quotes; the opening quote is at `at`. All of the string is then in the
 * window. */
static enum tarn_status string_measure(struct json *json, size_t *length_out, bool *escapes_out)
{
    size_t i = 1;

    *escapes_out = false;
    for (;; i++) {
        const enum tarn_status status = tn_input_need(json->input, i + 1, json->error);

        if (status) {
            return status;
        }
        const uint8_t c = json->input->at[i];

        if (c == '"') {
            break;
        }
        if (c < 0x20) {
            return json_wrong(json, "a control character in a string");
        }
        if (i > json->limits->max_string) {
            return json_limit(json, "a string that is too long");
        }
        *escapes_out = *escapes_out || c == '\\';
        i += c == '\\';
    }
    *length_out = i - 1;
    return TARN_OK;
}

static enum tarn_status text_reserve(struct json *json, size_t size)
{
    if (size <= json->text_capacity) {
        return TARN_OK;
    }
    char *text = tn_budget_alloc(json->budget, size * 2);

    if (!text) {
        return json_memory(json);
    }
    tn_budget_free(json->budget, json->text, json->text_capacity);
    json->text = text;
    json->text_capacity = size * 2;
    return TARN_OK;
}

static enum tarn_status string_unescape(struct json *json, size_t length, size_t *size_out)
{
    const enum tarn_status status = text_reserve(json, length);

    if (status) {
        return status;
    }
    const char *wrong =
        tn_json_unescape((const char *)json->input->at + 1, length, json->text, size_out);
    return wrong ? json_wrong(json, wrong) : TARN_OK;
}

/* Replaces its wrong bytes; the result is in json->repaired. */
static enum tarn_status string_repair(struct json *json, const char *text, size_t size,
                                      size_t *size_out)
{
    char *repaired = tn_budget_alloc(json->budget, size * TN_UTF8_REPAIR_GROWTH);

    if (!repaired) {
        return json_memory(json);
    }
    tn_budget_free(json->budget, json->repaired, json->repaired_capacity);
    json->repaired = repaired;
    json->repaired_capacity = size * TN_UTF8_REPAIR_GROWTH;
    *size_out = tn_utf8_repair(text, size, repaired);
    return TARN_OK;
}

static enum tarn_status string_read(struct json *json, struct tn_value *value_out)
{
    const uint64_t offset = tn_input_offset(json->input);
    size_t length = 0;
    bool escapes;
    uint32_t string;
    enum tarn_status status = string_measure(json, &length, &escapes);

    if (status) {
        return status;
    }
    const char *text = (const char *)json->input->at + 1;
    size_t size = length;

    if (escapes) {
        status = string_unescape(json, length, &size);
        text = json->text;
    }
    if (status == TARN_OK && !tn_utf8_is_valid(text, size)) {
        status = string_repair(json, text, size, &size);
        text = json->repaired;
        tn_warning_add(json->decoder->model, TN_WARNING_NOT_UTF8, TN_STRING_NONE, offset);
    }
    if (status) {
        return status;
    }
    if (tn_model_add_string(json->decoder->model, text, size, &string)) {
        return json_memory(json);
    }
    json->input->at += length + 2;
    *value_out = tn_value_make(TN_VALUE_STRING, offset, string);
    return TARN_OK;
}

/* ---- numbers and words ---- */

static enum tarn_status whole_make(const struct json *json, const char *text, uint64_t offset,
                                   struct tn_value *value_out)
{
    const bool negative = text[0] == '-';
    uint64_t number = 0;

    if (tn_whole_parse(text + negative, &number) != TN_DECIMAL_OK ||
        (negative && number > (uint64_t)INT64_MAX + 1)) {
        return json_wrong(json, "a number of more than 64 bits");
    }
    if (negative) {
        *value_out = tn_value_integer(offset, (int64_t)(0 - number));
    } else if (number <= INT64_MAX) {
        *value_out = tn_value_integer(offset, (int64_t)number);
    } else {
        *value_out = tn_value_make(TN_VALUE_UINT, offset, number);
    }
    return TARN_OK;
}

/* Reads the characters at `at` that can be part of a number or word. */
static enum tarn_status token_read(struct json *json, char text[TN_JSON_NUMBER_MAX + 1],
                                   size_t *length_out)
{
    size_t length = 0;

    for (;; length++) {
        const enum tarn_status status = tn_input_need(json->input, length + 1, json->error);

        if (status && status != TARN_ERR_TRUNCATED) {
            return status;
        }
        const uint8_t byte = status ? 0 : json->input->at[length];
        const char c = (char)byte;

        if (!tn_json_token_has(c)) {
            break;
        }
        if (length == TN_JSON_NUMBER_MAX) {
            return json_wrong(json, "a number that is too long");
        }
        text[length] = c;
    }
    text[length] = '\0';
    *length_out = length;
    return TARN_OK;
}

static enum tarn_status number_make(const struct json *json, const char *text, uint64_t offset,
                                    struct tn_value *value_out)
{
    bool whole = false;
    double real = 0.0;

    if (!tn_json_number_is_formed(text, &whole)) {
        return json_wrong(json, "neither a value nor the end of a container");
    }
    if (whole) {
        return whole_make(json, text, offset, value_out);
    }
    if (tn_real_parse(text, &real) != TN_DECIMAL_OK) {
        return json_wrong(json, "a number out of range");
    }
    *value_out = tn_value_real(offset, real);
    return TARN_OK;
}

static enum tarn_status token_make(struct json *json, struct tn_value *value_out)
{
    const uint64_t offset = tn_input_offset(json->input);
    char text[TN_JSON_NUMBER_MAX + 1];
    size_t length = 0;
    enum tarn_status status = token_read(json, text, &length);

    if (status) {
        return status;
    }
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        *value_out = tn_value_make(TN_VALUE_BOOL, offset, text[0] == 't');
    } else if (strcmp(text, "null") == 0) {
        *value_out = tn_value_make(TN_VALUE_NONE, offset, 0);
    } else {
        status = number_make(json, text, offset, value_out);
    }
    if (status == TARN_OK) {
        json->input->at += length;
    }
    return status;
}

/* ---- the loop ---- */

static enum tarn_status step_value(struct json *json, uint8_t c)
{
    struct tn_value value;

    if (c == '{' || c == '[') {
        return container_begin(json, c == '{');
    }
    const enum tarn_status status = c == '"' ? string_read(json, &value) : token_make(json, &value);

    return status ? status : json_take(json, value);
}

static enum tarn_status step_key(struct json *json, uint8_t c)
{
    struct tn_value key;
    enum tarn_status status = TARN_OK;

    if (c != '"') {
        return json_wrong(json, "a key that is not a string");
    }
    status = string_read(json, &key);
    status = status ? status : json_push(json, key);
    status = status ? status : tn_json_skip_blanks(json->input, json->error);
    if (status) {
        return status;
    }
    if (*json->input->at != ':') {
        return json_wrong(json, "no colon after a key");
    }
    json->input->at++;
    json->expected = EXPECT_VALUE;
    return TARN_OK;
}

static enum tarn_status step_comma(struct json *json, uint8_t c)
{
    const bool is_dict = json->marks[json->depth - 1].is_dict;

    if (c != ',') {
        return json_wrong(json, "neither a comma nor the end of a container");
    }
    json->input->at++;
    json->expected = is_dict ? EXPECT_KEY : EXPECT_VALUE;
    return TARN_OK;
}

static bool may_end(const struct json *json, uint8_t c)
{
    const bool ends = json->expected == EXPECT_COMMA_OR_END ||
                      json->expected == EXPECT_VALUE_OR_END || json->expected == EXPECT_KEY_OR_END;

    return ends && c == (json->marks[json->depth - 1].is_dict ? '}' : ']');
}

static enum tarn_status json_step(struct json *json)
{
    const uint8_t c = *json->input->at;

    if (may_end(json, c)) {
        return container_end(json);
    }
    switch (json->expected) {
    case EXPECT_VALUE:
    case EXPECT_VALUE_OR_END:
        return step_value(json, c);
    case EXPECT_KEY:
    case EXPECT_KEY_OR_END:
        return step_key(json, c);
    case EXPECT_COMMA_OR_END:
        return step_comma(json, c);
    case EXPECT_NOTHING: /* which ends it */
        tn_no_case();
        break;
    }
    return TARN_OK;
}

/* Checks that the input ends here. */
static enum tarn_status json_check_end(struct json *json)
{
    const enum tarn_status status = tn_json_skip_blanks(json->input, NULL);

    if (status == TARN_ERR_TRUNCATED) { /* the end is not an error */
        return TARN_OK;
    }
    return status ? tn_fail(json->error, status, "cannot read the end of the snapshot")
                  : json_wrong(json, "extra data after the end");
}

enum tarn_status tn_json_read(struct tn_input *input, struct tn_decoder *decoder,
                              const struct tn_json_limits *limits, struct tarn_error *error,
                              struct tn_value *top_out)
{
    struct json json = {
        .input = input,
        .decoder = decoder,
        .limits = limits,
        .error = error,
        .budget = &decoder->model->budget,
    };
    enum tarn_status status = TARN_OK;

    while (status == TARN_OK && json.expected != EXPECT_NOTHING) {
        status = tn_json_skip_blanks(input, error);
        status = status ? status : json_step(&json);
    }
    if (status == TARN_OK) {
        tn_assert(json.stack && json.count == 1);
        *top_out = json.stack[0];
        status = json_check_end(&json);
    }
    tn_budget_free(json.budget, json.stack, json.capacity * sizeof *json.stack);
    tn_budget_free(json.budget, json.text, json.text_capacity);
    tn_budget_free(json.budget, json.repaired, json.repaired_capacity);
    return status;
}
