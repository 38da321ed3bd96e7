/* SPDX-License-Identifier: MIT */
/* Makes the simulated device behave like the recorded one, and gives the allocator the orders that
 * resulted from recorded hash tables, before or during a call. */
#include "replay/verify_run.h"

#include "alloc/config/size_class.h"
#include "alloc/pool/segment.h"
#include "base/assertion.h"
#include "base/host_mem.h"
#include "base/order.h"
#include "tarn/sim.h"

#include <stdlib.h>
#include <string.h>

/* ---- the current call's events ---- */

static const char *event_action(const struct tn_json_value *event)
{
    return tn_json_text(tn_json_at(event, 0));
}

static bool event_is(const struct tn_json_value *event, const char *action)
{
    return event && strcmp(event_action(event), action) == 0;
}

static uint64_t event_number(const struct tn_json_value *event, size_t field)
{
    return (uint64_t)tn_json_integer(tn_json_at(event, field));
}

static const struct tn_json_value *logged_event(const struct tn_verify_run *run, uint64_t index)
{
    return tn_json_at(run->call.events, index);
}

/* How many of the call's frees were completed by polling their events: in a log that is not
 * settled, all before the first other event. */
static uint64_t polled_count(const struct tn_verify_run *run)
{
    uint64_t count = 0;

    if (run->call.op != TN_DECISION_MALLOC) {
        return 0;
    }
    while (event_is(logged_event(run, count), "free_completed")) {
        count++;
    }
    return count;
}

/* ---- answers ---- */

/* Address in the first event of that action in the current call; 0 if there is none. */
static uint64_t logged_address(const struct tn_verify_run *run, const char *action)
{
    for (size_t i = 0; i < tn_json_length(run->call.events); i++) {
        const struct tn_json_value *event = logged_event(run, i);

        if (event_is(event, action)) {
            return event_number(event, 1);
        }
    }
    return 0;
}

/* A new segment or range gets the address of its recorded event, if that is possible. A call makes
 * one of them at most. */
static tarn_ptr answer_address(void *context, bool reservation, uint64_t size)
{
    const struct tn_verify_run *run = context;
    const uint64_t unit = reservation ? TN_SMALL_BUFFER : TN_MIN_BLOCK_SIZE;
    const uint64_t address = logged_address(run, reservation ? "segment_map" : "segment_alloc");

    (void)size;
    return address % unit == 0 ? address : 0;
}

/* An event is complete if polling completed it or a later one of its stream. Called by the
 * allocator under its own lock for the oldest event of a queue, so its queues may be read. */
static bool answer_event(void *context, uint64_t event, tarn_stream stream)
{
    const struct tn_verify_run *run = context;
    const struct tn_event_queue *queue =
        tn_stream_waits_find(&tn_allocator_engine(run->allocator)->waits, stream);
    const uint64_t polled = polled_count(run);

    tn_assert(queue && queue->count > 0 && queue->ring[queue->head].event == event);
    (void)event;
    for (uint32_t i = 0; i < queue->count; i++) {
        const struct tn_block *block = queue->ring[(queue->head + i) % queue->capacity].block;

        for (uint64_t k = 0; k < polled; k++) {
            if (event_number(logged_event(run, k), 1) == block->address) {
                return true;
            }
        }
    }
    return false;
}

void tn_verify_device_attach(struct tn_verify_run *run)
{
    tarn_sim_set_address_oracle(run->device, answer_address, run);
    if (!run->log.settled) {
        tarn_sim_set_event_oracle(run->device, answer_event, run);
    }
}

/* The simulated device refuses what no recorded device could have done. */
static enum tarn_status call_impossible(const struct tn_verify_run *run, enum tarn_status st,
                                        struct tarn_error *error)
{
    const bool is_refused = st == TARN_ERR_STATE;

    return tn_fail(error, is_refused ? TARN_ERR_FORMAT : st,
                   "line %llu of the decision log: %s of stream 0x%llx: %s",
                   (unsigned long long)run->call.line, tn_decision_name(run->call.op),
                   (unsigned long long)run->call.stream,
                   is_refused ? "no device could do that here" : tarn_status_text(st));
}

enum tarn_status tn_verify_block_stream(struct tn_verify_run *run, bool block,
                                        struct tarn_error *error)
{
    uint32_t i = 0;

