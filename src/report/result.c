/* SPDX-License-Identifier: MIT */
#include "report/result.h"

#include "analysis/address_map.h"
#include "analysis/no_match.h"
#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/order.h"
#include "snapshot/snapshot.h"

#include <stdlib.h>
#include <string.h>

enum {
    STATE_DEVICES_MAX = 1024, /* numbers of devices beyond are not those of a machine */
    ROWS_DEFAULT = 10,
    SMALL_KEYS = 1 << 16, /* of rows: below it a table says where they are */
    SMALL_KEYS_FIRST = 64
};

struct tn_result {
    struct tn_budget budget; /* without a limit */
    struct tn_arena arena;
    size_t size;        /* of this and of the result */
    struct tn_vec text; /* char: being written */
    struct tarn_writer writer;
    struct tn_text_out out;
};

/* The result follows its header. */
struct header {
    _Alignas(16) struct tn_result result;
};

void *tn_result_create(size_t size)
{
    struct header *header = tn_host_alloc_zero(sizeof *header + size);

    if (!header) {
        return NULL;
    }
    header->result.size = sizeof *header + size;
    tn_arena_init(&header->result.arena, &header->result.budget);
    tn_vec_init(&header->result.text, 1);
    return header + 1;
}

struct tn_result *tn_result_of(void *result)
{
    return &((struct header *)result - 1)->result;
}

struct tn_arena *tn_result_arena(struct tn_result *result)
{
    return &result->arena;
}

void tarn_report_destroy(const void *results)
{
    void *result = (void *)(uintptr_t)results; /* what is const for its readers is not for us */

    if (result) {
        struct tn_result *header = tn_result_of(result);

        tn_vec_fini(&header->text);
        tn_arena_fini(&header->arena);
        tn_host_free(header, header->size);
    }
}

/* ---- texts and names ---- */

void *tn_result_copy(struct tn_result *result, const void *items, size_t count, size_t size)
{
    return tn_arena_copy(&result->arena, items, count, size);
}

const char *tn_result_text(struct tn_result *result, const char *text, size_t length)
{
    return tn_arena_copy_text(&result->arena, text, length);
}

struct tn_text_out *tn_result_text_begin(struct tn_result *result)
{
    result->text.count = 0;
    result->writer = tn_text_to_vec(&result->text);
    tn_text_init(&result->out, &result->writer);
    return &result->out;
}

const char *tn_result_text_end(struct tn_result *result)
{
    if (tn_text_finish(&result->out)) {
        return NULL;
    }
    return tn_result_text(result, result->text.count > 0 ? result->text.items : "",
                          result->text.count);
}

static struct tarn_report_frame frame_of(const struct tn_model *model, uint32_t number)
{
    const struct tn_frame *frame = tn_model_frame(model, number);
    const struct tn_string name = tn_model_string(model, frame->name);
    const struct tn_string file = tn_model_string(model, frame->filename);

    return (struct tarn_report_frame){.name = name.text,
                                      .name_length = name.length,
                                      .filename = file.text,
                                      .filename_length = file.length,
                                      .line = frame->line};
}

bool tn_result_frames(struct tn_result *result, const struct tn_model *model,
                      const uint32_t *numbers, size_t count, struct tarn_group *group)
{
    struct tarn_report_frame *frames =
        tn_arena_alloc_array(&result->arena, count, sizeof(struct tarn_report_frame));

    for (size_t i = 0; frames && i < count; i++) {
        frames[i] = frame_of(model, numbers[i]);
    }
    group->frames = frames;
    group->frame_count = count;
    return frames != NULL;
}

bool tn_result_group(struct tn_result *result, const struct tn_group_keys *keys,
                     struct tarn_group *group)
{
    if (!(keys->only_frames && keys->by == TARN_BY_STACK)) {
        tn_group_key_put(tn_result_text_begin(result), keys, group->key);
    } else {
        (void)tn_result_text_begin(result);
    }
    group->text = tn_result_text_end(result);
    if (!group->text) {
        return false;
    }
    if (keys->by == TARN_BY_STACK) {
        const struct tn_stack stack = tn_frame_view_stack(keys->view, (uint32_t)group->key);

        return tn_result_frames(result, keys->model, stack.frames, stack.count, group);
    }
    tn_group_key_put_name(tn_result_text_begin(result), keys, group->key);
    group->name = tn_result_text_end(result);
    return group->name != NULL;
}

