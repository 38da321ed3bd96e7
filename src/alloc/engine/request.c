/* SPDX-License-Identifier: MIT */
/*
 * Implements tarn/request.h: requests with options, tries, explanations.
 *
 * A try is an allocation whose ladder has one rung. It first takes the way of every allocation
 * (fast/), then looks again under the lock, completing frees, and grows if it may. What the device
 * refused is remembered for REFUSAL_NS, so that a server that polls does not pay for a device call
 * each time; completed frees and memory given back end that.
 *
 * An alignment above 512 asks for as much more, takes the part of the block found that is aligned
 * and frees what is in front.
 */
#include "alloc/engine/request.h"

#include "alloc/engine/allocator.h"
#include "alloc/engine/core_check.h"
#include "alloc/engine/engine_methods.h"
#include "alloc/engine/ladder.h"
#include "alloc/engine/native.h"
#include "alloc/engine/oom.h"
#include "alloc/engine/pool_handle.h"
#include "base/clock.h"
#include "base/probe.h"
#include "base/sized.h"
#include "tarn/request.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    REFUSAL_NS = 10000000,
    FLAGS_ALL = TARN_ALLOC_TRY | TARN_ALLOC_WITHIN_BUDGET | TARN_ALLOC_NEVER_GROW
};

/* ---- what the device refused ---- */

/* Rises with everything that could make room. */
static int64_t room_made(const struct tn_engine *engine)
{
    const struct tn_counters *counters = &engine->heap.shard.counters;
    const struct tn_counter *out = &counters->bytes.out;

    return counters->totals.num_device_free + out->allocated[TN_SMALL] + out->allocated[TN_LARGE] +
           out->origin[TN_SMALL] + out->origin[TN_LARGE] - tn_counters_active_bytes(counters);
}

static bool refused_lately(const struct tn_engine *engine, uint64_t size)
{
    const struct tn_refusal *refusal = &engine->refusal;

    return refusal->size != 0 && size >= refusal->size &&
           refusal->given_back == room_made(engine) &&
           tn_clock_now_ns() - refusal->at_ns < REFUSAL_NS;
}

/* ---- tries ---- */

/* Under the compact policy a free block in the middle of a hole is left until here. */
static enum tarn_status try_free(struct tn_engine *engine, struct tn_request *request)
{
    return tn_compact_is_on(&engine->heap) && tn_compact_take_free(&engine->compact, request)
               ? TARN_OK
               : TARN_ERR_OUT_OF_MEMORY;
}

static enum tarn_status try_to_grow(struct tn_engine *engine, struct tn_request *request,
                                    unsigned flags)
{
    const bool soft = (flags & TARN_ALLOC_WITHIN_BUDGET) != 0;

    if ((flags & TARN_ALLOC_NEVER_GROW) || refused_lately(engine, request->size)) {
        return try_free(engine, request);
    }
    const enum tarn_status st = tn_ladder_grow(engine, request, soft, NULL);

    if (st == TARN_OK) {
        return tn_ladder_prepare(engine, request, NULL);
    }
    if (st == TARN_ERR_NOT_FOUND && !tn_private_pool_has_source(request->pool->owner) &&
        !tn_ladder_is_limited(engine, request, soft)) {
        engine->refusal = (struct tn_refusal){
            .size = request->size, .at_ns = tn_clock_now_ns(), .given_back = room_made(engine)};
    }
    return st == TARN_ERR_NOT_FOUND ? TARN_ERR_OUT_OF_MEMORY : st;
}

/* ---- allocating ---- */

static bool is_aligned_freely(const struct tn_wish *wish)
{
    return wish->alignment <= TN_MIN_BLOCK_SIZE;
}

/* Finds the block, as far as the wish allows to go for it. */
static enum tarn_status find_block(struct tn_engine *engine, struct tn_request *request,
                                   const struct tn_wish *wish, struct tarn_error *error)
{
    const enum tarn_status st = tn_native_begin(engine, request, wish->owner, error);

    if (st || tn_best_fit(&engine->heap, request)) {
        return st;
    }
    return wish->flags ? try_to_grow(engine, request, wish->flags)
                       : tn_native_find_by_ladder(engine, request, error);
}

/* Allocates from the block found, which is larger by the alignment. */
static enum tarn_status take_aligned(struct tn_engine *engine, struct tn_request *request,
                                     const struct tn_wish *wish, struct tarn_error *error)
{
    struct tn_heap *heap = &engine->heap;
    const struct tn_private_pool *owner = request->pool->owner;
    const uint64_t begin = request->block->address;
    const uint64_t address = (begin + wish->alignment - 1) & ~(wish->alignment - 1);
    enum tarn_status st = TARN_OK;

    if (address != begin &&
        ((owner && owner->no_split) || request->block->size >= heap->config.max_split_size)) {
        st = tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                     "an alignment of %" PRIu64 " bytes needs a block to be split, which the "
                     "settings forbid",
                     wish->alignment);
    } else if (!tn_ptr_map_reserve(&heap->shard.map, 2) ||
               !tn_heap_reserve_spares(heap, &heap->shard, 2) ||
               !tn_stream_waits_reserve_deferred(&engine->waits, 1)) {
        st = tn_fail_memory(error);
    }
    if (st) {
        tn_pool_insert(request->block);
        return st;
    }
    request->requested -= wish->alignment - TN_MIN_BLOCK_SIZE;
    request->size = tn_round_size(request->requested, &heap->config);
    tn_native_take_at(engine, request, address);
    return TARN_OK;
}

