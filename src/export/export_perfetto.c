/* SPDX-License-Identifier: MIT */
/*
 * A trace in the Chrome format, which ui.perfetto.dev and chrome://tracing open. A device is a
 * process. Counters are allocated and reserved bytes; every block is a slice named by the frame
 * that allocated it; failed requests are instants, annotations slices. Times are those of the
 * trace, or numbers of events if it has none.
 */
#include "analysis/fold.h"
#include "analysis/timeline.h"
#include "base/escaped.h"
#include "export/export_formats.h"

#include <inttypes.h>
#include <string.h>

enum {
    FRAMES_SHOWN = 8 /* of a stack */
};

struct chrome {
    const struct tn_export *job;
    struct tn_text_out *out;
    const struct tn_timeline *timeline; /* of the device at hand */
    int64_t device;
    bool has_times;
    bool has_items; /* written something */
    uint64_t slices;
};

static void item_begin(struct chrome *chrome, const char *phase, int64_t time)
{
    tn_text_puts(chrome->out, chrome->has_items ? ",\n" : "\n");
    tn_text_printf(chrome->out, "{\"ph\":\"%s\",\"pid\":%" PRId64 ",\"tid\":0,\"ts\":%" PRId64,
                   phase, chrome->device, time);
    chrome->has_items = true;
}

/* Whether every entry has a time, and none is before the one that it follows. */
static bool times_are_good(const struct tn_timeline *timeline)
{
    int64_t last = 0;

    for (uint64_t i = 0; i < timeline->trace->count; i++) {
        const int64_t now = tn_trace_at(timeline->model, timeline->trace, i)->time_us;

        if (now < last) {
            return false;
        }
        last = now;
    }
    return true;
}

static int64_t time_of(const struct chrome *chrome, uint64_t entry)
{
    const struct tn_trace *trace = chrome->timeline->trace;

    return chrome->has_times ? tn_trace_at(chrome->timeline->model, trace, entry)->time_us
                             : (int64_t)entry;
}

static void name_put(struct chrome *chrome)
{
    item_begin(chrome, "M", 0);
    tn_text_printf(chrome->out,
                   ",\"name\":\"process_name\",\"args\":{\"name\":\"device %" PRId64 "\"}}",
                   chrome->device);
}

static void counter_put(struct chrome *chrome, int64_t time, const char *name, uint64_t bytes)
{
    item_begin(chrome, "C", time);
    tn_text_printf(chrome->out, ",\"name\":\"%s\",\"args\":{\"bytes\":%" PRIu64 "}}", name, bytes);
}

static void oom_put(struct chrome *chrome, int64_t time, const struct tn_trace_entry *entry)
{
    item_begin(chrome, "i", time);
    tn_text_printf(chrome->out,
                   ",\"s\":\"p\",\"name\":\"out of memory\",\"args\":{\"request\":%" PRIu64
                   ",\"device_free\":%" PRIu64 "}}",
                   entry->size, entry->address);
}

/* Both counters, at the start and wherever they change, and what failed. */
static void counters_put(struct chrome *chrome)
{
    const struct tn_timeline *timeline = chrome->timeline;
    const uint64_t *since_start = timeline->requested.items;
    uint64_t requested = timeline->start.requested;
    uint64_t reserved = timeline->start.reserved;

    counter_put(chrome, time_of(chrome, 0), "requested", requested);
    counter_put(chrome, time_of(chrome, 0), "reserved", reserved);
    for (uint64_t i = 0; i < timeline->trace->count; i++) {
        const struct tn_trace_entry *entry = tn_trace_at(timeline->model, timeline->trace, i);
        const int64_t more = tn_reserved_delta(entry);
        const uint64_t after = timeline->start.requested + since_start[i];

        if (after != requested) {
            requested = after;
            counter_put(chrome, time_of(chrome, i), "requested", requested);
        }
        if (more != 0) {
            reserved += (uint64_t)more;
            counter_put(chrome, time_of(chrome, i), "reserved", reserved);
        }
        if (entry->action == TN_TRACE_OOM) {
            oom_put(chrome, time_of(chrome, i), entry);
        }
    }
}

/* Begin and end of a slice that may overlap others carry the same number. */
static void slice_head(struct chrome *chrome, const char *phase, int64_t time, const char *kind)
{
    item_begin(chrome, phase, time);
    tn_text_printf(chrome->out, ",\"cat\":\"%s\",\"id\":\"0x%" PRIx64 "\",\"name\":\"", kind,
                   chrome->slices);
}

