/* SPDX-License-Identifier: MIT */
/* Implements tarn/verify.h: makes each recorded call and compares the result. */
#include "tarn/verify.h"

#include "base/assertion.h"
#include "base/host_mem.h"
#include "base/utf8.h"
#include "replay/verify_run.h"

#include <stdio.h>
#include <string.h>

static bool pool_filter(void *context, tarn_stream stream)
{
    return tn_verify_pool_takes(context, stream);
}

/* A lack of host memory here is not a decision of the allocator. */
static void note_host_failure(struct tn_verify_run *run, enum tarn_status st)
{
    run->no_host_memory = run->no_host_memory || st == TARN_ERR_HOST_MEMORY;
}

/* The recorded call succeeded. */
static void expect_ok(struct tn_verify_run *run, enum tarn_status st,
                      const struct tarn_error *failure)
{
    note_host_failure(run, st);
    if (st) {
        tn_verify_differs(run, "  expected success, got %s: %s", tarn_status_name(st),
                          failure->text);
    }
}

static void expect_failure(struct tn_verify_run *run, enum tarn_status st)
{
    note_host_failure(run, st);
    if (st == TARN_OK) {
        tn_verify_differs(run, "  expected a failure, got success");
    }
}

/* ---- calls ---- */

static enum tarn_status run_malloc(struct tn_verify_run *run, struct tarn_error *failure,
                                   struct tarn_error *error)
{
    const struct tn_decision *call = &run->call;
    tarn_ptr ptr = 0;
    const enum tarn_status st =
        tarn_allocator_alloc(run->allocator, call->size, call->stream, &ptr, failure);

    if (call->oom) {
        note_host_failure(run, st);
        if (st != TARN_ERR_OUT_OF_MEMORY) {
            tn_verify_differs(run, "  expected out of memory, got %s", tarn_status_name(st));
        } else {
            tn_verify_compare_message(run, failure->text);
        }
        return TARN_OK;
    }
    expect_ok(run, st, failure);
    if (ptr != call->ptr) {
        tn_verify_differs(run, "  pointer: expected 0x%llx, got 0x%llx",
                          (unsigned long long)call->ptr, (unsigned long long)ptr);
    }
    const enum tarn_status set = tn_verify_set_ptr(run, call->id, ptr, error);

    return set ? set : tn_verify_contents_write(run, error);
}

static enum tarn_status run_free(struct tn_verify_run *run, struct tarn_error *failure,
                                 struct tarn_error *error)
{
    const tarn_ptr ptr = tn_verify_ptr(run, run->call.id);

    if (ptr == 0) {
        tn_verify_differs(run, "  id %llu is not allocated", (unsigned long long)run->call.id);
        return TARN_OK;
    }
    const enum tarn_status st = tn_verify_contents_read(run, error);

    if (st) {
        return st;
    }
    expect_ok(run, tarn_allocator_free(run->allocator, ptr, failure), failure);
    return tn_verify_set_ptr(run, run->call.id, 0, error);
}

static enum tarn_status run_begin_pool(struct tn_verify_run *run, struct tarn_error *failure,
                                       struct tarn_error *error)
{
    struct tn_verify_pool *pool = tn_verify_pool(run, run->call.pool);

    if (!pool) {
        return tn_fail(error, TARN_ERR_LIMIT, "the decision log uses more than %d pools",
                       TN_VERIFY_POOLS_MAX);
    }
    const struct tn_verify_pool before = *pool;

    pool->stream = run->call.stream;
    pool->captured = run->call.captured;
    const enum tarn_status st =
        tarn_allocator_begin_pool(run->allocator, run->call.pool, pool_filter, pool, failure);

    if (run->call.op == TN_DECISION_BEGIN_POOL) {
        expect_ok(run, st, failure);
    } else {
        *pool = before;
        expect_failure(run, st);
    }
    return TARN_OK;
}

static enum tarn_status run_get_checkpoint(struct tn_verify_run *run, struct tarn_error *failure,
                                           struct tarn_error *error)
{
    struct tn_verify_pool *pool = tn_verify_pool(run, run->call.pool);
    struct tarn_checkpoint *checkpoint = NULL;

    if (!pool) {
        return tn_fail(error, TARN_ERR_LIMIT, "the decision log uses more than %d pools",
                       TN_VERIFY_POOLS_MAX);
    }
    const enum tarn_status st =
        tarn_allocator_get_checkpoint(run->allocator, run->call.pool, &checkpoint, failure);

    if (run->call.op == TN_DECISION_GET_CHECKPOINT_FAILED) {
        expect_failure(run, st);
        tarn_checkpoint_destroy(checkpoint);
        return TARN_OK;
    }
    expect_ok(run, st, failure);
    if (st == TARN_OK) {
        tarn_checkpoint_destroy(pool->checkpoint);
        pool->checkpoint = checkpoint;
    }
    return TARN_OK;
}

static bool list_has(const struct tn_json_value *list, uint64_t number)
{
    for (size_t i = 0; i < tn_json_length(list); i++) {
        if ((uint64_t)tn_json_integer(tn_json_at(list, i)) == number) {
            return true;
        }
    }
    return false;
}

