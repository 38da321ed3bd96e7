/* SPDX-License-Identifier: MIT */
#include "replay/decision_log.h"

#include "base/errinfo.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/input_line.h"
#include "base/utf8.h"

enum {
    LINE_MAX_BYTES = 64 << 20
};

const char *tn_decision_name(enum tn_decision_op op)
{
    static const char *const names[] = {
#define DECISION_NAME(name, text) [TN_DECISION_##name] = text,
        TN_DECISION_MAP(DECISION_NAME)
#undef DECISION_NAME
    };
    return (unsigned)op < TN_DECISION_COUNT ? names[op] : "unknown";
}

static enum tarn_status log_fail(const struct tn_decision_log *log, struct tarn_error *error,
                                 const char *format, ...) TN_PRINTF(3, 4);

/* A sentence about the current line. */
static enum tarn_status log_fail(const struct tn_decision_log *log, struct tarn_error *error,
                                 const char *format, ...)
{
    char what[512];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return tn_fail_at(error, TARN_ERR_FORMAT, (int64_t)log->line_number,
                      "line %llu of the decision log: %s", (unsigned long long)log->line_number,
                      what);
}

/* ---- fields ---- */

static enum tarn_status field_u64(const struct tn_decision_log *log, const json_t *object,
                                  const char *key, uint64_t *out, struct tarn_error *error)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return log_fail(log, error, "\"%s\" is missing or not a number from 0 on", key);
    }
    *out = (uint64_t)json_integer_value(value);
    return TARN_OK;
}

static enum tarn_status field_array(const struct tn_decision_log *log, const json_t *object,
                                    const char *key, const json_t **out, struct tarn_error *error)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_array(value)) {
        return log_fail(log, error, "\"%s\" is missing or not a list", key);
    }
    *out = value;
    return TARN_OK;
}

static enum tarn_status field_string(const struct tn_decision_log *log, const json_t *object,
                                     const char *key, const char **out, struct tarn_error *error)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_string(value)) {
        return log_fail(log, error, "\"%s\" is missing or not a text", key);
    }
    *out = json_string_value(value);
    return TARN_OK;
}

/* Streams are indices into the header's list of handles. */
static enum tarn_status field_stream(const struct tn_decision_log *log, const json_t *object,
                                     const char *key, tarn_stream *out, struct tarn_error *error)
{
    uint64_t index = 0;
    const enum tarn_status st = field_u64(log, object, key, &index, error);

    if (st) {
        return st;
    }
    if (index >= log->stream_count) {
        return log_fail(log, error, "stream %llu is not among the header's %u streams",
                        (unsigned long long)index, log->stream_count);
    }
    *out = log->streams[index];
    return TARN_OK;
}

tarn_stream tn_decision_log_stream(const struct tn_decision_log *log, const json_t *value)
{
    const uint64_t number = (uint64_t)json_integer_value(value);

    return number < log->stream_count ? log->streams[number] : number;
}

static enum tarn_status field_pool(const struct tn_decision_log *log, const json_t *object,
                                   struct tarn_pool_id *out, struct tarn_error *error)
{
    const json_t *id = NULL;
    const enum tarn_status st = field_array(log, object, "pool", &id, error);

    if (st) {
        return st;
    }
    if (json_array_size(id) != 2 || !json_is_integer(json_array_get(id, 0)) ||
        !json_is_integer(json_array_get(id, 1))) {
        return log_fail(log, error, "\"pool\" is not a pair of numbers");
    }
    out->first = (uint64_t)json_integer_value(json_array_get(id, 0));
    out->second = (uint64_t)json_integer_value(json_array_get(id, 1));
    return TARN_OK;
}

static enum tarn_status field_fraction(const struct tn_decision_log *log, const json_t *object,
                                       double *out, struct tarn_error *error)
{
    const json_t *value = json_object_get(object, "fraction");

    if (!json_is_number(value)) {
        return log_fail(log, error, "\"fraction\" is missing or not a number");
    }
    *out = json_number_value(value);
    return TARN_OK;
}

static enum tarn_status field_bool(const struct tn_decision_log *log, const json_t *object,
                                   const char *key, bool *out, struct tarn_error *error)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_boolean(value)) {
        return log_fail(log, error, "\"%s\" is missing or neither true nor false", key);
    }
    *out = json_is_true(value);
    return TARN_OK;
}