static void lifetime_name_put(struct chrome *chrome, const struct tn_lifetime *lifetime)
{
    const struct tn_model *model = chrome->job->model;
    const struct tn_stack stack = tn_model_stack(model, lifetime->stack);

    if (stack.count == 0) {
        tn_text_puts(chrome->out, "(not recorded)");
    } else {
        tn_frame_put(chrome->out, model, stack.frames[0], TN_ESCAPED_JSON);
    }
}

/* The frames nearest to the allocation. */
static void lifetime_stack_put(struct chrome *chrome, const struct tn_lifetime *lifetime)
{
    const struct tn_model *model = chrome->job->model;
    const struct tn_stack stack = tn_model_stack(model, lifetime->stack);

    for (uint32_t i = 0; i < stack.count && i < FRAMES_SHOWN; i++) {
        tn_text_puts(chrome->out, i > 0 ? " < " : "");
        tn_frame_put(chrome->out, model, stack.frames[i], TN_ESCAPED_JSON);
    }
    if (stack.count == 0) {
        tn_text_puts(chrome->out, "(not recorded)");
    }
    tn_text_puts(chrome->out, stack.count > FRAMES_SHOWN ? " < ..." : "");
}

static void lifetime_put(struct chrome *chrome, const struct tn_lifetime *lifetime)
{
    const uint64_t count = chrome->timeline->trace->count;
    const bool is_left = lifetime->end == TN_NEVER;

    chrome->slices++;
    slice_head(chrome, "b", time_of(chrome, lifetime->start == TN_NEVER ? 0 : lifetime->start),
               "block");
    lifetime_name_put(chrome, lifetime);
    tn_text_printf(chrome->out,
                   "\",\"args\":{\"bytes\":%" PRIu64 ",\"address\":\"0x%" PRIx64
                   "\",\"stream\":\"0x%" PRIx64 "\",\"from_before\":%s,\"is_left\":%s,\"stack\":\"",
                   lifetime->size, lifetime->address, lifetime->stream,
                   lifetime->start == TN_NEVER ? "true" : "false", is_left ? "true" : "false");
    lifetime_stack_put(chrome, lifetime);
    tn_text_puts(chrome->out, "\"}}");
    slice_head(chrome, "e", time_of(chrome, is_left ? count - 1 : lifetime->end), "block");
    lifetime_name_put(chrome, lifetime);
    tn_text_puts(chrome->out, "\"}");
}

/* Annotations have times of their own; without times of the trace they cannot be placed. */
static void annotation_put(struct chrome *chrome, const struct tn_annotation *annotation)
{
    const struct tn_model *model = chrome->job->model;
    const struct tn_string stage = tn_model_string(model, annotation->stage);
    const struct tn_string name = tn_model_string(model, annotation->name);
    const bool is_end = stage.length == 3 && memcmp(stage.text, "END", 3) == 0;

    item_begin(chrome, is_end ? "e" : "b", annotation->time_us);
    tn_text_printf(chrome->out, ",\"cat\":\"annotation\",\"id\":\"0x%" PRIx32 "\",\"name\":\"",
                   annotation->name);
    tn_text_put_escaped(chrome->out, name.text, name.length, TN_ESCAPED_JSON);
    tn_text_puts(chrome->out, "\"}");
}

static bool device_put(struct chrome *chrome, size_t device)
{
    const struct tn_model *model = chrome->job->model;
    struct tn_timeline timeline;

    if (!tn_timeline_init(&timeline, model, device)) {
        return false;
    }
    chrome->timeline = &timeline;
    chrome->device = (int64_t)device;
    chrome->has_times = times_are_good(&timeline);
    name_put(chrome);
    counters_put(chrome);
    for (size_t i = 0; i < timeline.lifetimes.count; i++) {
        lifetime_put(chrome, &tn_timeline_lifetimes(&timeline)[i]);
    }
    for (size_t i = 0; chrome->has_times && i < model->annotation_count; i++) {
        if (model->annotations[i].device == (int64_t)device &&
            model->annotations[i].time_us != TN_TIME_NONE) {
            annotation_put(chrome, &model->annotations[i]);
        }
    }
    tn_timeline_fini(&timeline);
    chrome->timeline = NULL;
    return true;
}

enum tarn_status tn_export_perfetto(const struct tn_export *job)
{
    struct tn_text_out out;
    struct chrome chrome = {.job = job, .out = &out};
    bool good = true;

    tn_text_init(&out, job->writer);
    tn_text_puts(&out, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    for (size_t i = 0; good && i < job->model->trace_count; i++) {
        if (job->model->traces[i].count > 0 && tn_export_wants_device(job, (int64_t)i)) {
            good = device_put(&chrome, i);
        }
    }
    tn_text_puts(&out, "\n]}\n");
    return tn_export_end(job, &out, !good);
}
