/* SPDX-License-Identifier: MIT */
#include "snapshot/rmm_read.h"

#include "base/errinfo.h"
#include "base/input_line.h"
#include "base/utf8.h"
#include "snapshot/keys.h"
#include "snapshot/warning.h"

#include <string.h>

#define HEADER "Thread,Time,Action,Pointer,Size,Stream"
#define DAY_US ((int64_t)24 * 60 * 60 * 1000000)

enum {
    ROW_MAX_BYTES = 4096,
    SHOWN_MAX = 40, /* bytes of a field in a message */
    DECIMALS = 6
};

enum column {
    THREAD,
    TIME,
    ACTION,
    POINTER,
    SIZE,
    STREAM,
    COLUMNS
};

struct field {
    const char *text; /* not NUL-terminated */
    size_t length;
};

struct reader {
    struct tn_model *model;
    struct tarn_error *error;
    uint64_t line; /* from 1 */
    uint64_t offset;
    int64_t last_us;
    int64_t day_us; /* added at midnight */
    uint64_t count; /* entries */
};

bool tn_rmm_begins(const uint8_t *bytes, size_t size)
{
    static const char begin[] = "Thread,";
    const size_t length = sizeof begin - 1;

    return size >= length && memcmp(bytes, begin, length) == 0;
}

/* ---- fields ---- */

static bool field_is(const struct field *field, const char *text)
{
    return field->length == strlen(text) && memcmp(field->text, text, field->length) == 0;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
}

/* Decimal, hexadecimal with 0x, or a null pointer as printf writes it. */
static bool field_number(const struct field *field, uint64_t *number_out)
{
    const bool is_hex = field->length > 2 && memcmp(field->text, "0x", 2) == 0;
    const unsigned base = is_hex ? 16 : 10;
    uint64_t number = 0;

    if (field_is(field, "(nil)")) {
        *number_out = 0;
        return true;
    }
    for (size_t i = is_hex ? 2 : 0; i < field->length; i++) {
        const unsigned digit = (unsigned)digit_of(field->text[i]);

        if (digit >= base || number > (UINT64_MAX - digit) / base) {
            return false;
        }
        number = number * base + digit;
    }
    *number_out = number;
    return field->length > 0;
}

/* Digits from *at on as a number below `limit`; false if there are none. */
static bool take_digits(const struct field *field, size_t *at, int64_t limit, int64_t *number_out)
{
    const size_t first = *at;
    int64_t number = 0;

    while (*at < field->length && digit_of(field->text[*at]) < 10) {
        number = number * 10 + digit_of(field->text[(*at)++]);
        if (number >= limit) {
            return false;
        }
    }
    *number_out = number;
    return *at > first;
}

/* Microseconds after the point, which may be missing. */
static int64_t take_fraction(const struct field *field, size_t at)
{
    int64_t fraction = 0;
    int places = 0;

    if (at < field->length && field->text[at] == '.') {
        for (at++; at < field->length && places < DECIMALS && digit_of(field->text[at]) < 10;
             places++) {
            fraction = fraction * 10 + digit_of(field->text[at++]);
        }
    }
    for (; places < DECIMALS; places++) {
        fraction *= 10;
    }
    return fraction;
}

/* "15:47:02.841961", or seconds since the epoch; TN_TIME_NONE for anything else. */
static int64_t field_time(const struct field *field)
{
    const int64_t seconds_max = (int64_t)1 << 40;
    int64_t parts[3] = {0};
    size_t at = 0;
    int count = 0;

    while (count < 3) {
        if (!take_digits(field, &at, seconds_max, &parts[count])) {
            return TN_TIME_NONE;
        }
        count++;
        if (at >= field->length || field->text[at] != ':') {
            break;
        }
        at++;
    }
    if (count != 1 && count != 3) {
        return TN_TIME_NONE;
    }
    const int64_t seconds = count == 3 && parts[0] < 24 && parts[1] < 60 && parts[2] <= 60
                                ? parts[0] * 3600 + parts[1] * 60 + parts[2]
                            : count == 1 ? parts[0]
                                         : -1;

    return seconds < 0 ? TN_TIME_NONE : seconds * 1000000 + take_fraction(field, at);
}

/* ---- rows ---- */

static enum tarn_status row_fail(const struct reader *r, const char *what,
                                 const struct field *field)
{
    return tn_fail_at(r->error, TARN_ERR_FORMAT, (int64_t)r->offset,
                      "line %llu of the RMM log: %s, not '%.*s'", (unsigned long long)r->line, what,
                      tn_utf8_fit(field->text, field->length, SHOWN_MAX), field->text);
}

/* Splits at commas; false if the number of fields is wrong. */
static bool row_split(const char *line, size_t length, struct field *fields)
{
    size_t column = 0;
    size_t first = 0;

    for (size_t i = 0; i <= length; i++) {
        if (i == length || line[i] == ',') {
            if (column == COLUMNS) {
                return false;
            }
            fields[column++] = (struct field){line + first, i - first};
            first = i + 1;
        }
    }
    return column == COLUMNS;
}

static int64_t row_time(struct reader *r, const struct field *field)
{
    const int64_t time_us = field_time(field);

    if (time_us == TN_TIME_NONE) {
        return TN_TIME_NONE;
    }
    if (time_us < DAY_US && time_us + DAY_US / 2 < r->last_us) { /* midnight */
        r->day_us += DAY_US;
    }
    r->last_us = time_us;
    return time_us + r->day_us;
}

