/* SPDX-License-Identifier: MIT */
#include "alloc/pool/sinks.h"

#include "alloc/pool/segment.h"

/* Makes what is read without the lock agree with the slots. */
static void sinks_publish(struct tn_heap *heap)
{
    const struct tarn_sink *capturer = NULL;
    enum tarn_context_level level = TARN_CONTEXT_NEVER;
    unsigned on = 0;

    for (unsigned i = 0; i < TARN_SINKS_MAX; i++) {
        const struct tn_sink *slot = &heap->sinks[i];

        if (slot->taken && slot->sink.capture) {
            capturer = &slot->sink;
            level = slot->on ? slot->sink.level : TARN_CONTEXT_NEVER;
        }
        if (slot->taken && slot->on) {
            heap->sinks_on[on++] = &slot->sink;
        }
    }
    atomic_store_explicit(&heap->capturer, capturer, memory_order_release);
    atomic_store(&heap->level, (int)level); /* before captures are counted: sinks.h */
    atomic_store_explicit(&heap->sink_count, on, memory_order_relaxed);
}

enum tarn_status tn_sinks_add(struct tn_heap *heap, const struct tarn_sink *sink,
                              struct tarn_error *error)
{
    struct tn_sink *slot = NULL;

    if (sink->capture && atomic_load_explicit(&heap->capturer, memory_order_relaxed)) {
        return tn_fail(error, TARN_ERR_STATE,
                       "another sink already captures stacks: remove it first");
    }
    for (unsigned i = TARN_SINKS_MAX; i > 0; i--) {
        slot = heap->sinks[i - 1].taken ? slot : &heap->sinks[i - 1];
    }
    if (!slot) {
        return tn_fail(error, TARN_ERR_LIMIT, "an allocator takes at most %d sinks",
                       TARN_SINKS_MAX);
    }
    *slot = (struct tn_sink){.sink = *sink, .taken = true, .on = true};
    sinks_publish(heap);
    return TARN_OK;
}

static enum tarn_status sink_unknown(struct tarn_error *error)
{
    return tn_fail(error, TARN_ERR_NOT_FOUND, "no sink has that context");
}

/* One that is leaving is there no more for callers. */
static bool slot_has(const struct tn_sink *slot, const void *context)
{
    return slot->taken && !slot->leaving && slot->sink.context == context;
}

enum tarn_status tn_sinks_set(struct tn_heap *heap, const void *context, bool on,
                              enum tarn_context_level level, struct tarn_error *error)
{
    unsigned found = 0;

    for (unsigned i = 0; i < TARN_SINKS_MAX; i++) {
        struct tn_sink *slot = &heap->sinks[i];

        if (slot_has(slot, context)) {
            slot->on = on;
            slot->sink.level = level;
            found++;
        }
    }
    sinks_publish(heap);
    return found > 0 ? TARN_OK : sink_unknown(error);
}

/* Drops the stacks of all blocks and segments. */
static void drop_all_stacks(struct tn_heap *heap)
{
    for (struct tn_segment *s = tn_segment_first(heap); s; s = tn_segment_next(s)) {
        tn_heap_drop_stack(heap, s->stack);
        s->stack = 0;
        for (struct tn_block *block = s->first; block; block = block->next) {
            if (tn_block_is_active(block)) {
                tn_heap_drop_stack(heap, block->u.stack);
                block->u.stack = 0;
            }
        }
    }
}

enum tarn_status tn_sinks_begin_removal(struct tn_heap *heap, const void *context,
                                        struct tarn_error *error)
{
    unsigned found = 0;

    for (unsigned i = 0; i < TARN_SINKS_MAX; i++) {
        struct tn_sink *slot = &heap->sinks[i];

        if (slot_has(slot, context)) {
            slot->on = false;
            slot->leaving = true;
            found++;
        }
    }
    sinks_publish(heap);
    return found > 0 ? TARN_OK : sink_unknown(error);
}

static bool slot_leaves(const struct tn_sink *slot, const void *context)
{
    return slot->taken && slot->leaving && slot->sink.context == context;
}

bool tn_sinks_may_leave(const struct tn_heap *heap, const void *context)
{
    bool captures = false;

    for (unsigned i = 0; i < TARN_SINKS_MAX; i++) {
        const struct tn_sink *slot = &heap->sinks[i];

        captures = captures || (slot_leaves(slot, context) && slot->sink.capture);
    }
    return !captures || atomic_load(&heap->captures) == 0;
}

void tn_sinks_end_removal(struct tn_heap *heap, const void *context)
{
    for (unsigned i = 0; i < TARN_SINKS_MAX; i++) {
        struct tn_sink *slot = &heap->sinks[i];

        if (slot_leaves(slot, context)) {
            if (slot->sink.capture) {
                drop_all_stacks(heap);
            }
            slot->taken = false;
        }
    }
    sinks_publish(heap);
}

