/* SPDX-License-Identifier: MIT */
/*
 * Replays a recorded log of events, one JSON object per line. The log leaves four things implicit:
 *
 *   - A module that is entered for the first time has its parameters and buffers classified before
 *   its state is recorded, and these events follow the entering in the log. So a new module is
 *   ready at the first event that cannot be one of them.
 *   - Tracking starts at the first event that cannot be a registration; peaks start from the
 *   registered bytes.
 *   - Backward has ended when an event occurs outside it.
 *   - The log continues while the program destroys its model: TARN_TRACK_AT_END.
 *
 * The log is untrusted; json_tree.h bounds nesting and memory.
 */
#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/input_line.h"
#include "base/json_tree.h"
#include "base/utf8.h"
#include "tracker/track_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    LINE_MAX_BYTES = 16 << 20,
    SHOWN_MAX = 199 /* bytes of a line in a message */
};

struct event_log {
    struct tarn_tracker *tracker;
    const struct tarn_writer *after; /* or NULL */
    struct tn_input input;
    struct tarn_track_replay replay;
    struct tn_json_tree trees[2]; /* one for the current line, one for that of `inputs` */
    const char *text;             /* of the current line */
    const struct tn_json_value *line;
    const struct tn_json_value *inputs; /* of the module that is not ready yet; NULL = none */
    unsigned inputs_at;                 /* their tree */
    unsigned line_at;
    bool started;
    bool was_backward;
};

TN_COLD static enum tarn_status log_fail(const struct event_log *log, enum tarn_status status,
                                         struct tarn_error *error, const char *format, ...)
    TN_PRINTF(4, 5);

/* Fails with a message about the current line. */
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
    const struct tn_json_value *value = tn_json_get(log->line, key);

    if (!tn_json_is(value, TN_JSON_INTEGER) || tn_json_integer(value) < 0) {
        return log_fail(log, TARN_ERR_FORMAT, error, "%.60s: \"%s\" is not a number of at least 0",
                        tn_json_text(tn_json_get(log->line, "op")), key);
    }
    *number_out = (uint64_t)tn_json_integer(value);
    return TARN_OK;
}

/* Converts a text to an id of the tracker. */
static enum tarn_status name_add(const struct event_log *log, enum tarn_track_names names,
                                 const struct tn_json_value *value, const char *key,
                                 uint32_t *id_out, struct tarn_error *error)
{
    const char *op = tn_json_text(tn_json_get(log->line, "op"));
    struct tarn_error inner;
    enum tarn_status st;

    if (!tn_json_is(value, TN_JSON_STRING)) {
        return log_fail(log, TARN_ERR_FORMAT, error, "%.60s: \"%s\" is not a text", op, key);
    }
    st = tarn_tracker_add_name(log->tracker, names, tn_json_text(value), id_out, &inner);
    if (st == TARN_ERR_INVALID_ARGUMENT) {
        st = TARN_ERR_FORMAT;
    }
    return st ? log_fail(log, st, error, "%.60s: \"%s\": %.*s", op, key,
                         tn_utf8_cut(inner.text, 400), inner.text)
              : TARN_OK;
}

static enum tarn_status field_name(const struct event_log *log, enum tarn_track_names names,
                                   const char *key, uint32_t *id_out, struct tarn_error *error)
{
    return name_add(log, names, tn_json_get(log->line, key), key, id_out, error);
}

/* True or false; false when it is missing. */
static enum tarn_status field_flag(const struct event_log *log, const char *key, bool *flag_out,
                                   struct tarn_error *error)
{
    const struct tn_json_value *value = tn_json_get(log->line, key);

    if (value && !tn_json_is_bool(value)) {
        return log_fail(log, TARN_ERR_FORMAT, error, "%.60s: \"%s\" is neither true nor false",
                        tn_json_text(tn_json_get(log->line, "op")), key);
    }
    *flag_out = tn_json_is(value, TN_JSON_TRUE);
    return TARN_OK;
}

static enum tarn_status field_list(const struct event_log *log, const char *key,
                                   const struct tn_json_value **list_out, struct tarn_error *error)
{
    const struct tn_json_value *value = tn_json_get(log->line, key);

    if (!tn_json_is(value, TN_JSON_ARRAY)) {
        return log_fail(log, TARN_ERR_FORMAT, error, "%.60s: \"%s\" is not a list",
                        tn_json_text(tn_json_get(log->line, "op")), key);
    }
    *list_out = value;
    return TARN_OK;
}

