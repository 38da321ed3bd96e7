/* SPDX-License-Identifier: MIT */
/*
 * A snapshot as lines of a fleet. Each report runs over the snapshot as for `tarn peak` and the
 * others, and a line has what it found. Groups beyond a limit, or whose stacks take more than
 * STACK_BYTES, are summed as `others`, so sums stay those of the report.
 */
#include "fleet/fleet.h"
#include "fleet/summary_parts.h"

#include "base/errinfo.h"
#include "base/json_text.h"
#include "base/map.h"
#include "base/utf8.h"
#include "snapshot/snapshot.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    STACK_BYTES = 256 * 1024, /* of the lines of one rank's stacks */
    FRAMES_MAX = 512,         /* of a stack; further callers are left out */
    NAME_MAX_BYTES = 1024,    /* of a name; beyond it only length and hash */
    SETTINGS_BYTES = 4096
};

/* One rank's line being written. */
struct line {
    struct tarn_fleet *fleet;
    struct tn_vec text;   /* char: the rank's */
    struct tn_vec frames; /* char: a stack's */
    struct tn_vec stack;  /* char: the line of that stack */
    struct tarn_writer writer;
    struct tn_text_out out;
    struct tn_json_text json;
    size_t stack_bytes;
    struct tn_map known;  /* key of a stack whose line is in the fleet -> number in `groups` */
    struct tn_vec groups; /* struct known_group */
    bool is_short;        /* of host memory */
};

struct known_group {
    uint64_t id;
    size_t bytes; /* of its frames as JSON */
};

/* ---- stacks ---- */

static void text_put(struct tn_json_text *json, const char *text, size_t length)
{
    char cut[NAME_MAX_BYTES + 64];

    if (length <= NAME_MAX_BYTES) {
        tn_json_text(json, NULL, text, length);
        return;
    }
    const int size = snprintf(cut, sizeof cut, "%.*s...(%zu bytes, %016" PRIx64 ")",
                              tn_utf8_fit(text, length, NAME_MAX_BYTES), text, length,
                              tn_stable_hash(TN_STABLE_HASH_BEGIN, text, length));

    tn_json_text(json, NULL, cut, (size_t)size);
}

static void frames_put(struct tn_json_text *json, const struct tarn_group *group)
{
    tn_json_open_array(json, NULL);
    for (size_t i = 0; i < group->frame_count && i < FRAMES_MAX; i++) {
        const struct tarn_report_frame *frame = &group->frames[i];

        tn_json_open_array(json, NULL);
        text_put(json, frame->name, frame->name_length);
        text_put(json, frame->filename, frame->filename_length);
        tn_json_signed(json, NULL, frame->line);
        tn_json_close(json);
    }
    tn_json_close(json);
}

/* A stack as a list of frames, null when none was recorded; another group as its name. */
static void group_put(struct tn_json_text *json, const struct tarn_group *group,
                      enum tarn_grouping by)
{
    if (by != TARN_BY_STACK) {
        text_put(json, group->name, strlen(group->name));
    } else if (group->frame_count == 0 && group->key == TN_STACK_NONE) {
        tn_json_null(json, NULL);
    } else {
        frames_put(json, group);
    }
}

static bool frames_write(struct line *line, const struct tarn_group *group, enum tarn_grouping by)
{
    const struct tarn_writer writer = tn_text_to_vec(&line->frames);
    struct tn_text_out out;
    struct tn_json_text json;

    line->frames.count = 0;
    tn_text_init(&out, &writer);
    tn_json_init(&json, &out, TN_JSON_COMPACT);
    group_put(&json, group, by);
    return tn_text_finish(&out) == TARN_OK;
}

static bool stack_write(struct line *line, uint64_t id)
{
    const struct tarn_writer writer = tn_text_to_vec(&line->stack);
    struct tn_text_out out;

    line->stack.count = 0;
    tn_text_init(&out, &writer);
    tn_text_printf(&out, "%s%016" PRIx64 "\",\"frames\":", TN_SUMMARY_STACK, id);
    tn_text_put(&out, line->frames.items, line->frames.count);
    tn_text_putc(&out, '}');
    return tn_text_finish(&out) == TARN_OK;
}

