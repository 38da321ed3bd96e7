/* SPDX-License-Identifier: MIT */
/*
 * The tracker: which module of a model holds memory, in which category, and when. A framework
 * reports what happens to its storages and modules; the tracker keeps bytes by device and category,
 * now and at the peaks, and for every module in each of its states. Rules and terms are those of
 * PyTorch's torch.distributed._tools.mem_tracker.MemTracker (2.11); docs/tracker.md lists the
 * differences.
 *
 *     tarn_tracker_create(NULL, &tracker, &error);
 *     tarn_tracker_add_name(tracker, TARN_TRACK_DEVICE, "cuda:0", &gpu, &error);
 *     tarn_tracker_add_name(tracker, TARN_TRACK_MODULE, "Model", &model, &error);
 *
 *     const struct tarn_track_event events[] = {
 *         {.kind = TARN_TRACK_ENTER, .name = model, .id = 1},
 *         {.kind = TARN_TRACK_CLASSIFY, .name = gpu, .id = 7, .bytes = 4096,
 *          .category = TARN_TRACK_PARAMETER},
 *         {.kind = TARN_TRACK_READY},
 *         ...
 *     };
 *     tarn_tracker_apply(tracker, events, 3, NULL, &error);
 *
 * One tracker serves all threads; every function may be called from any thread. Once its tables
 * have grown, storages and operators need no host memory; each call of a module does, unless
 * `calls_kept` bounds it. A failed call changes nothing. A forked child cannot use its parent's
 * trackers: see tarn/device.h.
 */
#ifndef TARN_TRACKER_H
#define TARN_TRACKER_H

#include "findings.h"
#include "status.h"
#include "writer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_tracker;

/* The predefined categories; others can be added by name. */
#define TARN_TRACK_CATEGORY_MAP(X)                                                                 \
    X(PARAMETER, "Parameter")                                                                      \
    X(BUFFER, "Buffer")                                                                            \
    X(GRADIENT, "Gradient")                                                                        \
    X(ACTIVATION, "Activation")                                                                    \
    X(TEMP, "Temp")                                                                                \
    X(OPTSTATE, "Optstate")                                                                        \
    X(OTHER, "Other")

/* The predefined states of a module; others can be added by name. */
#define TARN_TRACK_STATE_MAP(X)                                                                    \
    X(PEAK_FORWARD, "Peak-Forward")                                                                \
    X(PRE_FORWARD, "Pre-Forward")                                                                  \
    X(POST_FORWARD, "Post-Forward")                                                                \
    X(PEAK_BACKWARD, "Peak-Backward")                                                              \
    X(PRE_BACKWARD, "Pre-Backward")                                                                \
    X(PRE_FORWARD_AC, "Pre-Forward-AC")                                                            \
    X(POST_FORWARD_AC, "Post-Forward-AC")                                                          \
    X(POST_BACKWARD, "Post-Backward")

enum tarn_track_category {
#define TARN_TRACK_CATEGORY_ENUM(name, text) TARN_TRACK_##name,
    TARN_TRACK_CATEGORY_MAP(TARN_TRACK_CATEGORY_ENUM)
#undef TARN_TRACK_CATEGORY_ENUM
    TARN_TRACK_CATEGORY_COUNT,
    TARN_TRACK_AUTO = 0xffff /* Optstate in an optimizer step; Temp in backward outside
                                recomputation; else Activation */
};

enum tarn_track_state {
#define TARN_TRACK_STATE_ENUM(name, text) TARN_TRACK_##name,
    TARN_TRACK_STATE_MAP(TARN_TRACK_STATE_ENUM)
#undef TARN_TRACK_STATE_ENUM
    TARN_TRACK_STATE_COUNT
};

enum {
    TARN_TRACK_CATEGORIES_MAX = 32,
    TARN_TRACK_DEVICES_MAX = 64,
    TARN_TRACK_STATES_MAX = 64,
    TARN_TRACK_MODULES_MAX = 1 << 16, /* names */
    TARN_TRACK_NAME_MAX = 1024        /* bytes of a name */
};

/* Kinds of names. Ids of each kind start at 0. Module 0 is "Global", the scope outside all
 * modules. */
enum tarn_track_names {
    TARN_TRACK_DEVICE,
    TARN_TRACK_CATEGORY,
    TARN_TRACK_STATE,
    TARN_TRACK_MODULE,
    TARN_TRACK_NAMES_COUNT
};

/* Zeros mean the defaults. */
struct tarn_tracker_options {
    uint32_t struct_size; /* sizeof(struct tarn_tracker_options) */
    uint32_t calls_kept;  /* newest calls kept per state and module; 0 = all */
    uint64_t granularity; /* rounding of bytes on devices "cuda" and "cuda:N"; 0 = 512 */