bool tn_result_stack(struct tn_result *result, const struct tn_model *model, uint32_t stack,
                     struct tarn_group *group)
{
    const struct tn_stack frames = tn_model_stack(model, stack);

    tn_stack_put(tn_result_text_begin(result), model, stack);
    *group = (struct tarn_group){.key = stack, .text = tn_result_text_end(result)};
    return group->text && tn_result_frames(result, model, frames.frames, frames.count, group);
}

struct tarn_time_point tn_result_time_point(const struct tn_time_point *at)
{
    return (struct tarn_time_point){.event = at->entry, /* TN_NEVER is TARN_NONE */
                                    .reserved = at->reserved,
                                    .requested = at->requested,
                                    .left_out = at->left_out};
}

/* ---- devices ---- */

static bool has_entries(const struct tn_model *model)
{
    for (size_t i = 0; i < model->trace_count; i++) {
        if (model->traces[i].count > 0) {
            return true;
        }
    }
    return false;
}

enum tarn_status tn_report_check_traces(const struct tn_model *model, bool one_device, int device,
                                        struct tarn_error *error)
{
    if (!has_entries(model)) {
        return tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                       "the file has no trace, only segments: tarn info, live, top, frag and flame "
                       "show its state. For what happened before, call "
                       "torch.cuda.memory._record_memory_history() before the code to observe, and "
                       "_dump_snapshot() after it");
    }
    if (one_device &&
        (device < 0 || (size_t)device >= model->trace_count || model->traces[device].count == 0)) {
        return tn_fail(error, TARN_ERR_NOT_FOUND,
                       "the file has no trace of device %d; \"tarn info\" lists the devices",
                       device);
    }
    return TARN_OK;
}

uint64_t tn_report_limit(const struct tarn_report_options *options)
{
    return options->rows > 0 ? options->rows : ROWS_DEFAULT;
}

size_t tn_report_rows(const struct tn_report *report, size_t count)
{
    return report->limit < count ? (size_t)report->limit : count;
}

struct tarn_report_head tn_report_head_of(const struct tn_analysis *analysis)
{
    const struct tn_timeline *timeline = analysis->timeline;

    return (struct tarn_report_head){.device = (int)timeline->device,
                                     .by = analysis->keys.by,
                                     .events = timeline->trace->count,
                                     .first_event = timeline->first,
                                     .last_event = timeline->limit - (timeline->limit > 0),
                                     .blocks = timeline->lifetimes.count,
                                     .is_part = tn_analysis_is_part(analysis)};
}

/* The devices that a report can be about: those below `limit` that `has`. */
struct devices {
    bool is_state; /* there are no traces, and the report can do without */
    size_t limit;
    bool has_segments[STATE_DEVICES_MAX]; /* only for `is_state` */
};

static void devices_find(struct devices *devices, const struct tn_model *model,
                         enum tn_report_scope scope)
{
    *devices = (struct devices){.is_state = scope == TN_REPORT_STATE && model->segment_count > 0 &&
                                            !has_entries(model),
                                .limit = model->trace_count};
    if (!devices->is_state) {
        return;
    }
    devices->limit = STATE_DEVICES_MAX;
    for (size_t i = 0; i < model->segment_count; i++) {
        const int32_t device = model->segments[i].device;

        if (device >= 0 && device < STATE_DEVICES_MAX) {
            devices->has_segments[device] = true;
        }
    }
}

static bool is_wanted(const struct devices *devices, const struct tn_model *model,
                      const struct tarn_report_options *options, size_t device)
{
    const bool has_any =
        devices->is_state ? devices->has_segments[device] : model->traces[device].count > 0;

    return has_any && (!options->one_device || (size_t)options->device == device);
}

static size_t devices_count(const struct devices *devices, const struct tn_model *model,
                            const struct tarn_report_options *options)
{
    size_t count = 0;

    for (size_t i = 0; i < devices->limit; i++) {
        count += is_wanted(devices, model, options, i);
    }
    return count;
}

size_t tn_report_device_count(const struct tn_model *model,
                              const struct tarn_report_options *options, enum tn_report_scope scope)
{
    struct devices devices;

    devices_find(&devices, model, scope);
    return devices_count(&devices, model, options);
}

