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
 *     tarn_allocator_set_sink(allocator, history, false, TARN_CONTEXT_NEVER, &error);     not now
 *     tarn_allocator_remove_sink(allocator, history, &error);          before tarn_history_destroy
 *
 * The sink's context is the history. Levels are PyTorch's (tarn/event.h): NEVER records events
 * without stacks, STATE keeps stacks with live blocks and segments only, ALLOC adds those of
 * allocations to events, ALL those of frees. One history may serve several allocators.
 *
 * A stack holds the return addresses of the calling thread and, where a host language adds its own,
 * the number that this gave. Addresses become names, files and lines when somebody looks. Equal
 * stacks are stored once; a stack goes when no event, block or segment has it any more.
 *
 * Every function may be called from any thread; none of them from a sink. A child that is forked
 * afterwards cannot use a history: see tarn/device.h.
 */
#ifndef TARN_HISTORY_H
#define TARN_HISTORY_H

#include "event.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_history;

/* How C stacks are found. */
enum tarn_stack_source {
    TARN_STACK_FRAME_POINTERS, /* fast; code built without frame pointers ends a stack early */
    TARN_STACK_UNWIND,         /* by the compiler's unwinder: ten times slower, complete */
    TARN_STACK_NONE            /* frames of the host language only, or none */
};

/* One line of a stack. */
struct tarn_stack_frame {
    const char *name;     /* function; "??" where nothing is known */
    const char *filename; /* source file, or the module; "??" where nothing is known */
    uint64_t line;        /* 0 where nothing is known */
};

/* Is given frames, innermost first; the texts are valid during the call. */
typedef void (*tarn_frame_visitor)(void *context, const struct tarn_stack_frame *frame);

/* Frames of a host language (Python, Lua), which come after those of C. It gives a stack a number
 * of its own choice, not 0, when that is captured, and says later what the number stands for. */
struct tarn_host_frames {
    void *context;

    /* On the allocating thread, without any lock of the library; 0 = no stack. The number carries
     * one reference. */
    uint64_t (*capture)(void *context);

    /* Gives one reference back: on any thread, maybe under locks, so it may neither wait nor call
     * the library. NULL: numbers need not be given back. */
    void (*release)(void *context, uint64_t stack);

    /* Shows the frames, when somebody looks at a history. */
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
    uint32_t max_frames;                 /* of a stack; 0 = 64, at most TARN_STACK_FRAMES_MAX */
    uint32_t max_annotations;            /* kept; 0 = 4096 */
    uint64_t max_entries;                /* events kept, 56 bytes each; 0 = TARN_HISTORY_ENTRIES */
    uint64_t max_stack_bytes;            /* host memory for stacks; 0 = 64 MiB */
    uint64_t max_text_bytes; /* ... for texts that events and annotations carry; 0 = 4 MiB */
    uint64_t skip_actions;   /* bits 1 << TARN_ACTION_...: not recorded */
    const struct tarn_host_frames *host; /* copied; NULL = none */
};

/* An empty history. `options` may be NULL. Caller owns *history_out. TARN_ERR_INVALID_ARGUMENT for
 * options out of range, TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_history_create(const struct tarn_history_options *options,
                                              struct tarn_history **history_out,
                                              struct tarn_error *error) TARN_MUST_CHECK;

/* Every allocator that has it as a sink must be destroyed, or the sink removed. NULL is allowed. */
TARN_API void tarn_history_destroy(struct tarn_history *history);

/* What to give to tarn_allocator_add_sink. */
TARN_API void tarn_history_get_sink(struct tarn_history *history, enum tarn_context_level level,
                                    struct tarn_sink *sink_out);

/* Forgets all events and annotations; stacks of live blocks stay. Counts of drops begin anew. */
TARN_API void tarn_history_clear(struct tarn_history *history);

/* Keeps another number of events from now on; of those that are there the newest stay. Fails with
 * TARN_ERR_INVALID_ARGUMENT for 0 and with TARN_ERR_HOST_MEMORY; nothing changes then. */
TARN_API enum tarn_status tarn_history_set_max_entries(struct tarn_history *history,
                                                       uint64_t max_entries,
                                                       struct tarn_error *error) TARN_MUST_CHECK;

/* Stacks of C are found in that way from now on. TARN_ERR_INVALID_ARGUMENT for a value that is none
 * of the three. */
TARN_API enum tarn_status
tarn_history_set_stack_source(struct tarn_history *history,
                              enum tarn_stack_source source) TARN_MUST_CHECK;

/* Bits 1 << TARN_ACTION_...: these are not recorded from now on. */
TARN_API void tarn_history_set_skip_actions(struct tarn_history *history, uint64_t actions);

/* A mark of the user's: the begin or the end of something, PyTorch's external annotation. */
enum tarn_annotation_stage {
    TARN_ANNOTATION_START,
    TARN_ANNOTATION_END
};

struct tarn_annotation_field {
    const char *key;
    const char *value;
};

/* Adds one with the present time; the oldest gives way when there are max_annotations. Texts are
 * copied. TARN_ERR_INVALID_ARGUMENT without a name, or with more than TARN_ANNOTATION_FIELDS_MAX
 * fields; TARN_ERR_LIMIT when the texts find no room, which is counted. */
TARN_API enum tarn_status tarn_history_annotate(struct tarn_history *history,
                                                enum tarn_annotation_stage stage, int device,
                                                const char *name,
                                                const struct tarn_annotation_field *fields,
                                                size_t field_count) TARN_MUST_CHECK;

/* What is there and what was dropped, from one moment. */
struct tarn_history_usage {
    uint32_t struct_size;
    uint64_t entries;             /* there now */
    uint64_t max_entries;         /* ... at most */
    uint64_t entries_overwritten; /* gave way to newer ones */
    uint64_t entries_skipped;     /* because of skip_actions */
    uint64_t annotations;
    uint64_t annotations_overwritten;
    uint64_t stacks;         /* different ones, of events, blocks and segments */
    uint64_t stack_bytes;    /* of host memory */
    uint64_t stacks_dropped; /* captured, but found no room: those events have none */
    uint64_t texts;          /* different combinations of pool and texts, and annotations' */
    uint64_t text_bytes;
    uint64_t texts_dropped; /* found no room: those events show "N/A" and "" */
};

/* Fields beyond struct_size are left out. */
TARN_API void tarn_history_get_usage(struct tarn_history *history,
                                     struct tarn_history_usage *usage_out);

/* One recorded event: texts and stack are valid during the visit. */
struct tarn_history_entry {
    struct tarn_event event;
    int64_t time_us; /* since 1970 */
};

/* Shows the events, oldest first, until `visit` returns false. Events that come meanwhile are not
 * among them. `visit` may look at stacks (tarn_history_visit_stack) and use the allocator.
 * TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_history_walk(struct tarn_history *history,
                                            bool (*visit)(void *context,
                                                          const struct tarn_history_entry *entry),
                                            void *context) TARN_MUST_CHECK;

/* Shows the frames of a stack, innermost first, those of inlined functions among them. `stack` is
 * the id of an event in a walk over the history, or of a live block or segment in a walk over the
 * allocator (then under its lock: better note it with the history's walk). Looks up names in the
 * debug information of the program's modules: milliseconds the first time. Where that is missing
 * the frame has the name "??", or its function's, and the module as file. TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_history_visit_stack(struct tarn_history *history, uint64_t stack,
                                                   tarn_frame_visitor visit,
                                                   void *context) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
