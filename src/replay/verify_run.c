/* SPDX-License-Identifier: MIT */
#include "replay/verify_run.h"

#include "alloc/size_class.h"
#include "base/host_mem.h"
#include "tarn/sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- what the device does, from the log ---- */

static const char *event_action(const json_t *event)
{
    return json_string_value(json_array_get(event, 0));
}

static uint64_t event_number(const json_t *event, size_t field)
{
    return (uint64_t)json_integer_value(json_array_get(event, field));
}

/* Address in the n-th logged event of that action in the current call; 0 if there are fewer. */
static uint64_t logged_address(const struct tn_verify_run *run, const char *action, uint64_t n)
{
    for (size_t i = 0; i < json_array_size(run->call.events); i++) {
        const json_t *event = json_array_get(run->call.events, i);

        if (strcmp(event_action(event), action) == 0 && n-- == 0) {
            return event_number(event, 1);
        }
    }
    return 0;
}

static uint64_t count_sent(const struct tn_verify_run *run, enum tn_action action)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < run->event_count; i++) {
        count += run->events[i].action == action;
    }
    return count;
}

/* A new segment or range gets the address of the event that will follow, if it can have it. */
static tarn_ptr answer_address(void *context, bool reservation, uint64_t size)
{
    const struct tn_verify_run *run = context;
    const uint64_t unit = reservation ? TN_SMALL_BUFFER : TN_MIN_BLOCK_SIZE;
    const uint64_t address =
        reservation
            ? logged_address(run, "segment_map", count_sent(run, TN_ACTION_SEGMENT_MAP))
            : logged_address(run, "segment_alloc", count_sent(run, TN_ACTION_SEGMENT_ALLOC));

    (void)size;
    return address % unit == 0 ? address : 0;
}

static bool call_completes(const struct tn_verify_run *run, uint64_t address)
{
    for (size_t i = 0; i < json_array_size(run->call.events); i++) {
        const json_t *event = json_array_get(run->call.events, i);

        if (event_number(event, 1) == address &&
            strcmp(event_action(event), "free_completed") == 0) {
            return true;
        }
    }
    return false;
}

/* An event is done when the log completes its block in this call. Asked by the allocator under its
 * own lock and about the oldest event of a queue, so its queues may be looked at. */
static bool answer_event(void *context, uint64_t event, tarn_stream stream)
{
    const struct tn_verify_run *run = context;
    const struct tn_stream_waits *waits = &tn_allocator_engine(run->allocator)->waits;

    for (uint32_t i = 0; i < waits->queue_count; i++) {
        const struct tn_event_queue *queue = &waits->queues[i];

        if (queue->stream == stream && queue->count > 0 &&
            queue->ring[queue->head].event == event) {
            return call_completes(run, queue->ring[queue->head].block->address);
        }
    }
    return false;
}

/* ---- orders of hash tables ---- */

enum {
    ORDER_STREAMS_MAX = 7,
    ORDER_BLOCKS_MAX = 1024
};

/* Events of streams whose blocks complete in this call, to try out orders on. */
struct order_trial {
    const struct tn_event_queue *queues[ORDER_STREAMS_MAX];
    uint32_t queue_count;
    uint64_t expected[ORDER_BLOCKS_MAX]; /* completed addresses, as logged */
    uint32_t expected_count;
};

/* Events of the block in queues at or before `last` of the order, from each queue's front. */
static bool block_is_done(const struct tn_verify_run *run, const struct tn_block *block,
                          const uint32_t *done, const struct order_trial *trial)
{
    uint32_t seen = 0;

    for (uint32_t q = 0; q < trial->queue_count; q++) {
        const struct tn_event_queue *queue = trial->queues[q];

        for (uint32_t i = 0; i < done[q]; i++) {
            seen += queue->ring[(queue->head + i) % queue->capacity].block == block;
        }
    }
    return seen == tn_stream_use_events(tn_allocator_engine(run->allocator), block);
}