    /* Visit every storage of a tensor that has several. PyTorch stops at the first one that is
     * already known and misses the following ones. */
    bool all_storages;

    /* Entering a root module in forward a second time without resetting the statistics fails with
     * PyTorch's message. By default it starts a new iteration. */
    bool one_iteration;

    /* While a module is active, allocations of the calling thread carry the name of the innermost
     * one as user metadata (tarn/event.h). */
    bool label_allocations;

    /* Called on the calling thread, with no lock held, when a module becomes active (`begins`) or
     * inactive, in forward or backward; for example for tarn_history_annotate. NULL = no calls. */
    void (*scope)(void *context, const char *module, bool begins, bool backward);
    void *scope_context;
};

/* Caller owns *tracker_out. `options` may be NULL. TARN_ERR_INVALID_ARGUMENT for a granularity that
 * is not a power of two up to 1 GiB, TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_tracker_create(const struct tarn_tracker_options *options,
                                              struct tarn_tracker **tracker_out,
                                              struct tarn_error *error) TARN_MUST_CHECK;

/* NULL is allowed. */
TARN_API void tarn_tracker_destroy(struct tarn_tracker *tracker);

/* The id of a name, which is added if it is new. TARN_ERR_INVALID_ARGUMENT for an empty name,
 * TARN_ERR_LIMIT when it is too long or there are too many, TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_tracker_add_name(struct tarn_tracker *tracker,
                                                enum tarn_track_names names, const char *text,
                                                uint32_t *id_out,
                                                struct tarn_error *error) TARN_MUST_CHECK;

/* NULL when there is none. Valid until the tracker is destroyed. */
TARN_API const char *tarn_tracker_get_name(struct tarn_tracker *tracker,
                                           enum tarn_track_names names, uint32_t id);

/* Number of names of that kind. */
TARN_API uint32_t tarn_tracker_count_names(struct tarn_tracker *tracker,
                                           enum tarn_track_names names);

/* Kinds of events. `id` is the caller's number of a storage or a module, anything but UINT64_MAX;
 * the comments say which other fields apply. */
enum tarn_track_kind {
    /* A storage of an operator's result. An unknown one is counted in `category` on device `name`
     * with `bytes`; for a known one only the size changes. */
    TARN_TRACK_CREATE,
    /* A storage is a parameter, a buffer, a gradient, ...: `category`, and for an unknown one also
     * `name` and `bytes`. A known one keeps its size and its device. */
    TARN_TRACK_CLASSIFY,
    TARN_TRACK_RESIZE, /* a known storage now has `bytes`; an unknown one is an error */
    TARN_TRACK_DELETE, /* a storage is gone */

    /* Module `id` named `name` starts forward. Until READY, classified parameters and buffers are
     * its own if it is new, and INPUTs are its inputs. READY then records its state, unless an
     * operator or another module, of another thread perhaps, came first: it ends the entering, and
     * the INPUTs and the READY that are left do nothing. */
    TARN_TRACK_ENTER,
    TARN_TRACK_INPUT,          /* storage `id` is an input of the entered module */
    TARN_TRACK_OUTPUT,         /* ... an output of the module left next */
    TARN_TRACK_READY,          /* the module entered last starts */
    TARN_TRACK_LEAVE,          /* a module finishes forward */
    TARN_TRACK_ENTER_BACKWARD, /* the first gradient of a module's outputs exists */
    TARN_TRACK_LEAVE_BACKWARD, /* the gradients of its inputs exist */
    TARN_TRACK_END_BACKWARD,   /* backward ends: no module remains active */

    TARN_TRACK_BEGIN_STEP, /* an optimizer's step */
    TARN_TRACK_END_STEP,
    TARN_TRACK_OP_DONE, /* an operator has finished: peaks are updated, in state `name` with the
                           flag TARN_TRACK_IN_STATE, else Peak-Backward or Peak-Forward */
    TARN_TRACK_ACTIVE,  /* the next OP_DONE counts only for modules named in this and the adjacent
                           ACTIVE events */
    TARN_TRACK_START,   /* peaks restart from the current bytes */
    TARN_TRACK_RESET_MODULES,   /* discards the statistics of all modules */
    TARN_TRACK_FORGET_MODULE,   /* ... of one module, which was destroyed */
    TARN_TRACK_BEGIN_ITERATION, /* RESET_MODULES and re-entering a root do this too */
    TARN_TRACK_KIND_COUNT
};

enum {
    TARN_TRACK_BACKWARD = 1, /* the event occurs while gradients are computed */
    TARN_TRACK_MORE = 2,     /* CREATE: the next event is another storage of the same tensor */
    TARN_TRACK_IN_STATE = 4  /* OP_DONE: `name` is a state */
};

