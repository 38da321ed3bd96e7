/* SPDX-License-Identifier: MIT */
#include "replay/outcome.h"

#include "base/assertion.h"
#include "base/errinfo.h"
#include "snapshot/snapshot.h"
#include "tarn/capture.h"

#include <string.h>

enum {
    EVENTS_PER_OPERATION = 4, /* estimate; the history grows no further */
    EVENTS_MORE = 4096
};

static const struct tn_trace *recorded_trace(const struct tn_outcome *outcome)
{
    return &outcome->recorded->traces[outcome->runner->program->device];
}

/* ---- while it runs ---- */

/* The entry being replayed identifies the stack. */
static uint64_t stack_of_entry(void *context)
{
    const struct tn_outcome *outcome = context;

    return outcome->runner->entry + 1;
}

static const char *text_of(const struct tn_model *model, uint32_t string)
{
    return tn_model_string(model, string).text;
}

static void describe_entry(void *context, uint64_t stack, tarn_frame_visitor visit,
                           void *visit_context)
{
    const struct tn_outcome *outcome = context;
    const struct tn_model *model = outcome->recorded;
    const uint32_t number = tn_trace_at(model, recorded_trace(outcome), stack - 1)->stack;

    if (number == TN_STACK_NONE) {
        return;
    }
    const struct tn_stack frames = tn_model_stack(model, number);

    for (uint32_t i = 0; i < frames.count; i++) {
        const struct tn_frame *frame = tn_model_frame(model, frames.frames[i]);
        const struct tarn_stack_frame shown = {.name = text_of(model, frame->name),
                                               .filename = text_of(model, frame->filename),
                                               .line = (uint64_t)frame->line};

        visit(visit_context, &shown);
    }
}

static void note_cause(void *context, const struct tarn_trace_event *event)
{
    struct tn_outcome *outcome = context;

    if (event->action != TARN_ACTION_SNAPSHOT && /* the capture's own */
        !tn_vec_add(&outcome->causes, &outcome->runner->entry)) {
        outcome->no_memory = true;
    }
}

enum tarn_status tn_outcome_attach(struct tn_outcome *outcome, const struct tn_model *recorded,
                                   struct tn_runner *runner, struct tarn_error *error)
{
    const struct tarn_host_frames frames = {
        .context = outcome, .capture = stack_of_entry, .describe = describe_entry};
    const struct tarn_history_options options = {
        .struct_size = sizeof options,
        .stack_source = TARN_STACK_NONE,
        .max_entries = runner->program->ops.count * EVENTS_PER_OPERATION + EVENTS_MORE,
        .max_stack_bytes = UINT64_MAX,
        .host = &frames,
    };
    const struct tarn_sink causes = {
        .context = outcome, .level = TARN_CONTEXT_NEVER, .receive = note_cause};
    struct tarn_sink sink;
    enum tarn_status st;

    *outcome = (struct tn_outcome){.recorded = recorded, .runner = runner};
    tn_vec_init(&outcome->causes, sizeof(uint64_t));
    st = tarn_history_create(&options, &outcome->history, error);
    if (st) {
        return st;
    }
    tarn_history_get_sink(outcome->history, TARN_CONTEXT_ALL, &sink);
    st = tarn_allocator_add_sink(runner->allocator, &sink, error);
    if (tn_always(st == TARN_OK)) { /* the allocator is new, and has room for some */
        st = tarn_allocator_add_sink(runner->allocator, &causes, error);
    }
    if (tn_never(st)) {
        tn_outcome_detach(outcome);
    }
    return st;
}

/* The sink may be missing. */
static void sink_remove(const struct tn_outcome *outcome, const void *context)
{
    const enum tarn_status st =
        tarn_allocator_remove_sink(outcome->runner->allocator, context, NULL);

    tn_assert(st == TARN_OK || st == TARN_ERR_NOT_FOUND);
    (void)st;
}

void tn_outcome_detach(struct tn_outcome *outcome)
{
    sink_remove(outcome, outcome);
    sink_remove(outcome, outcome->history);
    tarn_history_destroy(outcome->history);
    tn_vec_fini(&outcome->causes);
}

/* ---- afterwards ---- */

static enum tarn_status copy_string(struct tn_model *to, const struct tn_model *from,
                                    uint32_t *string)
{
    const struct tn_string text = tn_model_string(from, *string);

    return *string == TN_STRING_NONE ? TARN_OK
                                     : tn_model_add_string(to, text.text, text.length, string);
}

