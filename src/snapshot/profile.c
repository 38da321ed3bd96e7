/* SPDX-License-Identifier: MIT */
/*
 * Implements tarn/profile.h in three steps: collect memory events and time slices
 * (chrome_events.h), find the slices open on the thread of each event, build the model.
 */
#include "tarn/profile.h"

#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/json_tree.h"
#include "base/vec.h"
#include "snapshot/chrome_events.h"
#include "snapshot/keys.h"
#include "snapshot/profile_model.h"
#include "snapshot/read_limits.h"
#include "snapshot/snapshot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ADDRESS_MAX ((int64_t)1 << 57) /* beyond any processor's addresses */

struct gathering {
    struct tn_profile profile;
    struct tn_json_tree event; /* the current one */
    struct tarn_error *error;
    struct tarn_profile_info info;
};

/* ---- one event ---- */

static int64_t to_ns(double microseconds)
{
    const double ns = microseconds * 1000;

    return ns >= -9e18 && ns <= 9e18 ? llround(ns) : 0;
}

static int64_t integer_of(const struct tn_json_value *object, const char *key, int64_t otherwise)
{
    const struct tn_json_value *value = tn_json_get(object, key);

    return tn_json_is(value, TN_JSON_INTEGER) ? tn_json_integer(value) : otherwise;
}

static enum tarn_status no_memory(const struct gathering *gathering)
{
    const struct tn_budget *budget = &gathering->profile.model->budget;
    const enum tarn_status status = tn_budget_status(budget);

    return tn_fail(gathering->error, status,
                   status == TARN_ERR_LIMIT
                       ? "this profile, or its stacks written out, needs more memory than the "
                         "limit of %llu bytes allows"
                       : "no host memory to read a profile (used: %llu bytes)",
                   (unsigned long long)(status == TARN_ERR_LIMIT ? budget->limit : budget->used));
}

/* "train.py(12): step" is a function of a file; any other name is an operator. */
static enum tarn_status frame_of(struct gathering *gathering, const char *name, uint32_t *frame_out)
{
    struct tn_model *model = gathering->profile.model;
    const char *mark = strstr(name, "): ");
    const char *open = mark;
    struct tn_frame frame = {.line = 0};
    const char *file = "none";
    size_t file_size = 4;

    while (open && open > name && open[-1] >= '0' && open[-1] <= '9') {
        open--;
    }
    if (open && open > name && open < mark && mark - open < 10 && open[-1] == '(') {
        file = name;
        file_size = (size_t)(open - 1 - name);
        frame.line = strtol(open, NULL, 10);
        name = mark + 3;
    }
    enum tarn_status status = tn_model_add_string(model, name, strlen(name), &frame.name);

    if (status == TARN_OK) {
        status = tn_model_add_string(model, file, file_size, &frame.filename);
    }
    if (status == TARN_OK) {
        status = tn_model_add_frame(model, &frame, frame_out);
    }
    return status ? no_memory(gathering) : TARN_OK;
}

static enum tarn_status slice_add(struct gathering *gathering, const struct tn_json_value *event,
                                  const char *name)
{
    const double begin = tn_json_number(tn_json_get(event, "ts"));
    const double length = tn_json_number(tn_json_get(event, "dur"));
    struct tn_profile_slice *slice =
        tn_profile_push(&gathering->profile, &gathering->profile.slices);

    if (!slice) {
        return no_memory(gathering);
    }
    slice->thread = integer_of(event, "tid", 0);
    slice->begin_ns = to_ns(begin);
    slice->end_ns = to_ns(begin + (length > 0 ? length : 0));
    gathering->info.slices++;
    return frame_of(gathering, name, &slice->frame);
}

static enum tarn_status memory_add(struct gathering *gathering, const struct tn_json_value *event)
{
    const struct tn_json_value *args = tn_json_get(event, "args");
    const int64_t bytes = integer_of(args, "Bytes", 0);
    const int64_t address = integer_of(args, "Addr", 0);
    const int64_t type = integer_of(args, "Device Type", -1);
    const int64_t id = integer_of(args, "Device Id", -1);
    const bool is_cpu = type == 0;
    uint64_t size = (uint64_t)(bytes < 0 ? -(bytes + 1) : bytes); /* avoids negating -2^63 */
    struct tn_profile_event *made;

