/* SPDX-License-Identifier: MIT */
/*
 * The fast path: most calls need nothing but a free block and change nothing else. It may serve a
 * call or decline it; the engine then serves it from the start. It decides exactly as the engine
 * does.
 *
 * Three functions: allocate (from the default pools or from one that is named), free, and flush,
 * which does the work that the first two have postponed. A build with TN_FAST_PATH 0 leaves all of
 * it out.
 */
#ifndef TN_ALLOC_FAST_FAST_H
#define TN_ALLOC_FAST_FAST_H

#include "alloc/config/fast_path.h"
#include "alloc/fast/serve.h"
#include "alloc/fast/stream_cache.h"
#include "alloc/fast/undo_log.h"
#include "alloc/pool/heap.h"

/* What the holder of the heap's lock needs flushed. */
enum tn_flush {
    TN_FLUSH_END,      /* nothing: the lock is about to be released */
    TN_FLUSH_COUNTERS, /* the counters are up to date */
    TN_FLUSH_BLOCKS,   /* and every block that looks allocated is */
    TN_FLUSH_ALL       /* and nothing is kept: blocks, settings and receivers may be changed */
};

#if TN_FAST_PATH

/* While the heap is TN_BUSY_SOME: whether a request on this stream may find other free blocks than
 * the present ones, or those of another pool. Under the lock; may query the device. */
typedef bool (*tn_fast_concerns)(struct tn_heap *heap, tarn_stream stream);

struct tn_fast {
    struct tn_undo_log log; /* of streams without a cache */
    struct tn_stream_caches caches;
    tn_fast_concerns concerns;
};

void tn_fast_init(struct tn_fast *fast, struct tn_heap *heap, tn_fast_concerns concerns);

/* Everything must have been flushed. */
void tn_fast_fini(struct tn_fast *fast);

/* The logs, for checkers: 0 is that of the streams without a cache. */
static inline uint32_t tn_fast_log_count(const struct tn_fast *fast)
{
    return 1 + fast->caches.count;
}

static inline const struct tn_undo_log *tn_fast_log(const struct tn_fast *fast, uint32_t i)
{
    return i == 0 ? &fast->log : &fast->caches.list[i - 1]->log;
}

static inline bool tn_fast_has_caches(const struct tn_fast *fast)
{
    return tn_unlikely(atomic_load_explicit(&fast->caches.open, memory_order_relaxed));
}

bool tn_fast_alloc_slow(struct tn_fast *fast, struct tn_heap *heap, uint64_t size,
                        tarn_stream stream, uint64_t *stack, tarn_ptr *ptr_out);
bool tn_fast_alloc_miss(struct tn_fast *fast, struct tn_heap *heap, uint64_t size,
                        tarn_stream stream, tarn_ptr *ptr_out);
bool tn_fast_alloc_in_miss(struct tn_fast *fast, struct tn_heap *heap,
                           struct tn_private_pool *owner, uint64_t size, tarn_stream stream,
                           tarn_ptr *ptr_out);
bool tn_fast_free_slow(struct tn_fast *fast, struct tn_heap *heap, tarn_ptr ptr, uint64_t *stack);
void tn_fast_flush_caches(struct tn_fast *fast, struct tn_heap *heap, enum tn_flush what);

static inline bool tn_fast_is_busy(const struct tn_heap *heap, unsigned ignored)
{
    return tn_unlikely((atomic_load_explicit(&heap->busy, memory_order_relaxed) & ~ignored) != 0);
}

/* Takes the lock if nothing but bits of `ignored` is unusual. False, and the lock is not held, if
 * something is. */
static inline bool tn_fast_enter(struct tn_heap *heap, unsigned ignored)
{
    if (!TN_FAST_HAS(TN_PART_SHORT_WAY) || tn_fast_is_busy(heap, ignored)) {
        return false;
    }
    tn_biased_lock_acquire(&heap->lock);
    if (!tn_fast_is_busy(heap, ignored)) {
        return true;
    }
    tn_biased_lock_release(&heap->lock);
    return false;
}

/* What the log does not serve. As tn_fast_alloc_miss, it releases the lock, which is held. Inline:
 * replays gain 1 to 3 %. That of an allocation, inline, would make the hot pair a sixth slower. */
static TN_INLINE bool tn_fast_free_miss(struct tn_fast *fast, struct tn_heap *heap, tarn_ptr ptr)
{
    if (!tn_undo_log_is_empty(&fast->log)) {
        tn_undo_log_count(&fast->log, &heap->shard.counters);
        tn_undo_log_invalidate(heap, &heap->shard, &fast->log);
    }
    const struct tn_map_entry entry = tn_heap_look_up(heap, ptr);
    const bool served = tn_serve_free(heap, &entry, 0);

    tn_biased_lock_release(&heap->lock);
    return served;
}

/* Takes the lock itself. False, and nothing has changed, if the engine has to serve the call.
 * *stack must be 0; if receivers of events want a stack it is captured here, and is the caller's if
 * the call is not served. */