/* [id, bytes, device] */
static enum tarn_status storage_read(const struct event_log *log, const struct tn_json_value *value,
                                     struct tarn_track_event *event, struct tarn_error *error)
{
    const struct tn_json_value *id = tn_json_at(value, 0);
    const struct tn_json_value *bytes = tn_json_at(value, 1);

    if (tn_json_length(value) != 3 || !tn_json_is(id, TN_JSON_INTEGER) || tn_json_integer(id) < 0 ||
        !tn_json_is(bytes, TN_JSON_INTEGER) || tn_json_integer(bytes) < 0) {
        return log_fail(log, TARN_ERR_FORMAT, error,
                        "%.60s: a storage is not [id, bytes, device] with numbers of at least 0",
                        tn_json_text(tn_json_get(log->line, "op")));
    }
    event->id = (uint64_t)tn_json_integer(id);
    event->bytes = (uint64_t)tn_json_integer(bytes);
    return name_add(log, TARN_TRACK_DEVICE, tn_json_at(value, 2), "device", &event->name, error);
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
        st = TARN_ERR_FORMAT; /* the log is invalid, not the call */
    }
    return log_fail(log, st, error, "%.*s", tn_utf8_cut(inner.text, 900), inner.text);
}

/* An event without fields. */
static enum tarn_status log_apply_kind(struct event_log *log, enum tarn_track_kind kind,
                                       struct tarn_error *error)
{
    const struct tarn_track_event event = {.kind = (uint16_t)kind};

    return log_apply(log, &event, error);
}

/* Storages of a module's inputs or outputs; an id may be null there. */
static enum tarn_status apply_storages_of_module(const struct event_log *log,
                                                 enum tarn_track_kind kind,
                                                 const struct tn_json_value *list,
                                                 struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    for (size_t i = 0; !st && i < tn_json_length(list); i++) {
        const struct tn_json_value *storage = tn_json_at(list, i);
        struct tarn_track_event event = {.kind = (uint16_t)kind};

        if (tn_json_is(tn_json_at(storage, 0), TN_JSON_NULL)) {
            continue;
        }
        st = storage_read(log, storage, &event, error);
        st = st ? st : log_apply(log, &event, error);
    }
    return st;
}

/* Makes the module entered last ready, unless it already is. */
static enum tarn_status log_make_ready(struct event_log *log, struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    if (log->inputs) {
        st = apply_storages_of_module(log, TARN_TRACK_INPUT, log->inputs, error);
        log->inputs = NULL;
        st = st ? st : log_apply_kind(log, TARN_TRACK_READY, error);
    }
    return st;
}

static enum tarn_status read_classify(struct event_log *log, enum tarn_track_kind kind,
                                      struct tarn_error *error)
{
    const struct tn_json_value *storages = NULL;
    uint32_t category = 0;
    enum tarn_status st = field_list(log, "storages", &storages, error);

    st = st ? st : field_name(log, TARN_TRACK_CATEGORY, "category", &category, error);
    if (!st && (category == TARN_TRACK_OTHER || category == TARN_TRACK_OPTSTATE)) {
        st = log_make_ready(log, error);
    }
    for (size_t i = 0; !st && i < tn_json_length(storages); i++) {
        struct tarn_track_event event = {.kind = (uint16_t)kind, .category = category};

        st = storage_read(log, tn_json_at(storages, i), &event, error);
        st = st ? st : log_apply(log, &event, error);
    }
    return st;
}

static enum tarn_status apply_tensor(const struct event_log *log,
                                     const struct tn_json_value *storages,
                                     struct tarn_track_event *event, struct tarn_error *error)
{
    const uint16_t flags = event->flags;
    enum tarn_status st = TARN_OK;

    for (size_t i = 0; !st && i < tn_json_length(storages); i++) {
        const bool has_more = i + 1 < tn_json_length(storages);

        event->flags = (uint16_t)(flags | (has_more ? TARN_TRACK_MORE : 0));
        st = storage_read(log, tn_json_at(storages, i), event, error);
        st = st ? st : log_apply(log, event, error);
    }
    return st;
}

/* Tracks whether backward has ended. */
static enum tarn_status log_note_backward(struct event_log *log, bool backward,
                                          struct tarn_error *error)
{
    const bool ends = log->was_backward && !backward;

    log->was_backward = backward;
    return ends ? log_apply_kind(log, TARN_TRACK_END_BACKWARD, error) : TARN_OK;
}

