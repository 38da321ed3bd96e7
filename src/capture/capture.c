/* SPDX-License-Identifier: MIT */
/*
 * Implements tarn/capture.h: copies every source under its lock (live_copy.h), then builds the
 * model from the copies. Each stack and each combination of texts is looked up once.
 */
#include "tarn/capture.h"

#include "alloc/engine/allocator.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/map.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "capture/live_copy.h"
#include "snapshot/keys.h"
#include "snapshot/page_list.h"
#include "snapshot/snapshot.h"

#include <stdlib.h>
#include <string.h>

enum {
    DEVICES_MAX = 1024 /* the highest number of a device + 1 */
};

/* State of the construction. */
struct build {
    struct tn_model *model;
    struct tn_live_copy *copies;
    size_t count;                    /* of copies */
    const struct tn_live_copy *host; /* of pinned memory, NULL = none */
    struct tarn_history *history;    /* of the current copy */
    struct tn_map stacks;            /* address of a piece to stack of the model */
    struct tn_map extras;            /* address of a piece to extra of the model */
    struct tn_vec frames;            /* uint32_t, of the current stack */
    uint32_t plain_extra;            /* of events without a piece; TN_EXTRA_NONE = not added yet */
    enum tarn_status status;         /* the first failure */
};

static bool build_check(struct build *build, enum tarn_status status)
{
    if (build->status == TARN_OK) {
        build->status = status;
    }
    return build->status == TARN_OK;
}

/* Allocates memory of the model; NULL, and records the failure, if there is none. */
static void *build_array(struct build *build, size_t count, size_t size)
{
    void *array = tn_arena_alloc_array(&build->model->arena, count, size);

    if (!array) {
        (void)build_check(build, tn_model_memory_status(build->model));
    }
    return array;
}

/* ---- texts ---- */

/* Replaces bytes that are not UTF-8, which no snapshot can have, by question marks. */
static enum tarn_status add_repaired(struct tn_model *model, const char *text, size_t length,
                                     uint32_t *string_out)
{
    char *copy = tn_host_strdup(text);

    if (!copy) {
        return TARN_ERR_HOST_MEMORY;
    }
    for (size_t i = 0; i < length; i++) {
        if ((copy[i] & 0x80) != 0) {
            copy[i] = '?';
        }
    }
    const enum tarn_status status = tn_model_add_string(model, copy, length, string_out);

    tn_host_strfree(copy);
    return status;
}

static uint32_t build_string(struct build *build, const char *text)
{
    const size_t length = strlen(text);
    uint32_t string = TN_STRING_NONE;

    (void)build_check(build, tn_utf8_is_valid(text, length)
                                 ? tn_model_add_string(build->model, text, length, &string)
                                 : add_repaired(build->model, text, length, &string));
    return string;
}

/* ---- stacks ---- */

static void build_frame(void *context, const struct tarn_stack_frame *frame)
{
    struct build *build = context;
    const struct tn_frame made = {
        .name = build_string(build, frame->name),
        .filename = build_string(build, frame->filename),
        .line = (int64_t)frame->line,
    };
    uint32_t *number = tn_vec_push(&build->frames);

    if (build_check(build, number ? TARN_OK : TARN_ERR_HOST_MEMORY)) {
        (void)build_check(build, tn_model_add_frame(build->model, &made, number));
    }
}

static uint32_t build_new_stack(struct build *build, uint64_t id)
{
    uint32_t stack = TN_STACK_EMPTY;

    build->frames.count = 0;
    if (build_check(build, tarn_history_visit_stack(build->history, id, build_frame, build)) &&
        build->frames.count > 0) {
        (void)build_check(build, tn_model_add_stack(build->model, build->frames.items,
                                                    build->frames.count, &stack));
    }
    return stack;
}

