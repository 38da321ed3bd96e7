/* SPDX-License-Identifier: MIT */
/*
 * Loads a snapshot: opens the input, detects the format from its first bytes, runs the reader for
 * it and keeps the model.
 */
#include "snapshot/snapshot.h"

#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/input.h"
#include "snapshot/decode.h"
#include "snapshot/json_read.h"
#include "snapshot/pickle.h"
#include "snapshot/read_limits.h"
#include "snapshot/rmm_read.h"
#include "snapshot/warning.h"

#include <string.h>

struct tarn_snapshot {
    struct tn_model model;
};

enum {
#ifdef TN_LIMITS_LOW /* tests/torture */
    STACK_VALUES_MAX = 4 << 10,
#else
    STACK_VALUES_MAX = 16 << 20,
#endif
    FORM_BYTES = 7, /* that identify the format */
    PROTO = 0x80
};

const struct tn_model *tn_snapshot_model(const struct tarn_snapshot *snapshot)
{
    return &snapshot->model;
}

struct tn_model *tn_snapshot_model_mutable(struct tarn_snapshot *snapshot)
{
    return &snapshot->model;
}

enum tarn_status tn_snapshot_create(uint64_t memory_limit, struct tarn_snapshot **snapshot_out)
{
    struct tarn_snapshot *snapshot = tn_host_alloc(sizeof *snapshot);

    *snapshot_out = NULL;
    if (!snapshot) {
        return TARN_ERR_HOST_MEMORY;
    }
    const enum tarn_status status = tn_model_init(&snapshot->model, memory_limit);
    if (status != TARN_OK) {
        tn_host_free(snapshot, sizeof *snapshot);
        return status;
    }
    *snapshot_out = snapshot;
    return TARN_OK;
}

void tarn_snapshot_destroy(struct tarn_snapshot *snapshot)
{
    if (snapshot) {
        tn_model_fini(&snapshot->model);
        tn_host_free(snapshot, sizeof *snapshot);
    }
}

static bool is_one_of(uint8_t byte, const char *bytes)
{
    return byte != '\0' && strchr(bytes, byte); /* which finds the NUL at the end, too */
}

/* Describes a file that is no pickle of protocol 2 or later. */
static const char *describe_form(const uint8_t *bytes, size_t size)
{
    tn_assert(size > 1); /* shorter files are not described */
    if (bytes[0] == 'P' && bytes[1] == 'K') {
        return "it is a zip archive, as torch.save writes it. A snapshot is made with "
               "torch.cuda.memory._dump_snapshot";
    }
    if (bytes[0] == '<') {
        return "it looks like HTML. Give the pickle from which the page was made";
    }
    if (is_one_of(bytes[0], "(lpdIS")) {
        return "it looks like a pickle of protocol 0 or 1, which PyTorch does not write. Save it "
               "again with protocol 2 or later";
    }
    return "it does not begin like a pickle. A snapshot is made with "
           "torch.cuda.memory._dump_snapshot";
}

/* Of a pickle of protocol 1 or 0, ( or ] would be the first byte. */
static bool input_is_json(const struct tn_input *input)
{
    return is_one_of(input->at[0], "{[ \t\r\n");
}

/* The first bytes decide which reader to use. Files that begin with an import or a call are left to
 * the pickle reader, too, which names it in its error. */
static enum tarn_status input_check_form(struct tn_input *input, struct tarn_error *error)
{
    struct tarn_error failure; /* a short file is not an error here */
    const enum tarn_status status = tn_input_need(input, FORM_BYTES, &failure);
    const size_t size = (size_t)(input->end - input->at);

    if (status != TARN_OK && (status != TARN_ERR_TRUNCATED || size == 1)) {
        if (error) {
            *error = failure;
        }
        return status;
    }
    if (size == 0) {
        return tn_fail_at(error, TARN_ERR_TRUNCATED, 0, "%s is empty", input->source.name);
    }
    if (input->at[0] == PROTO || input->at[0] == 'c' || input->at[0] == 'i' ||
        input_is_json(input) || tn_rmm_begins(input->at, size)) {
        return TARN_OK;
    }
    return tn_fail_at(error, TARN_ERR_FORMAT, 0, "%s is not a snapshot: %s", input->source.name,
                      describe_form(input->at, size));
}