/* A stack that has a line: most that hold memory at one time hold some at another. */
static const struct known_group *group_known(const struct line *line,
                                             const struct tarn_group *group, enum tarn_grouping by)
{
    const uint64_t *number = by == TARN_BY_STACK ? tn_map_find(&line->known, group->key + 1) : NULL;

    return number ? (const struct known_group *)line->groups.items + *number : NULL;
}

/* Without host memory it is not known, which costs time only. */
static void group_keep(struct line *line, const struct tarn_group *group, enum tarn_grouping by,
                       uint64_t id)
{
    const struct known_group known = {.id = id, .bytes = line->frames.count};

    if (by == TARN_BY_STACK && tn_map_reserve(&line->known, 1) &&
        tn_vec_add(&line->groups, &known)) {
        tn_map_insert(&line->known, group->key + 1, line->groups.count - 1);
    }
}

/* The number of a group, whose line is then in the fleet. False when there is no more room, or no
 * host memory (is_short). */
static bool group_find(struct line *line, const struct tarn_group *group, enum tarn_grouping by,
                       uint64_t *id_out)
{
    const struct known_group *known = group_known(line, group, by);

    if (line->stack_bytes > STACK_BYTES) { /* as of one before */
        return false;
    }
    if (known) {
        *id_out = known->id;
        line->stack_bytes += known->bytes;
        return line->stack_bytes <= STACK_BYTES;
    }
    if (!frames_write(line, group, by)) {
        line->is_short = true;
        return false;
    }
    *id_out = tn_stack_line_id(line->frames.items, line->frames.count);
    line->stack_bytes += line->frames.count;
    if (line->stack_bytes > STACK_BYTES) {
        return false;
    }
    if (!stack_write(line, *id_out) ||
        !tn_fleet_add_stack(line->fleet, line->stack.items, line->stack.count)) {
        line->is_short = true;
        return false;
    }
    group_keep(line, group, by, *id_out);
    return true;
}

static void id_put(struct tn_json_text *json, uint64_t id)
{
    char text[17];

    (void)snprintf(text, sizeof text, "%016" PRIx64, id);
    tn_json_word(json, NULL, text);
}

/* ---- what is held ---- */

static void holder_put(struct line *line, uint64_t id, const struct tarn_holder *row)
{
    tn_json_open_array(&line->json, NULL);
    id_put(&line->json, id);
    tn_json_number(&line->json, NULL, row->bytes);
    tn_json_number(&line->json, NULL, row->blocks);
    tn_json_close(&line->json);
}

static void holders_put(struct line *line, const char *key, const struct tarn_holders *holders)
{
    uint64_t others[3] = {holders->other_count, holders->others.bytes, holders->others.blocks};

    line->stack_bytes = 0;
    tn_json_open_object(&line->json, key);
    tn_json_open_array(&line->json, "rows");
    for (size_t i = 0; i < holders->row_count; i++) {
        const struct tarn_holder *row = &holders->rows[i];
        uint64_t id;

        if (group_find(line, &row->group, holders->by, &id)) {
            holder_put(line, id, row);
        } else {
            others[0]++;
            others[1] += row->bytes;
            others[2] += row->blocks;
        }
    }
    tn_json_close(&line->json);
    tn_json_open_array(&line->json, "others");
    for (int i = 0; i < 3; i++) {
        tn_json_number(&line->json, NULL, others[i]);
    }
    tn_json_close(&line->json);
    tn_json_close(&line->json);
}