    if (bytes == 0 || !tn_model_take_size(gathering->profile.model, &size) || address <= 0 ||
        address >= ADDRESS_MAX || type < 0 ||
        (!is_cpu && (id < 0 || id >= TN_PROFILE_DEVICES_MAX))) {
        gathering->info.unknown++;
        return TARN_OK;
    }
    made = tn_profile_push(&gathering->profile, &gathering->profile.events);
    if (!made) {
        return no_memory(gathering);
    }
    *made = (struct tn_profile_event){
        .order = gathering->info.events++,
        .time_ns = to_ns(tn_json_number(tn_json_get(event, "ts"))),
        .thread = integer_of(event, "tid", 0),
        .address = (uint64_t)address,
        .bytes = bytes,
        .total = integer_of(args, "Total Allocated", -1),
        .device = is_cpu ? TN_PROFILE_CPU : (int32_t)id,
        .stack = TN_STACK_EMPTY,
    };
    return TARN_OK;
}

static bool is_slice(const struct tn_json_value *event)
{
    const char *kind = tn_json_text(tn_json_get(event, "cat"));
    const char *phase = tn_json_text(tn_json_get(event, "ph"));

    return kind && phase && strcmp(phase, "X") == 0 &&
           (strcmp(kind, "python_function") == 0 || strcmp(kind, "cpu_op") == 0 ||
            strcmp(kind, "user_annotation") == 0);
}

/* Skips the parsing of most events, which are kernels and arrows. */
static bool is_interesting(const char *text, size_t size)
{
    static const char *const words[] = {"[memory]", "python_function", "cpu_op", "user_annotation"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t length = strlen(words[i]);

        for (const char *at = text; (at = memchr(at, words[i][0], size - (size_t)(at - text)));
             at++) {
            if (size - (size_t)(at - text) >= length && memcmp(at, words[i], length) == 0) {
                return true;
            }
        }
    }
    return false;
}

static enum tarn_status event_parse(struct gathering *gathering, const char *text, size_t size,
                                    uint64_t offset)
{
    struct tarn_error inner;
    enum tarn_status status = tn_json_parse(&gathering->event, text, size, true, &inner);

    if (tn_never(status == TARN_ERR_TRUNCATED)) { /* the brackets match: the input is complete */
        status = TARN_ERR_FORMAT;
    }
    return status == TARN_OK ? TARN_OK
                             : tn_fail_at(gathering->error, status, (int64_t)offset,
                                          "%s event at byte %llu: %.300s",
                                          status == TARN_ERR_FORMAT ? "a malformed" : "the",
                                          (unsigned long long)offset, inner.text);
}

static enum tarn_status event_gather(void *context, const char *text, size_t size, uint64_t offset)
{
    struct gathering *gathering = context;
    const struct tn_json_value *event = &gathering->event.root;

    if (!is_interesting(text, size)) {
        return TARN_OK;
    }
    const enum tarn_status status = event_parse(gathering, text, size, offset);
    const char *name = tn_json_text(tn_json_get(event, "name"));

    if (status || !name) {
        return status;
    }
    if (strcmp(name, "[memory]") == 0) {
        return memory_add(gathering, event);
    }
    return is_slice(event) ? slice_add(gathering, event, name) : TARN_OK;
}

/* Times of newer profiles are relative to a base time. */
static void member_gather(void *context, const char *key, size_t key_size, const char *text,
                          size_t size)
{
    struct gathering *gathering = context;
    static const char wanted[] = "baseTimeNanoseconds";
    char digits[24] = "";

    if (key_size == sizeof wanted - 1 && memcmp(key, wanted, key_size) == 0 &&
        size < sizeof digits) {
        memcpy(digits, text, size);
        gathering->profile.base_ns = strtoll(digits, NULL, 10);
    }
}

/* ---- all of them ---- */