    while (i + 1 < run->log.stream_count && run->log.streams[i] != run->call.stream) {
        i++;
    }
    if (run->blocked[i] == block) {
        return TARN_OK;
    }
    run->blocked[i] = block;
    if (!block) { /* the stream was blocked, so it exists; a wait may have ended its work */
        const enum tarn_status ended = tarn_sim_unblock_stream(run->device, run->call.stream);

        tn_assert(ended == TARN_OK || ended == TARN_ERR_STATE);
        (void)ended;
        return TARN_OK;
    }
    const enum tarn_status st = tarn_sim_block_stream(run->device, run->call.stream);

    return st ? call_impossible(run, st, error) : TARN_OK;
}

enum tarn_status tn_verify_capture(struct tn_verify_run *run, struct tarn_error *error)
{
    const struct tn_decision *call = &run->call;
    enum tarn_status st = TARN_OK;

    if (call->op == TN_DECISION_JOIN) {
        st = tarn_sim_join_stream(run->device, call->stream, call->after);
    } else if (call->op == TN_DECISION_WORK) {
        st = tarn_sim_enqueue_ns(run->device, call->stream, 0);
    } else {
        st = tarn_sim_set_capturing(run->device, call->stream,
                                    call->op == TN_DECISION_CAPTURE_BEGIN);
    }
    return st ? call_impossible(run, st, error) : TARN_OK;
}

static uint64_t capture_of(struct tarn_device *device, tarn_stream stream)
{
    uint64_t capture = 0;
    uint32_t count = 0;
    const enum tarn_status st =
        device->ops->capture_info(device, stream, &capture, NULL, 0, &count);

    return tn_never(st) ? 0 : capture; /* the simulated device knows without asking anybody */
}

bool tn_verify_pool_takes(const struct tn_verify_pool *pool, tarn_stream stream)
{
    if (!pool->captured) {
        return pool->stream == stream;
    }
    const uint64_t capture = capture_of(pool->device, pool->stream);

    return capture != 0 && capture_of(pool->device, stream) == capture;
}

/* A full device has memory only if the log shows that it provided some next. */
void tn_verify_device_refuse(struct tn_verify_run *run)
{
    if (run->log.device_is_full) {
        const struct tn_json_value *next = logged_event(run, run->events.count);
        const bool gives = event_is(next, "segment_alloc") || event_is(next, "segment_map");

        tarn_sim_set_foreign_memory(run->device, gives ? 0 : run->log.device_total);
    }
}

/* ---- when frees complete ---- */

static int completion_compare(const void *a, const void *b)
{
    const struct tn_completion *x = a;
    const struct tn_completion *y = b;

    return x->address != y->address ? tn_order(x->address, y->address)
                                    : tn_order(x->position, y->position);
}

/* A call of more than 2^20 events, of which none was recorded, runs into the next line. */
static uint64_t position_of(uint64_t line, size_t index)
{
    return (line << 20) + index;
}

static enum tarn_status completions_add_line(struct tn_verify_run *run,
                                             const struct tn_decision *call,
                                             struct tarn_error *error)
{
    for (size_t i = 0; i < tn_json_length(call->events); i++) {
        const struct tn_json_value *event = tn_json_at(call->events, i);
        const struct tn_completion completion = {.address = event_number(event, 1),
                                                 .position = position_of(call->line, i)};

        if (event_is(event, "free_completed") && !tn_vec_add(&run->completions, &completion)) {
            return tn_fail_memory(error);
        }
    }
    return TARN_OK;
}

enum tarn_status tn_verify_read_ahead(struct tn_verify_run *run, const char *path,
                                      struct tarn_error *error)
{
    struct tn_decision_log *log;
    enum tarn_status st;

    if (strcmp(path, "-") == 0) {
        return TARN_OK; /* cannot be read twice */
    }
    log = tn_host_alloc(sizeof *log);
    if (!log) {
        return tn_fail_memory(error);
    }
    st = tn_decision_log_open(log, path, error);
    if (st == TARN_OK) {
        while (st == TARN_OK) {
            struct tn_decision call;

            st = tn_decision_log_next(log, &call, error);
            st = st ? st : completions_add_line(run, &call, error);
        }
        tn_decision_log_close(log);
    }
    tn_host_free(log, sizeof *log);
    if (run->completions.count > 0) {
        qsort(run->completions.items, run->completions.count, sizeof(struct tn_completion),
              completion_compare);
    }
    /* Errors in the log are reported when the call is reached. */
    return st == TARN_ERR_NOT_FOUND || st == TARN_ERR_FORMAT ? TARN_OK : st;
}

