/* SPDX-License-Identifier: MIT */
/* Implements tarn/trim.h. */
#include "tarn/trim.h"

#include "base/errinfo.h"
#include "export/freed_blocks.h"
#include "export/model_copy.h"
#include "export/state_at.h"
#include "snapshot/keys.h"
#include "snapshot/snapshot.h"

#include <string.h>

/* What is kept of one trace: entries [first, limit). */
struct part {
    uint64_t first;
    uint64_t limit;
};

struct trim {
    struct tn_model_copy copy;
    const struct tarn_trim_options *options;
    struct tn_vec segments; /* struct tn_model_segment */
};

static bool device_is_wanted(const struct trim *trim, int64_t device)
{
    return !trim->options->one_device || trim->options->device == device;
}

static bool is_cut(const struct tarn_trim_options *options)
{
    return options->has_events || options->has_time;
}

/* ---- which entries ---- */

static int64_t first_time(const struct tn_model *model, const struct tn_trace *trace)
{
    for (uint64_t i = 0; i < trace->count; i++) {
        const int64_t time = tn_trace_at(model, trace, i)->time_us;

        if (time != TN_TIME_NONE) {
            return time;
        }
    }
    return TN_TIME_NONE;
}

/* Cuts off what is before the first entry of that time, and what is after the last. */
static void part_cut_time(const struct trim *trim, const struct tn_trace *trace, struct part *part)
{
    const struct tn_model *model = trim->copy.from;
    const int64_t start = first_time(model, trace);
    uint64_t first = trace->count;
    uint64_t limit = 0;

    for (uint64_t i = 0; i < trace->count; i++) {
        const int64_t time = tn_trace_at(model, trace, i)->time_us;

        if (time == TN_TIME_NONE) {
            continue;
        }
        const int64_t since = time - start; /* times are within TN_TIME_MAX */

        if (since >= trim->options->from_us && first == trace->count) {
            first = i;
        }
        if (since <= trim->options->to_us) {
            limit = i + 1;
        }
    }
    part->first = part->first > first ? part->first : first;
    part->limit = part->limit < limit ? part->limit : limit;
}

static struct part part_of(const struct trim *trim, const struct tn_trace *trace)
{
    const struct tarn_trim_options *options = trim->options;
    struct part part = {.first = 0, .limit = trace->count};

    if (options->has_events) {
        part.first = options->first_event;
        part.limit = options->last_event < trace->count ? options->last_event + 1 : trace->count;
    }
    if (options->has_time) {
        part_cut_time(trim, trace, &part);
    }
    if (part.first > part.limit) {
        part.first = part.limit;
    }
    return part;
}

/* ---- segments ---- */

static const struct tn_block_history *history_copy(struct trim *trim,
                                                   const struct tn_model_block *block)
{
    struct tn_block_history *history =
        tn_copy_array(&trim->copy, block->history_count, sizeof *history);

    for (uint32_t i = 0; history && i < block->history_count; i++) {
        history[i] = block->history[i];
        history[i].stack = tn_copy_stack(&trim->copy, history[i].stack);
    }
    return history;
}

static const struct tn_model_block *blocks_copy(struct trim *trim,
                                                const struct tn_model_segment *segment)
{
    struct tn_model_block *blocks =
        tn_copy_array(&trim->copy, segment->block_count, sizeof *blocks);

    for (size_t i = 0; blocks && i < segment->block_count; i++) {
        blocks[i] = segment->blocks[i];
        blocks[i].stack = tn_copy_stack(&trim->copy, blocks[i].stack);
        blocks[i].rest = tn_copy_container(&trim->copy, blocks[i].rest);
        if (blocks[i].history_count > 0) {
            blocks[i].history = history_copy(trim, &segment->blocks[i]);
        }
    }
    return blocks;
}

static void segment_copy(struct trim *trim, const struct tn_model_segment *from,
                         struct tn_model_segment *to)
{
    *to = *from;
    to->stack = tn_copy_stack(&trim->copy, from->stack);
    to->rest = tn_copy_container(&trim->copy, from->rest);
    to->blocks = blocks_copy(trim, from);
}

/* Whether the device's segments are those of an earlier time point. */
static bool device_is_past(const struct trim *trim, const struct part *parts, int64_t device)
{
    const struct tn_model *model = trim->copy.from;

    return device >= 0 && (uint64_t)device < model->trace_count &&
           parts[device].limit < model->traces[device].count;
}

