/* SPDX-License-Identifier: MIT */
/*
 * Stacks by bytes in the file format of speedscope.app. Each device has up to three profiles: what
 * was allocated at the peak, what is allocated at the end, and all allocations of the trace.
 * Weights are requested bytes; a block of an unknown stack is a sample of the one frame (not
 * recorded).
 */
#include "analysis/timeline.h"
#include "base/escaped.h"
#include "base/host_mem.h"
#include "export/export_formats.h"

#include <inttypes.h>
#include <string.h>

struct scope {
    const struct tn_export *job;
    struct tn_text_out *out;
    uint64_t *weights; /* bytes of each stack of the model */
    bool has_profiles; /* wrote one */
};

static void frame_put(struct scope *scope, const struct tn_frame *frame)
{
    const struct tn_string name = tn_model_string(scope->job->model, frame->name);
    const struct tn_string file = tn_model_string(scope->job->model, frame->filename);

    tn_text_puts(scope->out, ",\n{\"name\":\"");
    tn_text_put_escaped(scope->out, name.text, name.length, TN_ESCAPED_JSON);
    tn_text_puts(scope->out, "\",\"file\":\"");
    tn_text_put_escaped(scope->out, file.text, file.length, TN_ESCAPED_JSON);
    tn_text_printf(scope->out, "\",\"line\":%" PRId64 "}", frame->line);
}

/* Frame 0 of the model is none: the file's frame 0 is that of unknown stacks. */
static void frames_put(struct scope *scope)
{
    const struct tn_model *model = scope->job->model;

    tn_text_puts(scope->out, "\"shared\":{\"frames\":[\n{\"name\":\"(not recorded)\"}");
    for (uint64_t i = 1; i < model->frames.count; i++) {
        frame_put(scope, tn_model_frame(model, (uint32_t)i));
    }
    tn_text_puts(scope->out, "]},\n");
}

static void sample_put(struct scope *scope, uint32_t number)
{
    const struct tn_stack stack = tn_model_stack(scope->job->model, number);

    if (stack.count == 0) {
        tn_text_puts(scope->out, "[0]");
        return;
    }
    for (uint32_t i = stack.count; i > 0; i--) {
        tn_text_printf(scope->out, "%s%" PRIu32, i == stack.count ? "[" : ",", stack.frames[i - 1]);
    }
    tn_text_putc(scope->out, ']');
}

/* A profile of scope->weights. */
static void profile_put(struct scope *scope, int64_t device, const char *what)
{
    const uint64_t count = scope->job->model->stacks.count;
    uint64_t total = 0;
    const char *between = "";

    tn_text_printf(scope->out,
                   "%s{\"type\":\"sampled\",\"name\":\"device %" PRId64 ": %s\",\"unit\":\"bytes\","
                   "\"startValue\":0,\"samples\":[",
                   scope->has_profiles ? ",\n" : "", device, what);
    scope->has_profiles = true;
    for (uint64_t i = 0; i < count; i++) {
        if (scope->weights[i] > 0) {
            tn_text_puts(scope->out, between);
            sample_put(scope, (uint32_t)i);
            between = ",";
        }
    }
    between = "";
    tn_text_puts(scope->out, "],\"weights\":[");
    for (uint64_t i = 0; i < count; i++) {
        if (scope->weights[i] > 0) {
            tn_text_printf(scope->out, "%s%" PRIu64, between, scope->weights[i]);
            total += scope->weights[i];
            between = ",";
        }
    }
    tn_text_printf(scope->out, "],\"endValue\":%" PRIu64 "}", total);
}

static void weights_clear(const struct scope *scope)
{
    memset(scope->weights, 0, scope->job->model->stacks.count * sizeof *scope->weights);
}

/* Blocks allocated at the end, of a device with or without a trace. */
static void end_put(struct scope *scope, int64_t device)
{
    const struct tn_model *model = scope->job->model;

    weights_clear(scope);
    for (size_t i = 0; i < model->segment_count; i++) {
        const struct tn_model_segment *segment = &model->segments[i];

        for (size_t k = 0; segment->device == device && k < segment->block_count; k++) {
            if (segment->blocks[k].state != TN_BLOCK_INACTIVE) {
                scope->weights[segment->blocks[k].stack] += segment->blocks[k].requested_size;
            }
        }
    }
    profile_put(scope, device, "requested bytes at the end");
}

static bool trace_put(struct scope *scope, size_t device)
{
    struct tn_timeline timeline;

    if (!tn_timeline_init(&timeline, scope->job->model, device)) {
        return false;
    }
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(&timeline);

    weights_clear(scope);
    for (size_t i = 0; i < timeline.lifetimes.count; i++) {
        if (tn_lifetime_is_at(&lifetimes[i], timeline.requested_peak.entry)) {
            scope->weights[lifetimes[i].stack] += lifetimes[i].size;
        }
    }
    profile_put(scope, (int64_t)device, "requested bytes at the peak");
    weights_clear(scope);
    for (size_t i = 0; i < timeline.lifetimes.count; i++) {
        if (lifetimes[i].start != TN_NEVER) {
            scope->weights[lifetimes[i].stack] += lifetimes[i].size;
        }
    }
    profile_put(scope, (int64_t)device, "requested in the trace");
    tn_timeline_fini(&timeline);
    return true;
}

/* Devices of traces, then those that only segments know. */
static bool devices_put(struct scope *scope)
{
    const struct tn_model *model = scope->job->model;
    int64_t last = (int64_t)model->trace_count - 1;

    for (size_t i = 0; i < model->trace_count; i++) {
        if (tn_export_wants_device(scope->job, (int64_t)i)) {
            if (model->traces[i].count > 0 && !trace_put(scope, i)) {
                return false;
            }
            end_put(scope, (int64_t)i);
        }
    }
    for (size_t i = 0; i < model->segment_count; i++) {
        if (model->segments[i].device > last) {
            last = model->segments[i].device;
            if (tn_export_wants_device(scope->job, last)) {
                end_put(scope, last);
            }
        }
    }
    return true;
}

enum tarn_status tn_export_speedscope(const struct tn_export *job)
{
    const size_t size = (job->model->stacks.count + 1) * sizeof(uint64_t);
    struct tn_text_out out;
    struct scope scope = {.job = job, .out = &out, .weights = tn_host_alloc(size)};
    bool good = scope.weights != NULL;

    tn_text_init(&out, job->writer);
    if (good) {
        tn_text_puts(&out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
                           "\"exporter\":\"tarn\",\n");
        frames_put(&scope);
        tn_text_puts(&out, "\"profiles\":[\n");
        good = devices_put(&scope);
        tn_text_puts(&out, "]}\n");
    }
    tn_host_free(scope.weights, size);
    return tn_export_end(job, &out, !good);
}
