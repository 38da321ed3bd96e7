/* SPDX-License-Identifier: MIT */
/*
 * History: the last events of an allocator, with the stacks that led to them, in bounded memory.
 *
 *     struct tarn_history *history;
 *     struct tarn_sink sink;
 *
 *     tarn_history_create(NULL, &history, &error);
 *     tarn_history_get_sink(history, TARN_CONTEXT_ALL, &sink);
 *     tarn_allocator_add_sink(allocator, &sink, &error);               recording
 *     tarn_allocator_switch_sink(allocator, history, false, TARN_CONTEXT_NEVER, &error);  not now
 *     tarn_allocator_remove_sink(allocator, history, &error);          before tarn_history_destroy
 *
 * The sink's context is the history. Levels are PyTorch's (tarn/event.h): NEVER records events
 * without stacks, STATE stores stacks only with live blocks and segments, ALLOC adds them to
 * allocation events, ALL to frees as well. One history may serve several allocators.
 *
 * A stack consists of the calling thread's return addresses and, where a host language adds its own
 * frames, an id from that language. Addresses are resolved to names, files and lines lazily. Equal
 * stacks are stored once; a stack is freed when no event, block or segment refers to it.
 *
 * Every function may be called from any thread, but not from a sink. A forked child cannot use its
 * parent's histories: see tarn/device.h.
 */
#ifndef TARN_HISTORY_H
#define TARN_HISTORY_H

#include "event.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_history;

/* How C stacks are captured. */
enum tarn_stack_source {
    TARN_STACK_FRAME_POINTERS, /* fast; code built without frame pointers ends a stack early */
    TARN_STACK_UNWIND,         /* complete without them: by libunwind where it is installed, else
                                  by the compiler's unwinder, ten times slower */
    TARN_STACK_NONE            /* only frames of the host language, if any */
};

/* One line of a stack. */
struct tarn_stack_frame {
    const char *name;     /* function; "??" if unknown */
    const char *filename; /* source file or module; "??" if unknown */
    uint64_t line;        /* 0 if unknown */
};

/* Receives frames, innermost first; the texts are valid during the call. */
typedef void (*tarn_frame_visitor)(void *context, const struct tarn_stack_frame *frame);

/* Frames of a host language (Python, Lua), which follow those of C. `capture` assigns the stack a
 * nonzero number of its choice; `describe` resolves the number later. */
struct tarn_host_frames {
    void *context;

    /* On the allocating thread, without any lock of the library; 0 = no stack. The number carries
     * one reference. */
    uint64_t (*capture)(void *context);

    /* Drops one reference: on any thread, possibly under locks, so it must neither block nor call
     * the library. NULL: no reference counting. */
    void (*release)(void *context, uint64_t stack);

    /* Visits the frames when a stack is resolved: on any thread, without any lock. It must not wait
     * for one that destroys the history. */
    void (*describe)(void *context, uint64_t stack, tarn_frame_visitor visit, void *visit_context);
};

enum {
    TARN_HISTORY_ENTRIES = 100000, /* the default of max_entries */
    TARN_STACK_FRAMES_MAX = 256,   /* return addresses of a stack at most */
    TARN_ANNOTATION_FIELDS_MAX = 4 /* of an annotation, besides its name */
};

/* Zeros mean the defaults. */
struct tarn_history_options {
    uint32_t struct_size;                /* sizeof(struct tarn_history_options) */
    enum tarn_stack_source stack_source; /* frame pointers */
    uint32_t max_frames;                 /* per stack; 0 = 64, at most TARN_STACK_FRAMES_MAX */
    uint32_t max_annotations;            /* kept; 0 = 4096 */
    uint64_t max_entries;                /* events kept, 56 bytes each; 0 = TARN_HISTORY_ENTRIES */
    uint64_t max_stack_bytes;            /* host memory for stacks; 0 = 64 MiB */
    uint64_t max_text_bytes; /* host memory for texts of events and annotations; 0 = 4 MiB */
    uint64_t skip_actions;   /* bits 1 << TARN_ACTION_... of actions to ignore */
    const struct tarn_host_frames *host; /* copied; NULL = none */
};

/* Creates an empty history. `options` may be NULL. Caller owns *history_out.
 * TARN_ERR_INVALID_ARGUMENT for options out of range, TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_history_create(const struct tarn_history_options *options,
                                              struct tarn_history **history_out,
                                              struct tarn_error *error) TARN_MUST_CHECK;

/* First destroy every allocator that has it as a sink, or remove the sink. Waits for a snapshot
 * that another process has asked for (tarn/watch_control.h). NULL is allowed. */