/* Restored pointers have new ids; freed ones no longer have an id. */
static enum tarn_status adopt_delta(struct tn_verify_run *run,
                                    const struct tarn_checkpoint_delta *delta,
                                    struct tarn_error *error)
{
    const size_t created = tn_json_length(run->call.created);
    struct tn_verify_block *blocks = run->ids.items;
    enum tarn_status st = TARN_OK;

    if (delta->freed_count != tn_json_length(run->call.freed) || delta->created_count != created) {
        tn_verify_differs(run, "  expected %zu freed and %zu created, got %zu and %zu",
                          tn_json_length(run->call.freed), created, delta->freed_count,
                          delta->created_count);
    }
    for (size_t i = 0; i < delta->freed_count; i++) {
        if (!list_has(run->call.freed, delta->freed[i])) {
            tn_verify_differs(run, "  0x%llx was not to be freed",
                              (unsigned long long)delta->freed[i]);
        }
        for (size_t k = 0; k < run->ids.count; k++) {
            blocks[k].ptr = blocks[k].ptr == delta->freed[i] ? 0 : blocks[k].ptr;
        }
    }
    for (size_t i = 0; st == TARN_OK && i < created; i++) {
        const struct tn_json_value *pair = tn_json_at(run->call.created, i);
        const uint64_t ptr = (uint64_t)tn_json_integer(tn_json_at(pair, 0));
        bool found = false;

        for (size_t k = 0; k < delta->created_count; k++) {
            found = found || delta->created[k] == ptr;
        }
        if (!found) {
            tn_verify_differs(run, "  0x%llx was to be created", (unsigned long long)ptr);
            continue;
        }
        st = tn_verify_set_ptr(run, (uint64_t)tn_json_integer(tn_json_at(pair, 1)), ptr, error);
    }
    return st;
}

static enum tarn_status run_set_checkpoint(struct tn_verify_run *run, struct tarn_error *failure,
                                           struct tarn_error *error)
{
    const struct tn_verify_pool *pool = tn_verify_pool(run, run->call.pool);
    const bool fails = run->call.op == TN_DECISION_SET_CHECKPOINT_FAILED;
    const size_t bytes = (tn_json_length(run->call.events) + 1) * sizeof(uint64_t);
    struct tarn_checkpoint_delta delta = {0};
    enum tarn_status st = TARN_OK;

    if (!pool || !pool->checkpoint) {
        if (!fails) {
            tn_verify_differs(run, "  there is no checkpoint of this pool");
        }
        return TARN_OK;
    }
    uint64_t *buffer = tn_host_alloc(bytes);

    if (!buffer) {
        return tn_fail_memory(error);
    }
    const struct tn_checkpoint_order order = tn_verify_checkpoint_order(run, buffer);
    const enum tarn_status got = tn_checkpoint_set(tn_allocator_engine(run->allocator),
                                                   pool->checkpoint, &order, &delta, failure);

    if (fails) {
        expect_failure(run, got);
    } else {
        expect_ok(run, got, failure);
        tn_verify_contents_forget(run);
        st = adopt_delta(run, &delta, error);
    }
    tarn_checkpoint_delta_fini(&delta);
    tn_host_free(buffer, bytes);
    return st;
}

static void run_set_config(struct tn_verify_run *run, struct tarn_error *failure)
{
    struct tarn_config config;

    tarn_allocator_get_config(run->allocator, &config);
    enum tarn_status st = tarn_config_update(run->call.conf, &config, failure);

    st = st ? st : tarn_allocator_set_config(run->allocator, &config, failure);
    expect_ok(run, st, failure);
}

/* Makes the call. Fails only if the log itself is invalid. */
static enum tarn_status run_call(struct tn_verify_run *run, struct tarn_error *error)
{
    const struct tn_decision *call = &run->call;
    struct tarn_allocator *allocator = run->allocator;
    struct tarn_error failure = {.text = ""};