static uint64_t before_bytes(const struct tn_profile *profile)
{
    const struct tn_profile_event *events = profile->events.items;
    bool seen[TN_PROFILE_DEVICES_MAX] = {false};
    uint64_t bytes = 0;

    for (size_t i = 0; i < profile->events.count; i++) {
        const int32_t device = events[i].device;

        if (device != TN_PROFILE_CPU && !seen[device]) {
            seen[device] = true;
            if (events[i].total > events[i].bytes && events[i].total >= 0) {
                const uint64_t before = (uint64_t)events[i].total - (uint64_t)events[i].bytes;

                bytes = before < UINT64_MAX - bytes ? bytes + before : UINT64_MAX;
            }
        }
    }
    return bytes;
}

static enum tarn_status profile_read(struct tn_input *input, struct tarn_snapshot *snapshot,
                                     uint32_t max_frames, struct tarn_profile_info *info,
                                     struct tarn_error *error)
{
    struct gathering gathering = {.error = error};
    const struct tn_chrome_visitor visitor = {event_gather, member_gather, &gathering};

    tn_profile_init(&gathering.profile, tn_snapshot_model_mutable(snapshot));
    tn_json_tree_init(&gathering.event);
    enum tarn_status status = tn_keys_enter(gathering.profile.model);

    if (status) {
        (void)no_memory(&gathering);
    } else {
        status = tn_chrome_read(input, &visitor, error);
    }
    if (status == TARN_OK && gathering.info.events == 0) {
        status = tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                         "the profile has no events of memory; record it with "
                         "torch.profiler.profile(profile_memory=True, with_stack=True)");
    }
    if (status == TARN_OK && !tn_profile_build(&gathering.profile, max_frames)) {
        status = no_memory(&gathering);
    }
    if (info) {
        const uint32_t size = info->struct_size;

        *info = gathering.info;
        info->struct_size = size;
        info->before_bytes = before_bytes(&gathering.profile);
    }
    tn_json_tree_fini(&gathering.event);
    tn_profile_fini(&gathering.profile);
    return status;
}

/* Closes the input. */
static enum tarn_status input_load(struct tn_input *input, const struct tarn_read_limits *limits,
                                   struct tarn_snapshot **snapshot_out,
                                   struct tarn_profile_info *info, struct tarn_error *error)
{
    struct tarn_snapshot *snapshot;
    enum tarn_status status = tn_snapshot_create(tn_read_limits_memory(limits, input), &snapshot);

    if (status) {
        status = tn_fail(error, status, "no memory to read a profile");
        goto out;
    }
    struct tn_model *model = tn_snapshot_model_mutable(snapshot);

    tn_read_limits_follow(limits, input, model);
    status = profile_read(input, snapshot, limits->max_frames, info, error);
    tn_read_limits_finish(&model->budget);
    if (status) {
        tarn_snapshot_destroy(snapshot);
    } else {
        *snapshot_out = snapshot;
    }
out:
    tn_input_close(input);
    return status;
}

static enum tarn_status place_load(const struct tn_read_source *source,
                                   const struct tarn_read_limits *wanted,
                                   struct tarn_snapshot **snapshot_out,
                                   struct tarn_profile_info *info, struct tarn_error *error)
{
    struct tarn_read_limits limits;
    struct tn_input input;

    *snapshot_out = NULL;
    const enum tarn_status status = tn_read_limits_open(wanted, source, &limits, &input, error);

    return status ? status : input_load(&input, &limits, snapshot_out, info, error);
}

enum tarn_status tarn_profile_load(const char *path, const struct tarn_read_limits *wanted,
                                   struct tarn_snapshot **snapshot_out,
                                   struct tarn_profile_info *info, struct tarn_error *error)
{
    return place_load(&(struct tn_read_source){.path = path}, wanted, snapshot_out, info, error);
}

enum tarn_status tarn_profile_load_memory(const void *bytes, size_t size,
                                          const struct tarn_read_limits *wanted,
                                          struct tarn_snapshot **snapshot_out,
                                          struct tarn_profile_info *info, struct tarn_error *error)
{
    return place_load(&(struct tn_read_source){.bytes = bytes, .size = size}, wanted, snapshot_out,
                      info, error);
}
