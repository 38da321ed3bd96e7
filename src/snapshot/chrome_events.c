/* SPDX-License-Identifier: MIT */
#include "snapshot/chrome_events.h"

#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/json_token.h"

#include <string.h>

enum {
    VALUE_MAX = 16 << 20,
    DEPTH_MAX = 64,
    STEP = 1 << 14 /* bytes requested at a time */
};

struct reading {
    struct tn_input *input;
    const struct tn_chrome_visitor *visitor;
    struct tarn_error *error;
};

static enum tarn_status wrong(const struct reading *reading, const char *what)
{
    const uint64_t offset = tn_input_offset(reading->input);

    return tn_fail_at(reading->error, TARN_ERR_FORMAT, (int64_t)offset,
                      "not a Chrome trace: %s at byte %llu", what, (unsigned long long)offset);
}

/* Consumes a required byte. */
static enum tarn_status take(const struct reading *reading, char wanted, const char *what)
{
    const enum tarn_status status = tn_json_skip_blanks(reading->input, reading->error);

    if (status) {
        return status;
    }
    if (*reading->input->at != (uint8_t)wanted) {
        return wrong(reading, what);
    }
    reading->input->at++;
    return TARN_OK;
}

/* State of the search for the end of a value. */
struct scan {
    unsigned depth;
    bool in_string;
    bool is_escaped;
    bool has_begun;
};

/* Whether the value ends before this byte (plain values) or with it; *with_out: which of them. */
static bool scan_ends(struct scan *scan, uint8_t c, bool *with_out)
{
    const bool is_plain = scan->has_begun && scan->depth == 0 && !scan->in_string;

    *with_out = true;
    if (scan->in_string) {
        const bool closes = c == '"' && !scan->is_escaped;

        scan->is_escaped = c == '\\' && !scan->is_escaped;
        scan->in_string = !closes;
        return closes && scan->depth == 0;
    }
    if (is_plain && (tn_json_is_blank((char)c) || c == ',' || c == '}' || c == ']')) {
        *with_out = false;
        return true;
    }
    scan->has_begun = true;
    scan->in_string = c == '"';
    if (c == '{' || c == '[') {
        scan->depth++;
    } else if ((c == '}' || c == ']') && scan->depth > 0) {
        scan->depth--;
        return scan->depth == 0;
    }
    return false;
}

/* Size of the value that begins here, all of which is then in the window. */
static enum tarn_status value_find(const struct reading *reading, size_t *size_out)
{
    struct tn_input *input = reading->input;
    struct scan scan = {.depth = 0};
    size_t size = 0;

    for (;;) {
        bool with;

        if (size == (size_t)(input->end - input->at)) {
            enum tarn_status status = tn_input_fill(input, size + STEP, NULL);

            if (status == TARN_ERR_TRUNCATED && size < (size_t)(input->end - input->at)) {
                status = TARN_OK; /* fewer, but some */
            }
            if (status) {
                return tn_fail_at(reading->error, status, (int64_t)tn_input_offset(input),
                                  status == TARN_ERR_TRUNCATED
                                      ? "the profile ends early, in the value at byte %llu"
                                      : "cannot read the profile at byte %llu",
                                  (unsigned long long)tn_input_offset(input));
            }
        }
        const bool ends = scan_ends(&scan, input->at[size], &with);

        if (ends && size + with <= VALUE_MAX) {
            *size_out = size + with;
            return TARN_OK;
        }
        size++;
        if (size > VALUE_MAX || scan.depth > DEPTH_MAX) {
            return tn_fail_at(reading->error, TARN_ERR_LIMIT, (int64_t)tn_input_offset(input),
                              "an event of the profile is larger than 16 MiB or nested deeper than "
                              "%d, at byte %llu",
                              DEPTH_MAX, (unsigned long long)tn_input_offset(input));
        }
    }
}

static enum tarn_status event_read(const struct reading *reading)
{
    struct tn_input *input = reading->input;
    size_t size = 0;
    enum tarn_status status = value_find(reading, &size);