TN_MUST_CHECK static inline bool tn_fast_alloc(struct tn_fast *fast, struct tn_heap *heap,
                                               uint64_t size, tarn_stream stream, uint64_t *stack,
                                               tarn_ptr *ptr_out)
{
    if (tn_unlikely(!tn_fast_enter(heap, 0))) {
        return tn_fast_alloc_slow(fast, heap, size, stream, stack, ptr_out);
    }
    const struct tn_undo_entry *entry = tn_undo_log_redo(&fast->log, size, stream);

    if (tn_unlikely(!entry)) {
        return tn_fast_alloc_miss(fast, heap, size, stream, ptr_out);
    }
    *ptr_out = entry->address;
    tn_biased_lock_release(&heap->lock);
    return true;
}

/* The same for a request that names its pool, which somebody keeps alive: only while nothing is
 * unusual. */
TN_MUST_CHECK static inline bool tn_fast_alloc_in(struct tn_fast *fast, struct tn_heap *heap,
                                                  struct tn_private_pool *owner, uint64_t size,
                                                  tarn_stream stream, tarn_ptr *ptr_out)
{
    if (tn_unlikely(!tn_fast_enter(heap, 0))) {
        return false;
    }
    const struct tn_undo_entry *entry = tn_undo_log_redo_in(&fast->log, owner, size, stream);

    if (tn_unlikely(!entry)) {
        return tn_fast_alloc_in_miss(fast, heap, owner, size, stream, ptr_out);
    }
    *ptr_out = entry->address;
    tn_biased_lock_release(&heap->lock);
    return true;
}

/* As tn_fast_alloc. What other blocks wait for, and where requests go, does not concern a free. */
TN_MUST_CHECK static inline bool tn_fast_free(struct tn_fast *fast, struct tn_heap *heap,
                                              tarn_ptr ptr, uint64_t *stack)
{
    if (tn_unlikely(!tn_fast_enter(heap, TN_BUSY_SOME))) {
        return tn_fast_free_slow(fast, heap, ptr, stack);
    }
    if (tn_unlikely(!tn_undo_log_undo(&fast->log, ptr))) {
        return tn_fast_free_miss(fast, heap, ptr);
    }
    tn_biased_lock_release(&heap->lock);
    return true;
}

/* Under the lock, after taking it and before releasing it. */
static inline void tn_fast_flush(struct tn_fast *fast, struct tn_heap *heap, enum tn_flush what)
{
    if (tn_fast_has_caches(fast)) {
        tn_fast_flush_caches(fast, heap, what);
        return;
    }
    if (what >= TN_FLUSH_COUNTERS) {
        tn_undo_log_count(&fast->log, &heap->shard.counters);
    }
    if (what >= TN_FLUSH_BLOCKS) {
        tn_undo_log_flush(heap, &heap->shard, &fast->log);
    }
    if (what == TN_FLUSH_ALL && fast->log.end > 0) {
        tn_undo_log_clear(&fast->log);
    }
}

#else

struct tn_fast {
    char unused;
};

typedef bool (*tn_fast_concerns)(struct tn_heap *heap, tarn_stream stream);

static inline void tn_fast_init(struct tn_fast *fast, struct tn_heap *heap,
                                tn_fast_concerns concerns)
{
    (void)fast;
    (void)concerns;
    tn_biased_lock_set_bias(&heap->lock, false);
}

static inline void tn_fast_fini(struct tn_fast *fast)
{
    (void)fast;
}

static inline uint32_t tn_fast_log_count(const struct tn_fast *fast)
{
    (void)fast;
    return 0;
}

static inline const struct tn_undo_log *tn_fast_log(const struct tn_fast *fast, uint32_t i)
{
    (void)fast;
    (void)i;
    return NULL;
}

static inline bool tn_fast_has_caches(const struct tn_fast *fast)
{
    (void)fast;
    return false;
}

TN_MUST_CHECK static inline bool tn_fast_alloc(struct tn_fast *fast, struct tn_heap *heap,
                                               uint64_t size, tarn_stream stream, uint64_t *stack,
                                               tarn_ptr *ptr_out)
{
    (void)fast;
    (void)heap;
    (void)size;
    (void)stream;
    (void)stack;
    (void)ptr_out;
    return false;
}

TN_MUST_CHECK static inline bool tn_fast_alloc_in(struct tn_fast *fast, struct tn_heap *heap,
                                                  struct tn_private_pool *owner, uint64_t size,
                                                  tarn_stream stream, tarn_ptr *ptr_out)
{
    (void)fast;
    (void)heap;
    (void)owner;
    (void)size;
    (void)stream;
    (void)ptr_out;
    return false;
}

TN_MUST_CHECK static inline bool tn_fast_free(struct tn_fast *fast, struct tn_heap *heap,
                                              tarn_ptr ptr, uint64_t *stack)
{
    (void)fast;
    (void)heap;
    (void)ptr;
    (void)stack;
    return false;
}

static inline void tn_fast_flush(struct tn_fast *fast, struct tn_heap *heap, enum tn_flush what)
{
    (void)fast;
    (void)heap;
    (void)what;
}

#endif

#endif