static enum tarn_status memory_fail(const struct reader *r)
{
    const enum tarn_status st = tn_model_memory_status(r->model);

    return tn_fail(r->error, st,
                   st == TARN_ERR_LIMIT
                       ? "the RMM log needs more than the limit of %llu bytes of memory, which can "
                         "be raised"
                       : "no host memory for an RMM log (used: %llu bytes)",
                   (unsigned long long)(st == TARN_ERR_LIMIT ? r->model->budget.limit
                                                             : r->model->budget.used));
}

static enum tarn_status row_add(struct reader *r, struct tn_trace_entry entry,
                                enum tn_trace_action action)
{
    uint64_t number;

    entry.action = (unsigned)action & 31;
    if (!tn_model_take_size(r->model, &entry.size)) {
        tn_warning_add(r->model, TN_WARNING_TOO_LARGE, TN_KEY_SIZE, r->offset);
    }
    const enum tarn_status st = tn_model_add_entry(r->model, &entry, &number);

    r->count += st == TARN_OK;
    return st ? memory_fail(r) : TARN_OK;
}

static enum tarn_status row_free(struct reader *r, const struct tn_trace_entry *entry)
{
    const enum tarn_status st = row_add(r, *entry, TN_TRACE_FREE_REQUESTED);

    return st ? st : row_add(r, *entry, TN_TRACE_FREE_COMPLETED);
}

static enum tarn_status row_read(struct reader *r, const char *line, size_t length)
{
    const struct field whole = {line, length};
    struct field fields[COLUMNS];
    struct tn_trace_entry entry = {.stack = TN_STACK_NONE};

    if (!row_split(line, length, fields)) {
        return row_fail(r, "a row has six columns", &whole);
    }
    const struct field *action = &fields[ACTION];
    const bool frees = field_is(action, "free") || field_is(action, "deallocate");
    const bool failed = field_is(action, "allocate failure");

    if (!field_number(&fields[POINTER], &entry.address)) {
        return row_fail(r, "the pointer is a number", &fields[POINTER]);
    }
    if (!field_number(&fields[SIZE], &entry.size)) {
        return row_fail(r, "the size is a number", &fields[SIZE]);
    }
    if (!field_number(&fields[STREAM], &entry.stream)) {
        return row_fail(r, "the stream is a number", &fields[STREAM]);
    }
    if (!frees && !failed && !field_is(action, "allocate")) {
        return row_fail(r, "the action is allocate, free or allocate failure", action);
    }
    entry.time_us = row_time(r, &fields[TIME]);
    if (failed) {
        return row_add(r, entry, TN_TRACE_OOM);
    }
    if (entry.address == 0) { /* a request of 0 bytes */
        return TARN_OK;
    }
    return frees ? row_free(r, &entry) : row_add(r, entry, TN_TRACE_ALLOC);
}

/* ---- the log ---- */

static enum tarn_status header_check(const struct reader *r, const char *line, size_t length)
{
    const struct field field = {line, length};

    return field_is(&field, HEADER) ? TARN_OK
                                    : row_fail(r, "the header of an RMM log is " HEADER, &field);
}

/* One line; an incomplete row at the end means that the input is truncated. */
static enum tarn_status line_read(struct reader *r, const char *line, size_t length, bool is_ended)
{
    const struct field header = {line, length};
    enum tarn_status st = TARN_OK;

    if (r->line == 1) {
        return header_check(r, line, length);
    }
    if (length > 0 && !field_is(&header, HEADER)) { /* logs may be concatenated */
        st = row_read(r, line, length);
    }
    if (st == TARN_ERR_FORMAT && !is_ended) {
        return tn_fail_at(r->error, TARN_ERR_TRUNCATED, (int64_t)r->offset,
                          "the RMM log ends in the middle of line %llu",
                          (unsigned long long)r->line);
    }
    return st;
}

static enum tarn_status lines_read(struct reader *r, struct tn_input *input)
{
    for (;;) {
        const char *line;
        size_t length;

        r->offset = tn_input_offset(input);
        enum tarn_status st = tn_input_line(input, ROW_MAX_BYTES, &line, &length, r->error);

        if (st) {
            return st == TARN_ERR_NOT_FOUND ? TARN_OK : st;
        }
        const bool is_ended = (const char *)input->at > line + length;

        r->line++;
        length -= length > 0 && line[length - 1] == '\r';
        st = line_read(r, line, length, is_ended);
        if (st) {
            return st;
        }
    }
}

enum tarn_status tn_rmm_read(struct tn_input *input, struct tn_model *model,
                             struct tarn_error *error)
{
    struct reader r = {.model = model, .error = error};
    struct tn_trace *trace = tn_arena_alloc_array(&model->arena, 1, sizeof *trace);

    if (!trace || tn_keys_enter(model)) { /* writers need the keys */
        return memory_fail(&r);
    }
    const uint64_t first = model->entries.count;
    const enum tarn_status st = lines_read(&r, input);

    *trace = (struct tn_trace){.first = first, .count = r.count};
    model->traces = trace;
    model->trace_count = 1;
    model->has_traces = true;
    return st;
}
