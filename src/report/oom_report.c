/* SPDX-License-Identifier: MIT */
/*
 * Why requests failed. When PyTorch gives up it has already waited for frees and returned what was
 * free as a whole, so what counts is what is left then: how much is free for a request of that pool
 * and stream, in which pieces, and how much elsewhere. Whether the device or a limit of the
 * allocator refused shows in the device's free bytes.
 *
 * A trace has the rounded request only; the one before rounding is at most 511 bytes less, unless
 * roundup_power2_divisions is set.
 */
#include "analysis/delta.h"
#include "analysis/layout.h"
#include "base/errinfo.h"
#include "base/size_text.h"
#include "report/report_out.h"

#include <inttypes.h>
#include <string.h>

#define MIB          ((uint64_t)1 << 20)
#define SMALL_MAX    (1 * MIB)    /* requests of the small pool */
#define MIDDLE_MAX   (10 * MIB)   /* requests that get a segment of 20 MiB */
#define CONTEXT_ROOM (1024 * MIB) /* what CUDA itself takes of a device, at most */

/* A run that tries again and again leaves thousands, which each cost a walk through the trace. */
enum {
    OOMS_MAX = 20,
    ANSWERS_MAX = 8 /* requests that the caller is asked about: an answer may take a replay */
};

enum verdict {
    VERDICT_FRAGMENTED,
    VERDICT_ELSEWHERE,
    VERDICT_FULL,
    VERDICT_OUTSIDE
};

static const char *const verdict_words[] = {
    [VERDICT_FRAGMENTED] = "fragmented",
    [VERDICT_ELSEWHERE] = "wrong pool or stream",
    [VERDICT_FULL] = "really full",
    [VERDICT_OUTSIDE] = "outside the allocator",
};

/* One request that failed. */
struct oom {
    const struct tn_trace_entry *entry;
    uint64_t number;  /* of the entry */
    uint64_t request; /* rounded */
    uint64_t segment; /* what the device is asked for */
    uint64_t device_free;
    bool is_large;
    bool is_limited; /* the device had room: a limit of the allocator refused */
    struct tn_time_point moment;
    struct tn_layout layout;
    struct tn_groups groups;
    uint64_t since;  /* entry: what changed after it is told */
    bool since_step; /* it is the end of a step, else the last tenth of the trace begins there */
    struct tn_name_table names;
    struct tn_delta delta;
    struct tn_layout_row own; /* of the request's pool and stream; zero if it has none */
    uint64_t room;            /* beyond what was reserved: the device's, or what the limit let
                                 the run reserve before */
    uint64_t others;          /* bytes of the device not of this allocator, if its total is known */
    enum verdict verdict;
    bool emptying_helps; /* giving back what is free as a whole makes room */
    enum tarn_answer growing_helps;
};

static uint64_t segment_size(uint64_t request)
{
    if (request <= SMALL_MAX) {
        return 2 * MIB;
    }
    if (request < MIDDLE_MAX) {
        return 20 * MIB;
    }
    const uint64_t rest = request % (2 * MIB);

    return rest == 0 || request > UINT64_MAX - 2 * MIB ? request : request - rest + 2 * MIB;
}

static struct tn_layout_row own_find(const struct oom *oom, const struct tn_model *model)
{
    const struct tn_pool_id pool = tn_model_extra(model, oom->entry->extra)->pool;
    const struct tn_layout_row *rows = oom->layout.rows.items;

    for (size_t i = 0; i < oom->layout.rows.count; i++) {
        if (memcmp(&rows[i].pool, &pool, sizeof pool) == 0 &&
            rows[i].stream == oom->entry->stream && rows[i].is_large == oom->is_large) {
            return rows[i];
        }
    }
    return (struct tn_layout_row){.pool = pool, .stream = oom->entry->stream};
}

static enum verdict judge(const struct oom *oom)
{
    const uint64_t free = oom->layout.total.free;

    if (oom->own.free >= oom->request) {
        return VERDICT_FRAGMENTED;
    }
    if (free >= oom->request) {
        return VERDICT_ELSEWHERE;
    }
    if (free + oom->room >= oom->request) {
        return VERDICT_FRAGMENTED; /* together with what the device had left */
    }
    const uint64_t missing = oom->request - free - oom->room;