static enum tarn_status alloc_locked(struct tn_engine *engine, struct tn_request *request,
                                     const struct tn_wish *wish, struct tarn_error *error)
{
    struct tn_heap *heap = &engine->heap;
    const enum tarn_status st = find_block(engine, request, wish, error);

    if (st) {
        return st;
    }
    if (!is_aligned_freely(wish)) {
        return take_aligned(engine, request, wish, error);
    }
    (void)tn_heap_mark_allocated(heap, &heap->shard, request->block, request->size,
                                 request->requested, tn_request_splits(heap, request),
                                 request->stack);
    return TARN_OK;
}

/* What the fast path has not served. Takes ownership of the stack. */
static enum tarn_status alloc_with_wish(struct tn_engine *engine, struct tn_request *request,
                                        const struct tn_wish *wish, tarn_ptr *ptr_out,
                                        struct tarn_error *error)
{
    const uint64_t stack =
        request->stack ? request->stack : tn_heap_capture(&engine->heap, TARN_CONTEXT_STATE);

    tn_engine_lock(engine);
    request->stack = tn_heap_keep_if_received(&engine->heap, stack);
    const enum tarn_status st = alloc_locked(engine, request, wish, error);

    if ((st == TARN_ERR_NOT_FOUND || st == TARN_ERR_OUT_OF_MEMORY) && !wish->flags) {
        return tn_native_run_out(engine, request, error);
    }
    if (st == TARN_OK) {
        *ptr_out = request->block->address;
        tn_heap_end_capture(&engine->heap, request->stack); /* the block has it */
    } else {
        tn_heap_drop_captured(&engine->heap, request->stack);
    }
    tn_core_assert(engine);
    tn_engine_unlock(engine);
    return st;
}

/* What needs no look at the wish: a free block that is taken on the way of every allocation. */
static bool alloc_fast(struct tn_engine *engine, struct tn_request *request,
                       const struct tn_wish *wish, tarn_ptr *ptr_out)
{
    const uint64_t size = request->requested;

    return wish->owner ? tn_fast_alloc_in(&engine->fast, &engine->heap, wish->owner, size,
                                          request->stream, ptr_out)
                       : tn_fast_alloc(&engine->fast, &engine->heap, size, request->stream,
                                       &request->stack, ptr_out);
}

enum tarn_status tn_request_alloc(struct tn_engine *engine, uint64_t size, tarn_stream stream,
                                  const struct tn_wish *wish, tarn_ptr *ptr_out,
                                  struct tarn_error *error)
{
    const bool aligned = is_aligned_freely(wish);
    struct tn_request request = {.requested = size, .stream = stream};
    enum tarn_status st = TARN_OK;

    if (size >= TN_MAX_REQUEST || wish->alignment >= TN_MAX_REQUEST / 2) {
        return tn_oom_absurd(error);
    }
    request.requested += aligned ? 0 : wish->alignment - TN_MIN_BLOCK_SIZE;
    if (!aligned || !alloc_fast(engine, &request, wish, ptr_out)) {
        st = alloc_with_wish(engine, &request, wish, ptr_out, error);
    }
    TN_PROBE4(malloc, st ? 0 : *ptr_out, engine->heap.device->ordinal, size, stream);
    return st;
}

/* ---- the public functions ---- */

/* Of an engine that has no tries: all of its memory comes from the device. */
static enum tarn_status alloc_plainly(struct tarn_allocator *allocator, uint64_t size,
                                      tarn_stream stream, const struct tn_wish *wish,
                                      tarn_ptr *ptr_out, struct tarn_error *error)
{
    if (wish->flags & TARN_ALLOC_NEVER_GROW) {
        return TARN_ERR_OUT_OF_MEMORY;
    }
    if (!is_aligned_freely(wish)) {
        return tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                       "an alignment above 512 bytes needs the caching allocator");
    }
    return tarn_allocator_alloc(allocator, size, stream, ptr_out, error);
}

static enum tarn_status front_alloc(struct tarn_allocator *allocator, uint64_t size,
                                    tarn_stream stream, const struct tn_wish *wish,
                                    tarn_ptr *ptr_out, struct tarn_error *error)
{
    if (size == 0) {
        *ptr_out = 0;
        return TARN_OK;
    }
    return tn_allocator_is_native(allocator) &&
                   (wish->owner || allocator->methods->is_enabled(allocator))
               ? tn_request_alloc(tn_allocator_engine(allocator), size, stream, wish, ptr_out,
                                  error)
               : alloc_plainly(allocator, size, stream, wish, ptr_out, error);
}

