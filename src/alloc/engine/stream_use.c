/* SPDX-License-Identifier: MIT */
#include "alloc/engine/stream_use.h"

#include "base/assertion.h"
#include "base/host_mem.h"

#include <string.h>

/* Grows an array to hold `needed` elements; false when host memory is missing. */
static bool array_reserve(void *array_pointer, uint32_t *capacity, uint32_t needed, size_t element)
{
    void *array;

    if (needed <= *capacity) {
        return true;
    }
    const uint32_t wanted = needed < 4 ? 8 : needed * 2;

    memcpy(&array, array_pointer, sizeof array);
    array = tn_host_resize(array, *capacity * element, wanted * element);
    if (!array) {
        return false;
    }
    memcpy(array_pointer, &array, sizeof array);
    *capacity = wanted;
    return true;
}

static struct tn_stream_uses *uses_of(const struct tn_stream_waits *waits,
                                      const struct tn_block *block)
{
    tn_assert(block->uses != 0 && waits->records[block->uses].block == block);
    return &waits->records[block->uses];
}

/* Gives the block a record; false when host memory is missing. */
static bool uses_attach(struct tn_stream_waits *waits, struct tn_block *block)
{
    uint32_t index = waits->free_record;

    if (index) {
        waits->free_record = waits->records[index].next_free;
    } else {
        index = waits->record_count ? waits->record_count : 1;
        if (!array_reserve(&waits->records, &waits->record_capacity, index + 1,
                           sizeof *waits->records)) {
            return false;
        }
        waits->record_count = index + 1;
        waits->records[index] = (struct tn_stream_uses){0};
    }
    waits->records[index].block = block;
    block->uses = index;
    return true;
}

/* Takes the record from a block that waits for nothing any more. The stream array stays with it. */
static void uses_detach(struct tn_stream_waits *waits, struct tn_block *block)
{
    struct tn_stream_uses *uses = uses_of(waits, block);

    uses->block = NULL;
    uses->count = 0;
    tn_capture_marks_drop(&uses->marks);
    uses->event_count = 0;
    uses->user = NULL;
    uses->user_tag = 0;
    uses->next_free = waits->free_record;
    waits->free_record = block->uses;
    block->uses = 0;
}

static struct tn_used_stream *uses_find(const struct tn_stream_uses *uses, tarn_stream stream)
{
    for (uint32_t i = 0; i < uses->count; i++) {
        if (uses->streams[i].stream == stream) {
            return &uses->streams[i];
        }
    }
    return NULL;
}

enum tarn_status tn_stream_use_record(struct tn_stream_waits *waits, struct tn_block *block,
                                      tarn_stream stream, bool capturing)
{
    const bool fresh = block->uses == 0;

    if (stream == block->set->stream) {
        return TARN_OK;
    }
    if (fresh && !uses_attach(waits, block)) {
        return TARN_ERR_HOST_MEMORY;
    }
    struct tn_stream_uses *uses = uses_of(waits, block);
    struct tn_used_stream *used = uses_find(uses, stream);

    if (!used) {
        if (!array_reserve(&uses->streams, &uses->capacity, uses->count + 1,
                           sizeof *uses->streams)) {
            if (fresh) {
                uses_detach(waits, block);
            }
            return TARN_ERR_HOST_MEMORY;
        }
        used = &uses->streams[uses->count++];
        *used = (struct tn_used_stream){.stream = stream};
    }
    used->captured = used->captured || capturing;
    return TARN_OK;
}

enum tarn_status tn_stream_use_set_user(struct tn_stream_waits *waits, struct tn_block *block,
                                        void *user, uint64_t tag)
{
    const bool some = user || tag != 0;

    if (block->uses == 0) {
        if (!some) {
            return TARN_OK;
        }
        if (!uses_attach(waits, block)) {
            return TARN_ERR_HOST_MEMORY;
        }
    }
    uses_of(waits, block)->user = user;
    uses_of(waits, block)->user_tag = tag;
    if (!some) {
        (void)tn_stream_use_end(waits, block);
    }
    return TARN_OK;
}

void *tn_stream_use_user(const struct tn_stream_waits *waits, const struct tn_block *block,
                         uint64_t *tag_out)
{
    const struct tn_stream_uses *uses =
        block->allocated && block->uses ? uses_of(waits, block) : NULL;

    *tag_out = uses ? uses->user_tag : 0;
    return uses ? uses->user : NULL;
}

bool tn_stream_use_has_streams(const struct tn_stream_waits *waits, const struct tn_block *block)
{
    return block->uses != 0 &&
           (uses_of(waits, block)->count > 0 || uses_of(waits, block)->event_count > 0);
}