/* Where the log completes the pending free of a block; UINT64_MAX if never. */
static uint64_t completion_position(void *context, const struct tn_block *block)
{
    const struct tn_verify_run *run = context;
    const struct tn_completion key = {.address = block->address,
                                      .position = position_of(run->call.line, 0)};
    const struct tn_completion *completions = run->completions.items;
    size_t low = 0;
    size_t high = run->completions.count;

    while (low < high) {
        const size_t middle = (low + high) / 2;

        if (completion_compare(&completions[middle], &key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < run->completions.count && completions[low].address == block->address
               ? completions[low].position
               : UINT64_MAX;
}

/* ---- order of the streams whose events complete in one call ---- */

enum {
    ORDER_STREAMS_MAX = 7,
    NOT_EXPECTED = -1
};

struct trial_block {
    const struct tn_block *block;
    uint32_t events;   /* number of events that it waits for */
    uint32_t left;     /* of them, during a trial */
    int64_t completed; /* index among the call's completed frees, or NOT_EXPECTED */
};

struct trial_entry {
    uint32_t block;
    bool done; /* polling finds its event complete */
};

struct trial_queue {
    tarn_stream stream;
    uint32_t first; /* in the trial's entries */
    uint32_t count;
    bool matters; /* has a block that completes in this call */
};

/* All pending frees, including deferred ones, for trying orders. */
struct trial {
    struct trial_queue queues[ORDER_STREAMS_MAX];
    uint32_t queue_count;
    struct trial_block *blocks;
    uint32_t block_count;
    struct trial_entry *entries; /* queue by queue */
    uint64_t capacity;           /* of both arrays */
    uint64_t *expected;
    uint64_t expected_count;
    uint64_t expected_capacity;
    uint64_t at_once; /* of them, deferred frees that need no event */
    uint64_t polled;  /* of them, those that polling may complete */
};

static void trial_fini(struct trial *trial)
{
    tn_host_free(trial->blocks, trial->capacity * sizeof *trial->blocks);
    tn_host_free(trial->entries, trial->capacity * sizeof *trial->entries);
    tn_host_free(trial->expected, trial->expected_capacity * sizeof *trial->expected);
}

static uint32_t trial_block_index(struct trial *trial, const struct tn_block *block)
{
    uint32_t i = 0;

    while (i < trial->block_count && trial->blocks[i].block != block) {
        i++;
    }
    if (i == trial->block_count) {
        struct trial_block *fresh = &trial->blocks[trial->block_count++];

        *fresh = (struct trial_block){.block = block, .completed = NOT_EXPECTED};
        for (uint64_t k = 0; k < trial->expected_count; k++) {
            if (trial->expected[k] == block->address) {
                fresh->completed = (int64_t)k;
            }
        }
    }
    return i;
}

static void trial_push(struct trial *trial, struct trial_queue *queue, const struct tn_block *block,
                       bool done)
{
    const uint32_t index = trial_block_index(trial, block);

    trial->blocks[index].events++;
    queue->matters = queue->matters || trial->blocks[index].completed != NOT_EXPECTED;
    trial->entries[queue->first + queue->count++] =
        (struct trial_entry){.block = index, .done = done};
}

/* Marks as done all entries up to the last one whose block was completed by polling. */
static void queue_mark_done(struct trial *trial, const struct trial_queue *queue)
{
    bool done = false;

    for (uint32_t i = queue->count; i > 0; i--) {
        struct trial_entry *entry = &trial->entries[queue->first + i - 1];
        const int64_t position = trial->blocks[entry->block].completed;

        done = done || (position != NOT_EXPECTED && (uint64_t)position < trial->polled);
        entry->done = done;
    }
}

/* Entries of one stream: the events in its queue, then the deferred frees that will wait for it. */
static void trial_add_queue(const struct tn_verify_run *run, struct trial *trial,
                            uint32_t stream_index, uint32_t *entry_count)
{
    struct tarn_device *device = run->device;
    const tarn_stream stream = run->log.streams[stream_index];
    const struct tn_engine *engine = tn_allocator_engine(run->allocator);
    const struct tn_stream_waits *waits = &engine->waits;
    const struct tn_event_queue *events = tn_stream_waits_find(&engine->waits, stream);
    struct trial_queue *queue = &trial->queues[trial->queue_count];

    *queue = (struct trial_queue){.stream = stream, .first = *entry_count};
    for (uint32_t i = 0; events && i < events->count; i++) {
        const struct tn_pending_event *event = &events->ring[(events->head + i) % events->capacity];

        trial_push(trial, queue, event->block,
                   run->log.settled && device->ops->event_query(device, event->event) == TARN_OK);
    }
    for (uint32_t i = 0; i < waits->deferred_count; i++) {
        if (tn_stream_use_will_wait(&engine->waits, waits->deferred[i], stream)) {
            trial_push(trial, queue, waits->deferred[i], !run->blocked[stream_index]);
        }
    }
    if (!run->log.settled) {
        queue_mark_done(trial, queue);
    }
    if (queue->matters) { /* otherwise it has no effect on this call */
        *entry_count += queue->count;
        trial->queue_count++;
    }
}

static bool trial_open(const struct tn_verify_run *run, struct trial *trial)
{
    const struct tn_stream_waits *waits = &tn_allocator_engine(run->allocator)->waits;
    const size_t events = tn_json_length(run->call.events);
    uint32_t entry_count = 0;

    *trial = (struct trial){.polled = polled_count(run)};
    trial->capacity = waits->pending + (uint64_t)waits->deferred_count * run->log.stream_count + 1;
    trial->blocks = tn_host_alloc(trial->capacity * sizeof *trial->blocks);
    trial->entries = tn_host_alloc(trial->capacity * sizeof *trial->entries);
    trial->expected_capacity = events + 1;
    trial->expected = tn_host_alloc(trial->expected_capacity * sizeof *trial->expected);
    if (!trial->blocks || !trial->entries || !trial->expected) {
        return false;
    }
    for (size_t i = 0; i < events; i++) {
        if (event_is(logged_event(run, i), "free_completed")) {
            trial->expected[trial->expected_count++] = event_number(logged_event(run, i), 1);
        }
    }
    if (run->log.settled && run->call.op == TN_DECISION_MALLOC) {
        trial->polled = trial->expected_count;
    }
    for (uint32_t i = 0; i < waits->deferred_count; i++) {
        trial->at_once +=
            !tn_stream_use_waits(&tn_allocator_engine(run->allocator)->waits, waits->deferred[i]);
    }
    for (uint32_t i = 0; i < run->log.stream_count && trial->queue_count < ORDER_STREAMS_MAX; i++) {
        trial_add_queue(run, trial, i, &entry_count);
    }
    return true;
}

/* One event of the block is done; false if that completes the block at the wrong time. */
static bool trial_pop(struct trial *trial, struct trial_entry entry, uint64_t end, uint64_t *at)
{
    struct trial_block *block = &trial->blocks[entry.block];

    if (--block->left > 0) {
        return true;
    }
    return *at < end && block->completed == (int64_t)(*at)++;
}

/* Whether polling, then waiting for, the queues in that order completes the blocks as logged. */
static bool trial_fits(struct trial *trial, const uint32_t *order)
{
    uint64_t at = trial->at_once;
    uint32_t done[ORDER_STREAMS_MAX] = {0};
    bool fits = true;

    for (uint32_t i = 0; i < trial->block_count; i++) {
        trial->blocks[i].left = trial->blocks[i].events;
    }
    for (uint32_t k = 0; k < trial->queue_count && fits; k++) {
        const struct trial_queue *queue = &trial->queues[order[k]];
        const struct trial_entry *entries = &trial->entries[queue->first];

        done[k] = 0;
        while (trial->polled > 0 && done[k] < queue->count && entries[done[k]].done && fits) {
            fits = trial_pop(trial, entries[done[k]++], trial->polled, &at);
        }
    }
    for (uint32_t k = 0; k < trial->queue_count && fits && at < trial->expected_count; k++) {
        const struct trial_queue *queue = &trial->queues[order[k]];

        for (uint32_t i = done[k]; i < queue->count && fits; i++) {
            fits = trial_pop(trial, trial->entries[queue->first + i], trial->expected_count, &at);
        }
    }
    return fits && at == trial->expected_count;
}

/* Next permutation in lexicographic order; false after the last. */
static bool permutation_next(uint32_t *order, uint32_t count)
{
    uint32_t i = count - 1;

    while (i > 0 && order[i - 1] >= order[i]) {
        i--;
    }
    if (i == 0) {
        return false;
    }
    uint32_t j = count - 1;

    while (order[j] <= order[i - 1]) {
        j--;
    }
    const uint32_t swapped = order[i - 1];

    order[i - 1] = order[j];
    order[j] = swapped;
    for (uint32_t a = i, b = count - 1; a < b; a++, b--) {
        const uint32_t other = order[a];

        order[a] = order[b];
        order[b] = other;
    }
    return true;
}

static void trial_run(struct tn_verify_run *run, struct trial *trial)
{
    uint32_t order[ORDER_STREAMS_MAX] = {0};
    tarn_stream streams[ORDER_STREAMS_MAX];

    for (uint32_t i = 0; i < trial->queue_count; i++) {
        order[i] = i;
    }
    do {
        if (trial_fits(trial, order)) {
            for (uint32_t i = 0; i < trial->queue_count; i++) {
                streams[i] = trial->queues[order[i]].stream;
            }
            tn_stream_waits_order(&tn_allocator_engine(run->allocator)->waits, streams,
                                  trial->queue_count);
            return;
        }
    } while (permutation_next(order, trial->queue_count));
}

static void order_streams(struct tn_verify_run *run)
{
    struct trial trial;

    if (!trial_open(run, &trial)) {
        run->no_host_memory = true; /* in another order the call may differ */
    } else if (trial.queue_count > 1) {
        trial_run(run, &trial);
    }
    trial_fini(&trial);
}

/* ---- order of private pools ---- */

static struct tn_private_pool *owner_of(const struct tn_verify_run *run, uint64_t address)
{
    const struct tn_segment *segment =
        tn_segment_find(&tn_allocator_engine(run->allocator)->heap, address);

    return segment ? segment->first->set->pool->owner : NULL;
}

static struct tn_private_pools *pools_of(const struct tn_verify_run *run)
{
    return &tn_allocator_engine(run->allocator)->heap.private_pools;
}

/* Puts pools in the order in which their memory is released; one that lends a block comes first. */
static void order_pools(struct tn_verify_run *run)
{
    struct tn_private_pool *last = NULL;

    for (size_t i = tn_json_length(run->call.events); i > 0; i--) {
        const struct tn_json_value *event = logged_event(run, i - 1);

        if (event_is(event, "segment_free") || event_is(event, "segment_unmap")) {
            struct tn_private_pool *owner = owner_of(run, event_number(event, 1));

            if (owner && owner != last) {
                tn_private_pool_put_first(pools_of(run), owner);
            }
            last = owner;
        }
    }
    struct tn_private_pool *lender =
        run->call.op == TN_DECISION_MALLOC ? owner_of(run, run->call.ptr) : NULL;

    if (lender && lender->use_on_oom) {
        tn_private_pool_put_first(pools_of(run), lender);
    }
}

void tn_verify_prepare(struct tn_verify_run *run)
{
    const enum tn_decision_op op = run->call.op;

    tn_verify_device_refuse(run);
    if (op != TN_DECISION_MALLOC && op != TN_DECISION_EMPTY_CACHE &&
        op != TN_DECISION_GET_CHECKPOINT && op != TN_DECISION_GET_CHECKPOINT_FAILED) {
        return;
    }
    if (run->completions.count > 0) {
        tn_stream_waits_sort_deferred(&tn_allocator_engine(run->allocator)->waits,
                                      completion_position, run);
    }
    order_streams(run);
    order_pools(run);
}

/* ---- order of segments that a checkpoint restores ---- */

/* Frees come first; the first allocation begins the second phase. */
struct tn_checkpoint_order tn_verify_checkpoint_order(const struct tn_verify_run *run,
                                                      uint64_t *buffer)
{
    struct tn_checkpoint_order order = {0};
    const size_t count = tn_json_length(run->call.events);
    size_t i = 0;

    order.freed = buffer;
    for (; i < count; i++) {
        const struct tn_json_value *event = tn_json_at(run->call.events, i);

        if (event_is(event, "alloc")) {
            break;
        }
        buffer[order.freed_count++] = event_number(event, 1);
    }
    order.created = buffer + order.freed_count;
    for (; i < count; i++) {
        buffer[order.freed_count + order.created_count++] =
            event_number(tn_json_at(run->call.events, i), 1);
    }
    return order;
}