struct tarn_track_event {
    uint16_t kind;     /* enum tarn_track_kind */
    uint16_t flags;    /* TARN_TRACK_BACKWARD, ... */
    uint32_t category; /* or TARN_TRACK_AUTO */
    uint32_t name;     /* id of a device, module or state */
    uint32_t reserved; /* 0 */
    uint64_t id;
    uint64_t bytes;
};

/* Applies events in order, until one fails: *applied_out (may be NULL) is how many were applied,
 * the error names the failed event and the reason. TARN_ERR_NOT_FOUND for unknown ids,
 * TARN_ERR_STATE for a module that is left but was not entered, and with `one_iteration`,
 * TARN_ERR_INVALID_ARGUMENT for numbers out of range, TARN_ERR_LIMIT for more bytes than can be
 * counted, TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_tracker_apply(struct tarn_tracker *tracker,
                                             const struct tarn_track_event *events, size_t count,
                                             size_t *applied_out,
                                             struct tarn_error *error) TARN_MUST_CHECK;

/* Bytes of one device. The categories add up to the total. */
struct tarn_track_row {
    uint32_t device;
    uint32_t reserved;
    int64_t total;
    int64_t bytes[TARN_TRACK_CATEGORIES_MAX]; /* by category */
};

enum tarn_track_point {
    TARN_TRACK_NOW,
    TARN_TRACK_PEAKS,      /* each device at its own peak, possibly at different times */
    TARN_TRACK_TOTAL_PEAK, /* all devices when their sum peaked */
    TARN_TRACK_AT_END,     /* as NOW, but for a replayed log before the program destroyed its model:
                              of the deletions at the end of the log, those from the first one that
                              is neither an activation nor a temporary are ignored */
    TARN_TRACK_POINT_COUNT
};

/* Copies up to `capacity` rows, in order of the devices' first use; *count_out is the total
 * number. */
TARN_API void tarn_tracker_get_rows(struct tarn_tracker *tracker, enum tarn_track_point point,
                                    struct tarn_track_row *rows, size_t capacity,
                                    size_t *count_out);

/* One module's statistics. */
struct tarn_track_module {
    uint32_t struct_size; /* in: sizeof(struct tarn_track_module) */
    uint32_t name;
    uint64_t id;
    int64_t parameter_bytes; /* including all submodules */
    int64_t buffer_bytes;
    int64_t input_bytes;  /* of known storages; repeated ones count again */
    int64_t output_bytes; /* -1 = forward has not finished */
    uint32_t state_count; /* number of states it has been in */
};

/* The number of known modules, which are indexed in order of first use. */
TARN_API size_t tarn_tracker_count_modules(struct tarn_tracker *tracker);

/* TARN_ERR_NOT_FOUND when the index is out of range. */
TARN_API enum tarn_status
tarn_tracker_get_module(struct tarn_tracker *tracker, size_t index,
                        struct tarn_track_module *module_out) TARN_MUST_CHECK;

/* State number `state_index` of a module, and the rows of its call number `call`, from 0; calls
 * that `calls_kept` has dropped are not counted. TARN_ERR_NOT_FOUND. */
TARN_API enum tarn_status tarn_tracker_get_state(struct tarn_tracker *tracker, size_t index,
                                                 size_t state_index, uint32_t *state_out,
                                                 size_t *call_count_out) TARN_MUST_CHECK;
TARN_API enum tarn_status tarn_tracker_get_call(struct tarn_tracker *tracker, size_t index,
                                                size_t state_index, size_t call,
                                                struct tarn_track_row *rows, size_t capacity,
                                                size_t *count_out) TARN_MUST_CHECK;

/* One iteration: bytes at its start, at its peak over all devices, and at its end (so far). */
struct tarn_track_iteration {
    uint32_t struct_size; /* in: sizeof(struct tarn_track_iteration) */
    uint64_t number;      /* from 0 */
    int64_t begin_bytes;  /* of all devices */
    int64_t peak_bytes;
    int64_t end_bytes;
    int64_t growth[TARN_TRACK_CATEGORIES_MAX]; /* end minus begin, by category */
    int64_t peak[TARN_TRACK_CATEGORIES_MAX];   /* bytes at the peak, by category */
};

/* The number of iterations, including the one in progress, and the one at `index`. Iterations in
 * which no operator has finished are not counted. TARN_ERR_NOT_FOUND. */
TARN_API size_t tarn_tracker_count_iterations(struct tarn_tracker *tracker);
TARN_API enum tarn_status
tarn_tracker_get_iteration(struct tarn_tracker *tracker, size_t index,
                           struct tarn_track_iteration *iteration_out) TARN_MUST_CHECK;

/* The bytes that a module owns, by category. A storage belongs to the innermost module that was
 * active when it was created, or to the module whose parameter or buffer it is. TARN_TRACK_PEAKS
 * gives the bytes of `device` at its own peak. */