bool tn_stream_use_end(struct tn_stream_waits *waits, struct tn_block *block)
{
    if (block->uses != 0 && uses_of(waits, block)->count == 0) {
        uses_detach(waits, block);
    }
    return block->uses != 0;
}

static struct tn_event_queue *waits_find_queue(const struct tn_stream_waits *waits,
                                               tarn_stream stream)
{
    for (uint32_t i = 0; i < waits->queue_count; i++) {
        if (waits->queues[i].stream == stream) {
            return &waits->queues[i];
        }
    }
    return NULL;
}

/* Makes room for one more event in the stream's queue. */
static bool queue_reserve(struct tn_event_queue *queue)
{
    if (queue->count < queue->capacity) {
        return true;
    }
    const uint32_t wanted = queue->capacity ? queue->capacity * 2 : 16;
    struct tn_pending_event *ring = tn_host_alloc(wanted * sizeof *ring);

    if (!ring) {
        return false;
    }
    for (uint32_t i = 0; queue->capacity > 0 && i < queue->count; i++) {
        ring[i] = queue->ring[(queue->head + i) % queue->capacity];
    }
    tn_host_free(queue->ring, queue->capacity * sizeof *ring);
    queue->ring = ring;
    queue->head = 0;
    queue->capacity = wanted;
    return true;
}

/* The stream's queue with room for one more event; NULL when host memory is missing. */
static struct tn_event_queue *waits_reserve_queue(struct tn_stream_waits *waits, tarn_stream stream)
{
    struct tn_event_queue *queue = waits_find_queue(waits, stream);

    if (!queue) {
        if (!array_reserve(&waits->queues, &waits->queue_capacity, waits->queue_count + 1,
                           sizeof *waits->queues)) {
            return NULL;
        }
        queue = &waits->queues[waits->queue_count++];
        *queue = (struct tn_event_queue){.stream = stream};
    }
    return queue_reserve(queue) ? queue : NULL;
}

static void queue_push(struct tn_stream_waits *waits, struct tn_event_queue *queue,
                       tn_event_handle event, struct tn_block *block)
{
    tn_assert(queue->count < queue->capacity);
    queue->ring[(queue->head + queue->count) % queue->capacity] =
        (struct tn_pending_event){.event = event, .block = block};
    queue->count++;
    waits->pending++;
}

static struct tn_block *queue_pop(struct tn_stream_waits *waits, struct tn_event_queue *queue)
{
    struct tn_pending_event *first = &queue->ring[queue->head];

    queue->head = (queue->head + 1) % queue->capacity;
    queue->count--;
    waits->pending--;
    waits->events[waits->event_count++] = first->event; /* room was made when it was taken */
    return first->block;
}

/* An event from the pool or a new one. The pool has room for every event: those in it and those
 * pending are never more than the largest number ever pending, and one. */
static enum tarn_status event_take(struct tn_stream_waits *waits, tn_event_handle *event_out,
                                   struct tarn_error *error)
{
    if (waits->event_count > 0) {
        *event_out = waits->events[--waits->event_count];
        return TARN_OK;
    }
    /* Every event needs a place in the pool once it is done. */
    if (!array_reserve(&waits->events, &waits->event_capacity, (uint32_t)waits->pending + 1,
                       sizeof *waits->events)) {
        return tn_fail_memory(error);
    }
    const enum tarn_status st =
        waits->heap->device->ops->event_create(waits->heap->device, event_out);

    return st ? tn_heap_device_failed(waits->heap, st, "creating an event", error) : TARN_OK;
}

/* Takes back the newest event of the stream's queue. */
static void queue_unpush(struct tn_stream_waits *waits, tarn_stream stream)
{
    struct tn_event_queue *queue = waits_find_queue(waits, stream);

    tn_assert(queue && queue->count > 0);
    if (tn_always(queue)) {
        queue->count--;
        waits->pending--;
        waits->events[waits->event_count++] =
            queue->ring[(queue->head + queue->count) % queue->capacity].event;
    }
}

/* Records an event on one stream and queues it. On failure nothing changed. */
static enum tarn_status uses_insert_event(struct tn_stream_waits *waits, struct tn_block *block,
                                          tarn_stream stream, struct tarn_error *error)
{
    struct tn_event_queue *queue = waits_reserve_queue(waits, stream);
    tn_event_handle event = 0;

    if (!queue) {
        return tn_fail_memory(error);
    }
    enum tarn_status st = event_take(waits, &event, error);

    if (st) {
        return st;
    }
    st = waits->heap->device->ops->event_record(waits->heap->device, event, stream);
    if (st) {
        waits->events[waits->event_count++] = event;
        return tn_heap_device_failed(waits->heap, st, "recording an event", error);
    }
    queue_push(waits, queue, event, block);
    return TARN_OK;
}