/* NULs may pad the end; anything else gives a warning. */
static void input_check_rest(struct tn_input *input, struct tn_model *model)
{
    while (tn_input_need(input, 1, NULL) == TARN_OK) {
        for (; input->at < input->end; input->at++) {
            if (*input->at != 0) {
                tn_warning_add(model, TN_WARNING_TRAILING_BYTES, TN_STRING_NONE,
                               tn_input_offset(input));
                return;
            }
        }
    }
}

/* Keeps the data of a truncated input; *keep_out: whether there is any. */
static void snapshot_salvage(struct tarn_snapshot *snapshot, struct tn_pickle *pickle,
                             struct tn_decoder *decoder, bool *keep_out)
{
    struct tn_value top;

    snapshot->model.is_partial = true;
    decoder->error = NULL;
    *keep_out = tn_pickle_salvage(pickle, &top) && tn_decode_finish(decoder, top) == TARN_OK;
    if (*keep_out) {
        tn_warning_add(&snapshot->model, TN_WARNING_ENDS_EARLY, TN_STRING_NONE,
                       tn_input_offset(pickle->input));
    }
}

static enum tarn_status read_json(struct tn_input *input, struct tn_decoder *decoder,
                                  const struct tarn_read_limits *limits, struct tarn_error *error)
{
    const struct tn_json_limits json_limits = {.max_depth = limits->max_depth,
                                               .max_stack = STACK_VALUES_MAX,
                                               .max_string = limits->max_string};
    struct tn_value top;
    const enum tarn_status status = tn_json_read(input, decoder, &json_limits, error, &top);

    return status ? status : tn_decode_finish(decoder, top);
}

/* Keeps the data of a truncated pickle; *keep_out: whether there is any. */
static enum tarn_status read_pickle(struct tarn_snapshot *snapshot, struct tn_input *input,
                                    struct tn_decoder *decoder,
                                    const struct tarn_read_limits *limits, struct tarn_error *error,
                                    bool *keep_out)
{
    const struct tn_pickle_limits pickle_limits = {.max_depth = limits->max_depth,
                                                   .max_stack = STACK_VALUES_MAX,
                                                   .max_string = limits->max_string,
                                                   .strict = limits->strict};
    struct tn_pickle pickle;
    struct tn_value top;
    enum tarn_status status = tn_pickle_init(&pickle, input, decoder, &pickle_limits, error);

    if (status == TARN_OK) {
        status = tn_pickle_read(&pickle, &top);
        if (status == TARN_OK) {
            status = tn_decode_finish(decoder, top);
        } else if (status == TARN_ERR_TRUNCATED) {
            snapshot_salvage(snapshot, &pickle, decoder, keep_out);
        }
    }
    tn_pickle_fini(&pickle);
    return status;
}

/* Keeps the rows of a truncated log. */
static enum tarn_status read_rmm(struct tarn_snapshot *snapshot, struct tn_input *input,
                                 struct tarn_error *error, bool *keep_out)
{
    const enum tarn_status status = tn_rmm_read(input, &snapshot->model, error);

    if (status == TARN_ERR_TRUNCATED) {
        snapshot->model.is_partial = true;
        tn_warning_add(&snapshot->model, TN_WARNING_ENDS_EARLY, TN_STRING_NONE,
                       tn_input_offset(input));
    }
    *keep_out = status == TARN_OK || status == TARN_ERR_TRUNCATED;
    return status;
}

/* *keep_out: whether to keep the snapshot after a failure. */
static enum tarn_status snapshot_read(struct tarn_snapshot *snapshot, struct tn_input *input,
                                      const struct tarn_read_limits *limits,
                                      struct tarn_error *error, bool *keep_out)
{
    const struct tn_decode_limits decode_limits = {.max_depth = limits->max_depth,
                                                   .max_frames = limits->max_frames};
    struct tn_decoder decoder;

    if (tn_rmm_begins(input->at, (size_t)(input->end - input->at))) {
        return read_rmm(snapshot, input, error, keep_out);
    }
    enum tarn_status status = tn_decoder_init(&decoder, &snapshot->model, &decode_limits, error);

    if (status != TARN_OK) {
        return status;
    }
    status = input_is_json(input) ? read_json(input, &decoder, limits, error)
                                  : read_pickle(snapshot, input, &decoder, limits, error, keep_out);
    if (status == TARN_OK) {
        *keep_out = true;
        input_check_rest(input, &snapshot->model);
    }
    tn_decoder_fini(&decoder);
    return status;
}