/* Texts of the recorded entry, pool of the replayed one. */
static enum tarn_status copy_texts(struct tn_model *to, const struct tn_model *from,
                                   const struct tn_trace_entry *cause, struct tn_trace_entry *entry)
{
    struct tn_trace_extra extra = *tn_model_extra(to, entry->extra);
    const struct tn_trace_extra *recorded = tn_model_extra(from, cause->extra);
    uint32_t number = 0;

    extra.compile_context = recorded->compile_context;
    extra.user_metadata = recorded->user_metadata;
    enum tarn_status st = copy_string(to, from, &extra.compile_context);

    st = st ? st : copy_string(to, from, &extra.user_metadata);
    st = st ? st : tn_model_add_extra(to, &extra, &number);
    entry->extra = number & 0x7ffffff;
    return st;
}

static enum tarn_status copy_annotations(struct tn_model *to, const struct tn_model *from)
{
    struct tn_annotation *annotations =
        tn_arena_alloc_array(&to->arena, from->annotation_count, sizeof *annotations);
    enum tarn_status st = annotations ? TARN_OK : tn_model_memory_status(to);

    for (size_t i = 0; i < from->annotation_count && st == TARN_OK; i++) {
        tn_assert(annotations);
        annotations[i] = from->annotations[i];
        annotations[i].fields = NULL;
        annotations[i].field_count = 0;
        st = copy_string(to, from, &annotations[i].stage);
        st = st ? st : copy_string(to, from, &annotations[i].name);
    }
    if (st == TARN_OK) {
        to->annotations = annotations;
        to->annotation_count = from->annotation_count;
        to->has_annotations = from->has_annotations;
    }
    return st;
}

/* A request has several events: a segment is allocated before a block, a free completes after it is
 * requested. Returns the neighbour of the recorded entry with the same action, or the entry
 * itself. */
static const struct tn_trace_entry *recorded_event(const struct tn_outcome *outcome, uint64_t cause,
                                                   uint32_t action)
{
    const struct tn_trace *trace = recorded_trace(outcome);
    const struct tn_trace_entry *entry = tn_trace_at(outcome->recorded, trace, cause);
    const uint64_t beside = action == TN_TRACE_FREE_COMPLETED ? cause + 1 : cause - 1;

    if (entry->action != action &&
        beside < trace->count) { /* also if there is no entry before the first */
        const struct tn_trace_entry *other = tn_trace_at(outcome->recorded, trace, beside);

        return other->action == action ? other : entry;
    }
    return entry;
}

/* Copies the times and texts of the causing entries into the trace. */
static enum tarn_status date(const struct tn_outcome *outcome, struct tn_model *made)
{
    const struct tn_model *recorded = outcome->recorded;
    const struct tn_trace *trace = &made->traces[outcome->runner->program->device];
    const uint64_t *causes = outcome->causes.items;
    const uint64_t first = outcome->causes.count - trace->count; /* the ring keeps the last */
    enum tarn_status st = copy_annotations(made, recorded);

    for (uint64_t i = 0; i < trace->count && st == TARN_OK; i++) {
        struct tn_trace_entry *entry = tn_chunked_vec_at(&made->entries, trace->first + i);
        const struct tn_trace_entry *cause =
            recorded_event(outcome, causes[first + i], entry->action);

        entry->time_us = cause->time_us;
        st = copy_texts(made, recorded, cause, entry);
    }
    return st;
}

/* Whether everything was recorded. A history goes on without what it has no memory for, which is
 * right while a program runs and wrong in an answer. */
static bool is_whole(const struct tn_outcome *outcome)
{
    struct tarn_history_usage usage = {.struct_size = sizeof usage};

    tarn_history_get_usage(outcome->history, &usage);
    return !outcome->no_memory && usage.stacks_dropped == 0 && usage.texts_dropped == 0;
}

enum tarn_status tn_outcome_capture(struct tn_outcome *outcome, struct tarn_snapshot **snapshot_out,
                                    struct tarn_error *error)
{
    const struct tarn_capture_source source = {.allocator = outcome->runner->allocator,
                                               .history = outcome->history};
    struct tarn_snapshot *snapshot = NULL;

    if (!is_whole(outcome)) {
        return tn_fail_memory(error);
    }
    enum tarn_status st = tarn_snapshot_capture(&source, 1, NULL, &snapshot, error);

    if (st) {
        return st;
    }
    st = date(outcome, tn_snapshot_model_mutable(snapshot));
    if (st) {
        tarn_snapshot_destroy(snapshot);
        return tn_fail_memory(error);
    }
    *snapshot_out = snapshot;
    return TARN_OK;
}