    return oom->others > CONTEXT_ROOM && oom->others - CONTEXT_ROOM >= missing ? VERDICT_OUTSIDE
                                                                               : VERDICT_FULL;
}

static uint64_t others_of(const struct oom *oom, uint64_t device_total)
{
    const uint64_t known = oom->device_free + oom->moment.reserved;

    return device_total > known ? device_total - known : 0;
}

static void oom_fini(struct oom *oom)
{
    tn_delta_fini(&oom->delta);
    tn_name_table_fini(&oom->names);
    tn_groups_fini(&oom->groups);
    tn_layout_fini(&oom->layout);
}

/* Sets the moment from which changes are told: the end of the last step before the failure, if the
 * program said steps, else a tenth of the trace before it. Neither is before what is looked at. */
static void since_set(struct oom *oom, const struct tn_analysis *analysis)
{
    const struct tn_timeline *timeline = analysis->timeline;
    const uint64_t *ends = analysis->steps.items;
    const uint64_t tenth = (oom->number - timeline->first) / 10;

    oom->since =
        oom->number > timeline->first ? oom->number - 1 - tenth : tn_timeline_before(timeline);
    for (size_t i = 0; i < analysis->steps.count && ends[i] < oom->number; i++) {
        if (ends[i] >= timeline->first) {
            oom->since = ends[i];
            oom->since_step = true;
        }
    }
}

/* What each group held then, and holds. */
static bool delta_make(struct oom *oom, const struct tn_analysis *analysis)
{
    const struct tn_path_format format = {.ignore_lines = false};
    struct tn_groups before;

    since_set(oom, analysis);
    tn_name_table_init(&oom->names, &format);
    tn_delta_init(&oom->delta, &oom->names);
    if (!tn_groups_collect(&before, analysis, oom->since)) {
        return false;
    }
    const bool good =
        tn_delta_add_groups(&oom->delta, &oom->names, TN_DELTA_BEFORE, &analysis->keys, &before) &&
        tn_delta_add_groups(&oom->delta, &oom->names, TN_DELTA_AFTER, &analysis->keys,
                            &oom->groups);

    tn_groups_fini(&before);
    tn_delta_sort(&oom->delta);
    return good;
}

static bool oom_init(struct oom *oom, const struct tn_analysis *analysis, uint64_t number,
                     uint64_t device_total)
{
    const struct tn_timeline *timeline = &analysis->whole; /* memory is not selected */
    const struct tn_trace_entry *entry = tn_trace_at(timeline->model, timeline->trace, number);

    *oom = (struct oom){.entry = entry,
                        .number = number,
                        .request = entry->size,
                        .segment = segment_size(entry->size),
                        .device_free = entry->address,
                        .is_large = entry->size > SMALL_MAX,
                        .moment = tn_timeline_at(timeline, number)};
    if (!tn_layout_collect(&oom->layout, timeline, number)) {
        return false;
    }
    if (!tn_groups_collect(&oom->groups, analysis, number)) {
        tn_layout_fini(&oom->layout);
        return false;
    }
    if (!delta_make(oom, analysis)) {
        oom_fini(oom);
        return false;
    }
    oom->is_limited = oom->device_free >= oom->segment;
    oom->room = oom->is_limited ? tn_timeline_reserved_max(timeline, number) - oom->moment.reserved
                                : oom->device_free;
    oom->others = others_of(oom, device_total);
    oom->own = own_find(oom, timeline->model);
    oom->verdict = judge(oom);
    oom->emptying_helps = oom->layout.total.whole + oom->room >= oom->segment;
    return true;
}

/* ---- text ---- */

static const char *size_of(struct tn_size_text *text, const struct tn_text_out *out, uint64_t bytes)
{
    *text = tn_text_size(out, (double)bytes);
    return text->text;
}