static enum tarn_status read_create(struct event_log *log, enum tarn_track_kind kind,
                                    struct tarn_error *error)
{
    struct tarn_track_event event = {.kind = (uint16_t)kind, .category = TARN_TRACK_AUTO};
    const struct tn_json_value *storages = NULL;
    bool backward = false;
    enum tarn_status st = field_list(log, "storages", &storages, error);

    st = st ? st : field_flag(log, "in_backward", &backward, error);
    if (!st && tn_json_get(log->line, "category")) {
        st = field_name(log, TARN_TRACK_CATEGORY, "category", &event.category, error);
    }
    event.flags = backward ? TARN_TRACK_BACKWARD : 0;
    st = st ? st : log_note_backward(log, backward, error);
    return st ? st : apply_tensor(log, storages, &event, error);
}

static enum tarn_status read_op_done(struct event_log *log, enum tarn_track_kind kind,
                                     struct tarn_error *error)
{
    struct tarn_track_event event = {.kind = (uint16_t)kind, .flags = TARN_TRACK_IN_STATE};
    const struct tn_json_value *parents = NULL;
    enum tarn_status st = field_list(log, "parents", &parents, error);

    st = st ? st : field_name(log, TARN_TRACK_STATE, "peak_state", &event.name, error);
    if (!st && event.name == TARN_TRACK_PEAK_FORWARD) {
        st = log_note_backward(log, false, error);
    }
    for (size_t i = 0; !st && i < tn_json_length(parents); i++) {
        struct tarn_track_event active = {.kind = TARN_TRACK_ACTIVE};

        st = name_add(log, TARN_TRACK_MODULE, tn_json_at(parents, i), "parents", &active.name,
                      error);
        st = st ? st : log_apply(log, &active, error);
    }
    return st ? st : log_apply(log, &event, error);
}

static enum tarn_status read_storage(struct event_log *log, enum tarn_track_kind kind,
                                     struct tarn_error *error)
{
    struct tarn_track_event event = {.kind = (uint16_t)kind};
    enum tarn_status st = field_number(log, "id", &event.id, error);

    if (!st && kind == TARN_TRACK_RESIZE) {
        st = field_number(log, "bytes", &event.bytes, error);
    }
    return st ? st : log_apply(log, &event, error);
}

/* Activations and temporaries die all the time; other deletions at the end are the program's
 * end. */
static bool outlives_a_step(const struct tarn_tracker *t, uint64_t id)
{
    const struct tn_storage *storage = id < UINT64_MAX ? tn_storage_find(&t->storages, id) : NULL;

    return storage && storage->category != TARN_TRACK_ACTIVATION &&
           storage->category != TARN_TRACK_TEMP;
}

/* Saves the state before the first deletion that may belong to the program's end. */
static enum tarn_status note_end(const struct event_log *log, struct tarn_error *error)
{
    struct tarn_tracker *t = log->tracker;
    const struct tn_json_value *id = tn_json_get(log->line, "id");
    bool kept = true;