/* Number of a stack; `none` for the id 0. */
static uint32_t build_stack(struct build *build, uint64_t id, uint32_t none)
{
    if (id == 0) {
        return none;
    }
    const uint64_t *known = tn_map_find(&build->stacks, id);

    if (known) {
        return (uint32_t)*known;
    }
    const uint32_t stack = build_new_stack(build, id);

    if (build_check(build, tn_map_reserve(&build->stacks, 1) ? TARN_OK : TARN_ERR_HOST_MEMORY)) {
        tn_map_insert(&build->stacks, id, stack);
    }
    return stack;
}

/* ---- segments ---- */

static uint8_t block_state(const struct tarn_block_info *block)
{
    if (block->allocated) {
        return TN_BLOCK_ACTIVE_ALLOCATED;
    }
    return block->active ? TN_BLOCK_ACTIVE_PENDING_FREE : TN_BLOCK_INACTIVE;
}

static void build_blocks(struct build *build, const struct tn_live_copy *copy,
                         const struct tn_copied_segment *copied, struct tn_model_block *blocks)
{
    for (uint64_t i = 0; i < copied->block_count && build->status == TARN_OK; i++) {
        const struct tarn_block_info *block = &copy->blocks[copied->first_block + i];

        blocks[i] = (struct tn_model_block){
            .address = block->address,
            .size = block->size,
            .requested_size = block->requested_size,
            .stack = build_stack(build, copy->has_stacks ? block->stack : 0, TN_STACK_EMPTY),
            .state = block_state(block),
            .has_address = true,
            .has_requested_size = true,
        };
    }
}