static void verdict_put(struct tn_text_out *out, const struct oom *oom)
{
    struct tn_size_text a;
    struct tn_size_text b;
    struct tn_size_text c;

    tn_text_printf(out, "\n  verdict: %s\n  ", verdict_words[oom->verdict]);
    switch (oom->verdict) {
    case VERDICT_FRAGMENTED:
        tn_text_printf(out,
                       "%s is free in the request's own pool and stream, enough for %s, but the "
                       "largest of %" PRIu64 " pieces has %s",
                       size_of(&a, out, oom->own.free), size_of(&b, out, oom->request),
                       oom->own.free_runs, size_of(&c, out, oom->own.largest_free));
        break;
    case VERDICT_ELSEWHERE:
        tn_text_printf(out,
                       "%s is free, enough for %s, but only %s of it in the request's own pool "
                       "and stream",
                       size_of(&a, out, oom->layout.total.free), size_of(&b, out, oom->request),
                       size_of(&c, out, oom->own.free));
        break;
    case VERDICT_FULL:
    case VERDICT_OUTSIDE:
        tn_text_printf(out, "only %s of %s reserved is free: in one piece it would not do for %s",
                       size_of(&a, out, oom->layout.total.free),
                       size_of(&b, out, oom->moment.reserved), size_of(&c, out, oom->request));
        break;
    }
    tn_text_puts(out, "\n");
}

static void refusal_put(struct tn_text_out *out, const struct oom *oom)
{
    struct tn_size_text a;
    struct tn_size_text b;

    if (oom->is_limited) {
        tn_text_printf(out,
                       "  the device had %s free: a limit of the allocator refused, such as "
                       "set_per_process_memory_fraction\n",
                       size_of(&a, out, oom->device_free));
    } else {
        tn_text_printf(out, "  the device had %s free, and %s was asked of it\n",
                       size_of(&a, out, oom->device_free), size_of(&b, out, oom->segment));
    }
    if (oom->others > 0) {
        tn_text_printf(out, "  %s of the device is not of this allocator\n",
                       size_of(&a, out, oom->others));
    }
    if (oom->layout.total.waiting > 0) {
        tn_text_printf(out,
                       "  %s is freed but waits for other streams; when they are done it can be "
                       "used again\n",
                       size_of(&a, out, oom->layout.total.waiting));
    }
    tn_text_printf(out,
                   "  emptying the cache would %s: %s is in segments that are free as a whole\n",
                   oom->emptying_helps ? "have made room" : "not have helped",
                   size_of(&a, out, oom->layout.total.whole));
    if (oom->growing_helps != TARN_ANSWER_UNKNOWN) {
        tn_text_printf(out, "  expandable_segments:True would %s\n",
                       oom->growing_helps == TARN_ANSWER_YES
                           ? "have saved it: the run, replayed so, gets past this request in the "
                             "same memory"
                           : "not have saved it: the run, replayed so, fails in the same memory");
    }
}

static void layout_row_put(struct tn_text_out *out, const struct tn_layout_row *row)
{
    tn_text_put_size(out, (double)row->reserved);
    tn_text_put_size(out, (double)row->used);
    tn_text_put_size(out, (double)row->slack);
    tn_text_put_size(out, (double)row->free);
    tn_text_put_size(out, (double)row->largest_free);
    tn_text_printf(out, "  %6" PRIu64 "  ", row->free_runs);
}

static void layout_put(struct tn_text_out *out, const struct tn_layout *layout)
{
    const struct tn_layout_row *rows = layout->rows.items;

    tn_text_put_head(out, "\n#reserved#used#slack#free#largest  pieces  pool and stream\n");
    for (size_t i = 0; i < layout->rows.count; i++) {
        layout_row_put(out, &rows[i]);
        tn_text_printf(out, "%s", rows[i].is_large ? "large" : "small");
        if (rows[i].pool.id[0] != 0 || rows[i].pool.id[1] != 0) {
            tn_text_printf(out, " of private (%" PRIu64 ", %" PRIu64 ")", rows[i].pool.id[0],
                           rows[i].pool.id[1]);
        }
        tn_text_printf(out, ", stream %" PRIu64 "\n", rows[i].stream);
    }
    layout_row_put(out, &layout->total);
    tn_text_puts(out, "total\n");
}

