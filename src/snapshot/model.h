/* SPDX-License-Identifier: MIT */
/*
 * A memory snapshot in memory: the data of torch.cuda.memory._snapshot(), packed.
 *
 * Owns everything that it points to. Tables intern every string, frame, stack, "extra" and
 * container, so that equal ones are stored once and compared by number:
 *   string  bytes with a length, NUL-terminated;        0 = the key was absent
 *   frame   name, file and line of one call;            0 = none
 *   stack   a list of frames, innermost first;          0 = the key was absent, 1 = the empty list
 *   extra   what rarely differs between trace entries;  0 = only the plain keys
 *   container  a dict, list or tuple that the model has no other field for; 0 = none
 * Trace entries of all devices are in one chunked vector in file order, 40 bytes each; a trace is a
 * range of them. Nothing moves after it is stored.
 *
 * After loading, a model is read-only, and any number of threads may read it.
 *
 * Readers fill a model through decode.h, other producers through the tn_model_... functions below.
 * These fail with TARN_ERR_LIMIT if the budget is exhausted, else with TARN_ERR_HOST_MEMORY.
 */
#ifndef TN_SNAPSHOT_MODEL_H
#define TN_SNAPSHOT_MODEL_H

#include "base/arena.h"
#include "base/attr.h"
#include "base/budget.h"
#include "base/chunked_vec.h"
#include "base/id_table.h"
#include "tarn/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    TN_STRING_NONE = 0,
    TN_STACK_NONE = 0,
    TN_STACK_EMPTY = 1,
    TN_EXTRA_NONE = 0,
    TN_CONTAINER_NONE = 0
};

/* Shared containers in shared containers: more than any limit, written out. */
#define TN_CONTAINER_TOO_LARGE UINT32_MAX

/* `time_us` if there is no time. */
#define TN_TIME_NONE INT64_MIN

/* Actions of events, including those only found in files: enumerator, name in files. */
#define TN_TRACE_ACTION_MAP(X) TARN_ACTION_MAP(X) X(USER_DEFINED, "user_defined")

enum tn_trace_action {
#define TN_TRACE_ACTION_ENUM(name, text) TN_TRACE_##name,
    TN_TRACE_ACTION_MAP(TN_TRACE_ACTION_ENUM)
#undef TN_TRACE_ACTION_ENUM
    TN_TRACE_OTHER, /* unknown to this version: the text is in the extra's `action_name` */
    TN_TRACE_ACTION_COUNT
};

enum tn_block_state {
    TN_BLOCK_INACTIVE,
    TN_BLOCK_ACTIVE_ALLOCATED,
    TN_BLOCK_ACTIVE_PENDING_FREE
};

struct tn_string {
    const char *text; /* NUL-terminated; may contain NULs, so use `length` */
    size_t length;
};

struct tn_frame {
    uint32_t name;     /* string */
    uint32_t filename; /* string */
    int64_t line;
    uint32_t fx; /* number in model->fx, 0 = no torch.fx keys */
};

/* The torch.fx keys of a frame, as strings, and its other keys. */
struct tn_frame_fx {
    uint32_t node_op;
    uint32_t node_name;
    uint32_t node_target;
    uint32_t original_trace;
    uint32_t rest; /* container: unknown keys */
};

struct tn_stack {
    const uint32_t *frames; /* innermost first */
    uint32_t count;
    uint32_t written; /* bytes of its frames written out; UINT32_MAX: at least that many */
};

struct tn_pool_id {
    uint64_t id[2]; /* {0, 0} is the default pool */
};

/* Earlier contents of a merged block, newest first (files from before 2023). */
struct tn_block_history {
    uint64_t address;
    uint64_t real_size; /* requested bytes */
    uint32_t stack;     /* TN_STACK_NONE: no context */
};

struct tn_model_block {
    uint64_t address; /* from the file, or computed from the segment's address */
    uint64_t size;
    uint64_t requested_size; /* stale for inactive blocks; `size` when the file has neither it nor
                           history */
    const struct tn_block_history *history;
    uint32_t history_count; /* > 0 only in the old format */
    uint32_t stack;         /* TN_STACK_NONE if the file has no `frames`, in the old format */
    uint32_t rest;          /* container: unknown keys */
    uint8_t state;          /* enum tn_block_state */
    bool has_address;
    bool has_requested_size;
};

struct tn_model_segment {
    uint64_t address;
    uint64_t total_size;
    uint64_t allocated_size; /* these three: computed from the blocks if missing in the file */
    uint64_t active_size;
    uint64_t requested_size;
    uint64_t stream;
    struct tn_pool_id pool;
    int32_t device;
    uint32_t stack;
    uint32_t rest; /* container: unknown keys */
    bool is_large;
    bool is_expandable;
    const struct tn_model_block *blocks; /* in the order of the file, which is by address */
    size_t block_count;
};

