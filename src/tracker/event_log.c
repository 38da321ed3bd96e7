/* SPDX-License-Identifier: MIT */
/*
 * Replaying a recorded log of events, one JSON object a line. The log leaves four things to the
 * reader:
 *
 *   - A module that is entered for the first time has its parameters and buffers classified before
 *     it is recorded, and the log has these events behind the entering. So a new module is ready at
 *     the first event that cannot be one of them.
 *   - Tracking starts, with peaks from what was registered before, at the first event that cannot
 *     be such a registration.
 *   - Backward has ended when something happens outside of it.
 *   - The log goes on while the program takes its model apart: TARN_TRACK_AT_END.
 *
 * Nothing of the log is trusted; jansson bounds the nesting.
 */
#include "base/errinfo.h"
#include "base/input_line.h"
#include "tracker/track_json.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    LINE_MAX_BYTES = 16 << 20
};

struct event_log {
    struct tarn_tracker *tracker;
    const struct tarn_writer *after; /* or NULL */
    struct tn_input input;
    struct tarn_track_replay replay;
    json_t *line;   /* owned, the current one */
    json_t *inputs; /* owned, of the module that is not ready yet; NULL = none is */
    bool started;
    bool was_backward;
};

TN_COLD static enum tarn_status log_fail(const struct event_log *log, enum tarn_status status,
                                         struct tarn_error *error, const char *format, ...)
    TN_PRINTF(4, 5);

/* A sentence about the current line. */
TN_COLD static enum tarn_status log_fail(const struct event_log *log, enum tarn_status status,
                                         struct tarn_error *error, const char *format, ...)
{
    char what[1024];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return tn_fail_at(error, status, (int64_t)log->replay.events, "line %" PRIu64 ", %s",
                      log->replay.events, what);
}

/* ---- fields ---- */

static enum tarn_status field_number(const struct event_log *log, const char *key,
                                     uint64_t *number_out, struct tarn_error *error)
{
    const json_t *value = json_object_get(log->line, key);

    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return log_fail(log, TARN_ERR_FORMAT, error, "%.60s: \"%s\" is not a number from 0 on",
                        json_string_value(json_object_get(log->line, "op")), key);
    }
    *number_out = (uint64_t)json_integer_value(value);
    return TARN_OK;
}

/* A text as an id of the tracker's. */
static enum tarn_status name_add(const struct event_log *log, enum tarn_track_names names,
                                 const json_t *value, const char *key, uint32_t *id_out,
                                 struct tarn_error *error)
{
    const char *op = json_string_value(json_object_get(log->line, "op"));
    struct tarn_error inner;
    enum tarn_status st;

    if (!json_is_string(value)) {
        return log_fail(log, TARN_ERR_FORMAT, error, "%.60s: \"%s\" is not a text", op, key);
    }
    st = tarn_tracker_add_name(log->tracker, names, json_string_value(value), id_out, &inner);
    if (st == TARN_ERR_INVALID_ARGUMENT) {
        st = TARN_ERR_FORMAT;
    }
    return st ? log_fail(log, st, error, "%.60s: \"%s\": %.400s", op, key, inner.text) : TARN_OK;
}

static enum tarn_status field_name(const struct event_log *log, enum tarn_track_names names,
                                   const char *key, uint32_t *id_out, struct tarn_error *error)
{
    return name_add(log, names, json_object_get(log->line, key), key, id_out, error);
}

/* True or false; false when it is missing. */
static enum tarn_status field_flag(const struct event_log *log, const char *key, bool *flag_out,
                                   struct tarn_error *error)
{
    const json_t *value = json_object_get(log->line, key);

    if (value && !json_is_boolean(value)) {
        return log_fail(log, TARN_ERR_FORMAT, error, "%.60s: \"%s\" is neither true nor false",
                        json_string_value(json_object_get(log->line, "op")), key);
    }
    *flag_out = json_is_true(value);
    return TARN_OK;
}

static enum tarn_status field_list(const struct event_log *log, const char *key, json_t **list_out,
                                   struct tarn_error *error)
{
    json_t *value = json_object_get(log->line, key);

    if (!json_is_array(value)) {
        return log_fail(log, TARN_ERR_FORMAT, error, "%.60s: \"%s\" is not a list",
                        json_string_value(json_object_get(log->line, "op")), key);
    }
    *list_out = value;
    return TARN_OK;
}

