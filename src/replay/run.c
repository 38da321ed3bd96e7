/* SPDX-License-Identifier: MIT */
#include "replay/run.h"

#include "alloc/config/size_class.h"
#include "alloc/engine/native.h"
#include "base/assertion.h"
#include "base/clock.h"
#include "replay/restore.h"
#include "tarn/sim.h"

/* ---- addresses ---- */

static void count_map(void *context, const struct tarn_trace_event *event)
{
    struct tn_runner *runner = context;

    runner->maps_seen += event->action == TARN_ACTION_SEGMENT_MAP;
}

static tarn_ptr answer_address(void *context, bool reservation, uint64_t size)
{
    const struct tn_runner *runner = context;
    const struct tn_vec *addresses = &runner->program->map_addresses;
    uint64_t address = reservation ? runner->start_address : 0;

    (void)size;
    if (reservation && address == 0 && runner->maps_seen < addresses->count) {
        address = ((const uint64_t *)addresses->items)[runner->maps_seen];
    }
    return address % TN_SMALL_BUFFER == 0 ? address : 0; /* pages are of that size or larger */
}

static enum tarn_status runner_script(struct tn_runner *runner, struct tarn_error *error)
{
    const uint64_t *addresses = runner->program->segment_addresses.items;
    const struct tarn_sink sink = {
        .context = runner, .level = TARN_CONTEXT_NEVER, .receive = count_map};

    if (!runner->keeps_addresses) {
        return TARN_OK;
    }
    if (runner->program->map_addresses.count > 0 && runner->engine) {
        const enum tarn_status st = tarn_allocator_add_sink(runner->allocator, &sink, NULL);

        if (tn_never(st)) { /* it is new, and has room for some */
            return tn_fail(error, st, "the allocator takes no more sinks");
        }
    }
    for (size_t i = 0; i < runner->program->segment_addresses.count; i++) {
        const enum tarn_status st = tn_runner_script_segment(runner, addresses[i], error);

        if (st) {
            return st;
        }
    }
    return TARN_OK;
}

/* ---- operations ---- */

static tarn_stream queue_stream(uint32_t queue)
{
    return UINT64_MAX - queue;
}

/* Whether the program made the stream up, for a free that waits. */
static bool is_queue_stream(tarn_stream stream)
{
    return stream >= UINT64_MAX - UINT32_MAX;
}

static bool answer_event(void *context, uint64_t event, tarn_stream stream)
{
    struct tn_runner *runner = context;

    return !is_queue_stream(stream) && tn_device_lag_passed(&runner->lag, event);
}

static bool every_stream(void *context, tarn_stream stream)
{
    (void)context;
    (void)stream;
    return true;
}

/* Requests of a private pool are routed there one at a time, so that no other frees are deferred
 * meanwhile. That a graph was captured is known of pools that a capture made for itself; others
 * count as pools of a user's. */
static enum tarn_status alloc_in_pool(const struct tn_runner *runner, const struct tn_op *op,
                                      tarn_ptr *ptr_out, struct tarn_error *error)
{
    const struct tarn_pool_id id = ((struct tarn_pool_id *)runner->program->pools.items)[op->pool];
    const bool captures = id.first != 0;
    enum tarn_status st =
        tarn_allocator_begin_pool(runner->allocator, id, every_stream, NULL, error);

    if (st) {
        return st;
    }
    st = captures ? tarn_allocator_begin_capture(runner->allocator, error) : TARN_OK;
    if (tn_always(st == TARN_OK)) { /* one capture at a time */
        st = tarn_allocator_alloc(runner->allocator, op->size, op->stream, ptr_out, error);
    }
    const enum tarn_status unmarked =
        captures ? tarn_allocator_end_capture(runner->allocator, error) : TARN_OK;
    const enum tarn_status ended = tarn_allocator_end_pool(runner->allocator, id, error);

    tn_assert(st || !unmarked); /* what has begun can end */
    (void)unmarked;
    return st ? st : ended;
}

