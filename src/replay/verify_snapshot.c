/* SPDX-License-Identifier: MIT */
/*
 * Converts a decision log into a snapshot: makes its calls with a history attached and captures the
 * allocator's state. The result has everything that a snapshot of the recorded process would have,
 * including pools, except stacks and times.
 */
#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/input_line.h"
#include "replay/verify_run.h"
#include "snapshot/snapshot.h"
#include "tarn/capture.h"
#include "tarn/history.h"

#include <string.h>

enum {
    HEADER_MAX_BYTES = 1 << 20,
    ENTRIES_FIRST = 1 << 10, /* initial capacity of the history */
#ifdef TN_LIMITS_LOW         /* tests/torture */
    ENTRIES_MAX = 2 << 10
#else
    ENTRIES_MAX = 64 << 20 /* beyond, older events are dropped */
#endif
};

bool tarn_verify_is_log(const char *path)
{
    static const char key[] = "\"brief\"";
    struct tn_input input;
    const char *line = NULL;
    size_t length = 0;
    bool found = false;

    if (tn_input_open(&input, path, &(struct tn_unpack_limits){UINT64_MAX, 0}, NULL)) {
        return false;
    }
    /* Only a regular file can be opened again. */
    if (input.source.size >= 0 &&
        tn_input_line(&input, HEADER_MAX_BYTES, &line, &length, NULL) == TARN_OK && length > 0 &&
        line[0] == '{') {
        for (size_t i = 0; !found && i + sizeof key - 1 <= length; i++) {
            found = memcmp(line + i, key, sizeof key - 1) == 0;
        }
    }
    tn_input_close(&input);
    return found;
}

/* The times of this run are meaningless. */
static void forget_times(struct tn_model *model)
{
    for (uint64_t i = 0; i < model->entries.count; i++) {
        struct tn_trace_entry *entry = tn_chunked_vec_at(&model->entries, i);

        entry->time_us = TN_TIME_NONE;
    }
}

/* Reserves room for the events of the current call. Those of the log suffice: if a call sends
 * others, it differs, and there is no snapshot. */
static enum tarn_status history_make_room(struct tarn_history *history,
                                          const struct tn_verify_run *run, struct tarn_error *error)
{
    struct tarn_history_usage usage = {.struct_size = sizeof usage};

    tarn_history_get_usage(history, &usage);
    const uint64_t wanted = usage.entries + tn_json_length(run->call.events);
    uint64_t room = usage.max_entries;

    while (room < wanted && room < ENTRIES_MAX) {
        room *= 2;
    }
    return room == usage.max_entries ? TARN_OK : tarn_history_set_max_entries(history, room, error);
}

static enum tarn_status run_all(struct tn_verify_run *run, struct tarn_history *history,
                                struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    while (st == TARN_OK) {
        st = tn_decision_log_next(&run->log, &run->call, error);
        st = st ? st : history_make_room(history, run, error);
        st = st ? st : tn_verify_call(run, error);
    }
    return st == TARN_ERR_NOT_FOUND ? TARN_OK : st;
}

static enum tarn_status run_and_capture(struct tn_verify_run *run, struct tarn_history *history,
                                        struct tarn_snapshot **snapshot_out,
                                        struct tarn_error *error)
{
    const struct tarn_capture_source source = {.allocator = run->allocator, .history = history};
    struct tarn_sink sink;

    tarn_history_get_sink(history, TARN_CONTEXT_NEVER, &sink);
    const enum tarn_status added = tarn_allocator_add_sink(run->allocator, &sink, NULL);

    tn_assert(added == TARN_OK); /* the second of several, of an allocator that takes sinks */
    (void)added;
    enum tarn_status st = run_all(run, history, error);

    if (st == TARN_OK && run->result->differing > 0) {
        st = tn_fail(error, TARN_ERR_FORMAT,
                     "%llu of %llu calls of the decision log differ here, so the resulting state "
                     "is unknown: tarn verify shows the first difference",
                     (unsigned long long)run->result->differing,
                     (unsigned long long)run->result->calls);
    }
    st = st ? st : tarn_snapshot_capture(&source, 1, NULL, snapshot_out, error);
    if (st == TARN_OK) {
        forget_times(tn_snapshot_model_mutable(*snapshot_out));
    }
    return st;
}

enum tarn_status tarn_verify_snapshot(const char *path, struct tarn_snapshot **snapshot_out,
                                      struct tarn_error *error)
{
    const struct tarn_history_options options = {
        .struct_size = sizeof options,
        .stack_source = TARN_STACK_NONE,
        .max_entries = ENTRIES_FIRST,
    };
    struct tarn_verify_result result = {.struct_size = sizeof result};
    struct tarn_history *history = NULL;
    struct tn_verify_run *run = tn_host_alloc(sizeof *run);

    if (!run) {
        return tn_fail_memory(error);
    }
    enum tarn_status st = tarn_history_create(&options, &history, error);

    st = st ? st : tn_verify_open(run, path, NULL, error);
    if (st == TARN_OK) {
        run->result = &result;
        st = run_and_capture(run, history, snapshot_out, error);
        tn_verify_close(run);
    }
    tarn_history_destroy(history);
    tn_host_free(run, sizeof *run);
    return st;
}