/* One trace entry; 40 bytes. */
struct tn_trace_entry {
    uint64_t address; /* for OOM: free bytes of the device (`device_free`) */
    uint64_t size;
    uint64_t stream;
    int64_t time_us; /* since the epoch; TN_TIME_NONE if the file has none */
    uint32_t stack;
    uint32_t extra : 27;
    uint32_t action : 5; /* enum tn_trace_action */
};

/* Whether the allocator takes memory from the device, and whether it releases some. */
static inline bool tn_trace_takes(const struct tn_trace_entry *entry)
{
    return entry->action == TN_TRACE_SEGMENT_ALLOC || entry->action == TN_TRACE_SEGMENT_MAP;
}

static inline bool tn_trace_gives_back(const struct tn_trace_entry *entry)
{
    return entry->action == TN_TRACE_SEGMENT_FREE || entry->action == TN_TRACE_SEGMENT_UNMAP;
}

/* Data shared by entries; interned, so that a file has few. Strings are TN_STRING_NONE if the key
 * is absent. `shape` is the order of the keys in the file, for printing an entry as Python would.
 * */
struct tn_trace_extra {
    uint32_t compile_context;
    uint32_t user_metadata;
    uint32_t internal_metadata;
    uint32_t category;
    uint32_t action_name; /* only for TN_TRACE_OTHER */
    uint32_t shape;       /* number in model->shapes, 0 = unknown */
    uint32_t rest; /* container: unknown keys, and texts above with a value of another kind */
    bool has_pool;
    struct tn_pool_id pool;
};

/* The keys of a dict in the order of the file, as strings. */
struct tn_shape {
    const uint32_t *keys;
    uint32_t count;
};

/* The entries of one device: `count` from number `first` of model->entries on. */
struct tn_trace {
    uint64_t first;
    uint64_t count;
};

enum tn_field_kind {
    TN_FIELD_NONE,
    TN_FIELD_BOOL,
    TN_FIELD_INT,
    TN_FIELD_UINT,
    TN_FIELD_FLOAT,
    TN_FIELD_STRING,
    TN_FIELD_CONTAINER,
    TN_FIELD_STACK,
    TN_FIELD_FRAME
};

/* A key of an open dict (annotations, settings) with any value, or an item of a container. */
struct tn_field {
    uint32_t key; /* string; TN_STRING_NONE in a list */
    uint8_t kind; /* enum tn_field_kind */
    union {
        bool boolean;
        int64_t integer;
        uint64_t unsigned_integer; /* only above INT64_MAX */
        double real;
        uint32_t string;
        uint32_t number; /* of a container, stack or frame */
    } value;
};

enum tn_container_kind {
    TN_CONTAINER_DICT,
    TN_CONTAINER_LIST,
    TN_CONTAINER_TUPLE
};

/* Its containers have lower numbers: it was added after them. */
struct tn_container {
    const struct tn_field *items;
    uint32_t count;
    uint32_t written; /* bytes written out; a container with more is refused */
    uint8_t kind;     /* enum tn_container_kind */
    bool has_frames;  /* it or one inside has a frame or stack: a frame never holds such a one, so
                         that frames do not nest */
};

struct tn_annotation {
    uint32_t stage; /* string: "START", "END" */
    uint32_t name;  /* string */
    int32_t device; /* -1 when absent */
    int64_t time_us;
    const struct tn_field *fields; /* the other keys */
    size_t field_count;
};

enum {
    TN_ROUNDUP_INTERVALS = 16
};

struct tn_model_settings {
    bool present;
    uint32_t conf;                       /* string: PYTORCH_CUDA_ALLOC_CONF */
    int64_t max_split_size;              /* -1 = unlimited */
    double garbage_collection_threshold; /* 0 = off */
    bool expandable_segments;
    bool has_roundup;
    uint64_t roundup_power2_divisions[TN_ROUNDUP_INTERVALS]; /* from 1, 2, 4, ... 32768 MiB on */
    const struct tn_field *fields;                           /* every other key */
    size_t field_count;
};

/* An anomaly in the file that did not stop the reader, counted per kind and key. */
struct tn_model_warning {
    char text[160]; /* one line */
    uint64_t count;
    uint64_t offset; /* of the first, in the uncompressed input */
    uint32_t kind;   /* for merging; see decode.h */
    uint32_t key;
};

enum {
    TN_WARNINGS_KEPT = 64,
    TN_DEVICES_MAX = 1 << 16 /* with a trace */
};

struct tn_model {
    struct tn_budget budget;
    struct tn_arena arena; /* all arrays below */