    tn_lock_acquire(&t->lock);
    if (!t->is_ending && tn_json_is(id, TN_JSON_INTEGER) &&
        outlives_a_step(t, (uint64_t)tn_json_integer(id))) {
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

static enum tarn_status read_delete(struct event_log *log, enum tarn_track_kind kind,
                                    struct tarn_error *error)
{
    const enum tarn_status st = note_end(log, error);

    return st ? st : read_storage(log, kind, error);
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

static enum tarn_status read_pre_forward(struct event_log *log, enum tarn_track_kind kind,
                                         struct tarn_error *error)
{
    struct tarn_track_event event = {0};
    const struct tn_json_value *inputs = NULL;
    bool backward = false;
    enum tarn_status st = read_module(log, kind, &event, error);

    st = st ? st : field_list(log, "inputs", &inputs, error);
    st = st ? st : field_flag(log, "in_backward", &backward, error);
    st = st ? st : log_note_backward(log, backward, error);
    event.flags = backward ? TARN_TRACK_BACKWARD : 0;
    st = st ? st : log_apply(log, &event, error);
    if (st) {
        return st;
    }
    log->inputs = inputs;
    log->inputs_at = log->line_at;
    return entered_is_new(log->tracker) ? TARN_OK : log_make_ready(log, error);
}

static enum tarn_status read_post_forward(struct event_log *log, enum tarn_track_kind kind,
                                          struct tarn_error *error)
{
    struct tarn_track_event event = {0};
    const struct tn_json_value *outputs = NULL;
    bool backward = false;
    enum tarn_status st = read_module(log, kind, &event, error);

    st = st ? st : field_list(log, "outputs", &outputs, error);
    st = st ? st : field_flag(log, "in_backward", &backward, error);
    st = st ? st : apply_storages_of_module(log, TARN_TRACK_OUTPUT, outputs, error);
    event.flags = backward ? TARN_TRACK_BACKWARD : 0;
    return st ? st : log_apply(log, &event, error);
}

static enum tarn_status read_module_backward(struct event_log *log, enum tarn_track_kind kind,
                                             struct tarn_error *error)
{
    struct tarn_track_event event = {0};
    enum tarn_status st = read_module(log, kind, &event, error);

    if (st == TARN_OK && kind == TARN_TRACK_ENTER_BACKWARD) {
        st = log_note_backward(log, true, error);
    }
    return st ? st : log_apply(log, &event, error);
}

static enum tarn_status read_step_begin(struct event_log *log, enum tarn_track_kind kind,
                                        struct tarn_error *error)
{
    const enum tarn_status st = log_note_backward(log, false, error);

    return tn_never(st) ? st : log_apply_kind(log, kind, error); /* the end of backward is taken */
}

/* ---- lines ---- */

struct log_op {
    const char *name;
    enum tarn_track_kind kind;
    bool may_precede_start; /* may also occur before tracking starts */
    bool keeps_entering;    /* may precede the readiness of an entered module, or handles it */
    enum tarn_status (*read)(struct event_log *log, enum tarn_track_kind kind,
                             struct tarn_error *error); /* NULL: does nothing */
};

static const struct log_op log_ops[] = {
    {"classify", TARN_TRACK_CLASSIFY, true, true, read_classify},
    {"delete", TARN_TRACK_DELETE, true, false, read_delete},
    {"create", TARN_TRACK_CREATE, false, false, read_create},
    {"op_done", TARN_TRACK_OP_DONE, false, false, read_op_done},
    {"resize", TARN_TRACK_RESIZE, false, false, read_storage},
    {"pre_forward", TARN_TRACK_ENTER, false, false, read_pre_forward},
    {"post_forward", TARN_TRACK_LEAVE, false, false, read_post_forward},
    {"pre_backward", TARN_TRACK_ENTER_BACKWARD, false, false, read_module_backward},
    {"post_backward", TARN_TRACK_LEAVE_BACKWARD, false, false, read_module_backward},
    {"optimizer_step_begin", TARN_TRACK_BEGIN_STEP, false, false, read_step_begin},
    {"optimizer_step_end", TARN_TRACK_END_STEP, false, false, log_apply_kind},
    {"reset_mod_stats", TARN_TRACK_RESET_MODULES, false, false, log_apply_kind},
    {"begin_iteration", TARN_TRACK_BEGIN_ITERATION, false, false, log_apply_kind},
    {"mark", TARN_TRACK_KIND_COUNT, false, false, NULL},
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

/* A parse error: the log may have been cut off there. */
TN_COLD static enum tarn_status line_fail(struct event_log *log, enum tarn_status status,
                                          const struct tarn_error *failure,
                                          struct tarn_error *error)
{
    const bool is_cut = status == TARN_ERR_TRUNCATED; /* else memory */

    if (is_cut && tn_input_need(&log->input, 1, NULL) == TARN_ERR_TRUNCATED) {
        return log_fail(log, TARN_ERR_TRUNCATED, error, "the log ends in the middle of an event");
    }
    status = is_cut ? TARN_ERR_FORMAT : status;
    return log_fail(log, status, error, "%s%.900s", status == TARN_ERR_FORMAT ? "not JSON: " : "",
                    failure->text);
}

/* The next event; TARN_ERR_NOT_FOUND at the end. */
static enum tarn_status line_read(struct event_log *log, struct tarn_error *error)
{
    struct tarn_error inner = {.text = ""};
    const char *text = NULL;
    size_t length = 0;
    enum tarn_status st = tn_input_line(&log->input, LINE_MAX_BYTES, &text, &length, &inner);

    if (st == TARN_ERR_NOT_FOUND) {
        return st;
    }
    log->replay.events++;
    if (st) {
        return log_fail(log, st, error, "%.*s", tn_utf8_cut(inner.text, 900), inner.text);
    }
    log->line_at = log->inputs ? !log->inputs_at : log->line_at;
    struct tn_json_tree *tree = &log->trees[log->line_at];

    st = tn_json_parse(tree, text, length, false, &inner);
    log->text = text;
    log->line = &tree->root;
    if (st) {
        return line_fail(log, st, &inner, error);
    }
    return tn_json_is(log->line, TN_JSON_OBJECT)
               ? TARN_OK
               : log_fail(log, TARN_ERR_FORMAT, error, "the event is not a JSON object");
}

static enum tarn_status event_apply(struct event_log *log, struct tarn_error *error)
{
    const char *name = tn_json_text(tn_json_get(log->line, "op"));
    const struct log_op *op = op_find(name);
    enum tarn_status st = TARN_OK;

    if (!op) {
        return log_fail(log, TARN_ERR_FORMAT, error, "unknown event \"%.*s\"",
                        name ? tn_utf8_cut(name, 60) : 0, name ? name : "");
    }
    if (!log->started && !op->may_precede_start) {
        log->started = true;
        st = log_apply_kind(log, TARN_TRACK_START, error);
    }
    if (op->kind != TARN_TRACK_DELETE) {
        end_not_yet(log->tracker);
    }
    if (!st && !op->keeps_entering) {
        st = log_make_ready(log, error);
    }
    return st || !op->read ? st : op->read(log, op->kind, error);
}

/* ---- recorded snapshots ---- */

static bool row_is(const struct tarn_tracker *t, const struct tarn_track_row *row,
                   const struct tn_json_value *recorded)
{
    const struct tn_json_value *total = tn_json_get(recorded, "Total");
    size_t known = tn_json_is(total, TN_JSON_INTEGER);
    bool same = known && tn_json_integer(total) == row->total;

    for (uint32_t c = 0; same && c < tn_name_list_count(&t->names[TARN_TRACK_CATEGORY]); c++) {
        const struct tn_json_value *bytes =
            tn_json_get(recorded, tn_track_name(t, TARN_TRACK_CATEGORY, c));

        same = (!bytes || tn_json_is(bytes, TN_JSON_INTEGER)) &&
               tn_json_integer(bytes) == row->bytes[c]; /* 0 when it is missing */
        known += bytes != NULL;
    }
    return same && known == tn_json_pairs(recorded);
}

static bool now_is(const struct tarn_tracker *t, const struct tn_json_value *recorded)
{
    bool same = tn_json_is(recorded, TN_JSON_OBJECT) && tn_json_pairs(recorded) == t->now.count;

    for (size_t i = 0; same && i < t->now.count; i++) {
        const struct tarn_track_row *row = &t->now.rows[i];

        same =
            row_is(t, row, tn_json_get(recorded, tn_track_name(t, TARN_TRACK_DEVICE, row->device)));
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
    const size_t taken = (size_t)tn_utf8_fit(bytes, size, room);

    memcpy(replay->first + used, bytes, taken);
    replay->first[used + taken] = '\0';
    return TARN_OK;
}

/* Describes the first difference with both sides, truncated if necessary. */
static void note_difference(struct event_log *log, const struct tn_json_value *recorded)
{
    struct tarn_track_replay *replay = &log->replay;
    const struct tarn_writer writer = {text_append, replay};
    const uint32_t length = recorded->end - recorded->begin;
    const char *shown = log->text + recorded->begin;

    (void)snprintf(replay->first, sizeof replay->first,
                   "line %" PRIu64 ", %.40s: recorded %.*s, here ", replay->events,
                   tn_json_text(tn_json_get(log->line, "op")),
                   tn_utf8_fit(shown, length, SHOWN_MAX), shown);
    if (tn_track_write(log->tracker, print_now, NULL, &writer, NULL)) {
        (void)text_append(replay, "?", 1);
    }
    replay->first[strcspn(replay->first, "\n")] = '\0';
}

static enum tarn_status event_compare(struct event_log *log, struct tarn_error *error)
{
    const struct tn_json_value *recorded = tn_json_get(log->line, "after");

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
    tn_json_tree_init(&log->trees[0]);
    tn_json_tree_init(&log->trees[1]);
    const enum tarn_status st = log_run(log, error);

    tn_json_tree_fini(&log->trees[0]);
    tn_json_tree_fini(&log->trees[1]);
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
    const struct tn_unpack_limits limits = {.max_ratio = 2000};
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