/* The copied page at the address or above it. */
static const struct tn_page_info *page_at(const struct tn_live_copy *copy, uint64_t address)
{
    uint64_t low = 0;
    uint64_t high = copy->page_count;

    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;

        if (copy->pages[middle].address < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return &copy->pages[low];
}

/* The `rest` of a segment: its pages, if it has any. */
static uint32_t build_pages(struct build *build, const struct tn_live_copy *copy,
                            const struct tarn_segment_info *info)
{
    const struct tn_page_info *first = page_at(copy, info->address);
    const struct tn_page_info *end = page_at(copy, info->address + info->total_size);
    const size_t count = (size_t)(end - first);
    uint32_t rest = TN_CONTAINER_NONE;

    if (count == 0) {
        return rest;
    }
    struct tn_field *handles = build_array(build, count, sizeof *handles);
    struct tn_field *times = build_array(build, count, sizeof *times);

    if (!handles || !times) {
        return rest;
    }
    for (size_t i = 0; i < count; i++) {
        handles[i] = tn_page_list_item(first[i].handle);
        times[i] = tn_page_list_item(first[i].times);
    }
    const struct tn_page_list pages = {
        .size = first->size, .count = (uint32_t)count, .handles = handles, .times = times};

    (void)build_check(build, tn_page_list_add(build->model, &pages, &rest));
    return rest;
}

static void build_segment(struct build *build, const struct tn_live_copy *copy,
                          const struct tn_copied_segment *copied, struct tn_model_segment *segment)
{
    const struct tarn_segment_info *info = &copied->info;
    struct tn_model_block *blocks = build_array(build, copied->block_count, sizeof *blocks);

    if (!blocks) {
        return;
    }
    build_blocks(build, copy, copied, blocks);
    *segment = (struct tn_model_segment){
        .address = info->address,
        .total_size = info->total_size,
        .allocated_size = info->allocated_size,
        .active_size = info->active_size,
        .requested_size = info->requested_size,
        .stream = info->stream,
        .pool = {.id = {info->pool.first, info->pool.second}},
        .device = copy->device,
        .stack = build_stack(build, copy->has_stacks ? info->stack : 0, TN_STACK_EMPTY),
        .rest = copy->page_count > 0 ? build_pages(build, copy, info) : TN_CONTAINER_NONE,
        .is_large = info->is_large,
        .is_expandable = info->is_expandable,
        .blocks = blocks,
        .block_count = copied->block_count,
    };
}

static int segment_compare(const void *a, const void *b)
{
    const struct tn_model_segment *x = a;
    const struct tn_model_segment *y = b;

    if (x->device != y->device) {
        return (x->device > y->device) - (x->device < y->device);
    }
    return (x->address > y->address) - (x->address < y->address);
}

/* The segments of some copies, by device and address; *count_out of them. NULL, and records the
 * failure, without host memory. */
static const struct tn_model_segment *build_segments(struct build *build,
                                                     const struct tn_live_copy *copies,
                                                     size_t count, size_t *count_out)
{
    size_t total = 0;
    size_t done = 0;

    for (size_t i = 0; i < count; i++) {
        total += copies[i].segment_count;
    }
    struct tn_model_segment *segments = build_array(build, total, sizeof *segments);

    *count_out = segments ? total : 0;
    for (size_t i = 0; segments && i < count; i++) {
        const struct tn_live_copy *copy = &copies[i];

        build->history = copy->source.history;
        for (uint64_t k = 0; k < copy->segment_count && build->status == TARN_OK; k++) {
            build_segment(build, copy, &copy->segments[k], &segments[done++]);
        }
    }
    if (count > 1 && build->status == TARN_OK) { /* several copies may be of one device */
        qsort(segments, done, sizeof *segments, segment_compare);
    }
    return segments;
}

/* ---- traces ---- */

static uint32_t build_new_extra(struct build *build, const struct tn_interned *piece)
{
    const struct tn_extra_view view = tn_history_extra(piece);
    const struct tn_trace_extra extra = {
        .compile_context = build_string(build, view.compile_context),
        .user_metadata = build_string(build, view.user_metadata),
        .has_pool = true,
        .pool = {.id = {view.pool_id[0], view.pool_id[1]}},
    };
    uint32_t number = TN_EXTRA_NONE;

    if (build->status == TARN_OK) {
        (void)build_check(build, tn_model_add_extra(build->model, &extra, &number));
    }
    return number;
}

static uint32_t build_extra(struct build *build, const struct tn_interned *piece)
{
    const uint64_t id = (uint64_t)(uintptr_t)piece;

    if (tn_likely(!piece)) {
        if (build->plain_extra == TN_EXTRA_NONE) {
            build->plain_extra = build_new_extra(build, NULL);
        }
        return build->plain_extra;
    }
    const uint64_t *known = tn_map_find(&build->extras, id);

    if (known) {
        return (uint32_t)*known;
    }
    const uint32_t extra = build_new_extra(build, piece);

    if (build_check(build, tn_map_reserve(&build->extras, 1) ? TARN_OK : TARN_ERR_HOST_MEMORY)) {
        tn_map_insert(&build->extras, id, extra);
    }
    return extra;
}

static void build_entry(struct build *build, const struct tn_live_copy *copy,
                        const struct tn_ring_entry *entry)
{
    const uint64_t stack = (uint64_t)(uintptr_t)entry->stack;
    const struct tn_trace_entry made = {
        .address = entry->address,
        .size = entry->size,
        .stream = entry->stream,
        .time_us = tn_history_time_us(copy->source.history, &copy->history, entry->ticks),
        .stack = build_stack(build, stack, TN_STACK_NONE),
        .extra = build_extra(build, entry->extra) & 0x7ffffff,
        .action = entry->action & 0x1f, /* files have these values, and more */
    };
    uint64_t number;

    if (build->status == TARN_OK) {
        (void)build_check(build, tn_model_add_entry(build->model, &made, &number));
    }
}

/* The entries of one device, from the histories of some copies. */
static void build_trace(struct build *build, const struct tn_live_copy *copies, size_t count,
                        int device, struct tn_trace *trace)
{
    trace->first = build->model->entries.count;
    for (size_t i = 0; i < count; i++) {
        const struct tn_live_copy *copy = &copies[i];

        build->history = copy->source.history;
        for (uint64_t k = 0; k < copy->history.count && build->status == TARN_OK; k++) {
            if (copy->history.entries[k].device == device) {
                build_entry(build, copy, &copy->history.entries[k]);
            }
        }
    }
    trace->count = build->model->entries.count - trace->first;
}

/* `count` traces, by device. NULL, and records the failure, without host memory. */
static const struct tn_trace *build_traces(struct build *build, const struct tn_live_copy *copies,
                                           size_t copy_count, size_t count, bool without)
{
    struct tn_trace *traces = build_array(build, count, sizeof *traces);

    for (size_t i = 0; traces && i < count; i++) {
        traces[i] = (struct tn_trace){0};
        if (!without) {
            build_trace(build, copies, copy_count, (int)i, &traces[i]);
        }
    }
    return traces;
}

/* Number of traces, one per device. */
static size_t trace_count(const struct build *build, const struct tarn_capture_options *options)
{
    size_t count = options->device_count;

    for (size_t i = 0; i < build->count; i++) {
        const size_t needed = (size_t)build->copies[i].device + 1;

        count = needed > count ? needed : count;
    }
    if (build->host) {
        const size_t needed = (size_t)build->host->device + 1;

        count = needed > count ? needed : count;
    }
    return count;
}

static void build_memory(struct build *build, const struct tarn_capture_options *options)
{
    struct tn_model *model = build->model;
    const size_t count = trace_count(build, options);

    model->segments = build_segments(build, build->copies, build->count, &model->segment_count);
    model->traces =
        build_traces(build, build->copies, build->count, count, options->without_traces);
    model->trace_count = model->traces ? count : 0;
    model->has_traces = true;
    if (build->host && build->status == TARN_OK) {
        model->has_host = true;
        model->host_segments = build_segments(build, build->host, 1, &model->host_segment_count);
        model->host_traces = build_traces(build, build->host, 1, count, options->without_traces);
        model->host_trace_count = model->host_traces ? count : 0;
    }
}

/* ---- annotations and settings ---- */

static const char *piece_text(const struct tn_interned *piece)
{
    return (const char *)piece->bytes;
}

static void build_annotation(struct build *build, const struct tn_live_copy *copy,
                             const struct tn_annotation_entry *entry,
                             struct tn_annotation *annotation)
{
    struct tn_field *fields = build_array(build, entry->field_count, sizeof *fields);

    if (!fields) {
        return;
    }
    for (uint32_t i = 0; i < entry->field_count; i++) {
        fields[i] = (struct tn_field){
            .key = build_string(build, piece_text(entry->fields[(size_t)2 * i])),
            .kind = TN_FIELD_STRING,
            .value = {.string = build_string(build, piece_text(entry->fields[(size_t)2 * i + 1]))},
        };
    }
    *annotation = (struct tn_annotation){
        .stage = build_string(build, entry->stage == TARN_ANNOTATION_START ? "START" : "END"),
        .name = build_string(build, piece_text(entry->name)),
        .device = entry->device,
        .time_us = tn_history_time_us(copy->source.history, &copy->history, entry->ticks),
        .fields = fields,
        .field_count = entry->field_count,
    };
}

static void build_annotations(struct build *build)
{
    size_t total = 0;
    size_t done = 0;

    for (size_t i = 0; i < build->count; i++) {
        total += build->copies[i].history.annotation_count;
    }
    struct tn_annotation *annotations = build_array(build, total, sizeof *annotations);

    if (!annotations) {
        return;
    }
    for (size_t i = 0; i < build->count; i++) {
        const struct tn_live_copy *copy = &build->copies[i];

        for (uint64_t k = 0; k < copy->history.annotation_count; k++) {
            build_annotation(build, copy, &copy->history.annotations[k], &annotations[done++]);
        }
    }
    build->model->annotations = annotations;
    build->model->annotation_count = total;
    build->model->has_annotations = true;
}

static struct tn_field field_of(struct build *build, const char *key, enum tn_field_kind kind)
{
    return (struct tn_field){.key = build_string(build, key), .kind = (uint8_t)kind};
}

static void build_settings(struct build *build, const struct tarn_config *config)
{
    enum {
        FIELDS = 4
    };
    struct tn_model_settings *settings = &build->model->settings;
    struct tn_field *fields = build_array(build, FIELDS, sizeof *fields);

    if (!fields) {
        return;
    }
    fields[0] = field_of(build, "pinned_num_register_threads", TN_FIELD_INT);
    fields[0].value.integer = config->pinned_num_register_threads;
    fields[1] = field_of(build, "release_lock_on_cudamalloc", TN_FIELD_BOOL);
    fields[1].value.boolean = config->release_lock_on_device_alloc;
    fields[2] = field_of(build, "pinned_use_cuda_host_register", TN_FIELD_BOOL);
    fields[2].value.boolean = config->pinned_use_host_register;
    fields[3] = field_of(build, "graph_capture_record_stream_reuse", TN_FIELD_BOOL);
    fields[3].value.boolean = config->graph_capture_record_stream_reuse;
    *settings = (struct tn_model_settings){
        .present = true,
        .conf = build_string(build, config->text),
        .max_split_size = (int64_t)config->max_split_size, /* unlimited is -1 */
        .garbage_collection_threshold = config->garbage_collection_threshold,
        .expandable_segments = config->expandable_segments,
        .has_roundup = true,
        .fields = fields,
        .field_count = FIELDS,
    };
    for (unsigned i = 0; i < TN_ROUNDUP_INTERVALS; i++) {
        settings->roundup_power2_divisions[i] = config->roundup_power2_divisions[i];
    }
}

/* ---- all of it ---- */

static enum tarn_status build_model(struct tn_model *model, struct tn_live_copy *copies,
                                    size_t count, const struct tn_live_copy *host,
                                    const struct tarn_capture_options *options)
{
    struct build build = {.model = model, .copies = copies, .count = count, .host = host};

    tn_vec_init(&build.frames, sizeof(uint32_t));
    if (build_check(&build, tn_keys_enter(model))) {
        build_memory(&build, options);
    }
    if (build.status == TARN_OK) {
        build_annotations(&build);
    }
    if (build.status == TARN_OK) {
        build_settings(&build, &copies[0].config);
    }
    tn_vec_fini(&build.frames);
    tn_map_fini(&build.stacks);
    tn_map_fini(&build.extras);
    return build.status;
}

/* Whether one of the copies has the history already. */
static bool history_is_known(const struct tn_live_copy *copies, size_t count,
                             const struct tarn_history *history)
{
    bool known = false;

    for (size_t i = 0; i < count; i++) {
        known = known || copies[i].source.history == history;
    }
    return known;
}

/* By device; stable. */
static void sort_copies(struct tn_live_copy *copies, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const struct tn_live_copy copy = copies[i];
        size_t at = i;

        for (; at > 0 && copies[at - 1].device > copy.device; at--) {
            copies[at] = copies[at - 1];
        }
        copies[at] = copy;
    }
}