enum tarn_status tarn_alloc_try(struct tarn_allocator *allocator, uint64_t size, tarn_stream stream,
                                unsigned flags, tarn_ptr *ptr_out)
{
    const struct tn_wish wish = {.flags = flags | TARN_ALLOC_TRY};

    return flags & ~(unsigned)FLAGS_ALL
               ? TARN_ERR_INVALID_ARGUMENT
               : front_alloc(allocator, size, stream, &wish, ptr_out, NULL);
}

enum tarn_status tarn_pool_alloc_try(struct tarn_pool *pool, uint64_t size, tarn_stream stream,
                                     unsigned flags, tarn_ptr *ptr_out)
{
    const struct tn_wish wish = {.owner = pool->pool, .flags = flags | TARN_ALLOC_TRY};

    return flags & ~(unsigned)FLAGS_ALL
               ? TARN_ERR_INVALID_ARGUMENT
               : front_alloc(pool->allocator, size, stream, &wish, ptr_out, NULL);
}

static enum tarn_status options_check(const struct tarn_allocator *allocator,
                                      const struct tarn_alloc_options *given,
                                      struct tarn_alloc_options *options, struct tarn_error *error)
{
    if (given && !tn_sized_read(options, sizeof *options, given)) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "struct_size of the options is not set");
    }
    if (options->flags & ~(unsigned)FLAGS_ALL) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "unknown flags 0x%x", options->flags);
    }
    if (options->alignment & (options->alignment - 1)) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "an alignment is a power of two, not %" PRIu64, options->alignment);
    }
    if (options->pool && options->pool->allocator != allocator) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "the pool is another allocator's");
    }
    return TARN_OK;
}

/* With the name as the thread's metadata meanwhile. */
static enum tarn_status alloc_named(struct tarn_allocator *allocator, uint64_t size,
                                    tarn_stream stream, const struct tn_wish *wish,
                                    const char *name, tarn_ptr *ptr_out, struct tarn_error *error)
{
    char before[TARN_LABEL_MAX];

    (void)snprintf(before, sizeof before, "%s", tarn_get_user_metadata());
    enum tarn_status st = tarn_set_user_metadata(name);

    if (st) {
        return tn_fail(error, st, "the name of a block: %s", tarn_status_text(st));
    }
    st = front_alloc(allocator, size, stream, wish, ptr_out, error);
    if (tarn_set_user_metadata(before)) { /* an empty name gave its room away, and none is left */
        (void)!tarn_set_user_metadata("");
    }
    return st;
}

enum tarn_status tarn_alloc_with(struct tarn_allocator *allocator, uint64_t size,
                                 tarn_stream stream, const struct tarn_alloc_options *given,
                                 tarn_ptr *ptr_out, struct tarn_error *error)
{
    struct tarn_alloc_options options = {.struct_size = sizeof options};
    const enum tarn_status st = options_check(allocator, given, &options, error);

    if (st) {
        return st;
    }
    const struct tn_wish wish = {.owner = options.pool ? options.pool->pool : NULL,
                                 .alignment = options.alignment,
                                 .flags = options.flags};

    return options.name ? alloc_named(allocator, size, stream, &wish, options.name, ptr_out, error)
                        : front_alloc(allocator, size, stream, &wish, ptr_out, error);
}

enum tarn_status tarn_alloc_explain(struct tarn_allocator *allocator, uint64_t size,
                                    tarn_stream stream, struct tarn_error *error)
{
    struct tn_request request = {.requested = size, .stream = stream};
    char processes[TN_OOM_PROCESSES_MAX];
    struct tn_engine *engine = NULL;
    const enum tarn_status st =
        tn_allocator_need_engine(allocator, "explaining a failure", &engine, error);

    if (st) {
        return st;
    }
    if (size >= TN_MAX_REQUEST) {
        return tn_oom_absurd(error);
    }
    tn_engine_lock_for(engine, TN_FLUSH_BLOCKS);
    tn_request_route(&engine->heap, &request,
                     tn_private_pool_route(&engine->heap.private_pools, stream));
    request.segment_size = tn_segment_size(request.size, &engine->heap.config);
    struct tarn_oom oom = tn_oom_describe(&engine->heap, &request);
    const struct tn_callback writer = engine->writer;

    tn_engine_unlock(engine);
    tn_oom_complete(engine->heap.device, &oom, processes);
    return tn_oom_write(&oom, &writer, error);
}

enum tarn_status tarn_allocator_set_oom_writer(struct tarn_allocator *allocator,
                                               tarn_oom_writer writer, void *context)
{
    struct tn_engine *engine = NULL;
    const enum tarn_status st =
        tn_allocator_need_engine(allocator, "a text of one's own", &engine, NULL);

    if (st) {
        return st;
    }
    tn_engine_lock_for(engine, TN_FLUSH_COUNTERS);
    engine->writer = (struct tn_callback){.call = (tn_any_function)writer, .context = context};
    tn_engine_unlock(engine);
    return TARN_OK;
}