static void past_add(struct trim *trim, size_t device, const struct part *part)
{
    struct tn_timeline timeline;

    if (!tn_timeline_init(&timeline, trim->copy.from, device)) {
        (void)tn_copy_note(&trim->copy, TARN_ERR_HOST_MEMORY);
        return;
    }
    tn_state_segments(&trim->copy, &timeline, part->limit > 0 ? part->limit - 1 : TN_NEVER,
                      &trim->segments);
    tn_timeline_fini(&timeline);
}

static void segments_make(struct trim *trim, const struct part *parts)
{
    const struct tn_model *model = trim->copy.from;

    for (size_t i = 0; i < model->trace_count; i++) {
        if (device_is_wanted(trim, (int64_t)i) && device_is_past(trim, parts, (int64_t)i)) {
            past_add(trim, i, &parts[i]);
        }
    }
    for (size_t i = 0; i < model->segment_count && trim->copy.status == TARN_OK; i++) {
        const int32_t device = model->segments[i].device;
        struct tn_model_segment *segment;

        if (!device_is_wanted(trim, device) || device_is_past(trim, parts, device)) {
            continue;
        }
        segment = tn_vec_push(&trim->segments);
        if (segment) {
            segment_copy(trim, &model->segments[i], segment);
        } else {
            (void)tn_copy_note(&trim->copy, TARN_ERR_HOST_MEMORY);
        }
    }
}

static void segments_keep(struct trim *trim)
{
    const size_t count = trim->segments.count;
    struct tn_model_segment *kept = tn_copy_array(&trim->copy, count, sizeof *kept);

    if (kept && count > 0) {
        memcpy(kept, trim->segments.items, count * sizeof *kept);
    }
    if (kept) {
        trim->copy.to->segments = kept;
        trim->copy.to->segment_count = count;
    }
}

/* ---- traces ---- */

static void entry_copy(struct tn_model_copy *copy, const struct tn_trace_entry *entry)
{
    struct tn_trace_entry made = *entry;
    uint64_t number;

    made.stack = tn_copy_stack(copy, entry->stack);
    made.extra = tn_copy_extra(copy, entry->extra) & 0x7ffffff;
    made.time_us = tn_copy_time(copy, entry->time_us);
    if (copy->status == TARN_OK) {
        copy->status = tn_model_add_entry(copy->to, &made, &number);
    }
}

/* Copies the entries of the part, but those in `freed`, which may be NULL. */
static void part_copy(struct tn_model_copy *copy, const struct tn_trace *trace, struct part part,
                      const struct tn_freed_blocks *freed)
{
    for (uint64_t i = part.first; i < part.limit && copy->status == TARN_OK; i++) {
        if (!freed || !tn_freed_blocks_have(freed, i - part.first)) {
            entry_copy(copy, tn_trace_at(copy->from, trace, i));
        }
    }
}

static void part_copy_not_freed(struct tn_model_copy *copy, const struct tn_trace *trace,
                                struct part part)
{
    struct tn_freed_blocks freed;

    tn_freed_blocks_init(&freed);
    if (tn_freed_blocks_find(&freed, copy->from, trace, part.first, part.limit)) {
        part_copy(copy, trace, part, &freed);
    } else {
        (void)tn_copy_note(copy, TARN_ERR_HOST_MEMORY);
    }
    tn_freed_blocks_fini(&freed);
}

static struct tn_trace trace_copy(struct trim *trim, const struct tn_trace *trace, struct part part)
{
    struct tn_model_copy *copy = &trim->copy;
    struct tn_trace made = {.first = copy->to->entries.count};

    if (trim->options->drop_freed) {
        part_copy_not_freed(copy, trace, part);
    } else {
        part_copy(copy, trace, part, NULL);
    }
    made.count = copy->to->entries.count - made.first;
    return made;
}

static void traces_make(struct trim *trim, const struct part *parts)
{
    const struct tn_model *model = trim->copy.from;
    struct tn_trace *traces = tn_copy_array(&trim->copy, model->trace_count, sizeof *traces);

    for (size_t i = 0; traces && i < model->trace_count; i++) {
        const struct part none = {0, 0};

        traces[i] = trace_copy(trim, &model->traces[i],
                               device_is_wanted(trim, (int64_t)i) ? parts[i] : none);
    }
    if (traces) {
        trim->copy.to->traces = traces;
        trim->copy.to->trace_count = model->trace_count;
    }
}