/* [id, bytes, device] */
static enum tarn_status storage_read(const struct event_log *log, const json_t *value,
                                     struct tarn_track_event *event, struct tarn_error *error)
{
    const json_t *id = json_array_get(value, 0);
    const json_t *bytes = json_array_get(value, 1);

    if (json_array_size(value) != 3 || !json_is_integer(id) || json_integer_value(id) < 0 ||
        !json_is_integer(bytes) || json_integer_value(bytes) < 0) {
        return log_fail(log, TARN_ERR_FORMAT, error,
                        "%.60s: a storage is not [id, bytes, device] with numbers from 0 on",
                        json_string_value(json_object_get(log->line, "op")));
    }
    event->id = (uint64_t)json_integer_value(id);
    event->bytes = (uint64_t)json_integer_value(bytes);
    return name_add(log, TARN_TRACK_DEVICE, json_array_get(value, 2), "device", &event->name,
                    error);
}

/* ---- events ---- */

static enum tarn_status log_apply(const struct event_log *log, const struct tarn_track_event *event,
                                  struct tarn_error *error)
{
    struct tarn_error inner;
    enum tarn_status st = tarn_tracker_apply(log->tracker, event, 1, NULL, &inner);

    if (st == TARN_OK) {
        return TARN_OK;
    }
    if (st != TARN_ERR_LIMIT && st != TARN_ERR_HOST_MEMORY) {
        st = TARN_ERR_FORMAT; /* what is wrong is the log */
    }
    return log_fail(log, st, error, "%.900s", inner.text);
}

static enum tarn_status log_apply_kind(const struct event_log *log, enum tarn_track_kind kind,
                                       struct tarn_error *error)
{
    const struct tarn_track_event event = {.kind = (uint16_t)kind};

    return log_apply(log, &event, error);
}

/* Storages of a module's inputs or outputs; an id may be null there. */
static enum tarn_status apply_storages_of_module(const struct event_log *log,
                                                 enum tarn_track_kind kind, const json_t *list,
                                                 struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    for (size_t i = 0; !st && i < json_array_size(list); i++) {
        const json_t *storage = json_array_get(list, i);
        struct tarn_track_event event = {.kind = (uint16_t)kind};

        if (json_is_null(json_array_get(storage, 0))) {
            continue;
        }
        st = storage_read(log, storage, &event, error);
        st = st ? st : log_apply(log, &event, error);
    }
    return st;
}

/* The module that was entered last is ready, unless it is already. */
static enum tarn_status log_make_ready(struct event_log *log, struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    if (log->inputs) {
        st = apply_storages_of_module(log, TARN_TRACK_INPUT, log->inputs, error);
        json_decref(log->inputs);
        log->inputs = NULL;
        st = st ? st : log_apply_kind(log, TARN_TRACK_READY, error);
    }
    return st;
}

static enum tarn_status read_classify(struct event_log *log, struct tarn_error *error)
{
    json_t *storages = NULL;
    uint32_t category = 0;
    enum tarn_status st = field_list(log, "storages", &storages, error);

    st = st ? st : field_name(log, TARN_TRACK_CATEGORY, "category", &category, error);
    if (!st && (category == TARN_TRACK_OTHER || category == TARN_TRACK_OPTSTATE)) {
        st = log_make_ready(log, error);
    }
    for (size_t i = 0; !st && i < json_array_size(storages); i++) {
        struct tarn_track_event event = {.kind = TARN_TRACK_CLASSIFY, .category = category};

        st = storage_read(log, json_array_get(storages, i), &event, error);
        st = st ? st : log_apply(log, &event, error);
    }
    return st;
}

static enum tarn_status apply_tensor(const struct event_log *log, const json_t *storages,
                                     struct tarn_track_event *event, struct tarn_error *error)
{
    const uint16_t flags = event->flags;
    enum tarn_status st = TARN_OK;

    for (size_t i = 0; !st && i < json_array_size(storages); i++) {
        const bool has_more = i + 1 < json_array_size(storages);

        event->flags = (uint16_t)(flags | (has_more ? TARN_TRACK_MORE : 0));
        st = storage_read(log, json_array_get(storages, i), event, error);
        st = st ? st : log_apply(log, event, error);
    }
    return st;
}

/* Something happens in backward, or outside of it. */
static enum tarn_status log_note_backward(struct event_log *log, bool backward,
                                          struct tarn_error *error)
{
    const bool ends = log->was_backward && !backward;