/* Whether polling the queues in that order completes the blocks in the order of the log. */
static bool order_fits(const struct tn_verify_run *run, const struct order_trial *trial,
                       const uint32_t *order)
{
    uint32_t done[ORDER_STREAMS_MAX] = {0};
    uint32_t at = 0;

    for (uint32_t k = 0; k < trial->queue_count; k++) {
        const struct tn_event_queue *queue = trial->queues[order[k]];

        for (uint32_t i = 0; i < queue->count; i++) {
            const struct tn_block *block = queue->ring[(queue->head + i) % queue->capacity].block;

            if (!call_completes(run, block->address)) {
                break;
            }
            done[order[k]]++;
            if (block_is_done(run, block, done, trial)) {
                if (at >= trial->expected_count || trial->expected[at] != block->address) {
                    return false;
                }
                at++;
            }
        }
    }
    return true;
}

/* Next permutation in lexical order; false after the last. */
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

static void trial_collect(const struct tn_verify_run *run, struct order_trial *trial)
{
    const struct tn_stream_waits *waits = &tn_allocator_engine(run->allocator)->waits;

    for (size_t i = 0; i < json_array_size(run->call.events); i++) {
        const json_t *event = json_array_get(run->call.events, i);

        if (strcmp(event_action(event), "free_completed") == 0 &&
            trial->expected_count < ORDER_BLOCKS_MAX) {
            trial->expected[trial->expected_count++] = event_number(event, 1);
        }
    }
    for (uint32_t i = 0; i < waits->queue_count && trial->queue_count < ORDER_STREAMS_MAX; i++) {
        const struct tn_event_queue *queue = &waits->queues[i];

        if (queue->count > 0 && call_completes(run, queue->ring[queue->head].block->address)) {
            trial->queues[trial->queue_count++] = queue;
        }
    }
}

void tn_verify_prepare_orders(struct tn_verify_run *run)
{
    struct order_trial trial = {.queue_count = 0};
    uint32_t order[ORDER_STREAMS_MAX];
    tarn_stream streams[ORDER_STREAMS_MAX];

    trial_collect(run, &trial);
    if (trial.queue_count < 2) {
        return;
    }
    for (uint32_t i = 0; i < trial.queue_count; i++) {
        order[i] = i;
    }
    do {
        if (order_fits(run, &trial, order)) {
            for (uint32_t i = 0; i < trial.queue_count; i++) {
                streams[i] = trial.queues[order[i]]->stream;
            }
            tn_stream_waits_order(tn_allocator_engine(run->allocator), streams, trial.queue_count);
            return;
        }
    } while (permutation_next(order, trial.queue_count));
}

/* Frees come first; the first allocation begins the second phase. */
struct tn_checkpoint_order tn_verify_checkpoint_order(const struct tn_verify_run *run,
                                                      uint64_t *buffer)
{
    struct tn_checkpoint_order order = {0};
    const size_t count = json_array_size(run->call.events);
    size_t i = 0;

    order.freed = buffer;
    for (; i < count; i++) {
        const json_t *event = json_array_get(run->call.events, i);

        if (strcmp(event_action(event), "alloc") == 0) {
            break;
        }
        buffer[order.freed_count++] = event_number(event, 1);
    }
    order.created = buffer + order.freed_count;
    for (; i < count; i++) {
        buffer[order.freed_count + order.created_count++] =
            event_number(json_array_get(run->call.events, i), 1);
    }
    return order;
}

/* ---- the run ---- */

static void receive_event(void *context, const struct tn_event *event)
{
    struct tn_verify_run *run = context;

    if (run->event_count == run->event_capacity) {
        const uint64_t wanted = run->event_capacity ? run->event_capacity * 2 : 256;
        struct tn_event *moved = tn_host_resize(run->events, run->event_capacity * sizeof *moved,
                                                wanted * sizeof *moved);

        if (!moved) {
            run->no_host_memory = true;
            return;
        }
        run->events = moved;
        run->event_capacity = wanted;
    }
    run->events[run->event_count++] = *event;
}