/* Pinned memory: as a whole, or not at all. */
static void host_make(struct trim *trim)
{
    const struct tn_model *model = trim->copy.from;
    struct tn_model *to = trim->copy.to;
    struct tn_model_segment *segments;
    struct tn_trace *traces;

    if (!model->has_host || is_cut(trim->options)) {
        return;
    }
    segments = tn_copy_array(&trim->copy, model->host_segment_count, sizeof *segments);
    traces = tn_copy_array(&trim->copy, model->host_trace_count, sizeof *traces);
    if (!segments || !traces) {
        return;
    }
    for (size_t i = 0; i < model->host_segment_count; i++) {
        segment_copy(trim, &model->host_segments[i], &segments[i]);
    }
    for (size_t i = 0; i < model->host_trace_count; i++) {
        const struct part all = {0, model->host_traces[i].count};

        traces[i] = trace_copy(trim, &model->host_traces[i], all);
    }
    to->has_host = true;
    to->host_segments = segments;
    to->host_segment_count = model->host_segment_count;
    to->host_traces = traces;
    to->host_trace_count = model->host_trace_count;
}

/* ---- annotations and settings ---- */

/* Fields of settings; those of annotations may hold anything, and pass only as they are. */
static const struct tn_field *fields_copy(struct trim *trim, const struct tn_field *from,
                                          size_t count)
{
    struct tn_model_copy *copy = &trim->copy;
    struct tn_field *fields = tn_copy_array(copy, count, sizeof *fields);

    for (size_t i = 0; fields && i < count && copy->status == TARN_OK; i++) {
        fields[i] = from[i];
        fields[i].key = tn_copy_string(copy, from[i].key, TN_TEXT_SETTING);
        if (from[i].kind == TN_FIELD_STRING) {
            fields[i].value.string = tn_copy_settings(copy, from[i].value.string);
        } else {
            tn_copy_value(copy, &fields[i]);
        }
    }
    return fields;
}

/* Whether it lies in what is kept of its device's trace. */
static bool annotation_is_kept(const struct trim *trim, const struct part *parts,
                               const struct tn_annotation *annotation)
{
    const struct tn_model *model = trim->copy.from;
    const int32_t device = annotation->device;

    if (!device_is_wanted(trim, device) && device >= 0) {
        return false;
    }
    if (!is_cut(trim->options) || device < 0 || (size_t)device >= model->trace_count) {
        return true;
    }
    const struct tn_trace *trace = &model->traces[device];
    const struct part part = parts[device];

    return part.first < part.limit &&
           annotation->time_us >= tn_trace_at(model, trace, part.first)->time_us &&
           annotation->time_us <= tn_trace_at(model, trace, part.limit - 1)->time_us;
}

static void annotation_copy(struct trim *trim, const struct tn_annotation *from,
                            struct tn_annotation *to)
{
    struct tn_model_copy *copy = &trim->copy;
    *to = (struct tn_annotation){.name = tn_copy_string(copy, from->name, TN_TEXT_NOTE),
                                 .stage = tn_copy_string(copy, from->stage, TN_TEXT_WORD),
                                 .device = from->device,
                                 .time_us = tn_copy_time(copy, from->time_us)};
    if (!copy->anonymize) {
        to->fields = fields_copy(trim, from->fields, from->field_count);
        to->field_count = from->field_count;
    }
}

static void annotations_make(struct trim *trim, const struct part *parts)
{
    const struct tn_model *model = trim->copy.from;
    struct tn_annotation *annotations =
        tn_copy_array(&trim->copy, model->annotation_count, sizeof *annotations);
    size_t count = 0;

    for (size_t i = 0; annotations && i < model->annotation_count; i++) {
        if (annotation_is_kept(trim, parts, &model->annotations[i])) {
            annotation_copy(trim, &model->annotations[i], &annotations[count++]);
        }
    }
    trim->copy.to->annotations = annotations;
    trim->copy.to->annotation_count = count;
}

static void settings_make(struct trim *trim)
{
    const struct tn_model_settings *from = &trim->copy.from->settings;
    struct tn_model_settings *to = &trim->copy.to->settings;

    *to = *from;
    to->conf = tn_copy_settings(&trim->copy, from->conf);
    to->fields = fields_copy(trim, from->fields, from->field_count);
}

/* ---- all of it ---- */

/* Times begin at 0 so that they do not reveal when it was. */
static int64_t time_shift(const struct tn_model *model)
{
    int64_t least = INT64_MAX;

    for (uint64_t i = 0; i < model->entries.count; i++) {
        const struct tn_trace_entry *entry = tn_chunked_vec_at(&model->entries, i);

        if (entry->time_us != TN_TIME_NONE && entry->time_us >= 0 && entry->time_us < least) {
            least = entry->time_us;
        }
    }
    return least == INT64_MAX ? 0 : least;
}