    switch (call->op) {
    case TN_DECISION_MALLOC:
        return run_malloc(run, &failure, error);
    case TN_DECISION_FREE:
        return run_free(run, &failure, error);
    case TN_DECISION_BEGIN_POOL:
    case TN_DECISION_BEGIN_POOL_FAILED:
        return run_begin_pool(run, &failure, error);
    case TN_DECISION_GET_CHECKPOINT:
    case TN_DECISION_GET_CHECKPOINT_FAILED:
        return run_get_checkpoint(run, &failure, error);
    case TN_DECISION_SET_CHECKPOINT:
    case TN_DECISION_SET_CHECKPOINT_FAILED:
        return run_set_checkpoint(run, &failure, error);
    case TN_DECISION_RECORD_STREAM:
        expect_ok(run,
                  tarn_allocator_record_stream(allocator, tn_verify_ptr(run, call->id),
                                               call->stream, &failure),
                  &failure);
        break;
    case TN_DECISION_EMPTY_CACHE:
        expect_ok(run, tarn_allocator_empty_cache(allocator, &failure), &failure);
        break;
    case TN_DECISION_SET_FRACTION:
        expect_ok(run, tarn_allocator_set_memory_fraction(allocator, call->fraction, &failure),
                  &failure);
        break;
    case TN_DECISION_SET_CONFIG:
        run_set_config(run, &failure);
        break;
    case TN_DECISION_END_POOL:
        expect_ok(run, tarn_allocator_end_pool(allocator, call->pool, &failure), &failure);
        break;
    case TN_DECISION_END_POOL_FAILED:
        expect_failure(run, tarn_allocator_end_pool(allocator, call->pool, &failure));
        break;
    case TN_DECISION_RELEASE_POOL:
        expect_ok(run, tarn_allocator_release_pool(allocator, call->pool, &failure), &failure);
        break;
    case TN_DECISION_SET_POOL_USE_ON_OOM:
        expect_ok(run, tarn_allocator_set_pool_use_on_oom(allocator, call->pool, call->value),
                  &failure);
        break;
    case TN_DECISION_SET_POOL_NO_SPLIT:
        expect_ok(run, tarn_allocator_set_pool_no_split(allocator, call->pool, call->value),
                  &failure);
        break;
    case TN_DECISION_RESET_PEAK_STATS:
        tarn_allocator_reset_peak_stats(allocator);
        break;
    case TN_DECISION_RESET_ACCUMULATED_STATS:
        tarn_allocator_reset_accumulated_stats(allocator);
        break;
    case TN_DECISION_STATS:
        tn_verify_compare_stats(run);
        break;
    case TN_DECISION_SNAPSHOT:
        tn_verify_compare_snapshot(run);
        tn_allocator_mark_snapshot(allocator);
        break;
    case TN_DECISION_BLOCK_STREAM:
        return tn_verify_block_stream(run, true, error);
    case TN_DECISION_UNBLOCK_STREAM:
        return tn_verify_block_stream(run, false, error);
    case TN_DECISION_CAPTURE_BEGIN:
    case TN_DECISION_CAPTURE_END:
    case TN_DECISION_WORK:
    case TN_DECISION_JOIN:
        return tn_verify_capture(run, error);
    case TN_DECISION_SYNCHRONIZE:
        break;
    case TN_DECISION_COUNT:
        tn_no_case();
        break;
    }
    return TARN_OK;
}

/* ---- the log ---- */

static void note_differences(struct tn_verify_run *run)
{
    if (!run->differs) {
        return;
    }
    if (run->result->differing == 0) {
        (void)snprintf(run->result->first, sizeof run->result->first,
                       "line %llu, %s (size %llu, stream 0x%llx, id %llu):\n%.*s",
                       (unsigned long long)run->call.line, tn_decision_name(run->call.op),
                       (unsigned long long)run->call.size, (unsigned long long)run->call.stream,
                       (unsigned long long)run->call.id, tn_utf8_cut(run->text, 7000), run->text);
    }
    run->result->differing++;
}

enum tarn_status tn_verify_call(struct tn_verify_run *run, struct tarn_error *error)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    run->events.count = 0;
    run->text_used = 0;
    run->text[0] = '\0';
    run->differs = false;
    tn_verify_prepare(run);
    const enum tarn_status st = run_call(run, error);

    if (st) {
        return st;
    }
    if (run->no_host_memory) {
        return tn_fail_memory(error);
    }
    tn_verify_compare_events(run);
    tn_verify_compare_brief(run);
    const uint64_t broken = tarn_allocator_check(run->allocator, &findings);

    if (tn_never(broken > 0)) {
        tn_verify_differs(run, "  an invariant is broken: %s", findings.text[0]);
    }
    run->result->calls++;
    note_differences(run);
    return TARN_OK;
}

/* Makes and compares every call of the log. */
static enum tarn_status verify_calls(struct tn_verify_run *run, struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    while (st == TARN_OK) {
        st = tn_decision_log_next(&run->log, &run->call, error);
        if (st == TARN_OK) {
            st = tn_verify_call(run, error);
        }
    }
    return st == TARN_ERR_NOT_FOUND ? TARN_OK : st;
}

enum tarn_status tarn_verify_log(const char *path, const struct tarn_verify_options *options,
                                 struct tarn_verify_result *result_out, struct tarn_error *error)
{
    struct tn_verify_run *run;
    enum tarn_status st;

    if (!path || !result_out || result_out->struct_size < sizeof *result_out) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "a path and a result are required");
    }
    if (options && options->struct_size < sizeof *options) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "struct tarn_verify_options: struct_size is not set");
    }
    result_out->calls = 0;
    result_out->differing = 0;
    result_out->first[0] = '\0';
    result_out->blocks_read = 0;
    run = tn_host_alloc(sizeof *run);
    if (!run) {
        return tn_fail_memory(error);
    }
    st = tn_verify_open(run, path, options, error);
    if (st) {
        tn_host_free(run, sizeof *run);
        return st;
    }
    run->result = result_out;
    st = verify_calls(run, error);
    tn_verify_close(run);
    tn_host_free(run, sizeof *run);
    return st;
}