static void time_point_put(struct tn_json_text *json, const char *key,
                           const struct tarn_time_point *at)
{
    tn_json_open_object(json, key);
    tn_json_number_or_null(json, "event", at->event, TARN_NONE);
    tn_json_number(json, "requested", at->requested);
    tn_json_number(json, "reserved", at->reserved);
    tn_json_number(json, "left_out", at->left_out);
    tn_json_close(json);
}

static void peaks_put(struct line *line, const struct tn_summary_parts *parts)
{
    const struct tarn_peak_result *peak = &parts->peak;

    time_point_put(&line->json, "at", &parts->live.composition.at);
    holders_put(line, "held", &parts->live.composition.holders);
    time_point_put(&line->json, "requested_peak", &peak->requested_peak.at);
    time_point_put(&line->json, "reserved_peak", &peak->reserved_peak.at);
    holders_put(line, "held_at_reserved_peak", &peak->reserved_peak.holders);
    tn_json_number(&line->json, "allocated_peak", peak->allocated_peak);
}

/* By category at the peak: names and numbers. */
static void categories_put(struct tn_json_text *json, const struct tarn_holders *holders)
{
    tn_json_open_array(json, "categories");
    for (size_t i = 0; i < holders->row_count; i++) {
        tn_json_open_array(json, NULL);
        text_put(json, holders->rows[i].group.name, strlen(holders->rows[i].group.name));
        tn_json_number(json, NULL, holders->rows[i].bytes);
        tn_json_number(json, NULL, holders->rows[i].blocks);
        tn_json_close(json);
    }
    tn_json_close(json);
}

/* Requests by size: the power of two they are rounded up to, their number and bytes. */
static void sizes_put(struct tn_json_text *json, const struct tarn_top_result *top)
{
    tn_json_open_array(json, "sizes");
    for (size_t i = 0; i < top->row_count; i++) {
        tn_json_open_array(json, NULL);
        tn_json_number(json, NULL, top->rows[i].group.key);
        tn_json_number(json, NULL, top->rows[i].allocations);
        tn_json_number(json, NULL, top->rows[i].allocated);
        tn_json_close(json);
    }
    tn_json_close(json);
}

/* ---- over time ---- */

static void counters_put(struct tn_json_text *json, const struct tarn_step *total)
{
    tn_json_open_object(json, "counters");
    tn_json_number(json, "allocations", total->allocations);
    tn_json_number(json, "allocated", total->allocated);
    tn_json_number(json, "segment_allocs", total->segment_allocs);
    tn_json_number(json, "segment_frees", total->segment_frees);
    tn_json_number(json, "segment_maps", total->segment_maps);
    tn_json_number(json, "segment_unmaps", total->segment_unmaps);
    tn_json_number(json, "ooms", total->ooms);
    tn_json_close(json);
}

static const char *points_name(enum tarn_leak_points points)
{
    static const char *const names[] = {[TARN_LEAK_POINTS_STEPS] = "steps",
                                        [TARN_LEAK_POINTS_STACK] = "stack",
                                        [TARN_LEAK_POINTS_PARTS] = "parts",
                                        [TARN_LEAK_POINTS_GUESSED] = "parts"};

    return names[points];
}

static void step_put(struct tn_json_text *json, const struct tarn_step *step)
{
    tn_json_open_array(json, NULL);
    tn_json_number(json, NULL, step->number);
    tn_json_number(json, NULL, step->peak);
    tn_json_number(json, NULL, step->end);
    tn_json_number(json, NULL, step->reserved_peak);
    tn_json_number(json, NULL, step->allocations);
    tn_json_number(json, NULL, step->device_calls);
    tn_json_close(json);
}