    log->was_backward = backward;
    return ends ? log_apply_kind(log, TARN_TRACK_END_BACKWARD, error) : TARN_OK;
}

static enum tarn_status read_create(struct event_log *log, struct tarn_error *error)
{
    struct tarn_track_event event = {.kind = TARN_TRACK_CREATE, .category = TARN_TRACK_AUTO};
    json_t *storages = NULL;
    bool backward = false;
    enum tarn_status st = field_list(log, "storages", &storages, error);

    st = st ? st : field_flag(log, "in_backward", &backward, error);
    if (!st && json_object_get(log->line, "category")) {
        st = field_name(log, TARN_TRACK_CATEGORY, "category", &event.category, error);
    }
    event.flags = backward ? TARN_TRACK_BACKWARD : 0;
    st = st ? st : log_note_backward(log, backward, error);
    return st ? st : apply_tensor(log, storages, &event, error);
}

static enum tarn_status read_op_done(struct event_log *log, struct tarn_error *error)
{
    struct tarn_track_event event = {.kind = TARN_TRACK_OP_DONE, .flags = TARN_TRACK_IN_STATE};
    json_t *parents = NULL;
    enum tarn_status st = field_list(log, "parents", &parents, error);

    st = st ? st : field_name(log, TARN_TRACK_STATE, "peak_state", &event.name, error);
    if (!st && event.name == TARN_TRACK_PEAK_FORWARD) {
        st = log_note_backward(log, false, error);
    }
    for (size_t i = 0; !st && i < json_array_size(parents); i++) {
        struct tarn_track_event active = {.kind = TARN_TRACK_ACTIVE};

        st = name_add(log, TARN_TRACK_MODULE, json_array_get(parents, i), "parents", &active.name,
                      error);
        st = st ? st : log_apply(log, &active, error);
    }
    return st ? st : log_apply(log, &event, error);
}

static enum tarn_status read_storage_event(struct event_log *log, enum tarn_track_kind kind,
                                           struct tarn_error *error)
{
    struct tarn_track_event event = {.kind = (uint16_t)kind};
    enum tarn_status st = field_number(log, "id", &event.id, error);

    if (!st && kind == TARN_TRACK_RESIZE) {
        st = field_number(log, "bytes", &event.bytes, error);
    }
    return st ? st : log_apply(log, &event, error);
}

/* Activations and temporaries die all the time; what else dies last is the program's end. */
static bool outlives_a_step(const struct tarn_tracker *t, uint64_t id)
{
    const struct tn_storage *storage = id < UINT64_MAX ? tn_storage_find(&t->storages, id) : NULL;

    return storage && storage->category != TARN_TRACK_ACTIVATION &&
           storage->category != TARN_TRACK_TEMP;
}

/* Keeps what is there before the first deletion that may be of the program's end. */
static enum tarn_status note_end(const struct event_log *log, struct tarn_error *error)
{
    struct tarn_tracker *t = log->tracker;
    const json_t *id = json_object_get(log->line, "id");
    bool kept = true;

    tn_lock_acquire(&t->lock);
    if (!t->is_ending && json_is_integer(id) &&
        outlives_a_step(t, (uint64_t)json_integer_value(id))) {
        kept = tn_breakdown_reserve(&t->at_end, t->now.count);
        if (kept) {
            tn_breakdown_copy(&t->at_end, &t->now);
        }
        t->is_ending = kept;
    }
    tn_lock_release(&t->lock);
    return kept ? TARN_OK : log_fail(log, TARN_ERR_HOST_MEMORY, error, "delete: no host memory");
}

static void end_not_yet(struct tarn_tracker *t)
{
    tn_lock_acquire(&t->lock);
    t->is_ending = false;
    tn_lock_release(&t->lock);
}

static enum tarn_status read_delete(struct event_log *log, struct tarn_error *error)
{
    const enum tarn_status st = note_end(log, error);

    if (st) {
        return st;
    }
    return read_storage_event(log, TARN_TRACK_DELETE, error);
}

static enum tarn_status read_resize(struct event_log *log, struct tarn_error *error)
{
    return read_storage_event(log, TARN_TRACK_RESIZE, error);
}

/* Fields that all events of modules have. */
static enum tarn_status read_module(struct event_log *log, enum tarn_track_kind kind,
                                    struct tarn_track_event *event, struct tarn_error *error)
{
    enum tarn_status st = field_number(log, "module_id", &event->id, error);