TARN_API enum tarn_status tarn_tracker_get_owned(struct tarn_tracker *tracker,
                                                 enum tarn_track_point point, uint32_t module,
                                                 uint32_t device,
                                                 struct tarn_track_row *row_out) TARN_MUST_CHECK;

enum tarn_track_format {
    TARN_TRACK_TEXT,  /* as PyTorch's display functions */
    TARN_TRACK_TABLE, /* ... with tabulate=True */
    TARN_TRACK_FORMAT_COUNT
};

/* Write what PyTorch's display_snapshot and display_modulewise_snapshots print, byte for byte. Fail
 * with TARN_ERR_INVALID_ARGUMENT and PyTorch's message for units other than
 * TARN_UNITS_BYTES, _KIB, _MIB and _GIB, TARN_ERR_HOST_MEMORY, or
 * what the writer returns. The writer is called with no lock held. */
TARN_API enum tarn_status
tarn_tracker_write_rows(struct tarn_tracker *tracker, enum tarn_track_point point,
                        enum tarn_units units, enum tarn_track_format format,
                        const struct tarn_writer *writer, struct tarn_error *error) TARN_MUST_CHECK;
TARN_API enum tarn_status tarn_tracker_write_modules(struct tarn_tracker *tracker, uint32_t depth,
                                                     enum tarn_units units,
                                                     enum tarn_track_format format,
                                                     const struct tarn_writer *writer,
                                                     struct tarn_error *error) TARN_MUST_CHECK;

/* Writes {"schema": "tarn.track/1", "tool": ..., "peak": ..., "current": ..., "modules": ...}, one
 * line, the last three as Python's json.dumps writes PyTorch's dictionaries; "current" is
 * TARN_TRACK_AT_END. With `everything` also "moment" (the combined peak), "iterations" and "owners"
 * (bytes by module at the combined peak). */
TARN_API enum tarn_status tarn_tracker_write_json(struct tarn_tracker *tracker, bool everything,
                                                  const struct tarn_writer *writer,
                                                  struct tarn_error *error) TARN_MUST_CHECK;

/* Writes the tree of modules with the bytes of each, own and including submodules, and bars of at
 * most `bar_width` characters. TARN_TRACK_PEAKS is treated as TARN_TRACK_TOTAL_PEAK. */
TARN_API enum tarn_status tarn_tracker_write_tree(struct tarn_tracker *tracker,
                                                  enum tarn_track_point point, uint32_t depth,
                                                  enum tarn_units units, uint32_t bar_width,
                                                  const struct tarn_writer *writer,
                                                  struct tarn_error *error) TARN_MUST_CHECK;

/* Writes one line per iteration: start, peak, end, and the categories that grew. */
TARN_API enum tarn_status tarn_tracker_write_iterations(struct tarn_tracker *tracker,
                                                        enum tarn_units units,
                                                        const struct tarn_writer *writer,
                                                        struct tarn_error *error) TARN_MUST_CHECK;

/* Recomputes all redundant state; adds mismatches to `findings` and returns their number. */
TARN_API uint64_t tarn_tracker_check(struct tarn_tracker *tracker, struct tarn_findings *findings);

/* The result of replaying a log. */
struct tarn_track_replay {
    uint32_t struct_size; /* in: sizeof(struct tarn_track_replay) */
    uint64_t events;      /* lines */
    uint64_t compared;    /* recorded snapshots ("after") */
    uint64_t differing;   /* ... that differ from ours */
    char first[512];      /* the first difference: line, expected, got; "" when none */
};

/* Applies a recorded log of events, one JSON object per line (docs/tracker.md), plain, gzip or
 * zstd; "-" is standard input. `replay_out` may be NULL. `after`, which may be NULL, receives our
 * snapshot after each event as one line of JSON. On failure the events before it have been applied:
 * TARN_ERR_FORMAT for malformed or inconsistent events, TARN_ERR_TRUNCATED when the log ends in the
 * middle of an event, TARN_ERR_IO, TARN_ERR_LIMIT, TARN_ERR_HOST_MEMORY; the text names line and
 * event. */
TARN_API enum tarn_status tarn_tracker_replay_log(struct tarn_tracker *tracker, const char *path,
                                                  const struct tarn_writer *after,
                                                  struct tarn_track_replay *replay_out,
                                                  struct tarn_error *error) TARN_MUST_CHECK;

/* The same from memory. */
TARN_API enum tarn_status tarn_tracker_replay_memory(struct tarn_tracker *tracker,
                                                     const void *bytes, size_t size,
                                                     const struct tarn_writer *after,
                                                     struct tarn_track_replay *replay_out,
                                                     struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