static inline enum tarn_status request(const struct tn_runner *runner, const struct tn_op *op,
                                       tarn_ptr *ptr_out, struct tarn_error *error)
{
    if (tn_likely(runner->engine && op->pool == 0 && op->size > 0)) {
        return tn_native_alloc(runner->engine, op->size, op->stream, ptr_out, error);
    }
    return !runner->engine || op->pool == 0
               ? tarn_allocator_alloc(runner->allocator, op->size, op->stream, ptr_out, error)
               : alloc_in_pool(runner, op, ptr_out, error);
}

static enum tarn_status run_release(const struct tn_runner *runner, const struct tn_op *op,
                                    struct tarn_error *error)
{
    const struct tarn_pool_id id = ((struct tarn_pool_id *)runner->program->pools.items)[op->pool];

    while (tarn_allocator_pool_use_count(runner->allocator, id) > 0) {
        const enum tarn_status st = tarn_allocator_release_pool(runner->allocator, id, error);

        if (tn_never(st)) { /* it is in use */
            return st;
        }
    }
    return TARN_OK;
}

static inline enum tarn_status run_alloc(struct tn_runner *runner, const struct tn_op *op,
                                         struct tarn_error *error)
{
    struct tarn_replay_result *result = runner->result;
    tarn_ptr *ptr = &runner->ptrs[op->slot];
    const enum tarn_status st = request(runner, op, ptr, error);

    result->allocations++;
    if (st == TARN_ERR_OUT_OF_MEMORY) {
        result->first_oom = result->first_oom < 0 ? (int64_t)op->entry : result->first_oom;
        *ptr = 0;
    }
    const bool is_same = (st == TARN_OK) & (*ptr == op->address);

    result->same_address += is_same;
    if (tn_unlikely(!is_same & (result->first_other < 0))) {
        result->first_other = (int64_t)op->entry;
        runner->other = *ptr;
    }
    return st == TARN_ERR_OUT_OF_MEMORY ? TARN_OK : st;
}

/* A request that failed in the recorded run: if it succeeds now, the block is freed again. */
static enum tarn_status run_try(struct tn_runner *runner, const struct tn_op *op,
                                struct tarn_error *error)
{
    tarn_ptr ptr = 0;
    const enum tarn_status st = request(runner, op, &ptr, error);

    if (st == TARN_ERR_OUT_OF_MEMORY) {
        runner->result->first_oom =
            runner->result->first_oom < 0 ? (int64_t)op->entry : runner->result->first_oom;
        return TARN_OK;
    }
    if (runner->result->first_other < 0) {
        runner->result->first_other = (int64_t)op->entry;
    }
    return st ? st : tarn_allocator_free(runner->allocator, ptr, error);
}

/* The last event on that stream, recorded by the free just made. */
static uint64_t last_event(const struct tn_runner *runner, tarn_stream stream)
{
    const struct tn_stream_waits *waits = &runner->engine->waits;

    for (uint32_t i = 0; i < waits->queue_count; i++) {
        const struct tn_event_queue *queue = &waits->queues[i];

        if (queue->stream == stream && queue->count > 0) {
            return queue->ring[(queue->head + queue->count - 1) % queue->capacity].event;
        }
    }
    return 0;
}

/* Other engines have no event that completes a free: there the stream stays busy until then. */
static enum tarn_status stream_begin_work(const struct tn_runner *runner, tarn_stream stream,
                                          struct tarn_error *error)
{
    const enum tarn_status st =
        runner->engine ? TARN_OK : tarn_sim_block_stream(runner->device, stream);

    return st ? tn_fail_memory(error) : TARN_OK;
}

static enum tarn_status run_free_waits(struct tn_runner *runner, uint32_t slot, uint32_t queue,
                                       struct tarn_error *error)
{
    const tarn_ptr ptr = runner->ptrs[slot];
    const tarn_stream stream = queue_stream(queue == TN_NO_QUEUE ? UINT32_MAX : queue);
    enum tarn_status st;

    if (ptr == 0) {
        return TARN_OK;
    }
    st = stream_begin_work(runner, stream, error);
    st = st ? st : tarn_allocator_record_stream(runner->allocator, ptr, stream, error);
    st = st ? st : tarn_allocator_free(runner->allocator, ptr, error);
    if (st == TARN_OK) {
        runner->ptrs[slot] = 0;
        runner->events[slot] = runner->engine ? last_event(runner, stream) : stream;
    }
    return st;
}