    if (status == TARN_OK && *input->at == '{') {
        status = reading->visitor->event(reading->visitor->context, (const char *)input->at, size,
                                         tn_input_offset(input));
    } else if (status == TARN_OK) {
        status = wrong(reading, "an event that is no object");
    }
    if (status == TARN_OK) {
        input->at += size;
    }
    return status;
}

/* The array of events, from its [ on. */
static enum tarn_status events_read(const struct reading *reading)
{
    enum tarn_status status = take(reading, '[', "no [ where the events should be");

    status = status ? status : tn_json_skip_blanks(reading->input, reading->error);
    if (status == TARN_OK && *reading->input->at == ']') {
        reading->input->at++;
        return TARN_OK;
    }
    while (status == TARN_OK) {
        status = tn_json_skip_blanks(reading->input, reading->error);
        status = status ? status : event_read(reading);
        status = status ? status : tn_json_skip_blanks(reading->input, reading->error);
        if (status == TARN_OK && *reading->input->at == ']') {
            reading->input->at++;
            return TARN_OK;
        }
        status = status ? status : take(reading, ',', "no comma between events");
    }
    return status;
}

/* Another member than the events: visited if it is plain, else skipped. Such objects and arrays are
 * small. */
static enum tarn_status member_read(const struct reading *reading, const char *key, size_t key_size)
{
    struct tn_input *input = reading->input;
    size_t size = 0;
    const enum tarn_status status = value_find(reading, &size);

    if (status == TARN_OK) {
        if (*input->at != '{' && *input->at != '[') {
            reading->visitor->member(reading->visitor->context, key, key_size,
                                     (const char *)input->at, size);
        }
        input->at += size;
    }
    return status;
}

enum {
    KEY_MAX = 64 /* longer keys are unknown */
};

/* "key": value */
static enum tarn_status pair_read(const struct reading *reading, bool *has_events)
{
    struct tn_input *input = reading->input;
    char key[KEY_MAX];
    size_t size = 0;
    enum tarn_status status = tn_json_skip_blanks(reading->input, reading->error);

    if (status == TARN_OK && *input->at != '"') {
        status = wrong(reading, "no key in the outer object");
    }
    status = status ? status : value_find(reading, &size);
    if (status) {
        return status;
    }
    const size_t key_size = size - 2 < KEY_MAX ? size - 2 : 0; /* between its quotes */

    tn_assert(size >= 2);
    memcpy(key, input->at + 1, key_size);
    input->at += size;
    status = take(reading, ':', "no colon after a key");
    status = status ? status : tn_json_skip_blanks(reading->input, reading->error);
    if (status) {
        return status;
    }
    if (key_size == 11 && memcmp(key, "traceEvents", 11) == 0) {
        *has_events = true;
        return events_read(reading);
    }
    return member_read(reading, key, key_size);
}

static enum tarn_status object_read(const struct reading *reading)
{
    bool has_events = false;
    enum tarn_status status = take(reading, '{', "no object");

    while (status == TARN_OK) {
        status = pair_read(reading, &has_events);
        status = status ? status : tn_json_skip_blanks(reading->input, reading->error);
        if (status == TARN_OK && *reading->input->at == '}') {
            return has_events ? TARN_OK : wrong(reading, "no traceEvents");
        }
        status = status ? status : take(reading, ',', "no comma between members");
    }
    return status;
}

enum tarn_status tn_chrome_read(struct tn_input *input, const struct tn_chrome_visitor *visitor,
                                struct tarn_error *error)
{
    const struct reading reading = {input, visitor, error};
    const enum tarn_status status = tn_json_skip_blanks(input, error);

    if (status) {
        return status;
    }
    switch (*input->at) {
    case '{':
        return object_read(&reading);
    case '[':
        return events_read(&reading);
    default:
        return wrong(&reading, "neither an object nor an array");
    }
}