static void flags_copy(const struct tn_model *from, struct tn_model *to)
{
    to->is_list_only = from->is_list_only;
    to->is_legacy = from->is_legacy;
    to->is_partial = from->is_partial;
    to->has_traces = from->has_traces;
    to->has_annotations = from->has_annotations;
}

static void trim_run(struct trim *trim, struct part *parts)
{
    const struct tn_model *model = trim->copy.from;

    for (size_t i = 0; i < model->trace_count; i++) {
        parts[i] = part_of(trim, &model->traces[i]);
    }
    flags_copy(model, trim->copy.to);
    tn_copy_containers(&trim->copy);
    trim->copy.to->rest = tn_copy_container(&trim->copy, model->rest);
    segments_make(trim, parts);
    segments_keep(trim);
    traces_make(trim, parts);
    host_make(trim);
    annotations_make(trim, parts);
    settings_make(trim);
}

static enum tarn_status trim_into(const struct tn_model *from, struct tn_model *to,
                                  const struct tarn_trim_options *options,
                                  struct tn_categories *categories)
{
    struct trim trim = {.options = options};
    struct tn_vec parts;

    tn_vec_init(&parts, sizeof(struct part));
    tn_vec_init(&trim.segments, sizeof(struct tn_model_segment));
    enum tarn_status status = tn_keys_enter(to);

    if (status) {
        return status;
    }
    if (!tn_vec_reserve(&parts, from->trace_count + 1) ||
        !tn_model_copy_init(&trim.copy, from, to)) {
        tn_vec_fini(&parts);
        return TARN_ERR_HOST_MEMORY;
    }
    trim.copy.categories = categories;
    trim.copy.drop_cpp = options->drop_cpp;
    trim.copy.anonymize = options->anonymize;
    trim.copy.time_shift = options->anonymize ? time_shift(from) : 0;
    trim_run(&trim, parts.items);
    status = trim.copy.status;
    tn_model_copy_fini(&trim.copy);
    tn_vec_fini(&trim.segments);
    tn_vec_fini(&parts);
    return status;
}

/* Made-up names say the categories of the built-in rules. */
static enum tarn_status trim_with_rules(const struct tn_model *from, struct tn_model *to,
                                        const struct tarn_trim_options *options)
{
    struct tn_categories categories;
    enum tarn_status status;

    if (!options->anonymize) {
        return trim_into(from, to, options, NULL);
    }
    status = tn_categories_init(&categories, NULL, from, NULL);
    if (status == TARN_OK) {
        status = trim_into(from, to, options, &categories);
        tn_categories_fini(&categories);
    }
    return status;
}

static enum tarn_status options_check(const struct tarn_snapshot *snapshot,
                                      const struct tarn_trim_options *options,
                                      struct tarn_error *error)
{
    if (options->one_device &&
        (options->device < 0 || (size_t)options->device >= tarn_snapshot_device_count(snapshot))) {
        return tn_fail(error, TARN_ERR_NOT_FOUND, "the snapshot has no device %d", options->device);
    }
    if (options->has_events && options->last_event < options->first_event) {
        return tn_fail(
            error, TARN_ERR_INVALID_ARGUMENT, "the part ends before it begins: events %llu to %llu",
            (unsigned long long)options->first_event, (unsigned long long)options->last_event);
    }
    if (options->has_time && options->to_us < options->from_us) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "the part ends before it begins: %lld to %lld microseconds",
                       (long long)options->from_us, (long long)options->to_us);
    }
    return TARN_OK;
}

enum tarn_status tarn_snapshot_trim(const struct tarn_snapshot *snapshot,
                                    const struct tarn_trim_options *options,
                                    struct tarn_snapshot **trimmed_out, struct tarn_error *error)
{
    static const struct tarn_trim_options all = {.struct_size = sizeof all};
    struct tarn_snapshot *trimmed;
    enum tarn_status status = options ? options_check(snapshot, options, error) : TARN_OK;

    *trimmed_out = NULL;
    if (status) {
        return status;
    }
    status = tn_snapshot_create(0, &trimmed);
    if (status == TARN_OK) {
        status = trim_with_rules(tn_snapshot_model(snapshot), tn_snapshot_model_mutable(trimmed),
                                 options ? options : &all);
        if (status == TARN_OK) {
            *trimmed_out = trimmed;
            return TARN_OK;
        }
        tarn_snapshot_destroy(trimmed);
    }
    return tn_fail_memory(error);
}
