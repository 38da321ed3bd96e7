/* SPDX-License-Identifier: MIT */
/*
 * The tracker: which part of a model holds memory, as what, and when. An engine tells it what
 * happens to its storages and modules; it keeps bytes by device and category now and at the peaks,
 * and the same for every module at each of its states. Rules and words are those of PyTorch's
 * torch.distributed._tools.mem_tracker.MemTracker (2.11); docs/tracker.md says where ours differ.
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
 * A tracker is one for all threads; every function may be called from any thread. Once its tables
 * have grown, storages and operators need no host memory; a module's visit does, unless
 * `calls_kept` bounds it. What fails changes nothing. A child that is forked afterwards cannot use
 * the tracker: see tarn/device.h.
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

/* Categories that are always there; a tracker may get others by name. */
#define TARN_TRACK_CATEGORY_MAP(X)                                                                 \
    X(PARAMETER, "Parameter")                                                                      \
    X(BUFFER, "Buffer")                                                                            \
    X(GRADIENT, "Gradient")                                                                        \
    X(ACTIVATION, "Activation")                                                                    \
    X(TEMP, "Temp")                                                                                \
    X(OPTSTATE, "Optstate")                                                                        \
    X(OTHER, "Other")

/* States of a module that are always there; others by name. */
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
    TARN_TRACK_AUTO = 0xffff /* Optstate in an optimizer's step; Temp in backward outside of a
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

/* What a name is for. Ids count from 0 in each kind. Module 0 is "Global": outside of all. */
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
    uint32_t calls_kept;  /* of each state of each module, the newest; 0 = all */
    uint64_t granularity; /* bytes of devices "cuda", "cuda:N" are rounded up to it; 0 = 512 */

    /* A tensor of several storages: look at all of them. PyTorch stops at the first that is known
     * already and misses those behind it. */
    bool all_storages;

    /* A module that is entered in forward for the second time, outside of all others, fails with
     * PyTorch's message unless statistics were reset. By default a new iteration begins. */
    bool one_iteration;

    /* What the calling thread's allocations carry as user metadata (tarn/event.h) is the innermost
     * module's name, from its begin to its end. */
    bool label_allocations;

    /* Is told on the calling thread, without locks, when a module begins (`begins`) or ends to be
     * active, forward or backward; for tarn_history_annotate, say. NULL = nobody. */
    void (*scope)(void *context, const char *module, bool begins, bool backward);
    void *scope_context;
};

/* Caller owns *tracker_out. `options` may be NULL. TARN_ERR_INVALID_ARGUMENT for a granularity that
 * is no power of two up to 1 GiB, TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_tracker_create(const struct tarn_tracker_options *options,
                                              struct tarn_tracker **tracker_out,
                                              struct tarn_error *error) TARN_MUST_CHECK;

/* NULL is allowed. */
TARN_API void tarn_tracker_destroy(struct tarn_tracker *tracker);

/* The id of a name, old or new. TARN_ERR_INVALID_ARGUMENT for an empty name, TARN_ERR_LIMIT when it
 * is too long or there are too many, TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_tracker_add_name(struct tarn_tracker *tracker,
                                                enum tarn_track_names names, const char *text,
                                                uint32_t *id_out,
                                                struct tarn_error *error) TARN_MUST_CHECK;

/* NULL when there is none. Valid until the tracker is destroyed. */
TARN_API const char *tarn_tracker_get_name(struct tarn_tracker *tracker,
                                           enum tarn_track_names names, uint32_t id);

/* How many there are. */
TARN_API uint32_t tarn_tracker_count_names(struct tarn_tracker *tracker,
                                           enum tarn_track_names names);

/* What happens. `id` is the caller's number of a storage or of a module, any but UINT64_MAX; each
 * line says which other fields count. */
enum tarn_track_kind {
    /* A storage of an operator's result. One that is not known is counted in `category` on device
     * `name` with `bytes`; of one that is known only the size changes. */
    TARN_TRACK_CREATE,
    /* A storage is a parameter, a buffer, a gradient, ...: category, and for one that is not known
     * also `name`, `bytes`. A known one keeps its size and its device. */
    TARN_TRACK_CLASSIFY,
    TARN_TRACK_RESIZE, /* a storage has `bytes` now; one that is not known is an error */
    TARN_TRACK_DELETE, /* a storage is gone */

    /* A module (`id`) named `name` begins forward. Parameters and buffers that are classified until
     * READY are its own if it is new; INPUTs are its inputs. Then its state is recorded. */
    TARN_TRACK_ENTER,
    TARN_TRACK_INPUT,          /* storage `id` is an input of the module that was entered */
    TARN_TRACK_OUTPUT,         /* ... an output of the module that is left next */
    TARN_TRACK_READY,          /* the module that was entered last begins */
    TARN_TRACK_LEAVE,          /* a module ends forward */
    TARN_TRACK_ENTER_BACKWARD, /* the first gradient of a module's outputs is there */
    TARN_TRACK_LEAVE_BACKWARD, /* those of its inputs are there */
    TARN_TRACK_END_BACKWARD,   /* backward ends: no module is active any more */