    event->kind = (uint16_t)kind;
    return st ? st : field_name(log, TARN_TRACK_MODULE, "module", &event->name, error);
}

static bool entered_is_new(struct tarn_tracker *t)
{
    tn_lock_acquire(&t->lock);
    const bool is_new = t->entering && t->entering_is_new;

    tn_lock_release(&t->lock);
    return is_new;
}

static enum tarn_status read_pre_forward(struct event_log *log, struct tarn_error *error)
{
    struct tarn_track_event event = {0};
    json_t *inputs = NULL;
    bool backward = false;
    enum tarn_status st = read_module(log, TARN_TRACK_ENTER, &event, error);

    st = st ? st : field_list(log, "inputs", &inputs, error);
    st = st ? st : field_flag(log, "in_backward", &backward, error);
    st = st ? st : log_note_backward(log, backward, error);
    event.flags = backward ? TARN_TRACK_BACKWARD : 0;
    st = st ? st : log_apply(log, &event, error);
    if (st) {
        return st;
    }
    log->inputs = json_incref(inputs);
    return entered_is_new(log->tracker) ? TARN_OK : log_make_ready(log, error);
}

static enum tarn_status read_post_forward(struct event_log *log, struct tarn_error *error)
{
    struct tarn_track_event event = {0};
    json_t *outputs = NULL;
    bool backward = false;
    enum tarn_status st = read_module(log, TARN_TRACK_LEAVE, &event, error);

    st = st ? st : field_list(log, "outputs", &outputs, error);
    st = st ? st : field_flag(log, "in_backward", &backward, error);
    st = st ? st : apply_storages_of_module(log, TARN_TRACK_OUTPUT, outputs, error);
    event.flags = backward ? TARN_TRACK_BACKWARD : 0;
    return st ? st : log_apply(log, &event, error);
}

static enum tarn_status read_pre_backward(struct event_log *log, struct tarn_error *error)
{
    struct tarn_track_event event = {0};
    enum tarn_status st = read_module(log, TARN_TRACK_ENTER_BACKWARD, &event, error);

    st = st ? st : log_note_backward(log, true, error);
    return st ? st : log_apply(log, &event, error);
}

static enum tarn_status read_post_backward(struct event_log *log, struct tarn_error *error)
{
    struct tarn_track_event event = {0};
    const enum tarn_status st = read_module(log, TARN_TRACK_LEAVE_BACKWARD, &event, error);

    return st ? st : log_apply(log, &event, error);
}

static enum tarn_status read_step_begin(struct event_log *log, struct tarn_error *error)
{
    const enum tarn_status st = log_note_backward(log, false, error);

    return st ? st : log_apply_kind(log, TARN_TRACK_BEGIN_STEP, error);
}

static enum tarn_status read_step_end(struct event_log *log, struct tarn_error *error)
{
    return log_apply_kind(log, TARN_TRACK_END_STEP, error);
}

static enum tarn_status read_reset(struct event_log *log, struct tarn_error *error)
{
    return log_apply_kind(log, TARN_TRACK_RESET_MODULES, error);
}

static enum tarn_status read_iteration(struct event_log *log, struct tarn_error *error)
{
    return log_apply_kind(log, TARN_TRACK_BEGIN_ITERATION, error);
}

static enum tarn_status read_mark(struct event_log *log, struct tarn_error *error)
{
    (void)log;
    (void)error;
    return TARN_OK;
}

/* ---- lines ---- */

struct log_op {
    const char *name;
    bool may_precede_start; /* happens also before tracking starts */
    bool keeps_entering;    /* may come before an entered module is ready; or sees to it */
    enum tarn_status (*read)(struct event_log *log, struct tarn_error *error);
};

static const struct log_op log_ops[] = {
    {"classify", true, true, read_classify},
    {"delete", true, false, read_delete},
    {"create", false, false, read_create},
    {"op_done", false, false, read_op_done},
    {"resize", false, false, read_resize},
    {"pre_forward", false, false, read_pre_forward},
    {"post_forward", false, false, read_post_forward},
    {"pre_backward", false, false, read_pre_backward},
    {"post_backward", false, false, read_post_backward},
    {"optimizer_step_begin", false, false, read_step_begin},
    {"optimizer_step_end", false, false, read_step_end},
    {"reset_mod_stats", false, false, read_reset},
    {"begin_iteration", false, false, read_iteration},
    {"mark", false, false, read_mark},
};