    struct tn_chunked_vec strings;    /* struct tn_string */
    struct tn_chunked_vec frames;     /* struct tn_frame */
    struct tn_chunked_vec stacks;     /* struct tn_stack */
    struct tn_chunked_vec extras;     /* struct tn_trace_extra */
    struct tn_chunked_vec shapes;     /* struct tn_shape */
    struct tn_chunked_vec fx;         /* struct tn_frame_fx */
    struct tn_chunked_vec containers; /* struct tn_container */
    struct tn_chunked_vec entries;    /* struct tn_trace_entry */
    struct tn_id_table string_ids;
    struct tn_id_table frame_ids;
    struct tn_id_table stack_ids;
    struct tn_id_table extra_ids;
    struct tn_id_table shape_ids;
    struct tn_id_table fx_ids;
    struct tn_id_table container_ids;

    const struct tn_model_segment *segments;
    size_t segment_count;
    const struct tn_trace *traces; /* by device ordinal */
    size_t trace_count;
    const struct tn_model_segment *host_segments; /* pinned memory, when recorded */
    size_t host_segment_count;
    const struct tn_trace *host_traces;
    size_t host_trace_count;
    const struct tn_annotation *annotations;
    size_t annotation_count;
    struct tn_model_settings settings;
    uint32_t rest; /* container: unknown keys of the top level */

    bool is_list_only; /* the file is a bare list of segments */
    bool is_legacy;    /* some block has `history` instead of `frames` */
    bool is_partial;   /* the input ended early */
    bool has_traces;   /* the file has `device_traces` */
    bool has_host;     /* ... `host_segments` or `host_traces` */
    bool has_annotations;

    struct tn_model_warning warnings[TN_WARNINGS_KEPT];
    size_t warning_count;
    uint64_t warnings_dropped; /* kinds beyond the limit */

    uint64_t written;          /* bytes of all records written out; see tn_model_charge_written */
    uint64_t written_most;     /* 0 = any number */
    uint64_t written_per_byte; /* of the input so far, if the budget follows it: then the larger
                                  of both limits applies */
    uint64_t sizes;            /* of all records together; see tn_model_take_size */
};

/* An empty model that may use `memory_limit` bytes of host memory; 0 = no limit. After a failure
 * there is nothing to release. */
enum tarn_status tn_model_init(struct tn_model *model, uint64_t memory_limit) TN_MUST_CHECK;
void tn_model_fini(struct tn_model *model);

/* Intern an item and return its number. Frames of a stack and strings of a frame are those of the
 * model. */
enum tarn_status tn_model_add_string(struct tn_model *model, const char *text, size_t length,
                                     uint32_t *string_out) TN_MUST_CHECK;
enum tarn_status tn_model_add_frame(struct tn_model *model, const struct tn_frame *frame,
                                    uint32_t *frame_out) TN_MUST_CHECK;
enum tarn_status tn_model_add_fx(struct tn_model *model, const struct tn_frame_fx *fx,
                                 uint32_t *fx_out) TN_MUST_CHECK;
enum tarn_status tn_model_add_stack(struct tn_model *model, const uint32_t *frames, size_t count,
                                    uint32_t *stack_out) TN_MUST_CHECK;
enum tarn_status tn_model_add_extra(struct tn_model *model, const struct tn_trace_extra *extra,
                                    uint32_t *extra_out) TN_MUST_CHECK;
enum tarn_status tn_model_add_shape(struct tn_model *model, const uint32_t *keys, size_t count,
                                    uint32_t *shape_out) TN_MUST_CHECK;

/* Whether a value is or has a frame or a stack. */
bool tn_field_has_frames(const struct tn_model *model, const struct tn_field *field);

/* TN_CONTAINER_TOO_LARGE, which is no failure, for one that exceeds the bound of
 * tn_model_charge_written alone; it must not be an item. */
enum tarn_status tn_model_add_container(struct tn_model *model, enum tn_container_kind kind,
                                        const struct tn_field *items, uint32_t count,
                                        uint32_t *container_out) TN_MUST_CHECK;

/* Appends an entry to the vector; its trace is set later. */
enum tarn_status tn_model_add_entry(struct tn_model *model, const struct tn_trace_entry *entry,
                                    uint64_t *number_out) TN_MUST_CHECK;

/* Readers call this for each record. A file can share a string or stack any number of times, at a
 * byte or two each, but walking or printing the records visits it each time. So the bytes of all
 * records, written out without sharing, are bounded: by TN_WRITTEN_PER_MEMORY times the budget's
 * limit, for a file more tightly (read_limits.h). TARN_ERR_LIMIT. */
enum {
    TN_WRITTEN_PER_MEMORY = 64,
    TN_ENTRY_WRITTEN = 96 /* bytes of an entry besides what it shares, about as in JSON */
};
enum tarn_status tn_model_charge_written(struct tn_model *model, uint64_t bytes) TN_MUST_CHECK;