    TARN_TRACK_BEGIN_STEP, /* an optimizer's step */
    TARN_TRACK_END_STEP,
    TARN_TRACK_OP_DONE, /* an operator has ended: peaks are taken, in state `name` when STATE is
                           among the flags, else Peak-Backward or Peak-Forward */
    TARN_TRACK_ACTIVE,  /* the next OP_DONE counts for modules named `name` and those of the ACTIVE
                           events beside this one, and for no others */
    TARN_TRACK_START,   /* peaks begin anew from what is there */
    TARN_TRACK_RESET_MODULES,   /* forgets the statistics of all modules */
    TARN_TRACK_FORGET_MODULE,   /* ... of one, which is gone */
    TARN_TRACK_BEGIN_ITERATION, /* RESET_MODULES, and a root that begins again, do it as well */
    TARN_TRACK_KIND_COUNT
};

enum {
    TARN_TRACK_BACKWARD = 1, /* the event happens while gradients are computed */
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
 * the error names the one that was not and says why. TARN_ERR_NOT_FOUND for ids that are not known,
 * TARN_ERR_STATE for a module that is left but was not entered, and in `one_iteration`,
 * TARN_ERR_INVALID_ARGUMENT for numbers out of range, TARN_ERR_LIMIT for more bytes than can be
 * counted, TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_tracker_apply(struct tarn_tracker *tracker,
                                             const struct tarn_track_event *events, size_t count,
                                             size_t *applied_out,
                                             struct tarn_error *error) TARN_MUST_CHECK;

/* Bytes of one device. Those of categories add up to the total. */
struct tarn_track_row {
    uint32_t device;
    uint32_t reserved;
    int64_t total;
    int64_t bytes[TARN_TRACK_CATEGORIES_MAX]; /* by category */
};

enum tarn_track_point {
    TARN_TRACK_NOW,
    TARN_TRACK_PEAKS,      /* each device at its own peak: maybe different moments */
    TARN_TRACK_ONE_MOMENT, /* all devices when their sum was largest */
    TARN_TRACK_AT_END,     /* as NOW; of a replayed log, before the program took its model apart: a
                              log goes on while variables die, so of the deletions that it ends
                              with, those from the first on that is no activation or temporary do
                              not count */
    TARN_TRACK_MOMENT_COUNT
};

/* Copies up to `capacity` rows, in the order in which devices came; *count_out is how many there
 * are. */
TARN_API void tarn_tracker_get_rows(struct tarn_tracker *tracker, enum tarn_track_point moment,
                                    struct tarn_track_row *rows, size_t capacity,
                                    size_t *count_out);

/* One module's statistics. */
struct tarn_track_module {
    uint32_t struct_size; /* in: sizeof(struct tarn_track_module) */
    uint32_t name;
    uint64_t id;
    int64_t parameter_bytes; /* of all below it as well */
    int64_t buffer_bytes;
    int64_t input_bytes;  /* storages that are known; repeated ones count again */
    int64_t output_bytes; /* -1 = it has not ended */
    uint32_t state_count; /* states that it was in */
};

/* How many modules are known, in the order in which they came. */
TARN_API size_t tarn_tracker_count_modules(struct tarn_tracker *tracker);

/* TARN_ERR_NOT_FOUND when there are fewer. */
TARN_API enum tarn_status
tarn_tracker_get_module(struct tarn_tracker *tracker, size_t index,
                        struct tarn_track_module *module_out) TARN_MUST_CHECK;

/* The state number `state_index` of a module, and rows of its call number `call`, from 0; calls
 * that `calls_kept` has dropped are no longer counted. TARN_ERR_NOT_FOUND. */
TARN_API enum tarn_status tarn_tracker_get_state(struct tarn_tracker *tracker, size_t index,
                                                 size_t state_index, uint32_t *state_out,
                                                 size_t *call_count_out) TARN_MUST_CHECK;
TARN_API enum tarn_status tarn_tracker_get_call(struct tarn_tracker *tracker, size_t index,
                                                size_t state_index, size_t call,
                                                struct tarn_track_row *rows, size_t capacity,
                                                size_t *count_out) TARN_MUST_CHECK;

/* One iteration: what it began with, its peak in one moment, and what it ended with so far. */
struct tarn_track_iteration {
    uint32_t struct_size; /* in: sizeof(struct tarn_track_iteration) */
    uint64_t number;      /* from 0 */
    int64_t begin_bytes;  /* of all devices */
    int64_t peak_bytes;
    int64_t end_bytes;
    int64_t growth[TARN_TRACK_CATEGORIES_MAX]; /* end less begin, by category */
    int64_t peak[TARN_TRACK_CATEGORIES_MAX];   /* what the peak was made of */
};

/* How many there are, the one in progress among them, and number `index` of them. Those in which
 * no operator has ended do not count. TARN_ERR_NOT_FOUND. */
TARN_API size_t tarn_tracker_count_iterations(struct tarn_tracker *tracker);
TARN_API enum tarn_status
tarn_tracker_get_iteration(struct tarn_tracker *tracker, size_t index,
                           struct tarn_track_iteration *iteration_out) TARN_MUST_CHECK;

/* Whose storages those bytes were, by category: the module that was the innermost active one when a
 * storage came, or whose parameter or buffer it is, by name. TARN_TRACK_ONE_MOMENT is exact;
 * TARN_TRACK_PEAKS gives the bytes of `device` at its peak. */
TARN_API enum tarn_status tarn_tracker_get_owned(struct tarn_tracker *tracker,
                                                 enum tarn_track_point moment, uint32_t module,
                                                 uint32_t device,
                                                 struct tarn_track_row *row_out) TARN_MUST_CHECK;

/* Units: "B", "KiB", "MiB", "GiB". */
enum tarn_track_format {
    TARN_TRACK_TEXT,  /* as PyTorch's display functions */
    TARN_TRACK_TABLE, /* ... with tabulate=True */
    TARN_TRACK_FORMAT_COUNT
};

/* What PyTorch's display_snapshot and display_modulewise_snapshots print, byte for byte. Fail with
 * TARN_ERR_INVALID_ARGUMENT and PyTorch's message for other units, TARN_ERR_HOST_MEMORY, and what
 * the writer returns. The writer is called without locks. */
TARN_API enum tarn_status tarn_tracker_write_rows(struct tarn_tracker *tracker,
                                                  enum tarn_track_point moment, const char *units,
                                                  enum tarn_track_format format,
                                                  const struct tarn_writer *writer,
                                                  struct tarn_error *error) TARN_MUST_CHECK;
TARN_API enum tarn_status tarn_tracker_write_modules(struct tarn_tracker *tracker, uint32_t depth,
                                                     const char *units,
                                                     enum tarn_track_format format,
                                                     const struct tarn_writer *writer,
                                                     struct tarn_error *error) TARN_MUST_CHECK;

/* {"peak": ..., "current": ..., "modules": ...} as Python's json.dumps writes PyTorch's
 * dictionaries, one line; "current" is TARN_TRACK_AT_END. With `everything` also "moment",
 * "iterations" and "owners", which holds who had what in that moment. */
TARN_API enum tarn_status tarn_tracker_write_json(struct tarn_tracker *tracker, bool everything,
                                                  const struct tarn_writer *writer,
                                                  struct tarn_error *error) TARN_MUST_CHECK;

/* The tree of modules with what each had, itself and with all below, and bars of at most
 * `bar_width` characters. TARN_TRACK_PEAKS is treated as TARN_TRACK_ONE_MOMENT. */
TARN_API enum tarn_status tarn_tracker_write_tree(struct tarn_tracker *tracker,
                                                  enum tarn_track_point moment, uint32_t depth,
                                                  const char *units, uint32_t bar_width,
                                                  const struct tarn_writer *writer,
                                                  struct tarn_error *error) TARN_MUST_CHECK;

/* A line for each iteration: begin, peak, end, and what grew. */
TARN_API enum tarn_status tarn_tracker_write_iterations(struct tarn_tracker *tracker,
                                                        const char *units,
                                                        const struct tarn_writer *writer,
                                                        struct tarn_error *error) TARN_MUST_CHECK;

/* Recomputes everything that is kept twice; returns the number of contradictions, which are
 * added to `findings`. */
TARN_API uint64_t tarn_tracker_check(struct tarn_tracker *tracker, struct tarn_findings *findings);

/* What replaying a log showed. */
struct tarn_track_replay {
    uint32_t struct_size; /* in: sizeof(struct tarn_track_replay) */
    uint64_t events;      /* lines */
    uint64_t compared;    /* recorded snapshots ("after") */
    uint64_t differing;   /* ... that ours differ from */
    char first[512];      /* the first difference: line, expected, got; "" when none */
};

/* Applies a recorded log of events, one JSON object a line (docs/tracker.md), plain, gzip or zstd;
 * "-" is standard input. `replay_out` may be NULL. `after`, which may be NULL, gets our snapshot
 * after each event as a line of JSON. On failure, what came before it was applied:
 * TARN_ERR_FORMAT for what makes no sense, TARN_ERR_TRUNCATED when the log ends in the middle of an
 * event, TARN_ERR_IO, TARN_ERR_LIMIT, TARN_ERR_HOST_MEMORY; the text names line and event. */
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