static enum tarn_status run_open_device(struct tn_verify_run *run, struct tarn_error *error)
{
    const struct tarn_sim_options options = {
        .struct_size = sizeof options,
        .capacity = run->log.device_total,
        .manual_events = true,
    };
    const enum tarn_status st = tarn_sim_open(&options, &run->device, error);

    if (st == TARN_OK) {
        tarn_sim_set_address_oracle(run->device, answer_address, run);
        tarn_sim_set_event_oracle(run->device, answer_event, run);
    }
    return st;
}

enum tarn_status tn_verify_open(struct tn_verify_run *run, const char *path,
                                struct tarn_error *error)
{
    const struct tn_sink sink = {
        .context = run, .level = TN_CONTEXT_NEVER, .receive = receive_event};
    struct tarn_config config;
    enum tarn_status st;

    memset(run, 0, sizeof *run);
    st = tn_decision_log_open(&run->log, path, error);
    if (st) {
        return st;
    }
    st = tarn_config_parse(run->log.conf, &config, error);
    st = st ? st : run_open_device(run, error);
    st = st ? st : tarn_allocator_create(run->device, &config, &run->allocator, error);
    st = st ? st : tn_allocator_attach_sink(run->allocator, &sink, error);
    if (st) {
        tn_verify_close(run);
    }
    return st;
}

void tn_verify_close(struct tn_verify_run *run)
{
    for (uint32_t i = 0; i < run->pool_count; i++) {
        tarn_checkpoint_destroy(run->pools[i].checkpoint);
    }
    tarn_allocator_destroy(run->allocator);
    tarn_device_close(run->device);
    tn_host_free(run->ids, run->id_capacity * sizeof *run->ids);
    tn_host_free(run->events, run->event_capacity * sizeof *run->events);
    tn_decision_log_close(&run->log);
}

tarn_ptr tn_verify_ptr(const struct tn_verify_run *run, uint64_t id)
{
    return id < run->id_capacity ? run->ids[id] : 0;
}

enum tarn_status tn_verify_set_ptr(struct tn_verify_run *run, uint64_t id, tarn_ptr ptr,
                                   struct tarn_error *error)
{
    if (id >= TN_VERIFY_IDS_MAX) {
        return tn_fail(error, TARN_ERR_LIMIT, "line %llu of the decision log: id %llu is too large",
                       (unsigned long long)run->call.line, (unsigned long long)id);
    }
    if (id >= run->id_capacity) {
        const uint64_t wanted = (id + 1) * 2;
        tarn_ptr *moved =
            tn_host_resize(run->ids, run->id_capacity * sizeof *moved, wanted * sizeof *moved);

        if (!moved) {
            return tn_fail(error, TARN_ERR_HOST_MEMORY, "no host memory for %llu pointers",
                           (unsigned long long)wanted);
        }
        memset(&moved[run->id_capacity], 0, (wanted - run->id_capacity) * sizeof *moved);
        run->ids = moved;
        run->id_capacity = wanted;
    }
    run->ids[id] = ptr;
    return TARN_OK;
}

struct tn_verify_pool *tn_verify_pool(struct tn_verify_run *run, struct tarn_pool_id id)
{
    for (uint32_t i = 0; i < run->pool_count; i++) {
        if (run->pools[i].id.first == id.first && run->pools[i].id.second == id.second) {
            return &run->pools[i];
        }
    }
    if (run->pool_count == TN_VERIFY_POOLS_MAX) {
        return NULL;
    }
    run->pools[run->pool_count].id = id;
    return &run->pools[run->pool_count++];
}

void tn_verify_differs(struct tn_verify_run *run, const char *format, ...)
{
    const size_t left = sizeof run->text - run->text_used;
    va_list args;

    run->differs = true;
    va_start(args, format);
    const int written = vsnprintf(run->text + run->text_used, left, format, args);
    va_end(args);
    if (written > 0) {
        run->text_used += (size_t)written < left ? (size_t)written : left - 1;
    }
}