/* Elements of "events": [action, address, size, stream]. */
static enum tarn_status check_events(const struct tn_decision_log *log, const json_t *events,
                                     struct tarn_error *error)
{
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);

        if (!json_is_array(event) || json_array_size(event) != 4 ||
            !json_is_string(json_array_get(event, 0)) ||
            !json_is_integer(json_array_get(event, 1)) ||
            !json_is_integer(json_array_get(event, 2)) ||
            !json_is_integer(json_array_get(event, 3))) {
            return log_fail(log, error, "event %zu is not [action, address, size, stream]", i);
        }
    }
    return TARN_OK;
}

/* ---- lines ---- */

static enum tarn_status log_read_line(struct tn_decision_log *log, json_t **object_out,
                                      struct tarn_error *error)
{
    const char *text = NULL;
    size_t length = 0;
    json_error_t json_error;
    const enum tarn_status st = tn_input_line(&log->input, LINE_MAX_BYTES, &text, &length, error);

    if (st) {
        return st;
    }
    log->line_number++;
    json_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, &json_error);

    if (!object) {
        return log_fail(log, error, "not JSON: %s at column %d", json_error.text,
                        json_error.column);
    }
    if (!json_is_object(object)) {
        json_decref(object);
        return log_fail(log, error, "not a JSON object");
    }
    *object_out = object;
    return TARN_OK;
}

static enum tarn_status header_read_lists(struct tn_decision_log *log, struct tarn_error *error)
{
    const json_t *streams = NULL;
    const json_t *brief = NULL;
    enum tarn_status st = field_array(log, log->header, "streams", &streams, error);

    if (st == TARN_OK) {
        st = field_array(log, log->header, "brief", &brief, error);
    }
    if (st) {
        return st;
    }
    if (json_array_size(streams) > TN_LOG_STREAMS_MAX || json_array_size(brief) > TN_BRIEF_MAX) {
        return log_fail(log, error, "more than %d streams or %d counters", TN_LOG_STREAMS_MAX,
                        TN_BRIEF_MAX);
    }
    for (; log->stream_count < json_array_size(streams); log->stream_count++) {
        const json_t *handle = json_array_get(streams, log->stream_count);

        if (!json_is_integer(handle)) {
            return log_fail(log, error, "\"streams\" has something else than numbers");
        }
        log->streams[log->stream_count] = (uint64_t)json_integer_value(handle);
    }
    for (; log->brief_count < json_array_size(brief); log->brief_count++) {
        log->brief[log->brief_count] = json_string_value(json_array_get(brief, log->brief_count));
        if (!log->brief[log->brief_count]) {
            return log_fail(log, error, "\"brief\" has something else than names");
        }
    }
    return TARN_OK;
}

enum tarn_status tn_decision_log_open(struct tn_decision_log *log, const char *path,
                                      struct tarn_error *error)
{
    const struct tn_unpack_limits limits = {0};
    enum tarn_status st;

    memset(log, 0, sizeof *log);
    st = tn_input_open(&log->input, path, &limits, error);
    if (st) {
        return st;
    }
    st = log_read_line(log, &log->header, error);
    if (st == TARN_ERR_NOT_FOUND) {
        st = tn_fail(error, TARN_ERR_FORMAT, "the decision log is empty");
    }
    if (st == TARN_OK) {
        st = field_string(log, log->header, "conf", &log->conf, error);
    }
    if (st == TARN_OK) {
        st = field_u64(log, log->header, "device_total", &log->device_total, error);
    }
    if (st == TARN_OK) {
        log->device_is_full = json_is_true(json_object_get(log->header, "device_is_full"));
        log->settled = json_is_true(json_object_get(log->header, "settled"));
        st = header_read_lists(log, error);
    }
    if (st) {
        tn_decision_log_close(log);
    }
    return st;
}

void tn_decision_log_close(struct tn_decision_log *log)
{
    json_decref(log->line);
    json_decref(log->header);
    tn_input_close(&log->input);
}

/* What each kind of call has besides events and counters. */
static enum tarn_status decision_read_fields(const struct tn_decision_log *log,
                                             struct tn_decision *d, struct tarn_error *error)
{
    const json_t *line = log->line;
    enum tarn_status st = TARN_OK;

