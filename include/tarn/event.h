/* SPDX-License-Identifier: MIT */
/*
 * The events of an allocator: one plain record per event, in the order of execution. The actions
 * and the meaning of the fields for each action are those of PyTorch's trace entries. Without a
 * sink no record is built.
 */
#ifndef TARN_EVENT_H
#define TARN_EVENT_H

#include "base.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* enumerator, name in files */
#define TARN_ACTION_MAP(X)                                                                         \
    X(ALLOC, "alloc")                                                                              \
    X(FREE_REQUESTED, "free_requested")                                                            \
    X(FREE_COMPLETED, "free_completed")                                                            \
    X(SEGMENT_ALLOC, "segment_alloc")                                                              \
    X(SEGMENT_FREE, "segment_free")                                                                \
    X(SEGMENT_MAP, "segment_map")                                                                  \
    X(SEGMENT_UNMAP, "segment_unmap")                                                              \
    X(SNAPSHOT, "snapshot")                                                                        \
    X(OOM, "oom")                                                                                  \
    X(ANNOTATE, "annotate")

enum tarn_action {
#define TARN_ACTION_ENUM(name, text) TARN_ACTION_##name,
    TARN_ACTION_MAP(TARN_ACTION_ENUM)
#undef TARN_ACTION_ENUM
    TARN_ACTION_COUNT
};

struct tarn_trace_event {
    enum tarn_action action;
    int device;       /* ordinal */
    bool same_time;   /* as the previous event: the second half of a free that completes
                         immediately */
    uint64_t address; /* of the block or range; free bytes of the device for OOM; 0 for SNAPSHOT */
    uint64_t size;    /* requested bytes of a block, actual bytes of a segment, rounded request for
                         OOM, active bytes for SNAPSHOT */
    tarn_stream stream;  /* the block's stream */
    uint64_t pool_id[2]; /* {0, 0} is the default pool */
    uint64_t stack;      /* id from the sink's `capture`, 0 = none */

    /* Texts of the calling thread, valid until `receive` returns. */
    const char *compile_context; /* innermost, "N/A" if there is none */
    const char *user_metadata;   /* "" = none; the text of an ANNOTATE */
};

/* Name of an action in files, e.g. "segment_alloc". Static storage; any thread. */
TARN_API const char *tarn_action_name(enum tarn_action action);

/* The action of that name; false, leaving *action_out untouched, when there is none. Any thread. */
TARN_API bool tarn_action_find(const char *name, enum tarn_action *action_out);

/* How much context to record, as PyTorch's RecordContext: each level includes the previous ones. */
enum tarn_context_level {
    TARN_CONTEXT_NEVER,
    TARN_CONTEXT_STATE, /* stacks of live blocks and segments */
    TARN_CONTEXT_ALLOC, /* also stacks in the events of allocations */
    TARN_CONTEXT_ALL    /* also stacks of frees */
};

/*
 * A receiver of events. `capture` runs before the allocator takes its lock and may walk the calling
 * thread's stack; it returns an id that the allocator stores with the block and puts into events.
 * `receive` runs on the calling thread with the allocator's lock held; it should only copy, and
 * must not call the allocator.
 *
 * Ids can be reference-counted: `capture` returns one reference, `retain` adds one, and `release`
 * drops one when the allocator discards an id that it stored with a block, a segment or a call in
 * progress. The id in an event is borrowed: to keep it, add a reference. Both run under the
 * allocator's lock, like `receive`, and are never called with 0.
 */
struct tarn_sink {
    void *context;
    enum tarn_context_level level; /* `capture` is called for levels up to this one */
    uint64_t (*capture)(void *context, enum tarn_context_level level); /* may be NULL */
    void (*receive)(void *context, const struct tarn_trace_event *event);
    void (*retain)(void *context, uint64_t stack);  /* both may be NULL: no reference counting */
    void (*release)(void *context, uint64_t stack); /* ... */
};

enum {
    TARN_COMPILE_CONTEXTS_MAX = 16, /* nested */
    TARN_LABEL_MAX = 256            /* bytes of a text with its NUL */
};

/* Enters a compiled region of that name on the calling thread; events carry the innermost name. The
 * text is copied. TARN_ERR_INVALID_ARGUMENT for NULL; TARN_ERR_LIMIT when it is too long or the
 * nesting too deep; TARN_ERR_HOST_MEMORY. Do not pop after a failure. */
TARN_API enum tarn_status tarn_push_compile_context(const char *text) TARN_MUST_CHECK;

/* The same for a caller that cannot fail: a text that is too long is cut, and a region that cannot
 * be kept is entered without a name. Every call needs its tarn_pop_compile_context. */
TARN_API void tarn_enter_compile_context(const char *text);

/* Leaves the innermost region of the calling thread; does nothing if there is none. */
TARN_API void tarn_pop_compile_context(void);

/* Sets the user metadata of the calling thread's following events; "" clears it. The text is
 * copied. Fails, changing nothing, with TARN_ERR_INVALID_ARGUMENT for NULL, TARN_ERR_LIMIT when it
 * is too long, and TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_set_user_metadata(const char *text) TARN_MUST_CHECK;

/* The calling thread's texts: "N/A" and "" where there are none. Valid until it changes them. */
TARN_API const char *tarn_get_compile_context(void);
TARN_API const char *tarn_get_user_metadata(void);

#ifdef __cplusplus
}
#endif

#endif