/* Starts the frees that were pending when the trace began. */
static enum tarn_status start_waiting(struct tn_runner *runner, struct tarn_error *error)
{
    const struct tn_start_block *blocks = runner->program->start_blocks.items;
    uint32_t queue = runner->program->queue_count;
    enum tarn_status st = TARN_OK;

    for (size_t i = 0; st == TARN_OK && i < runner->program->start_blocks.count; i++) {
        if (blocks[i].waiting) {
            st = run_free_waits(runner, blocks[i].slot, queue++, error);
        }
    }
    return st;
}

/* The event or the stream exists: the free began with it. */
static void run_complete(struct tn_runner *runner, uint32_t slot)
{
    const uint64_t event = runner->events[slot];

    runner->events[slot] = 0;
    if (event == 0) {
        return;
    }
    const enum tarn_status st = runner->engine ? tarn_sim_complete_event(runner->device, event)
                                               : tarn_sim_unblock_stream(runner->device, event);

    /* a flush may have waited for the stream's work already */
    tn_assert(st == TARN_OK || (!runner->engine && st == TARN_ERR_STATE));
    (void)st;
}

static inline enum tarn_status run_free(const struct tn_runner *runner, const struct tn_op *op,
                                        struct tarn_error *error)
{
    const tarn_ptr ptr = runner->ptrs[op->slot];

    runner->ptrs[op->slot] = 0;
    if (tn_likely(runner->engine && ptr != 0)) {
        return tn_native_free(runner->engine, ptr, error);
    }
    return tarn_allocator_free(runner->allocator, ptr, error);
}

static TN_NOINLINE enum tarn_status run_other(struct tn_runner *runner, const struct tn_op *op,
                                              struct tarn_error *error)
{
    switch ((enum tn_op_kind)op->kind) {
    case TN_OP_ALLOC:
    case TN_OP_FREE: /* are no others */
        tn_no_case();
        break;
    case TN_OP_FREE_WAITS:
        return run_free_waits(runner, op->slot, op->queue, error);
    case TN_OP_COMPLETE:
        run_complete(runner, op->slot);
        break;
    case TN_OP_FLUSH:
        return tarn_allocator_empty_cache(runner->allocator, error);
    case TN_OP_FLUSH_WANT:
        return runner->is_limited ? TARN_OK : tarn_allocator_empty_cache(runner->allocator, error);
    case TN_OP_RELEASE:
        return run_release(runner, op, error);
    case TN_OP_TRY:
        return run_try(runner, op, error);
    }
    return TARN_OK;
}

static inline enum tarn_status run_op(struct tn_runner *runner, const struct tn_op *op,
                                      struct tarn_error *error)
{
    if (op->kind == TN_OP_ALLOC) {
        return run_alloc(runner, op, error);
    }
    return tn_likely(op->kind == TN_OP_FREE) ? run_free(runner, op, error)
                                             : run_other(runner, op, error);
}

static enum tarn_status runner_check(const struct tn_runner *runner, const struct tn_op *op,
                                     struct tarn_error *error)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    const uint64_t broken = tarn_allocator_check(runner->allocator, &findings);

    if (tn_always(broken == 0)) {
        return TARN_OK;
    }
    return tn_fail(error, TARN_ERR_INTERNAL, "after trace event %llu an invariant is broken: %s",
                   (unsigned long long)op->entry, findings.text[0]);
}

/* Optional checks after an operation; true if the run ends here. */
static bool runner_looks(struct tn_runner *runner, const struct tn_op *op, enum tarn_status *status,
                         struct tarn_error *error)
{
    if (*status == TARN_OK && runner->check) {
        *status = runner_check(runner, op, error);
    }
    return (runner->stop_at_other && runner->result->first_other >= 0) ||
           (runner->stop_at_oom && runner->result->first_oom >= 0);
}

