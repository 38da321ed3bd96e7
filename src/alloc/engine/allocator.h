/* SPDX-License-Identifier: MIT */
/* The public handle, for the modules that may look inside (capture, replay). */
#ifndef TN_ALLOC_ENGINE_ALLOCATOR_H
#define TN_ALLOC_ENGINE_ALLOCATOR_H

#include "alloc/engine/direct_memory.h"
#include "alloc/engine/engine.h"
#include "alloc/engine/engine_methods.h"
#include "alloc/engine/ipc_cache.h"
#include "alloc/engine/page_info.h"
#include "alloc/watch/publisher.h"
#include "base/os_fork.h"
#include "tarn/allocator.h"

enum {
    TN_KNOWN_STREAMS = 16
};

/* The head of every engine's state. */
struct tarn_allocator {
    const struct tn_engine_methods *methods; /* constant, except in a forked child */
    struct tarn_device *device;              /* constant */
    struct tn_ipc_cache opened;              /* memory of other processes */
    /* One bit per device (peer.c). */
    _Atomic uint64_t peers_asked;   /* it is known whether this device reaches it */
    _Atomic uint64_t peers_reached; /* it does; set before peers_asked */
    _Atomic uint64_t peers_let_in;  /* it may access the expandable segments */
    _Atomic tarn_stream known_streams[TN_KNOWN_STREAMS]; /* of this device; 0 = none */
    struct tn_fork_watch fork;
    struct tn_publisher_source watched; /* look: NULL = it is not */
    const char *backend;                /* constant, from the table */
    bool owns_device;                   /* constant once it is allocated */
    bool is_current;                    /* likewise: counted by tn_current_acquire */
};

/* The caching engine, and what it allocates while it is switched off. */
struct tn_native_allocator {
    struct tarn_allocator base; /* first */
    struct tn_engine engine;
    struct tn_direct_memory direct;
    _Atomic bool disabled; /* read without a lock: relaxed order is enough */
};

extern const struct tn_engine_methods tn_native_methods;

static inline bool tn_allocator_is_native(const struct tarn_allocator *allocator)
{
    return allocator->methods == &tn_native_methods;
}

/* The caching engine's state; the allocator must be one of that kind. */
static inline struct tn_engine *tn_allocator_engine(struct tarn_allocator *allocator)
{
    tn_assert(tn_allocator_is_native(allocator));
    return &((struct tn_native_allocator *)allocator)->engine;
}

/* The caching engine's state, or a refusal: what the other engines do not have. */
enum tarn_status tn_allocator_need_engine(struct tarn_allocator *allocator, const char *what,
                                          struct tn_engine **engine_out,
                                          struct tarn_error *error) TN_MUST_CHECK;

/* Number of its device. */
static inline int tn_allocator_ordinal(const struct tarn_allocator *allocator)
{
    return allocator->device->ordinal;
}

/* The context of the receiver whose stacks the allocator keeps; NULL when there is none. */
const void *tn_allocator_stack_keeper(const struct tarn_allocator *allocator);

/* Calls `visit` with that receiver, under the allocator's lock, where there is one. */
void tn_allocator_visit_keeper(struct tarn_allocator *allocator,
                               void (*visit)(void *context, const struct tarn_sink *sink),
                               void *context);

/* The sinks with that context make way for another one that captures stacks: it takes their place
 * instead of being refused, as long as no call holds up their removal. */
void tn_allocator_yield_sink(struct tarn_allocator *allocator, const void *context);

/* As tarn_allocator_create, whatever allocator is current. */
enum tarn_status tn_allocator_create_own(struct tarn_device *device,
                                         const struct tarn_config *config,
                                         struct tarn_allocator **allocator_out,
                                         struct tarn_error *error) TN_MUST_CHECK;

/* Whether the device can do what the settings ask for. */
enum tarn_status tn_config_check(const struct tarn_config *config, const struct tarn_device *device,
                                 struct tarn_error *error) TN_MUST_CHECK;

/* What every new allocator needs besides its engine. */
void tn_allocator_begin(struct tarn_allocator *allocator);

/* A caching allocator, as tarn_allocator_create. */
enum tarn_status tn_native_create(struct tarn_device *device, const struct tarn_config *config,
                                  struct tarn_allocator **allocator_out) TN_MUST_CHECK;

/* As tarn_allocator_walk, saying why it fails. */
enum tarn_status tn_allocator_walk(struct tarn_allocator *allocator,
                                   const struct tarn_walker *walker,
                                   struct tarn_error *error) TN_MUST_CHECK;

/* Sends the event that a snapshot leaves in the history. */
void tn_allocator_mark_snapshot(struct tarn_allocator *allocator);

/* A look at everything at one moment, for a snapshot: three steps without releasing the lock in
 * between. */
struct tn_look {
    void *context;
    void (*begin)(void *context);
    struct tarn_walker walker;
    tn_page_visitor page;       /* called after the walker; NULL: pages are not shown */
    bool (*end)(void *context); /* true: the snapshot's event is sent */
};

/* `pool` NULL: all segments. TARN_ERR_NOT_SUPPORTED as tarn_allocator_walk. */
enum tarn_status tn_allocator_look(struct tarn_allocator *allocator,
                                   const struct tarn_pool_id *pool, const struct tn_look *look,
                                   struct tarn_error *error) TN_MUST_CHECK;

/* tarn_allocator_alloc and tarn_allocator_free for callers inside the library: calling an exported
 * function costs a detour of a nanosecond or two. */
static inline enum tarn_status tn_allocator_alloc(struct tarn_allocator *allocator, uint64_t size,
                                                  tarn_stream stream, tarn_ptr *ptr_out,
                                                  struct tarn_error *error)
{
    if (size == 0) {
        *ptr_out = 0;
        return TARN_OK;
    }
    return allocator->methods->alloc(allocator, size, stream, ptr_out, error);
}

static inline enum tarn_status tn_allocator_free(struct tarn_allocator *allocator, tarn_ptr ptr,
                                                 struct tarn_error *error)
{
    return ptr == 0 ? TARN_OK : allocator->methods->free(allocator, ptr, error);
}

#endif