static void oom_put(struct tn_text_out *out, const struct tn_analysis *analysis,
                    const struct oom *oom, uint64_t limit)
{
    const struct tn_timeline *timeline = analysis->timeline;
    struct tn_size_text text[3];

    tn_text_printf(out,
                   "device %" PRId64 ", entry %" PRIu64 ": no memory for %s (%" PRIu64
                   " bytes, rounded) on stream %" PRIu64 "\n  asked for by ",
                   timeline->device, oom->number, size_of(&text[0], out, oom->request),
                   oom->request, oom->entry->stream);
    tn_stack_put(out, timeline->model, oom->entry->stack);
    tn_text_printf(out, "\n  %s reserved, %s of it in use\n",
                   size_of(&text[1], out, oom->moment.reserved),
                   size_of(&text[2], out, oom->moment.requested));
    verdict_put(out, oom);
    refusal_put(out, oom);
    layout_put(out, &oom->layout);
    tn_text_puts(out, "\n  who holds the memory\n");
    tn_groups_put(out, &analysis->keys, &oom->groups, limit);
    if (tn_analysis_is_part(analysis)) {
        tn_text_put_size(out, (double)(oom->moment.requested - oom->groups.bytes));
        tn_text_puts(out, "          in use as well, left out by the selection\n");
    }
    if (oom->since == TN_NEVER) {
        return;
    }
    tn_text_printf(out, "\n  what changed since entry %" PRIu64 ", %s\n", oom->since,
                   oom->since_step ? "the end of the last step"
                                   : "in the last tenth of the trace before it");
    tn_delta_put(out, &oom->delta, analysis->keys.by, limit);
}

/* ---- JSON ---- */

static void layout_row_put_json(struct tn_json_text *json, const char *key,
                                const struct tn_layout_row *row, bool is_total)
{
    tn_json_open_object(json, key);
    if (!is_total) {
        tn_json_open_array(json, "pool");
        tn_json_number(json, NULL, row->pool.id[0]);
        tn_json_number(json, NULL, row->pool.id[1]);
        tn_json_close(json);
        tn_json_number(json, "stream", row->stream);
        tn_json_word(json, "size_class", row->is_large ? "large" : "small");
    }
    tn_json_number(json, "reserved_bytes", row->reserved);
    tn_json_number(json, "used_bytes", row->used);
    tn_json_number(json, "waiting_bytes", row->waiting);
    tn_json_number(json, "slack_bytes", row->slack);
    tn_json_number(json, "free_bytes", row->free);
    tn_json_number(json, "largest_free_bytes", row->largest_free);
    tn_json_number(json, "free_pieces", row->free_runs);
    tn_json_number(json, "whole_free_segment_bytes", row->whole);
    tn_json_close(json);
}

static void oom_put_json(struct tn_json_text *json, const struct tn_analysis *analysis,
                         const struct oom *oom, uint64_t limit)
{
    const struct tn_timeline *timeline = analysis->timeline;
    const struct tn_layout_row *rows = oom->layout.rows.items;

    tn_json_open_object(json, NULL);
    tn_json_number(json, "entry", oom->number);
    tn_json_number(json, "rounded_request_bytes", oom->request);
    tn_json_number(json, "segment_bytes", oom->segment);
    tn_json_number(json, "stream", oom->entry->stream);
    tn_json_number(json, "device_free_bytes", oom->device_free);
    tn_json_bool(json, "refused_by_a_limit_of_the_allocator", oom->is_limited);
    tn_json_number(json, "reserved_bytes", oom->moment.reserved);
    tn_json_number(json, "requested_bytes", oom->moment.requested);
    tn_json_word(json, "verdict", verdict_words[oom->verdict]);
    tn_json_bool(json, "emptying_the_cache_helps", oom->emptying_helps);
    if (oom->growing_helps == TARN_ANSWER_UNKNOWN) {
        tn_json_null(json, "expandable_segments_help");
    } else {
        tn_json_bool(json, "expandable_segments_help", oom->growing_helps == TARN_ANSWER_YES);
    }
    tn_stack_put_json(json, "frames", timeline->model, oom->entry->stack);
    tn_json_open_array(json, "pools");
    for (size_t i = 0; i < oom->layout.rows.count; i++) {
        layout_row_put_json(json, NULL, &rows[i], false);
    }
    tn_json_close(json);
    layout_row_put_json(json, "all_pools", &oom->layout.total, true);
    tn_json_open_object(json, "holders");
    tn_groups_put_json(json, &analysis->keys, &oom->groups, limit);
    tn_json_close(json);
    tn_json_open_object(json, "changes_since");
    if (oom->since == TN_NEVER) {
        tn_json_null(json, "entry");
    } else {
        tn_json_number(json, "entry", oom->since);
    }
    tn_json_bool(json, "is_end_of_a_step", oom->since_step);
    tn_delta_put_json(json, &oom->delta, analysis->keys.by, limit);
    tn_json_close(json);
    tn_json_close(json);
}