/* Copies allocators, then observers; *done_out of them. */
static enum tarn_status copy_sources(const struct tarn_capture_source *sources, size_t count,
                                     const struct tarn_capture_options *options,
                                     struct tn_live_copy *copies, size_t *done_out,
                                     struct tarn_error *error)
{
    enum tarn_status status = TARN_OK;
    size_t done = 0;

    while (done < count && status == TARN_OK) {
        status = tn_live_copy_init(&copies[done], &sources[done], options,
                                   !history_is_known(copies, done, sources[done].history), error);
        done += status == TARN_OK;
    }
    while (status == TARN_OK && done < count + options->observer_count) {
        struct tarn_observer *observer = options->observers[done - count];

        status = tn_live_copy_observed(
            &copies[done], observer, !history_is_known(copies, done, tn_observer_history(observer)),
            error);
        done += status == TARN_OK;
    }
    *done_out = done;
    return status;
}

/* Copies pinned memory; *host_out is NULL if there is none. */
static enum tarn_status copy_host(const struct tarn_capture_options *options,
                                  struct tn_live_copy *copy, const struct tn_live_copy **host_out,
                                  struct tarn_error *error)
{
    enum tarn_status status = TARN_OK;

    *host_out = NULL;
    if (options->pinned) {
        status = tn_live_copy_pinned(copy, options->pinned, options->pinned_history, error);
    } else if (options->host_observer) {
        status = tn_live_copy_observed(copy, options->host_observer, true, error);
    } else {
        return TARN_OK;
    }
    *host_out = status ? NULL : copy;
    return status;
}