/* Whether there is what the options ask for. */
static enum tarn_status devices_check(const struct devices *devices, const struct tn_model *model,
                                      const struct tarn_report_options *options,
                                      struct tarn_error *error)
{
    if (!devices->is_state) {
        return tn_report_check_traces(model, options->one_device, options->device, error);
    }
    if (devices_count(devices, model, options) > 0) {
        return TARN_OK;
    }
    return options->one_device
               ? tn_fail(error, TARN_ERR_NOT_FOUND,
                         "the file has no segments of device %d; \"tarn info\" lists the devices",
                         options->device)
               : tn_fail(error, TARN_ERR_NOT_FOUND,
                         "the file has no segments of devices 0 to %d; \"tarn info\" lists the "
                         "devices",
                         STATE_DEVICES_MAX - 1);
}

static enum tarn_status device_visit(struct tn_query *query, size_t device, tn_report_visit *visit,
                                     void *context, struct tarn_error *error)
{
    struct tn_analysis analysis;
    enum tarn_status status = tn_analysis_init(&analysis, query, device, error);

    if (status == TARN_OK) {
        status = visit(context, &analysis, error);
        tn_analysis_fini(&analysis);
    }
    return status == TARN_ERR_HOST_MEMORY ? tn_fail_memory(error) : status;
}

enum tarn_status tn_report_devices(const struct tn_model *model,
                                   const struct tarn_report_options *options,
                                   enum tn_report_scope scope, tn_report_visit *visit,
                                   void *context, struct tarn_error *error)
{
    struct tn_query query;
    struct devices devices;

    devices_find(&devices, model, scope);
    enum tarn_status status = devices_check(&devices, model, options, error);

    if (status == TARN_OK) {
        status = tn_query_init(&query, model, options, error);
    }
    if (status) {
        return status;
    }
    if (scope == TN_REPORT_TRACE_CATEGORIES) {
        status = tn_query_want_categories(&query, options->rules, error);
    }
    for (size_t i = 0; status == TARN_OK && i < devices.limit; i++) {
        if (is_wanted(&devices, model, options, i)) {
            status = device_visit(&query, i, visit, context, error);
        }
    }
    tn_query_fini(&query);
    return status;
}

/* Devices without a selected block, while none has any. */
struct finding {
    tn_report_visit *visit;
    void *context;
    bool is_found;
    struct tarn_error missing; /* of the first that has none */
};

static enum tarn_status device_find(void *context, const struct tn_analysis *analysis,
                                    struct tarn_error *error)
{
    struct finding *finding = context;

    if (!tn_no_match(analysis)) {
        finding->is_found = true;
    } else if (finding->missing.status == TARN_OK) {
        (void)tn_no_match_fail(analysis, &finding->missing);
    }
    return finding->visit(finding->context, analysis, error);
}

enum tarn_status tn_report_devices_found(const struct tn_model *model,
                                         const struct tarn_report_options *options,
                                         enum tn_report_scope scope, tn_report_visit *visit,
                                         void *context, struct tarn_error *error)
{
    struct finding finding = {.visit = visit, .context = context};
    const enum tarn_status status =
        tn_report_devices(model, options, scope, device_find, &finding, error);

    tn_assert(status || finding.is_found || finding.missing.status); /* one was visited */
    return status || finding.is_found
               ? status
               : tn_fail(error, TARN_ERR_NOT_FOUND, "%s", finding.missing.text);
}

/* An array of results, one of each device. */
struct computing {
    struct tn_report report;
    tn_report_device *compute;
    char *next;
    size_t size;
};

static enum tarn_status result_compute(void *context, const struct tn_analysis *analysis,
                                       struct tarn_error *error)
{
    struct computing *computing = context;
    void *result = computing->next;

    computing->next += computing->size;
    *(struct tarn_report_head *)result = tn_report_head_of(analysis);
    return computing->compute(&computing->report, analysis, result, error);
}

enum tarn_status tn_report_run(const struct tarn_snapshot *snapshot,
                               const struct tarn_report_options *given, enum tn_report_scope scope,
                               size_t size, tn_report_device *compute, void *results_out,
                               size_t *count_out, struct tarn_error *error)
{
    static const struct tarn_report_options defaults = {.struct_size = sizeof defaults};
    const struct tarn_report_options *options = given ? given : &defaults;
    const struct tn_model *model = tn_snapshot_model(snapshot);

    if (options->leaks_out) {
        *options->leaks_out = 0;
    }
    *count_out = tn_report_device_count(model, options, scope);
    char *results = tn_result_create(*count_out * size);

    if (!results) {
        return tn_fail_memory(error);
    }
    struct computing computing = {.report = {.options = options,
                                             .limit = tn_report_limit(options),
                                             .result = tn_result_of(results)},
                                  .compute = compute,
                                  .next = results,
                                  .size = size};
    const enum tarn_status status =
        tn_report_devices_found(model, options, scope, result_compute, &computing, error);

    if (status) {
        tarn_report_destroy(results);
        results = NULL;
    }
    memcpy(results_out, &results, sizeof results); /* a pointer to the report's own type */
    return status;
}