/* Turns the block's streams into events. On failure nothing changed. */
static enum tarn_status uses_insert_events(struct tn_stream_waits *waits, struct tn_block *block,
                                           struct tarn_error *error)
{
    struct tn_stream_uses *uses = uses_of(waits, block);

    for (uint32_t i = 0; i < uses->count; i++) {
        const enum tarn_status st = uses_insert_event(waits, block, uses->streams[i].stream, error);

        if (st) {
            while (i > 0) {
                queue_unpush(waits, uses->streams[--i].stream);
            }
            return st;
        }
    }
    uses->event_count += uses->count;
    uses->count = 0;
    return TARN_OK;
}

/* Notes what the graph has to prove before the block can be reused. Leaves no marks if one of its
 * streams is in no capture or in another one, or if nothing has been captured yet. */
static enum tarn_status uses_mark(struct tn_stream_waits *waits, const struct tn_block *block,
                                  struct tarn_error *error)
{
    struct tn_stream_uses *uses = uses_of(waits, block);
    struct tn_capture_marks *marks = &uses->marks;
    enum tarn_status st =
        tn_capture_marks_add(&waits->order, waits->heap->device, marks, block->set->stream, error);

    for (uint32_t i = 0; st == TARN_OK && marks->capture != 0 && i < uses->count; i++) {
        st = tn_capture_marks_add(&waits->order, waits->heap->device, marks,
                                  uses->streams[i].stream, error);
    }
    if (st || marks->nodes.count == 0) {
        tn_capture_marks_drop(marks);
    }
    return st;
}

enum tarn_status tn_stream_use_release(struct tn_stream_waits *waits, struct tn_block *block,
                                       bool capturing, struct tarn_error *error)
{
    if (!capturing) {
        return uses_insert_events(waits, block, error);
    }
    if (!array_reserve(&waits->deferred, &waits->deferred_capacity, waits->deferred_count + 1,
                       sizeof(struct tn_block *))) {
        return tn_fail_memory(error);
    }
    if (waits->heap->config.graph_capture_record_stream_reuse) {
        const enum tarn_status st = uses_mark(waits, block, error);

        if (st) {
            return st;
        }
    }
    waits->deferred[waits->deferred_count++] = block;
    return TARN_OK;
}

bool tn_stream_waits_reserve_deferred(struct tn_stream_waits *waits, uint64_t count)
{
    return count < UINT32_MAX / 4 &&
           array_reserve(&waits->deferred, &waits->deferred_capacity,
                         waits->deferred_count + (uint32_t)count, sizeof(struct tn_block *));
}

void tn_stream_use_defer(struct tn_stream_waits *waits, struct tn_block *block)
{
    struct tn_stream_uses *uses = uses_of(waits, block);

    tn_assert(waits->deferred_count < waits->deferred_capacity);
    for (uint32_t i = 0; i < uses->count; i++) {
        uses->streams[i].captured = false; /* all of them are waited for, as in a free that is not
                                              deferred */
    }
    waits->deferred[waits->deferred_count++] = block;
}

/* Drops the streams that were recorded during a capture. */
static void uses_drop_captured(struct tn_stream_uses *uses)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < uses->count; i++) {
        if (!uses->streams[i].captured) {
            uses->streams[kept++] = uses->streams[i];
        }
    }
    uses->count = kept;
}

enum tarn_status tn_stream_waits_insert_deferred(struct tn_stream_waits *waits, uint64_t stack,
                                                 struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;
    uint32_t done = 0;

    for (; done < waits->deferred_count; done++) {
        struct tn_block *block = waits->deferred[done];

        uses_drop_captured(uses_of(waits, block));
        st = uses_insert_events(waits, block, error);
        if (st) {
            break;
        }
        tn_capture_marks_drop(&uses_of(waits, block)->marks);
        if (uses_of(waits, block)->event_count == 0) {
            uses_detach(waits, block);
            tn_heap_complete_free(waits->heap, block, stack);
        }
    }
    if (done > 0) {
        waits->deferred_count -= done;
        memmove(waits->deferred, waits->deferred + done,
                waits->deferred_count * sizeof(struct tn_block *));
    }
    return st;
}

/* Whether the graph could prove something about a deferred block of the stream. */
static bool waits_can_reclaim(const struct tn_stream_waits *waits, tarn_stream stream)
{
    for (uint32_t i = 0; i < waits->deferred_count; i++) {
        const struct tn_block *block = waits->deferred[i];

        if (block->set->stream == stream && uses_of(waits, block)->marks.capture != 0) {
            return true;
        }
    }
    return false;
}

