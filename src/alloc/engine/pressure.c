/* SPDX-License-Identifier: MIT */
/* Implements tarn/pressure.h; the ladder calls the callbacks. */
#include "tarn/pressure.h"

#include "alloc/engine/allocator.h"

enum tarn_status tarn_allocator_set_limit(struct tarn_allocator *allocator, uint64_t bytes,
                                          struct tarn_error *error)
{
    struct tn_engine *engine = NULL;
    const enum tarn_status st = tn_allocator_need_engine(allocator, "a limit", &engine, error);

    if (st) {
        return st;
    }
    tn_engine_lock(engine);
    engine->heap.limit = bytes;
    tn_engine_unlock(engine);
    return TARN_OK;
}

enum tarn_status tarn_allocator_set_soft_limit(struct tarn_allocator *allocator, uint64_t bytes,
                                               struct tarn_error *error)
{
    struct tn_engine *engine = NULL;
    const enum tarn_status st = tn_allocator_need_engine(allocator, "a soft limit", &engine, error);

    if (st) {
        return st;
    }
    tn_engine_lock_for(engine, TN_FLUSH_COUNTERS);
    engine->soft_limit = bytes;
    tn_engine_unlock(engine);
    return TARN_OK;
}

uint64_t tarn_allocator_get_soft_limit(struct tarn_allocator *allocator)
{
    struct tn_engine *engine = NULL;

    if (tn_allocator_need_engine(allocator, "a soft limit", &engine, NULL)) {
        return TARN_SIZE_UNLIMITED;
    }
    tn_engine_lock_for(engine, TN_FLUSH_COUNTERS);
    const uint64_t bytes = engine->soft_limit;

    tn_engine_unlock(engine);
    return bytes;
}

/* ---- callbacks ---- */

enum tarn_status tarn_allocator_add_pressure_callback(struct tarn_allocator *allocator,
                                                      tarn_pressure_callback callback,
                                                      void *context)
{
    struct tn_engine *engine = NULL;
    enum tarn_status st = tn_allocator_need_engine(allocator, "a callback", &engine, NULL);

    if (st == TARN_OK) {
        tn_engine_lock_for(engine, TN_FLUSH_COUNTERS);
        st = tn_callback_add(&engine->pressures, (tn_any_function)callback, context);
        tn_engine_unlock(engine);
    }
    return st;
}

/* From the list at this offset in the engine. */
static enum tarn_status list_remove(struct tarn_allocator *allocator, size_t offset,
                                    tn_any_function call, const void *context)
{
    struct tn_engine *engine = NULL;
    enum tarn_status st = tn_allocator_need_engine(allocator, "a callback", &engine, NULL);

    if (st == TARN_OK) {
        tn_engine_lock_for(engine, TN_FLUSH_COUNTERS);
        st = tn_callback_remove((struct tn_callback_list *)(void *)((char *)engine + offset), call,
                                context);
        tn_engine_unlock(engine);
    }
    return st;
}

enum tarn_status tarn_allocator_remove_pressure_callback(struct tarn_allocator *allocator,
                                                         tarn_pressure_callback callback,
                                                         void *context)
{
    return list_remove(allocator, offsetof(struct tn_engine, pressures), (tn_any_function)callback,
                       context);
}

enum tarn_status tarn_allocator_remove_oom_observer(struct tarn_allocator *allocator,
                                                    tarn_oom_observer observer, void *context)
{
    return list_remove(allocator, offsetof(struct tn_engine, observers), (tn_any_function)observer,
                       context);
}

enum tarn_status tarn_allocator_remove_memory_callback(struct tarn_allocator *allocator,
                                                       tarn_memory_callback callback, void *context)
{
    return list_remove(allocator, offsetof(struct tn_engine, callbacks), (tn_any_function)callback,
                       context);
}