static int real_compare(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;

    return (a > b) - (a < b);
}

double tn_median(double *numbers, size_t count)
{
    qsort(numbers, count, sizeof *numbers, real_compare);
    return count % 2 == 1 ? numbers[count / 2] : (numbers[count / 2 - 1] + numbers[count / 2]) / 2;
}

/* ---- rows ---- */

void tn_row_set_init(struct tn_row_set *set, size_t row_size, size_t sums_at, size_t sum_count)
{
    *set = (struct tn_row_set){.sums_at = sums_at, .sum_count = sum_count};
    tn_vec_init(&set->rows, row_size);
    tn_vec_init(&set->small, sizeof(uint32_t));
}

void tn_row_set_fini(struct tn_row_set *set)
{
    tn_map_fini(&set->numbers);
    tn_vec_fini(&set->small);
    tn_vec_fini(&set->rows);
}

static void *row_at(const struct tn_row_set *set, uint64_t number)
{
    return (char *)set->rows.items + number * set->rows.item_size;
}

/* Makes the table reach to a small key. */
static bool small_grow(struct tn_row_set *set, uint64_t key)
{
    const size_t before = set->small.count;
    const size_t wanted = key < before * 2 ? before * 2 : (size_t)key + SMALL_KEYS_FIRST;
    const size_t count = wanted < SMALL_KEYS ? wanted : SMALL_KEYS;

    if (!tn_vec_reserve(&set->small, count - before)) {
        return false;
    }
    memset((uint32_t *)set->small.items + before, 0, (count - before) * sizeof(uint32_t));
    set->small.count = count;
    return true;
}

/* Says that the next row is that of a new key. */
static bool key_add(struct tn_row_set *set, uint64_t key)
{
    if (key >= SMALL_KEYS) {
        return tn_address_put(&set->numbers, key, set->rows.count);
    }
    if (key >= set->small.count && !small_grow(set, key)) {
        return false;
    }
    ((uint32_t *)set->small.items)[key] = (uint32_t)set->rows.count + 1;
    return true;
}

void *tn_row_known(const struct tn_row_set *set, uint64_t key)
{
    if (key < set->small.count) {
        const uint32_t number = ((const uint32_t *)set->small.items)[key];

        return number > 0 ? row_at(set, number - 1) : NULL;
    }
    const uint64_t *number = key < SMALL_KEYS ? NULL : tn_address_find(&set->numbers, key);

    return number ? row_at(set, *number) : NULL;
}

void *tn_row_get_any(struct tn_row_set *set, uint64_t key)
{
    void *known = tn_row_known(set, key);

    if (known || !key_add(set, key)) {
        return known;
    }
    struct tarn_group *row = tn_vec_push(&set->rows);

    if (row) {
        row->key = key;
    }
    return row;
}

void tn_row_set_sort(struct tn_row_set *set, int (*compare)(const void *, const void *))
{
    tn_vec_sort(&set->rows, compare);
}

void tn_rows_sum(const struct tn_row_set *set, size_t first, void *row)
{
    uint64_t *into = (uint64_t *)(void *)((char *)row + set->sums_at);

    for (size_t i = first; i < set->rows.count; i++) {
        const char *other = (const char *)set->rows.items + i * set->rows.item_size;
        const uint64_t *from = (const uint64_t *)(const void *)(other + set->sums_at);

        for (size_t k = 0; k < set->sum_count; k++) {
            into[k] += from[k];
        }
    }
}

const void *tn_row_find(const struct tn_row_set *set, uint64_t key)
{
    const char *row = set->rows.items;

    for (size_t i = 0; i < set->rows.count; i++, row += set->rows.item_size) {
        if (((const struct tarn_group *)(const void *)row)->key == key) {
            return row;
        }
    }
    return NULL;
}