enum tarn_status tn_stream_waits_reclaim(struct tn_stream_waits *waits, tarn_stream stream,
                                         uint64_t stack, struct tarn_error *error)
{
    const struct tn_capture_view *view = NULL;
    uint32_t kept = 0;

    if (!waits->heap->config.graph_capture_record_stream_reuse ||
        !waits_can_reclaim(waits, stream)) {
        return TARN_OK;
    }
    const enum tarn_status st =
        tn_capture_order_look(&waits->order, waits->heap->device, stream, &view, error);

    if (st || !view) {
        return st;
    }
    for (uint32_t i = 0; i < waits->deferred_count; i++) {
        struct tn_block *block = waits->deferred[i];

        if (block->set->stream == stream &&
            tn_capture_view_covers(view, &uses_of(waits, block)->marks)) {
            uses_detach(waits, block);
            tn_heap_complete_free(waits->heap, block, stack);
        } else {
            waits->deferred[kept++] = block;
        }
    }
    waits->deferred_count = kept;
    return TARN_OK;
}

/* One event of the block is done. */
static void uses_event_done(struct tn_stream_waits *waits, struct tn_block *block, uint64_t stack)
{
    struct tn_stream_uses *uses = uses_of(waits, block);

    tn_assert(uses->event_count > 0);
    if (--uses->event_count == 0) {
        uses_detach(waits, block);
        tn_heap_complete_free(waits->heap, block, stack);
    }
}

enum tarn_status tn_stream_waits_process(struct tn_stream_waits *waits, uint64_t stack,
                                         struct tarn_error *error)
{
    enum tarn_status st = waits->failed_query;

    waits->failed_query = TARN_OK;
    if (tn_unlikely(st)) {
        return tn_heap_device_failed(waits->heap, st, "querying an event", error);
    }
    if (tn_unlikely(waits->deferred_count > 0)) {
        st = tn_stream_waits_insert_deferred(waits, stack, error);
    }
    for (uint32_t i = 0; st == TARN_OK && i < waits->queue_count && waits->pending > 0; i++) {
        while (waits->queues[i].count > 0) {
            struct tn_event_queue *queue = &waits->queues[i];

            st = waits->heap->device->ops->event_query(waits->heap->device,
                                                       queue->ring[queue->head].event);
            if (st) {
                break;
            }
            uses_event_done(waits, queue_pop(waits, queue), stack);
        }
        if (st == TARN_ERR_NOT_READY) {
            st = TARN_OK;
        } else if (st) {
            st = tn_heap_device_failed(waits->heap, st, "querying an event", error);
        }
    }
    return st;
}

bool tn_stream_waits_is_any_done(struct tn_stream_waits *waits)
{
    struct tarn_device *device = waits->heap->device;

    for (uint32_t i = 0; i < waits->queue_count; i++) {
        const struct tn_event_queue *queue = &waits->queues[i];
        const enum tarn_status st =
            queue->count > 0 ? device->ops->event_query(device, queue->ring[queue->head].event)
                             : TARN_ERR_NOT_READY;

        if (st != TARN_ERR_NOT_READY) {
            waits->failed_query = st;
            return true;
        }
    }
    return false;
}

enum tarn_status tn_stream_waits_wait_one(struct tn_stream_waits *waits, uint64_t stack,
                                          bool *waited_out, struct tarn_error *error)
{
    struct tarn_device *device = waits->heap->device;
    enum tarn_status st = tn_stream_waits_insert_deferred(waits, stack, error);

    *waited_out = st == TARN_OK && waits->pending > 0;
    if (!*waited_out) {
        return st;
    }
    const struct tn_event_queue *queue = waits->queues;

    while (queue->count == 0) { /* one has the events that are pending */
        queue++;
    }
    st = device->ops->event_wait(device, queue->ring[queue->head].event);
    return st ? tn_heap_device_failed(waits->heap, st, "waiting for an event", error)
              : tn_stream_waits_process(waits, stack, error);
}

static bool block_belongs_to(const struct tn_block *block, const struct tn_private_pool *owner)
{
    return !owner || block->set->pool->owner == owner;
}