static enum tarn_status capture_sources(const struct tarn_capture_source *sources, size_t count,
                                        const struct tarn_capture_options *options,
                                        struct tn_live_copy *copies, struct tn_model *model,
                                        struct tarn_error *error)
{
    struct tn_live_copy host_copy;
    const struct tn_live_copy *host = NULL;
    size_t done = 0;
    enum tarn_status status = copy_sources(sources, count, options, copies, &done, error);

    if (status == TARN_OK) {
        status = copy_host(options, &host_copy, &host, error);
    }
    if (status == TARN_OK) {
        const struct tarn_config config = copies[0].config;

        sort_copies(copies, done);
        copies[0].config = config;
        status = build_model(model, copies, done, host, options);
        if (status) {
            (void)tn_fail_memory(error);
        }
    }
    if (host) {
        tn_live_copy_fini(&host_copy);
    }
    for (size_t i = 0; i < done; i++) {
        tn_live_copy_fini(&copies[i]);
    }
    return status;
}

/* Observers are there, of devices that are possible. */
static enum tarn_status observers_check(const struct tarn_capture_options *options,
                                        struct tarn_error *error)
{
    for (size_t i = 0; i < options->observer_count; i++) {
        const struct tarn_observer *observer = options->observers[i];

        if (!observer || tn_observer_ordinal(observer) >= DEVICES_MAX) {
            return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                           "observer %zu of a snapshot is none, or of a device above %d", i,
                           DEVICES_MAX - 1);
        }
    }
    if (options->host_observer &&
        (options->pinned || tn_observer_ordinal(options->host_observer) >= DEVICES_MAX)) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "a snapshot has pinned memory of an allocator or of an observer, of a "
                       "device up to %d",
                       DEVICES_MAX - 1);
    }
    return TARN_OK;
}