/* Every step while there are few, else each n-th, counted back from the last one. */
static void steps_put(struct tn_json_text *json, const struct tarn_steps_result *steps)
{
    const uint64_t stride = (steps->step_count + TN_SUMMARY_STEPS - 1) / TN_SUMMARY_STEPS;

    tn_json_open_object(json, "steps");
    tn_json_word(json, "by", points_name(steps->points_by));
    tn_json_number(json, "count", steps->step_count);
    tn_json_number(json, "median_peak", steps->median_peak);
    tn_json_signed(json, "growth", steps->total.growth);
    tn_json_open_array(json, "rows"); /* number, peak, end, reserved peak, allocations, calls */
    for (size_t i = 0, whole = 0; i < steps->row_count; i++) {
        const struct tarn_step *step = &steps->rows[i];

        if (step->kind != TARN_STEP_WHOLE) {
            continue;
        }
        whole++;
        if ((steps->step_count - whole) % stride == 0) {
            step_put(json, step);
        }
    }
    tn_json_close(json);
    tn_json_close(json);
}

static void growth_row_put(struct line *line, const struct tarn_leak_row *row, uint64_t id)
{
    tn_json_open_array(&line->json, NULL);
    id_put(&line->json, id);
    tn_json_signed(&line->json, NULL, row->growth);
    tn_json_signed(&line->json, NULL, row->change);
    tn_json_number_or_null(&line->json, NULL, row->first_growth_event, TARN_NONE);
    tn_json_close(&line->json);
}

/* Groups that leak, and what all of them grow by from one time point to the next. */
static void growth_put(struct line *line, const struct tarn_leaks_result *leaks)
{
    int64_t growth = leaks->more.growth;

    for (size_t i = 0; i < leaks->row_count; i++) {
        growth += leaks->rows[i].growth;
    }
    line->stack_bytes = 0;
    tn_json_open_object(&line->json, "growth");
    tn_json_word(&line->json, "by", points_name(leaks->points_by));
    tn_json_number(&line->json, "points", leaks->point_count);
    tn_json_number(&line->json, "groups", leaks->leak_count);
    tn_json_signed(&line->json, "per_step", growth);
    tn_json_open_array(&line->json, "rows"); /* group, per step, in all, first event */
    for (size_t i = 0; i < leaks->row_count; i++) {
        uint64_t id;

        if (group_find(line, &leaks->rows[i].group, leaks->head.by, &id)) {
            growth_row_put(line, &leaks->rows[i], id);
        }
    }
    tn_json_close(&line->json);
    tn_json_close(&line->json);
}

static const char *verdict_name(enum tarn_oom_verdict verdict)
{
    static const char *const names[] = {[TARN_OOM_FRAGMENTED] = "fragmented",
                                        [TARN_OOM_ELSEWHERE] = "elsewhere",
                                        [TARN_OOM_FULL] = "full",
                                        [TARN_OOM_OUTSIDE] = "outside",
                                        [TARN_OOM_ROUNDED] = "rounded"};

    return names[verdict];
}

static void oom_put(struct tn_json_text *json, const struct tarn_oom_result *oom)
{
    /* Verdict, limited, requests, first event, largest request; at most one of each verdict and
     * limit. */
    tn_json_open_array(json, "ooms");
    for (size_t i = 0; i < oom->cause_count; i++) {
        const struct tarn_oom_cause *cause = &oom->causes[i];

        tn_json_open_array(json, NULL);
        tn_json_word(json, NULL, verdict_name(cause->verdict));
        tn_json_bool(json, NULL, cause->is_limited);
        tn_json_number(json, NULL, cause->requests);
        tn_json_number(json, NULL, cause->first_event);
        tn_json_number(json, NULL, oom->ooms[cause->first].request);
        tn_json_close(json);
    }
    tn_json_close(json);
}

static void frag_put(struct tn_json_text *json, const struct tarn_frag_state *state)
{
    tn_json_open_object(json, "frag");
    tn_json_number(json, "reserved", state->reserved);
    tn_json_number(json, "requested", state->requested);
    tn_json_number(json, "rounding", state->rounding);
    tn_json_number(json, "slack", state->slack);
    tn_json_number(json, "free", state->free);
    tn_json_number(json, "largest_free", state->largest_free);
    tn_json_number(json, "releasable", state->releasable);
    tn_json_number(json, "stuck", state->stuck);
    tn_json_number(json, "elsewhere", state->elsewhere);
    tn_json_close(json);
}

