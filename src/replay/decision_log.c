/* SPDX-License-Identifier: MIT */
#include "replay/decision_log.h"

#include "base/assertion.h"
#include "base/errinfo.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/input_line.h"
#include "base/utf8.h"

enum {
    LINE_MAX_BYTES = 16 << 20
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

TN_COLD static enum tarn_status log_fail(const struct tn_decision_log *log, enum tarn_status status,
                                         struct tarn_error *error, const char *format, ...)
    TN_PRINTF(4, 5);

/* Fails with a message about the current line. */
TN_COLD static enum tarn_status log_fail(const struct tn_decision_log *log, enum tarn_status status,
                                         struct tarn_error *error, const char *format, ...)
{
    char what[512];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return tn_fail_at(error, status, (int64_t)log->line_number, "line %llu of the decision log: %s",
                      (unsigned long long)log->line_number, what);
}

/* ---- fields ---- */

static enum tarn_status field_u64(const struct tn_decision_log *log,
                                  const struct tn_json_value *object, const char *key,
                                  uint64_t *out, struct tarn_error *error)
{
    const struct tn_json_value *value = tn_json_get(object, key);

    if (!tn_json_is(value, TN_JSON_INTEGER) || tn_json_integer(value) < 0) {
        return log_fail(log, TARN_ERR_FORMAT, error, "\"%s\" is missing or not a number from 0 on",
                        key);
    }
    *out = (uint64_t)tn_json_integer(value);
    return TARN_OK;
}

static enum tarn_status field_array(const struct tn_decision_log *log,
                                    const struct tn_json_value *object, const char *key,
                                    const struct tn_json_value **out, struct tarn_error *error)
{
    const struct tn_json_value *value = tn_json_get(object, key);

    if (!tn_json_is(value, TN_JSON_ARRAY)) {
        return log_fail(log, TARN_ERR_FORMAT, error, "\"%s\" is missing or not a list", key);
    }
    *out = value;
    return TARN_OK;
}

static enum tarn_status field_string(const struct tn_decision_log *log,
                                     const struct tn_json_value *object, const char *key,
                                     const char **out, struct tarn_error *error)
{
    const struct tn_json_value *value = tn_json_get(object, key);

    if (!tn_json_is(value, TN_JSON_STRING)) {
        return log_fail(log, TARN_ERR_FORMAT, error, "\"%s\" is missing or not a text", key);
    }
    *out = tn_json_text(value);
    return TARN_OK;
}

/* Streams are indices into the header's list of handles. */
static enum tarn_status field_stream(const struct tn_decision_log *log,
                                     const struct tn_json_value *object, const char *key,
                                     tarn_stream *out, struct tarn_error *error)
{
    uint64_t index = 0;
    const enum tarn_status st = field_u64(log, object, key, &index, error);

    if (st) {
        return st;
    }
    if (index >= log->stream_count) {
        return log_fail(log, TARN_ERR_FORMAT, error,
                        "stream %llu is not among the header's %u streams",
                        (unsigned long long)index, log->stream_count);
    }
    *out = log->streams[index];
    return TARN_OK;
}

tarn_stream tn_decision_log_stream(const struct tn_decision_log *log,
                                   const struct tn_json_value *value)
{
    const uint64_t number = (uint64_t)tn_json_integer(value);

    return number < log->stream_count ? log->streams[number] : number;
}

static enum tarn_status field_pool(const struct tn_decision_log *log,
                                   const struct tn_json_value *object, struct tarn_pool_id *out,
                                   struct tarn_error *error)
{
    const struct tn_json_value *id = NULL;
    const enum tarn_status st = field_array(log, object, "pool", &id, error);

    if (st) {
        return st;
    }
    if (tn_json_length(id) != 2 || !tn_json_is(tn_json_at(id, 0), TN_JSON_INTEGER) ||
        !tn_json_is(tn_json_at(id, 1), TN_JSON_INTEGER)) {
        return log_fail(log, TARN_ERR_FORMAT, error, "\"pool\" is not a pair of numbers");
    }
    out->first = (uint64_t)tn_json_integer(tn_json_at(id, 0));
    out->second = (uint64_t)tn_json_integer(tn_json_at(id, 1));
    return TARN_OK;
}

static enum tarn_status field_fraction(const struct tn_decision_log *log,
                                       const struct tn_json_value *object, double *out,
                                       struct tarn_error *error)
{
    const struct tn_json_value *value = tn_json_get(object, "fraction");