static enum tarn_status sources_check(const struct tarn_capture_source *sources, size_t count,
                                      const struct tarn_capture_options *options,
                                      struct tarn_error *error)
{
    if (options->device_count > DEVICES_MAX || (count == 0 && options->observer_count == 0)) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "a snapshot needs an allocator or an observer, and %d devices at most",
                       DEVICES_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        if (options->pinned_history && options->pinned_history == sources[i].history) {
            return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                           "the history of pinned memory is that of source %zu too: it needs one "
                           "of its own",
                           i);
        }
        if (!sources[i].allocator || tn_allocator_ordinal(sources[i].allocator) >= DEVICES_MAX) {
            return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                           "source %zu of a snapshot has no allocator, or one of a device above %d",
                           i, DEVICES_MAX - 1);
        }
    }
    return observers_check(options, error);
}

enum tarn_status tarn_snapshot_capture(const struct tarn_capture_source *sources, size_t count,
                                       const struct tarn_capture_options *options,
                                       struct tarn_snapshot **snapshot_out,
                                       struct tarn_error *error)
{
    struct tarn_capture_options all;
    struct tarn_snapshot *snapshot = NULL;
    enum tarn_status status = TARN_OK;

    if (!tn_capture_options_read(options, &all)) {
        status = tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                         "the options of a snapshot have a struct_size that no version has");
    }
    status = status ? status : sources_check(sources, count, &all, error);
    *snapshot_out = NULL;
    if (status) {
        return status;
    }
    const size_t total = count + all.observer_count;
    struct tn_live_copy *copies = tn_host_alloc(total * sizeof *copies);

    status = copies ? tn_snapshot_create(0, &snapshot) : TARN_ERR_HOST_MEMORY;
    if (status) {
        (void)tn_fail_memory(error);
        goto out;
    }
    status =
        capture_sources(sources, count, &all, copies, tn_snapshot_model_mutable(snapshot), error);
    if (status == TARN_OK) {
        *snapshot_out = snapshot;
        snapshot = NULL;
    }
out:
    tarn_snapshot_destroy(snapshot);
    tn_host_free(copies, total * sizeof *copies);
    return status;
}