static void points_put(struct tn_json_text *json, const char *key, const uint64_t *points)
{
    tn_json_open_array(json, key);
    for (size_t i = 0; i < TN_SUMMARY_POINTS; i++) {
        tn_json_number(json, NULL, points[i]);
    }
    tn_json_close(json);
}

/* ---- a rank ---- */

static void head_put(struct tn_json_text *json, const struct tarn_snapshot *snapshot,
                     const struct tarn_report_head *head)
{
    const struct tn_model *model = tn_snapshot_model(snapshot);
    const struct tn_string conf = tn_model_string(model, model->settings.conf);

    tn_json_word(json, "by", tn_grouping_name(head->by));
    tn_json_bool(json, "partial", tarn_snapshot_is_partial(snapshot));
    if (model->settings.present) {
        tn_json_text(json, "settings", conf.text,
                     (size_t)tn_utf8_fit(conf.text, conf.length, SETTINGS_BYTES));
    } else {
        tn_json_null(json, "settings");
    }
    tn_json_number(json, "events", head->events);
    tn_json_number(json, "blocks", head->blocks);
}

static void labels_put(struct tn_json_text *json, const struct tn_labels *labels)
{
    tn_json_open_object(json, "labels");
    for (size_t i = 0; i < labels->count; i++) {
        tn_json_word(json, labels->items[i].key, labels->items[i].value);
    }
    tn_json_close(json);
}

/* What the reports found, one result per device. */
struct results {
    struct tn_summary_parts *parts;
    size_t count;
};

static void rank_put(struct line *line, const struct tarn_snapshot *snapshot,
                     const struct tn_labels *labels, const struct results *results, size_t device)
{
    const struct tn_summary_parts *parts = &results->parts[device];

    tn_json_init(&line->json, &line->out, TN_JSON_COMPACT);
    tn_json_open_object(&line->json, NULL);
    tn_json_open_object(&line->json, "rank");
    labels_put(&line->json, labels);
    head_put(&line->json, snapshot, &parts->head);
    peaks_put(line, parts);
    categories_put(&line->json, &parts->by_category.holders);
    sizes_put(&line->json, &parts->by_size);
    counters_put(&line->json, &parts->steps.total);
    steps_put(&line->json, &parts->steps);
    growth_put(line, &parts->leaks);
    oom_put(&line->json, &parts->oom);
    frag_put(&line->json, &parts->frag.state);
    points_put(&line->json, "requested", parts->sketch.requested);
    points_put(&line->json, "reserved", parts->sketch.reserved);
    tn_json_close(&line->json);
    tn_json_close(&line->json);
}

static bool rank_add(struct tarn_fleet *fleet, const struct tarn_snapshot *snapshot,
                     const struct tn_labels *labels, const struct results *results, size_t device)
{
    struct line line = {.fleet = fleet};

    tn_vec_init(&line.text, 1);
    tn_vec_init(&line.frames, 1);
    tn_vec_init(&line.stack, 1);
    tn_vec_init(&line.groups, sizeof(struct known_group));
    line.writer = tn_text_to_vec(&line.text);
    tn_text_init(&line.out, &line.writer);
    rank_put(&line, snapshot, labels, results, device);
    const bool good = tn_text_finish(&line.out) == TARN_OK && !line.is_short &&
                      tn_fleet_add_rank(fleet, line.text.items, line.text.count);

    tn_map_fini(&line.known);
    tn_vec_fini(&line.groups);
    tn_vec_fini(&line.stack);
    tn_vec_fini(&line.frames);
    tn_vec_fini(&line.text);
    return good;
}

/* ---- a snapshot ---- */

static void results_release(struct results *results)
{
    tarn_report_destroy(results->parts);
}