    if (!tn_json_is_number(value)) {
        return log_fail(log, TARN_ERR_FORMAT, error, "\"fraction\" is missing or not a number");
    }
    *out = tn_json_number(value);
    return TARN_OK;
}

static enum tarn_status field_bool(const struct tn_decision_log *log,
                                   const struct tn_json_value *object, const char *key, bool *out,
                                   struct tarn_error *error)
{
    const struct tn_json_value *value = tn_json_get(object, key);

    if (!tn_json_is_bool(value)) {
        return log_fail(log, TARN_ERR_FORMAT, error, "\"%s\" is missing or neither true nor false",
                        key);
    }
    *out = tn_json_is(value, TN_JSON_TRUE);
    return TARN_OK;
}

/* Elements of "events": [action, address, size, stream]. */
static enum tarn_status check_events(const struct tn_decision_log *log,
                                     const struct tn_json_value *events, struct tarn_error *error)
{
    for (size_t i = 0; i < tn_json_length(events); i++) {
        const struct tn_json_value *event = tn_json_at(events, i);

        if (!tn_json_is(event, TN_JSON_ARRAY) || tn_json_length(event) != 4 ||
            !tn_json_is(tn_json_at(event, 0), TN_JSON_STRING) ||
            !tn_json_is(tn_json_at(event, 1), TN_JSON_INTEGER) ||
            !tn_json_is(tn_json_at(event, 2), TN_JSON_INTEGER) ||
            !tn_json_is(tn_json_at(event, 3), TN_JSON_INTEGER)) {
            return log_fail(log, TARN_ERR_FORMAT, error,
                            "event %zu is not [action, address, size, stream]", i);
        }
    }
    return TARN_OK;
}

/* ---- lines ---- */

static enum tarn_status log_read_line(struct tn_decision_log *log, struct tn_json_tree *tree,
                                      struct tarn_error *error)
{
    const char *text = NULL;
    size_t length = 0;
    struct tarn_error inner;
    enum tarn_status st = tn_input_line(&log->input, LINE_MAX_BYTES, &text, &length, error);

    if (st) {
        return st;
    }
    log->line_number++;
    st = tn_json_parse(tree, text, length, false, &inner);
    if (st == TARN_ERR_TRUNCATED) {
        st = TARN_ERR_FORMAT;
    }
    if (st) {
        return log_fail(log, st, error, "%s%.300s", st == TARN_ERR_FORMAT ? "not JSON: " : "",
                        inner.text);
    }
    return tn_json_is(&tree->root, TN_JSON_OBJECT)
               ? TARN_OK
               : log_fail(log, TARN_ERR_FORMAT, error, "not a JSON object");
}

static enum tarn_status header_read_lists(struct tn_decision_log *log, struct tarn_error *error)
{
    const struct tn_json_value *streams = NULL;
    const struct tn_json_value *brief = NULL;
    enum tarn_status st = field_array(log, &log->header.root, "streams", &streams, error);