/* Number of operations to run: those of the first entries of the trace. */
static size_t ops_to_run(const struct tn_runner *runner)
{
    const struct tn_op *ops = runner->program->ops.items;
    size_t count = 0;

    if (runner->entries == UINT64_MAX) {
        return runner->program->ops.count;
    }
    while (count < runner->program->ops.count && ops[count].entry < runner->entries) {
        count++;
    }
    return count;
}

/* Time of the trace, and with it of the device: the compact policy takes both into account. */
static void runner_set_time(struct tn_runner *runner, uint32_t now_ms)
{
    if (now_ms > runner->lag.now_ms) {
        tarn_sim_advance_ns(runner->device, (now_ms - runner->lag.now_ms) * UINT64_C(1000000));
        runner->lag.now_ms = now_ms;
    }
}

static enum tarn_status run_ops(struct tn_runner *runner, struct tarn_error *error)
{
    const struct tn_op *ops = runner->program->ops.items;
    const bool looks = runner->check || runner->stop_at_other || runner->stop_at_oom;
    enum tarn_status st = TARN_OK;
    size_t count = ops_to_run(runner);
    size_t done;

    for (done = 0; st == TARN_OK && done < count; done++) {
        runner->entry = ops[done].entry;
        runner_set_time(runner, ops[done].time_ms);
        st = run_op(runner, &ops[done], error);
        if (tn_unlikely(looks) && runner_looks(runner, &ops[done], &st, error)) {
            count = done + 1;
        }
    }
    runner->result->operations = done;
    return st;
}

/* ---- the whole run ---- */

/* Initial segments are restored, not requested, so the limit did not apply to them. */
static bool start_is_over_limit(const struct tn_runner *runner)
{
    const struct tn_engine *engine = runner->engine;

    return engine && tn_heap_limit_is_set(&engine->heap) &&
           engine->heap.reserved > engine->heap.limit;
}

static enum tarn_status begin(struct tn_runner *runner, struct tarn_error *error)
{
    enum tarn_status st;

    if (runner->keeps_addresses && runner->engine) {
        tarn_sim_set_address_oracle(runner->device, answer_address, runner);
    }
    tarn_sim_set_event_oracle(runner->device, answer_event, runner);
    st = tn_restore_start(runner, error);
    if (st == TARN_OK && start_is_over_limit(runner)) {
        st = TARN_ERR_OUT_OF_MEMORY;
    }
    st = st ? st : start_waiting(runner, error);
    return st ? st : runner_script(runner, error);
}

enum tarn_status tn_run_begin(struct tn_runner *runner, struct tarn_replay_result *result,
                              struct tarn_error *error)
{
    runner->result = result;
    result->first_other = -1;
    result->first_oom = -1;
    const enum tarn_status st = begin(runner, error);

    if (st != TARN_ERR_OUT_OF_MEMORY) {
        return st;
    }
    result->start_failed = true;
    result->first_oom = 0;
    result->first_other = 0;
    return TARN_OK;
}

static void result_pages(struct tarn_replay_result *result, const struct tn_compact *compact)
{
    result->pages_moved = compact->pages_moved;
    result->pages_created = compact->pages_created;
    result->moving_ns = compact->pages_moved * TN_PAGE_MOVE_NS;
    result->longest_ns = compact->longest_ns;
    result->retired_most = compact->retired.pages_most;
}

enum tarn_status tn_run_finish(struct tn_runner *runner, struct tarn_error *error)
{
    struct tarn_replay_result *result = runner->result;
    const uint64_t begin_ns = tn_clock_now_ns();
    const enum tarn_status st = result->start_failed ? TARN_OK : run_ops(runner, error);

    result->wall_ns = tn_clock_now_ns() - begin_ns;
    result->stats.struct_size = sizeof result->stats;
    tarn_allocator_get_stats(runner->allocator, &result->stats);
    if (result->start_failed) {
        result->stats.num_ooms = 1;
    }
    if (runner->engine) {
        result_pages(result, &runner->engine->compact);
    }
    return st;
}

enum tarn_status tn_run_program(struct tn_runner *runner, struct tarn_replay_result *result,
                                struct tarn_error *error)
{
    const enum tarn_status st = tn_run_begin(runner, result, error);

    return st ? st : tn_run_finish(runner, error);
}