/* Compiling the default rules takes a hundredth of what a snapshot does. */
static enum tarn_status rules_want(struct tarn_fleet *fleet, struct tarn_error *error)
{
    return fleet->rules ? TARN_OK : tarn_rules_create_default(&fleet->rules, error);
}

static enum tarn_status results_make(struct tarn_fleet *fleet, struct results *results,
                                     const struct tarn_snapshot *snapshot,
                                     const struct tarn_report_options *given,
                                     struct tarn_error *error)
{
    struct tarn_report_options options = {.struct_size = sizeof options};

    options = given ? *given : options;
    options.rows = UINT64_MAX;
    options.tree = false;
    if (!options.rules) {
        const enum tarn_status status = rules_want(fleet, error);

        if (status) {
            return status;
        }
        options.rules = fleet->rules;
    }
    return tn_report_run(snapshot, &options, TN_REPORT_TRACE_CATEGORIES, sizeof *results->parts,
                         tn_summary_parts_compute, &results->parts, &results->count, error);
}

static enum tarn_status label_fail(struct tarn_error *error, enum tarn_status status,
                                   const char *key)
{
    if (status == TARN_ERR_HOST_MEMORY) {
        return tn_fail_memory(error);
    }
    return status == TARN_ERR_LIMIT
               ? tn_fail(error, status, "a rank has at most %d labels", TARN_LABELS_MAX)
               : tn_fail(error, status,
                         "\"%s\" is no label: letters, digits and '_', at most %d, and a value of "
                         "at most %d bytes",
                         key, TN_LABEL_KEY_MAX, TN_LABEL_VALUE_MAX);
}

/* Those that all devices of a snapshot have. */
static enum tarn_status labels_make(struct tarn_fleet *fleet, struct tn_labels *labels,
                                    const char *name, const struct tarn_summary_options *options,
                                    struct tarn_error *error)
{
    const size_t length = (size_t)tn_utf8_cut(name, TN_LABEL_VALUE_MAX);
    enum tarn_status status;

    labels->count = 0;
    if (!tn_labels_read_name(labels, &fleet->arena, name)) {
        return tn_fail_memory(error);
    }
    for (size_t i = 0; options && i < options->label_count; i++) {
        const struct tarn_label *label = &options->labels[i];

        status = tn_labels_set(labels, &fleet->arena, label->key, strlen(label->key), label->value,
                               strlen(label->value));
        if (status) {
            return label_fail(error, status, label->key);
        }
    }
    status = tn_labels_set(labels, &fleet->arena, "file", 4, name, length);
    return status ? label_fail(error, status, "file") : TARN_OK;
}

static enum tarn_status device_label(struct tarn_fleet *fleet, struct tn_labels *labels, int device,
                                     struct tarn_error *error)
{
    char text[16];
    const int length = snprintf(text, sizeof text, "%d", device);
    const enum tarn_status status =
        tn_labels_set(labels, &fleet->arena, "device", 6, text, (size_t)length);

    return status ? label_fail(error, status, "device") : TARN_OK;
}

enum tarn_status tarn_fleet_add(struct tarn_fleet *fleet, const struct tarn_snapshot *snapshot,
                                const char *name, const struct tarn_summary_options *options,
                                struct tarn_error *error)
{
    const size_t stacks_before = fleet->stacks.count;
    const size_t ranks_before = fleet->ranks.count;
    struct results results = {0};
    struct tn_labels labels;
    enum tarn_status status = labels_make(fleet, &labels, name, options, error);

    if (status == TARN_OK) {
        status = results_make(fleet, &results, snapshot, options ? options->report : NULL, error);
    }
    for (size_t i = 0; status == TARN_OK && i < results.count; i++) {
        status = device_label(fleet, &labels, results.parts[i].head.device, error);
        if (status == TARN_OK && !rank_add(fleet, snapshot, &labels, &results, i)) {
            status = tn_fail_memory(error);
        }
    }
    results_release(&results);
    if (status) {
        tn_fleet_cut(fleet, stacks_before, ranks_before);
    }
    return status;
}