/* ---- devices ---- */

static bool ooms_put(const struct tn_report_out *report, const struct tn_analysis *analysis,
                     const uint64_t *ooms, size_t count)
{
    for (size_t i = 0; i < count && report->out->status == TARN_OK; i++) {
        struct oom oom;

        if (!oom_init(&oom, analysis, ooms[i], report->options->device_total)) {
            return false;
        }
        if (i < ANSWERS_MAX && report->options->would_fit) {
            oom.growing_helps = report->options->would_fit(
                report->options->context, (int)analysis->timeline->device, oom.number,
                oom.moment.reserved + oom.room);
        }
        if (report->json) {
            oom_put_json(report->json, analysis, &oom, report->limit);
        } else {
            tn_text_puts(report->out, i > 0 ? "\n" : "");
            oom_put(report->out, analysis, &oom, report->limit);
        }
        oom_fini(&oom);
    }
    return true;
}

/* Which failures: all, or the one that the selection says. */
static enum tarn_status ooms_find(const struct tn_analysis *analysis, const uint64_t **ooms_out,
                                  size_t *count_out, struct tarn_error *error)
{
    const struct tn_vec *ooms = &analysis->timeline->ooms;
    const struct tarn_instant *at = &analysis->query->selection.at;
    struct tn_time_point moment;

    *ooms_out = ooms->items;
    *count_out = ooms->count;
    if (at->kind == TARN_AT_UNSAID) {
        return TARN_OK;
    }
    if (at->kind != TARN_AT_OOM) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "--at must be oom:N here; \"tarn live\" shows any other instant");
    }
    const enum tarn_status status =
        tn_analysis_time_point(analysis, at, TARN_AT_OOM, &moment, error);

    if (status == TARN_OK) {
        *ooms_out += at->number - 1;
        *count_out = 1;
    }
    return status;
}

static enum tarn_status device_put(const struct tn_report_out *report,
                                   const struct tn_analysis *analysis, struct tarn_error *error)
{
    const struct tn_timeline *timeline = analysis->timeline;
    const uint64_t *ooms;
    size_t count;
    const enum tarn_status status = ooms_find(analysis, &ooms, &count, error);

    if (status) {
        return status;
    }
    if (report->json) {
        tn_json_open_object(report->json, NULL);
        tn_json_signed(report->json, "device", timeline->device);
        tn_analysis_put_selection_json(report->json, analysis);
        tn_json_open_array(report->json, "ooms");
    } else {
        tn_analysis_put_selection(report->out, analysis);
        if (count == 0) {
            tn_text_printf(report->out,
                           "device %" PRId64 ": no request failed in %" PRIu64 " entries\n",
                           timeline->device, timeline->limit - timeline->first);
        }
    }
    const size_t more = count > OOMS_MAX ? count - OOMS_MAX : 0;

    if (!ooms_put(report, analysis, ooms, count - more)) {
        return TARN_ERR_HOST_MEMORY;
    }
    if (report->json) {
        tn_json_close(report->json);
        tn_json_number(report->json, "later_ooms", more);
        tn_json_close(report->json);
    } else if (more > 0) {
        tn_text_printf(report->out, "\n%zu later requests failed as well\n", more);
    }
    return TARN_OK;
}

enum tarn_status tarn_report_oom(const struct tarn_snapshot *snapshot,
                                 const struct tarn_report_options *options,
                                 const struct tarn_writer *writer, struct tarn_error *error)
{
    return tn_report_traces(snapshot, options, "tarn.oom/1", device_put, writer, error);
}