    switch (d->op) {
    case TN_DECISION_MALLOC:
        d->oom = json_object_get(line, "error") != NULL;
        d->message = json_string_value(json_object_get(line, "message"));
        st = field_u64(log, line, "size", &d->size, error);
        st = st ? st : field_stream(log, line, "stream", &d->stream, error);
        if (!d->oom) {
            st = st ? st : field_u64(log, line, "id", &d->id, error);
            st = st ? st : field_u64(log, line, "ptr", &d->ptr, error);
        }
        return st;
    case TN_DECISION_FREE:
        return field_u64(log, line, "id", &d->id, error);
    case TN_DECISION_RECORD_STREAM:
        st = field_u64(log, line, "id", &d->id, error);
        return st ? st : field_stream(log, line, "stream", &d->stream, error);
    case TN_DECISION_BLOCK_STREAM:
    case TN_DECISION_UNBLOCK_STREAM:
    case TN_DECISION_CAPTURE_BEGIN:
    case TN_DECISION_CAPTURE_END:
    case TN_DECISION_WORK:
        return field_stream(log, line, "stream", &d->stream, error);
    case TN_DECISION_JOIN:
        st = field_stream(log, line, "stream", &d->stream, error);
        return st ? st : field_stream(log, line, "after", &d->after, error);
    case TN_DECISION_SET_FRACTION:
        return field_fraction(log, line, &d->fraction, error);
    case TN_DECISION_SET_CONFIG:
        return field_string(log, line, "conf", &d->conf, error);
    case TN_DECISION_BEGIN_POOL:
        st = field_pool(log, line, &d->pool, error);
        st = st ? st : field_stream(log, line, "stream", &d->stream, error);
        if (json_object_get(line, "captured")) {
            st = st ? st : field_bool(log, line, "captured", &d->captured, error);
        }
        return st;
    case TN_DECISION_SET_CHECKPOINT:
        st = field_pool(log, line, &d->pool, error);
        st = st ? st : field_array(log, line, "freed", &d->freed, error);
        return st ? st : field_array(log, line, "created", &d->created, error);
    case TN_DECISION_BEGIN_POOL_FAILED:
    case TN_DECISION_END_POOL:
    case TN_DECISION_END_POOL_FAILED:
    case TN_DECISION_RELEASE_POOL:
    case TN_DECISION_GET_CHECKPOINT:
    case TN_DECISION_GET_CHECKPOINT_FAILED:
    case TN_DECISION_SET_CHECKPOINT_FAILED:
        return field_pool(log, line, &d->pool, error);
    case TN_DECISION_SET_POOL_USE_ON_OOM:
    case TN_DECISION_SET_POOL_NO_SPLIT:
        st = field_pool(log, line, &d->pool, error);
        return st ? st : field_bool(log, line, "value", &d->value, error);
    case TN_DECISION_SNAPSHOT:
        return field_array(log, line, "segments", &d->segments, error);
    case TN_DECISION_STATS:
        d->stats = json_object_get(line, "stats");
        return json_is_object(d->stats) ? TARN_OK
                                        : log_fail(log, error, "\"stats\" is not an object");
    case TN_DECISION_SYNCHRONIZE:
    case TN_DECISION_EMPTY_CACHE:
    case TN_DECISION_RESET_PEAK_STATS:
    case TN_DECISION_RESET_ACCUMULATED_STATS:
    case TN_DECISION_COUNT:
        break;
    }
    return st;
}

static enum tarn_status decision_read_op(const struct tn_decision_log *log,
                                         enum tn_decision_op *op_out, struct tarn_error *error)
{
    const char *name = NULL;
    const enum tarn_status st = field_string(log, log->line, "op", &name, error);

    if (st) {
        return st;
    }
    for (int op = 0; op < TN_DECISION_COUNT; op++) {
        if (strcmp(name, tn_decision_name((enum tn_decision_op)op)) == 0) {
            *op_out = (enum tn_decision_op)op;
            return TARN_OK;
        }
    }
    return log_fail(log, error, "unknown call \"%.*s\"", tn_utf8_cut(name, 60), name);
}

enum tarn_status tn_decision_log_next(struct tn_decision_log *log, struct tn_decision *decision_out,
                                      struct tarn_error *error)
{
    struct tn_decision d = {0};
    enum tarn_status st;

    json_decref(log->line);
    log->line = NULL;
    st = log_read_line(log, &log->line, error);
    if (st == TARN_OK) {
        st = decision_read_op(log, &d.op, error);
    }
    if (st == TARN_OK) {
        st = decision_read_fields(log, &d, error);
    }
    if (st == TARN_OK) {
        st = field_array(log, log->line, "events", &d.events, error);
    }
    if (st == TARN_OK) {
        st = check_events(log, d.events, error);
    }
    if (st == TARN_OK) {
        st = field_array(log, log->line, "brief", &d.brief, error);
    }
    d.line = log->line_number;
    if (st == TARN_OK) {
        *decision_out = d;
    }
    return st;
}