/* The bound for the input so far, 0 = none. */
uint64_t tn_model_written_limit(const struct tn_model *model);

/* Bytes of the items of an open dict written out. */
uint64_t tn_model_fields_written(const struct tn_model *model, const struct tn_field *fields,
                                 size_t count);

/* Bytes that an extra adds to an entry written out. */
uint64_t tn_model_extra_written(const struct tn_model *model, uint32_t extra);

/* Readers pass each size and time of a record through these. The sum of all sizes of a file stays
 * below 2^62 bytes and all times within 2^61 us of the epoch, so that no sum or difference of them
 * overflows, whatever the order. A size that exceeds this, which no real run requests, counts as 0,
 * and a time as none; these then return false. */
#define TN_SIZES_MAX (((uint64_t)1 << 62) - 1)
#define TN_TIME_MAX  ((int64_t)1 << 61)
bool tn_model_take_size(struct tn_model *model, uint64_t *size);
bool tn_time_take(int64_t *time_us);

/* Status of a failed allocation. */
enum tarn_status tn_model_memory_status(const struct tn_model *model);

/* "" for TN_STRING_NONE. Borrowed from the model. */
/* Whether that is the whole text. */
static inline bool tn_string_is(struct tn_string string, const char *text)
{
    return string.length == strlen(text) && memcmp(string.text, text, string.length) == 0;
}

static inline struct tn_string tn_model_string(const struct tn_model *model, uint32_t string)
{
    return *(const struct tn_string *)tn_chunked_vec_at(&model->strings, string);
}

static inline const struct tn_frame *tn_model_frame(const struct tn_model *model, uint32_t frame)
{
    return tn_chunked_vec_at(&model->frames, frame);
}

static inline struct tn_stack tn_model_stack(const struct tn_model *model, uint32_t stack)
{
    return *(const struct tn_stack *)tn_chunked_vec_at(&model->stacks, stack);
}

/* Bytes of a trace entry written out, without its extra. */
static inline uint64_t tn_model_entry_written(const struct tn_model *model,
                                              const struct tn_trace_entry *entry)
{
    return (uint64_t)TN_ENTRY_WRITTEN + tn_model_stack(model, entry->stack).written;
}

static inline const struct tn_trace_extra *tn_model_extra(const struct tn_model *model,
                                                          uint32_t extra)
{
    return tn_chunked_vec_at(&model->extras, extra);
}

static inline struct tn_shape tn_model_shape(const struct tn_model *model, uint32_t shape)
{
    return *(const struct tn_shape *)tn_chunked_vec_at(&model->shapes, shape);
}

static inline struct tn_container tn_model_container(const struct tn_model *model,
                                                     uint32_t container)
{
    return *(const struct tn_container *)tn_chunked_vec_at(&model->containers, container);
}

/* The item with that key of a dict; NULL if there is none. */
const struct tn_field *tn_container_find(const struct tn_model *model, uint32_t container,
                                         uint32_t key);

/* Entry `index` of a trace, index < trace->count. */
static inline const struct tn_trace_entry *tn_trace_at(const struct tn_model *model,
                                                       const struct tn_trace *trace, uint64_t index)
{
    return tn_chunked_vec_at(&model->entries, trace->first + index);
}

/* Entries of a trace that lie side by side: the last of them is number `limit` - 1 (limit > 0).
 * Sets how many there are; returns the first one. For loops that look at every entry. */
static inline const struct tn_trace_entry *tn_trace_run_before(const struct tn_model *model,
                                                               const struct tn_trace *trace,
                                                               uint64_t limit, uint64_t *count_out)
{
    const uint64_t in_chunk = ((trace->first + limit - 1) & (TN_CHUNKED_VEC_CHUNK - 1)) + 1;

    *count_out = in_chunk < limit ? in_chunk : limit;
    return tn_trace_at(model, trace, limit - *count_out);
}

/* The same from entry number `first` on, which is one of the trace. */
static inline const struct tn_trace_entry *tn_trace_run_from(const struct tn_model *model,
                                                             const struct tn_trace *trace,
                                                             uint64_t first, uint64_t *count_out)
{
    const uint64_t in_chunk =
        TN_CHUNKED_VEC_CHUNK - ((trace->first + first) & (TN_CHUNKED_VEC_CHUNK - 1));
    const uint64_t left = trace->count - first;

    *count_out = in_chunk < left ? in_chunk : left;
    return tn_trace_at(model, trace, first);
}

/* Name of an action in files, e.g. "segment_alloc"; "other" for TN_TRACE_OTHER. Static storage. */
const char *tn_trace_action_name(enum tn_trace_action action);

/* Name of a block state in files. Static storage. */
const char *tn_block_state_name(enum tn_block_state state);

#endif