void tn_sinks_cancel_removal(struct tn_heap *heap, const void *context)
{
    for (unsigned i = 0; i < TARN_SINKS_MAX; i++) {
        if (slot_leaves(&heap->sinks[i], context)) {
            heap->sinks[i].leaving = false;
        }
    }
}

void tn_sinks_yield(struct tn_heap *heap, const void *context)
{
    for (unsigned i = 0; i < TARN_SINKS_MAX; i++) {
        if (slot_has(&heap->sinks[i], context)) {
            heap->sinks[i].yields = true;
        }
    }
}

const void *tn_sinks_yielding(const struct tn_heap *heap)
{
    for (unsigned i = 0; i < TARN_SINKS_MAX; i++) {
        const struct tn_sink *slot = &heap->sinks[i];

        if (slot->taken && slot->yields && !slot->leaving && slot->sink.capture) {
            return slot->sink.context;
        }
    }
    return NULL;
}

/* ---- for heap.h ---- */

static void heap_send(const struct tn_heap *heap, const struct tarn_trace_event *event)
{
    const unsigned count = atomic_load_explicit(&heap->sink_count, memory_order_relaxed);

    for (unsigned i = 0; i < count; i++) {
        heap->sinks_on[i]->receive(heap->sinks_on[i]->context, event);
    }
}

/* The stack that an event shows. */
static uint64_t stack_shown(const struct tn_heap *heap, uint64_t stack)
{
    const int level = atomic_load_explicit(&heap->level, memory_order_relaxed);

    return level >= (int)TARN_CONTEXT_ALLOC ? stack : 0;
}

static uint64_t pool_word(const struct tn_pool *pool, int word)
{
    if (tn_likely(!pool || !pool->owner)) {
        return 0;
    }
    return word == 0 ? pool->owner->id.first : pool->owner->id.second;
}

/* The thread's text; where it has none, the name of the pool. */
static const char *metadata_of(const struct tn_pool *pool)
{
    const char *text = tarn_get_user_metadata();

    return tn_likely(!pool || !pool->owner) || text[0] ? text : pool->owner->name;
}

static inline struct tarn_trace_event event_make(const struct tn_heap *heap,
                                                 enum tarn_action action, uint64_t address,
                                                 uint64_t size, tarn_stream stream,
                                                 const struct tn_pool *pool, uint64_t stack)
{
    return (struct tarn_trace_event){
        .action = action,
        .device = heap->device->ordinal,
        .address = address,
        .size = size,
        .stream = stream,
        .pool_id = {pool_word(pool, 0), pool_word(pool, 1)},
        .stack = stack_shown(heap, stack),
        .compile_context = tarn_get_compile_context(),
        .user_metadata = metadata_of(pool),
    };
}

void tn_heap_emit_slow(struct tn_heap *heap, enum tarn_action action, uint64_t address,
                       uint64_t size, tarn_stream stream, const struct tn_pool *pool,
                       uint64_t stack)
{
    const struct tarn_trace_event event =
        event_make(heap, action, address, size, stream, pool, stack);

    heap_send(heap, &event);
}

void tn_heap_emit_free(struct tn_heap *heap, uint64_t address, uint64_t size, tarn_stream stream,
                       const struct tn_pool *pool, uint64_t stack)
{
    struct tarn_trace_event event =
        event_make(heap, TARN_ACTION_FREE_REQUESTED, address, size, stream, pool, stack);

    heap_send(heap, &event);
    event.action = TARN_ACTION_FREE_COMPLETED;
    event.same_time = true;
    heap_send(heap, &event);
}

void tn_heap_annotate(struct tn_heap *heap, const struct tn_block *block, const char *text,
                      uint64_t stack)
{
    struct tarn_trace_event event =
        event_make(heap, TARN_ACTION_ANNOTATE, block->address, block->requested_size,
                   block->set->stream, block->set->pool, stack);

    event.user_metadata = text;
    heap_send(heap, &event);
}

uint64_t tn_heap_capture_slow(struct tn_heap *heap, enum tarn_context_level level)
{
    const struct tarn_sink *sink = NULL;

    (void)atomic_fetch_add(&heap->captures, 1);
    if (atomic_load(&heap->level) >= (int)level) {
        sink = atomic_load_explicit(&heap->capturer, memory_order_acquire);
    }
    const uint64_t stack = sink ? sink->capture(sink->context, level) : 0;

    if (stack == 0) {
        (void)atomic_fetch_sub_explicit(&heap->captures, 1, memory_order_release);
    }
    return stack;
}

void tn_heap_retain_slow(const struct tn_heap *heap, uint64_t stack)
{
    const struct tarn_sink *sink = atomic_load_explicit(&heap->capturer, memory_order_relaxed);

    if (tn_always(sink) && sink->retain) { /* it stays until no stack is left */
        sink->retain(sink->context, stack);
    }
}

void tn_heap_release_slow(const struct tn_heap *heap, uint64_t stack)
{
    const struct tarn_sink *sink = atomic_load_explicit(&heap->capturer, memory_order_relaxed);

    if (tn_always(sink) && sink->release) {
        sink->release(sink->context, stack);
    }
}