/* Closes the input. */
static enum tarn_status input_load(struct tn_input *input, const struct tarn_read_limits *limits,
                                   struct tarn_snapshot **snapshot_out, struct tarn_error *error)
{
    struct tarn_snapshot *snapshot = NULL;
    bool keep = false;

    input->source.progress = limits->progress;
    enum tarn_status status = input_check_form(input, error);

    if (status != TARN_OK) {
        goto out;
    }
    status = tn_snapshot_create(tn_read_limits_memory(limits, input), &snapshot);
    if (status != TARN_OK) {
        status = tn_fail(error, status, "no memory to read a snapshot");
        goto out;
    }
    tn_read_limits_follow(limits, input, &snapshot->model);
    status = snapshot_read(snapshot, input, limits, error, &keep);
    tn_read_limits_finish(&snapshot->model.budget);
    if (keep) {
        *snapshot_out = snapshot;
        snapshot = NULL;
    }
out:
    tarn_snapshot_destroy(snapshot);
    tn_input_close(input);
    return status;
}

static enum tarn_status place_load(const struct tn_read_source *source,
                                   const struct tarn_read_limits *wanted,
                                   struct tarn_snapshot **snapshot_out, struct tarn_error *error)
{
    struct tarn_read_limits limits;
    struct tn_input input;

    *snapshot_out = NULL;
    const enum tarn_status status = tn_read_limits_open(wanted, source, &limits, &input, error);

    return status == TARN_OK ? input_load(&input, &limits, snapshot_out, error) : status;
}

enum tarn_status tarn_snapshot_load(const char *path, const struct tarn_read_limits *wanted,
                                    struct tarn_snapshot **snapshot_out, struct tarn_error *error)
{
    return place_load(&(struct tn_read_source){.path = path}, wanted, snapshot_out, error);
}

enum tarn_status tarn_snapshot_load_memory(const void *bytes, size_t size,
                                           const struct tarn_read_limits *wanted,
                                           struct tarn_snapshot **snapshot_out,
                                           struct tarn_error *error)
{
    return place_load(&(struct tn_read_source){.bytes = bytes, .size = size}, wanted, snapshot_out,
                      error);
}

/* Queries. */

size_t tarn_snapshot_segment_count(const struct tarn_snapshot *snapshot)
{
    return snapshot->model.segment_count;
}

size_t tarn_snapshot_device_count(const struct tarn_snapshot *snapshot)
{
    const struct tn_model *model = &snapshot->model;
    size_t count = 0;

    for (size_t i = 0; i < model->trace_count; i++) {
        count = model->traces[i].count > 0 ? i + 1 : count;
    }
    for (size_t i = 0; i < model->segment_count; i++) {
        const int32_t device = model->segments[i].device;

        count = device >= 0 && (size_t)device >= count ? (size_t)device + 1 : count;
    }
    return count;
}

uint64_t tarn_snapshot_trace_length(const struct tarn_snapshot *snapshot, size_t device)
{
    return device < snapshot->model.trace_count ? snapshot->model.traces[device].count : 0;
}

uint64_t tarn_snapshot_entry_count(const struct tarn_snapshot *snapshot)
{
    uint64_t count = 0;

    for (size_t i = 0; i < snapshot->model.trace_count; i++) {
        count += snapshot->model.traces[i].count;
    }
    return count;
}

bool tarn_snapshot_has_traces(const struct tarn_snapshot *snapshot)
{
    return snapshot->model.has_traces;
}

bool tarn_snapshot_is_partial(const struct tarn_snapshot *snapshot)
{
    return snapshot->model.is_partial;
}

size_t tarn_snapshot_walk_warnings(const struct tarn_snapshot *snapshot,
                                   bool (*visit)(void *context,
                                                 const struct tarn_snapshot_warning *warning),
                                   void *context)
{
    const struct tn_model *model = &snapshot->model;

    for (size_t i = 0; visit && i < model->warning_count; i++) {
        const struct tarn_snapshot_warning warning = {
            model->warnings[i].text, model->warnings[i].count, model->warnings[i].offset};

        if (!visit(context, &warning)) {
            break;
        }
    }
    return model->warning_count;
}