static const struct log_op *op_find(const char *name)
{
    for (size_t i = 0; name && i < sizeof log_ops / sizeof log_ops[0]; i++) {
        if (strcmp(log_ops[i].name, name) == 0) {
            return &log_ops[i];
        }
    }
    return NULL;
}

/* What does not parse: the log may have been cut off there. */
TN_COLD static enum tarn_status line_fail(struct event_log *log, const json_error_t *json_error,
                                          struct tarn_error *error)
{
    const bool ends =
        json_error_code(json_error) == json_error_premature_end_of_input && /* and nothing more */
        tn_input_need(&log->input, 1, NULL) == TARN_ERR_TRUNCATED;

    return ends ? log_fail(log, TARN_ERR_TRUNCATED, error, "the log ends in the middle of an event")
                : log_fail(log, TARN_ERR_FORMAT, error, "not JSON: %s at column %d",
                           json_error->text, json_error->column);
}

/* The next event; TARN_ERR_NOT_FOUND at the end. */
static enum tarn_status line_read(struct event_log *log, struct tarn_error *error)
{
    const char *text = NULL;
    size_t length = 0;
    json_error_t json_error;

    json_decref(log->line);
    log->line = NULL;
    const enum tarn_status st = tn_input_line(&log->input, LINE_MAX_BYTES, &text, &length, error);

    if (st == TARN_ERR_NOT_FOUND) {
        return st;
    }
    if (st) {
        struct tarn_error inner = {.text = ""};

        if (error) {
            inner = *error;
        }
        log->replay.events++;
        return log_fail(log, st, error, "%.900s", inner.text);
    }
    log->replay.events++;
    log->line = json_loadb(text, length, JSON_REJECT_DUPLICATES, &json_error);
    if (!log->line) {
        return line_fail(log, &json_error, error);
    }
    return json_is_object(log->line)
               ? TARN_OK
               : log_fail(log, TARN_ERR_FORMAT, error, "the event is not a JSON object");
}

static enum tarn_status event_apply(struct event_log *log, struct tarn_error *error)
{
    const char *name = json_string_value(json_object_get(log->line, "op"));
    const struct log_op *op = op_find(name);
    enum tarn_status st = TARN_OK;

    if (!op) {
        return log_fail(log, TARN_ERR_FORMAT, error, "unknown event \"%.60s\"", name ? name : "");
    }
    if (!log->started && !op->may_precede_start) {
        log->started = true;
        st = log_apply_kind(log, TARN_TRACK_START, error);
    }
    if (op->read != read_delete) {
        end_not_yet(log->tracker);
    }
    if (!st && !op->keeps_entering) {
        st = log_make_ready(log, error);
    }
    return st ? st : op->read(log, error);
}

/* ---- what the log says is there ---- */

static bool row_is(const struct tarn_tracker *t, const struct tarn_track_row *row,
                   const json_t *recorded)
{
    const json_t *total = json_object_get(recorded, "Total");
    size_t known = json_is_integer(total);
    bool same = known && json_integer_value(total) == row->total;

    for (uint32_t c = 0; same && c < tn_name_list_count(&t->names[TARN_TRACK_CATEGORY]); c++) {
        const json_t *bytes = json_object_get(recorded, tn_track_name(t, TARN_TRACK_CATEGORY, c));

        same = json_integer_value(bytes) == row->bytes[c]; /* 0 when it is missing */
        known += bytes != NULL;
    }
    return same && known == json_object_size(recorded);
}

static bool now_is(const struct tarn_tracker *t, const json_t *recorded)
{
    bool same = json_is_object(recorded) && json_object_size(recorded) == t->now.count;

    for (size_t i = 0; same && i < t->now.count; i++) {
        const struct tarn_track_row *row = &t->now.rows[i];

        same = row_is(t, row,
                      json_object_get(recorded, tn_track_name(t, TARN_TRACK_DEVICE, row->device)));
    }
    return same;
}

static enum tarn_status print_now(struct tn_text_out *out, const struct tarn_tracker *t,
                                  const void *how)
{
    (void)how;
    tn_track_put_json(out, t, &t->now);
    tn_text_putc(out, '\n');
    return TARN_OK;
}

