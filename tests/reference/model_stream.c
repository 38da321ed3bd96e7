/* SPDX-License-Identifier: MIT */
/* Blocks used on other streams: one queue of events a stream, polled in order. */
#include "reference/model_core.h"

#include <stdlib.h>
#include <string.h>

static struct ref_queue *queue_of(struct ref_model *model, tarn_stream stream)
{
    for (size_t i = 0; i < model->queue_count; i++) {
        if (model->queues[i].stream == stream) {
            return &model->queues[i];
        }
    }
    model->queues = ref_grow(model->queues, &model->queue_capacity, model->queue_count + 1,
                             sizeof *model->queues);
    model->queues[model->queue_count] = (struct ref_queue){.stream = stream};
    return &model->queues[model->queue_count++];
}

void ref_poll_first(struct ref_model *model, const tarn_stream *streams, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct ref_queue *queue = queue_of(model, streams[i]);
        const struct ref_queue moved = *queue;
        const size_t at = (size_t)(queue - model->queues);

        if (at > i) {
            memmove(model->queues + i + 1, model->queues + i, (at - i) * sizeof moved);
            model->queues[i] = moved;
        }
    }
}

static void queue_pop(struct ref_queue *queue)
{
    queue->count--;
    memmove(queue->item, queue->item + 1, queue->count * sizeof *queue->item);
}

void ref_insert_events(struct ref_model *model, struct ref_block *block)
{
    const struct tn_device_ops *ops = model->device->ops;
    struct ref_streams streams = block->stream_uses;

    block->stream_uses = (struct ref_streams){0};
    block->graph_stream_uses.count = 0;
    for (size_t i = 0; i < streams.count; i++) {
        struct ref_queue *queue = queue_of(model, streams.item[i]);
        tn_event_handle event = 0;

        ref_require(ops->event_create(model->device, &event) == TARN_OK &&
                        ops->event_record(model->device, event, streams.item[i]) == TARN_OK,
                    "an event failed");
        queue->item =
            ref_grow(queue->item, &queue->capacity, queue->count + 1, sizeof *queue->item);
        queue->item[queue->count++] = (struct ref_wait){.event = event, .block = block};
        block->event_count++;
    }
    free(streams.item);
}

/* What ran during a capture did not run: those uses need no event. */
static void remove_graph_stream_uses(struct ref_block *block)
{
    struct ref_streams *uses = &block->stream_uses;
    size_t kept = 0;

    for (size_t i = 0; i < uses->count; i++) {
        if (!ref_streams_have(&block->graph_stream_uses, uses->item[i])) {
            uses->item[kept++] = uses->item[i];
        }
    }
    uses->count = kept;
    block->graph_stream_uses.count = 0;
}

void ref_insert_deferred(struct ref_model *model)
{
    struct ref_blocks deferred = model->deferred;

    model->deferred = (struct ref_blocks){0};
    for (size_t i = 0; i < deferred.count; i++) {
        struct ref_block *block = deferred.item[i];

        block->free_markers.count = 0;
        remove_graph_stream_uses(block);
        ref_insert_events(model, block);
        if (block->event_count == 0) {
            ref_free_block(model, block);
        }
    }
    free(deferred.item);
}

static void event_done(struct ref_model *model, struct ref_wait wait)
{
    ref_require(model->device->ops->event_destroy(model->device, wait.event) == TARN_OK,
                "an event could not be destroyed");
    wait.block->event_count--;
    if (wait.block->event_count == 0) {
        ref_free_block(model, wait.block);
    }
}

void ref_process_events(struct ref_model *model)
{
    ref_insert_deferred(model);
    for (size_t i = 0; i < model->queue_count; i++) {
        struct ref_queue *queue = &model->queues[i];

        while (queue->count > 0 &&
               model->device->ops->event_query(model->device, queue->item[0].event) == TARN_OK) {
            const struct ref_wait wait = queue->item[0];

            queue_pop(queue);
            event_done(model, wait);
        }
    }
}

void ref_synchronize(struct ref_model *model, const struct ref_private *only)
{
    model->stats.num_sync_all_streams++;
    ref_insert_deferred(model);
    for (size_t i = 0; i < model->queue_count; i++) {
        struct ref_queue *queue = &model->queues[i];
        size_t at = 0;

        while (at < queue->count) {
            const struct ref_wait wait = queue->item[at];

            if (only && wait.block->pool->owner != only) {
                at++;
                continue;
            }
            ref_require(model->device->ops->event_wait(model->device, wait.event) == TARN_OK,
                        "waiting for an event failed");
            queue->count--;
            memmove(queue->item + at, queue->item + at + 1,
                    (queue->count - at) * sizeof *queue->item);
            event_done(model, wait);
        }
    }
}