    if (st == TARN_OK) {
        st = field_array(log, &log->header.root, "brief", &brief, error);
    }
    if (st) {
        return st;
    }
    if (tn_json_length(streams) > TN_LOG_STREAMS_MAX || tn_json_length(brief) > TN_BRIEF_MAX) {
        return log_fail(log, TARN_ERR_FORMAT, error, "more than %d streams or %d counters",
                        TN_LOG_STREAMS_MAX, TN_BRIEF_MAX);
    }
    for (; log->stream_count < tn_json_length(streams); log->stream_count++) {
        const struct tn_json_value *handle = tn_json_at(streams, log->stream_count);

        if (!tn_json_is(handle, TN_JSON_INTEGER)) {
            return log_fail(log, TARN_ERR_FORMAT, error,
                            "\"streams\" contains something other than numbers");
        }
        log->streams[log->stream_count] = (uint64_t)tn_json_integer(handle);
    }
    for (; log->brief_count < tn_json_length(brief); log->brief_count++) {
        log->brief[log->brief_count] = tn_json_text(tn_json_at(brief, log->brief_count));
        if (!log->brief[log->brief_count]) {
            return log_fail(log, TARN_ERR_FORMAT, error,
                            "\"brief\" contains something other than names");
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
    tn_json_tree_init(&log->header);
    tn_json_tree_init(&log->line);
    st = log_read_line(log, &log->header, error);
    if (st == TARN_ERR_NOT_FOUND) {
        st = tn_fail(error, TARN_ERR_FORMAT, "the decision log is empty");
    }
    st = st ? st : field_string(log, &log->header.root, "conf", &log->conf, error);
    st = st ? st : field_u64(log, &log->header.root, "device_total", &log->device_total, error);
    if (st == TARN_OK) {
        log->device_is_full =
            tn_json_is(tn_json_get(&log->header.root, "device_is_full"), TN_JSON_TRUE);
        log->settled = tn_json_is(tn_json_get(&log->header.root, "settled"), TN_JSON_TRUE);
        st = header_read_lists(log, error);
    }
    if (st) {
        tn_decision_log_close(log);
    }
    return st;
}

void tn_decision_log_close(struct tn_decision_log *log)
{
    tn_json_tree_fini(&log->line);
    tn_json_tree_fini(&log->header);
    tn_input_close(&log->input);
}

/* Fields of each kind of call besides events and counters. */
static enum tarn_status decision_read_fields(const struct tn_decision_log *log,
                                             struct tn_decision *d, struct tarn_error *error)
{
    const struct tn_json_value *line = &log->line.root;
    enum tarn_status st = TARN_OK;

    switch (d->op) {
    case TN_DECISION_MALLOC:
        d->oom = tn_json_get(line, "error") != NULL;
        d->message = tn_json_text(tn_json_get(line, "message"));
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
        if (tn_json_get(line, "captured")) {
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
        d->stats = tn_json_get(line, "stats");
        return tn_json_is(d->stats, TN_JSON_OBJECT)
                   ? TARN_OK
                   : log_fail(log, TARN_ERR_FORMAT, error, "\"stats\" is not an object");
    case TN_DECISION_SYNCHRONIZE:
    case TN_DECISION_EMPTY_CACHE:
    case TN_DECISION_RESET_PEAK_STATS:
    case TN_DECISION_RESET_ACCUMULATED_STATS:
        break;
    case TN_DECISION_COUNT:
        tn_no_case();
        break;
    }
    return st;
}

static enum tarn_status decision_read_op(const struct tn_decision_log *log,
                                         enum tn_decision_op *op_out, struct tarn_error *error)
{
    const char *name = NULL;
    const enum tarn_status st = field_string(log, &log->line.root, "op", &name, error);

    if (st) {
        return st;
    }
    tn_assert(name);
    for (int op = 0; op < TN_DECISION_COUNT; op++) {
        if (strcmp(name, tn_decision_name((enum tn_decision_op)op)) == 0) {
            *op_out = (enum tn_decision_op)op;
            return TARN_OK;
        }
    }
    return log_fail(log, TARN_ERR_FORMAT, error, "unknown call \"%.*s\"", tn_utf8_cut(name, 60),
                    name);
}

enum tarn_status tn_decision_log_next(struct tn_decision_log *log, struct tn_decision *decision_out,
                                      struct tarn_error *error)
{
    struct tn_decision d = {0};
    enum tarn_status st = log_read_line(log, &log->line, error);

    st = st ? st : decision_read_op(log, &d.op, error);
    st = st ? st : decision_read_fields(log, &d, error);
    st = st ? st : field_array(log, &log->line.root, "events", &d.events, error);
    st = st ? st : check_events(log, d.events, error);
    st = st ? st : field_array(log, &log->line.root, "brief", &d.brief, error);
    d.line = log->line_number;
    if (st == TARN_OK) {
        *decision_out = d;
    }
    return st;
}