static enum tarn_status text_append(void *context, const char *bytes, size_t size)
{
    struct tarn_track_replay *replay = context;
    const size_t used = strlen(replay->first);
    const size_t room = sizeof replay->first - used - 1;
    const size_t taken = size < room ? size : room;

    memcpy(replay->first + used, bytes, taken);
    replay->first[used + taken] = '\0';
    return TARN_OK;
}

/* The first difference: both sides, cut off where there is no room. */
static void note_difference(struct event_log *log, const json_t *recorded)
{
    struct tarn_track_replay *replay = &log->replay;
    const struct tarn_writer writer = {text_append, replay};
    char text[200] = ""; /* what does not fit is left out */

    (void)json_dumpb(recorded, text, sizeof text - 1, JSON_ENCODE_ANY);
    (void)snprintf(replay->first, sizeof replay->first,
                   "line %" PRIu64 ", %.40s: recorded %s, here ", replay->events,
                   json_string_value(json_object_get(log->line, "op")), text);
    if (tn_track_write(log->tracker, print_now, NULL, &writer, NULL)) {
        (void)text_append(replay, "?", 1);
    }
    replay->first[strcspn(replay->first, "\n")] = '\0';
}

static enum tarn_status event_compare(struct event_log *log, struct tarn_error *error)
{
    const json_t *recorded = json_object_get(log->line, "after");

    if (recorded) {
        tn_lock_acquire(&log->tracker->lock);
        const bool same = now_is(log->tracker, recorded);

        tn_lock_release(&log->tracker->lock);
        log->replay.compared++;
        log->replay.differing += !same;
        if (!same && log->replay.first[0] == '\0') {
            note_difference(log, recorded);
        }
    }
    return log->after ? tn_track_write(log->tracker, print_now, NULL, log->after, error) : TARN_OK;
}

static enum tarn_status log_run(struct event_log *log, struct tarn_error *error)
{
    enum tarn_status st;

    do {
        st = line_read(log, error);
        st = st ? st : event_apply(log, error);
        st = st ? st : event_compare(log, error);
    } while (!st);
    if (st != TARN_ERR_NOT_FOUND) {
        return st;
    }
    if (log->replay.events == 0) {
        return tn_fail(error, TARN_ERR_FORMAT, "the log has no events");
    }
    return log_make_ready(log, error);
}

/* Runs a log whose input is open, and closes it. */
static enum tarn_status log_replay(struct event_log *log, struct tarn_track_replay *replay_out,
                                   struct tarn_error *error)
{
    const enum tarn_status st = log_run(log, error);

    json_decref(log->line);
    json_decref(log->inputs);
    tn_input_close(&log->input);
    if (replay_out) {
        *replay_out = log->replay;
        replay_out->struct_size = sizeof *replay_out;
    }
    return st;
}

static enum tarn_status check_replay(const struct tarn_tracker *tracker,
                                     const struct tarn_track_replay *replay,
                                     struct tarn_error *error)
{
    if (tn_fork_passed(&tracker->fork)) {
        return tn_fork_refuse(error, "the tracker");
    }
    return replay && replay->struct_size != sizeof *replay
               ? tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                         "the result of a replay has an unknown size of %u bytes",
                         (unsigned)replay->struct_size)
               : TARN_OK;
}

enum tarn_status tarn_tracker_replay_log(struct tarn_tracker *tracker, const char *path,
                                         const struct tarn_writer *after,
                                         struct tarn_track_replay *replay_out,
                                         struct tarn_error *error)
{
    const struct tn_unpack_limits limits = {0};
    struct event_log log = {.tracker = tracker, .after = after};
    enum tarn_status st = check_replay(tracker, replay_out, error);

    st = st ? st : tn_input_open(&log.input, path, &limits, error);
    return st ? st : log_replay(&log, replay_out, error);
}

enum tarn_status tarn_tracker_replay_memory(struct tarn_tracker *tracker, const void *bytes,
                                            size_t size, const struct tarn_writer *after,
                                            struct tarn_track_replay *replay_out,
                                            struct tarn_error *error)
{
    const struct tn_unpack_limits limits = {.max_ratio = 2000};
    struct event_log log = {.tracker = tracker, .after = after};
    enum tarn_status st = check_replay(tracker, replay_out, error);

    st = st ? st : tn_input_open_memory(&log.input, bytes, size, &limits, error);
    return st ? st : log_replay(&log, replay_out, error);
}