TARN_API void tarn_history_destroy(struct tarn_history *history);

/* The sink to pass to tarn_allocator_add_sink. */
TARN_API void tarn_history_get_sink(struct tarn_history *history, enum tarn_context_level level,
                                    struct tarn_sink *sink_out);

/* Discards all events and annotations and resets the drop counters; stacks of live blocks stay. */
TARN_API void tarn_history_clear(struct tarn_history *history);

/* Changes the number of events kept; the newest ones stay. Fails, changing nothing, with
 * TARN_ERR_INVALID_ARGUMENT for 0 and with TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_history_set_max_entries(struct tarn_history *history,
                                                       uint64_t max_entries,
                                                       struct tarn_error *error) TARN_MUST_CHECK;

/* Changes how C stacks are captured from now on. TARN_ERR_INVALID_ARGUMENT for an unknown value. */
TARN_API enum tarn_status
tarn_history_set_stack_source(struct tarn_history *history,
                              enum tarn_stack_source source) TARN_MUST_CHECK;

/* Changes the actions to ignore from now on: bits 1 << TARN_ACTION_.... */
TARN_API void tarn_history_set_skip_actions(struct tarn_history *history, uint64_t actions);

/* Start or end of a user's annotation, PyTorch's external annotation. */
enum tarn_annotation_stage {
    TARN_ANNOTATION_START,
    TARN_ANNOTATION_END
};

struct tarn_annotation_field {
    const char *key;
    const char *value;
};

/* Adds an annotation with the current time; beyond max_annotations it replaces the oldest. Texts
 * are copied. TARN_ERR_INVALID_ARGUMENT without a name, or with more than
 * TARN_ANNOTATION_FIELDS_MAX fields; TARN_ERR_LIMIT, which is counted, when max_text_bytes is
 * exhausted. */
TARN_API enum tarn_status tarn_history_annotate(struct tarn_history *history,
                                                enum tarn_annotation_stage stage, int device,
                                                const char *name,
                                                const struct tarn_annotation_field *fields,
                                                size_t field_count) TARN_MUST_CHECK;

/* Contents and drop counters, read at the same point in time. */
struct tarn_history_usage {
    uint32_t struct_size;
    uint64_t entries;             /* events kept now */
    uint64_t max_entries;         /* limit */
    uint64_t entries_overwritten; /* replaced by newer ones */
    uint64_t entries_skipped;     /* because of skip_actions */
    uint64_t annotations;
    uint64_t annotations_overwritten;
    uint64_t stacks;         /* distinct stacks of events, blocks and segments */
    uint64_t stack_bytes;    /* of host memory */
    uint64_t stacks_dropped; /* captured but not stored for lack of space: those events have none */
    uint64_t texts;          /* distinct combinations of pool and texts, and annotation texts */
    uint64_t text_bytes;
    uint64_t texts_dropped; /* not stored for lack of space: those events show "N/A" and "" */
};

/* Fields beyond struct_size are left out. */
TARN_API void tarn_history_get_usage(struct tarn_history *history,
                                     struct tarn_history_usage *usage_out);

/* One recorded event: texts and stack are valid during the visit. */
struct tarn_history_entry {
    struct tarn_trace_event event;
    int64_t time_us; /* since 1970 */
};

/* Visits the events, oldest first, until `visit` returns false. Events recorded meanwhile are not
 * included. `visit` may resolve stacks (tarn_history_visit_stack) and use the allocator.
 * TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_history_walk(struct tarn_history *history,
                                            bool (*visit)(void *context,
                                                          const struct tarn_history_entry *entry),
                                            void *context) TARN_MUST_CHECK;

/* Visits the frames of a stack, innermost first, inlined functions included. `stack` is the id of
 * an event in a walk over the history, or of a live block or segment in a walk over the allocator
 * (this runs under the allocator's lock: prefer the history's walk). Names come from the debug
 * information of the program's modules, which takes milliseconds to read the first time. Without
 * debug information, the name is the function's or "??" and the file is the module.
 * TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_history_visit_stack(struct tarn_history *history, uint64_t stack,
                                                   tarn_frame_visitor visit,
                                                   void *context) TARN_MUST_CHECK;

/* The number that the host language assigned to a stack (struct tarn_host_frames), 0 = none.
 * `stack` is as above, or 0. The number's reference is the history's: to keep it beyond the walk,
 * add one of the host language's. */
TARN_API uint64_t tarn_history_host_stack(const struct tarn_history *history, uint64_t stack);

#ifdef __cplusplus
}
#endif

#endif