/* Waits for the events of one queue that belong to the pool; the others stay in their order. */
static enum tarn_status queue_drain(struct tn_stream_waits *waits, uint32_t index,
                                    const struct tn_private_pool *owner, uint64_t stack,
                                    struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    for (uint32_t left = waits->queues[index].count; left > 0; left--) {
        struct tn_event_queue *queue = &waits->queues[index];
        const struct tn_pending_event first = queue->ring[queue->head];

        if (!block_belongs_to(first.block, owner)) {
            queue->head = (queue->head + 1) % queue->capacity;
            queue->ring[(queue->head + queue->count - 1) % queue->capacity] = first;
            continue;
        }
        if (st == TARN_OK) {
            st = waits->heap->device->ops->event_wait(waits->heap->device, first.event);
        }
        if (st) { /* rotate the rest, so that the order stays */
            queue->head = (queue->head + 1) % queue->capacity;
            queue->ring[(queue->head + queue->count - 1) % queue->capacity] = first;
            continue;
        }
        uses_event_done(waits, queue_pop(waits, queue), stack);
    }
    return st ? tn_heap_device_failed(waits->heap, st, "waiting for an event", error) : TARN_OK;
}

enum tarn_status tn_stream_waits_drain(struct tn_stream_waits *waits,
                                       const struct tn_private_pool *owner, uint64_t stack,
                                       struct tarn_error *error)
{
    enum tarn_status st = tn_stream_waits_insert_deferred(waits, stack, error);

    for (uint32_t i = 0; st == TARN_OK && i < waits->queue_count; i++) {
        st = queue_drain(waits, i, owner, stack, error);
    }
    return st;
}

const struct tn_event_queue *tn_stream_waits_find(const struct tn_stream_waits *waits,
                                                  tarn_stream stream)
{
    return waits_find_queue(waits, stream);
}

bool tn_stream_use_will_wait(const struct tn_stream_waits *waits, const struct tn_block *block,
                             tarn_stream stream)
{
    const struct tn_used_stream *used = uses_find(uses_of(waits, block), stream);

    return used && !used->captured;
}

bool tn_stream_use_waits(const struct tn_stream_waits *waits, const struct tn_block *block)
{
    const struct tn_stream_uses *uses = uses_of(waits, block);
    bool any = false;

    for (uint32_t i = 0; i < uses->count; i++) {
        any = any || !uses->streams[i].captured;
    }
    return any;
}

void tn_stream_waits_sort_deferred(struct tn_stream_waits *waits,
                                   uint64_t (*place)(void *context, const struct tn_block *block),
                                   void *context)
{
    struct tn_block **deferred = waits->deferred;

    for (uint32_t i = 1; i < waits->deferred_count; i++) {
        struct tn_block *block = deferred[i];
        const uint64_t own = place(context, block);
        uint32_t at = i;

        for (; at > 0 && place(context, deferred[at - 1]) > own; at--) {
            deferred[at] = deferred[at - 1];
        }
        deferred[at] = block;
    }
}

void tn_stream_waits_order(struct tn_stream_waits *waits, const tarn_stream *streams,
                           uint32_t count)
{
    uint32_t placed = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct tn_event_queue *queue = waits_reserve_queue(waits, streams[i]);

        if (queue && queue >= &waits->queues[placed]) {
            const struct tn_event_queue moved = *queue;

            memmove(&waits->queues[placed + 1], &waits->queues[placed],
                    (size_t)(queue - &waits->queues[placed]) * sizeof moved);
            waits->queues[placed++] = moved;
        }
    }
}

void tn_stream_waits_fini(struct tn_stream_waits *waits)
{
    const struct tn_device_ops *ops = waits->heap->device->ops;

    for (uint32_t i = 0; i < waits->queue_count; i++) {
        struct tn_event_queue *queue = &waits->queues[i];

        for (uint32_t k = 0; k < queue->count; k++) {
            (void)ops->event_destroy(waits->heap->device,
                                     queue->ring[(queue->head + k) % queue->capacity].event);
        }
        tn_host_free(queue->ring, queue->capacity * sizeof *queue->ring);
    }
    for (uint32_t i = 0; i < waits->event_count; i++) {
        (void)ops->event_destroy(waits->heap->device, waits->events[i]);
    }
    for (uint32_t i = 1; i < waits->record_count; i++) {
        tn_host_free(waits->records[i].streams,
                     waits->records[i].capacity * sizeof(struct tn_used_stream));
        tn_capture_marks_fini(&waits->records[i].marks);
    }
    tn_host_free(waits->queues, waits->queue_capacity * sizeof *waits->queues);
    tn_host_free(waits->events, waits->event_capacity * sizeof *waits->events);
    tn_host_free(waits->records, waits->record_capacity * sizeof *waits->records);
    tn_host_free(waits->deferred, waits->deferred_capacity * sizeof(struct tn_block *));
    tn_capture_order_fini(&waits->order);
    *waits = (struct tn_stream_waits){.heap = waits->heap};
}
