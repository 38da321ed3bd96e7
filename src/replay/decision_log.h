/* SPDX-License-Identifier: MIT */
/*
 * Reads a decision log: one JSON object per line, the first one is the header. Each further line is
 * a call with its result, the events it caused and the counters after it.
 *
 * Owns: the window onto the file and the current line. All pointers in a `struct tn_decision` are
 * borrowed until the next line is read.
 */
#ifndef TN_REPLAY_DECISION_LOG_H
#define TN_REPLAY_DECISION_LOG_H

#include "base/input.h"
#include "base/json_tree.h"
#include "tarn/graph_pool.h"

enum {
    TN_BRIEF_MAX = 32,
    TN_LOG_STREAMS_MAX = 4096
};

/* enumerator, name in the log */
#define TN_DECISION_MAP(X)                                                                         \
    X(MALLOC, "malloc")                                                                            \
    X(FREE, "free")                                                                                \
    X(RECORD_STREAM, "record_stream")                                                              \
    X(SYNCHRONIZE, "synchronize")                                                                  \
    X(EMPTY_CACHE, "empty_cache")                                                                  \
    X(RESET_PEAK_STATS, "reset_peak_stats")                                                        \
    X(RESET_ACCUMULATED_STATS, "reset_accumulated_stats")                                          \
    X(SET_FRACTION, "set_fraction")                                                                \
    X(BLOCK_STREAM, "block_stream")                                                                \
    X(UNBLOCK_STREAM, "unblock_stream")                                                            \
    X(CAPTURE_BEGIN, "capture_begin")                                                              \
    X(CAPTURE_END, "capture_end")                                                                  \
    X(WORK, "work")                                                                                \
    X(JOIN, "join")                                                                                \
    X(BEGIN_POOL, "begin_allocate_to_pool")                                                        \
    X(BEGIN_POOL_FAILED, "begin_allocate_to_pool_failed")                                          \
    X(END_POOL, "end_allocate_to_pool")                                                            \
    X(END_POOL_FAILED, "end_allocate_to_pool_failed")                                              \
    X(RELEASE_POOL, "release_pool")                                                                \
    X(SET_POOL_USE_ON_OOM, "set_pool_use_on_oom")                                                  \
    X(SET_POOL_NO_SPLIT, "set_pool_no_split")                                                      \
    X(GET_CHECKPOINT, "get_checkpoint")                                                            \
    X(GET_CHECKPOINT_FAILED, "get_checkpoint_failed")                                              \
    X(SET_CHECKPOINT, "set_checkpoint")                                                            \
    X(SET_CHECKPOINT_FAILED, "set_checkpoint_failed")                                              \
    X(SET_CONFIG, "set_config")                                                                    \
    X(STATS, "stats")                                                                              \
    X(SNAPSHOT, "snapshot")

enum tn_decision_op {
#define TN_DECISION_ENUM(name, text) TN_DECISION_##name,
    TN_DECISION_MAP(TN_DECISION_ENUM)
#undef TN_DECISION_ENUM
    TN_DECISION_COUNT
};

struct tn_decision {
    enum tn_decision_op op;
    uint64_t line;      /* from 1; the header is line 1 */
    uint64_t id;        /* malloc, free, record_stream */
    uint64_t size;      /* malloc */
    tarn_stream stream; /* handle */
    tarn_stream after;  /* join: the stream waited for, a handle */
    uint64_t ptr;       /* malloc that succeeded, else 0 */
    bool oom;           /* malloc that failed */
    const char *message;
    double fraction;
    const char *conf; /* set_config */
    struct tarn_pool_id pool;
    bool captured; /* begin_allocate_to_pool: for all streams of `stream`'s capture */
    bool value;    /* set_pool_... */
    const struct tn_json_value *freed;    /* set_checkpoint: pointers */
    const struct tn_json_value *created;  /* set_checkpoint: [pointer, id] */
    const struct tn_json_value *stats;    /* stats */
    const struct tn_json_value *segments; /* snapshot */
    const struct tn_json_value *events;   /* [action, address, size, stream] each */
    const struct tn_json_value *brief;    /* numbers; the header has their names */
};

struct tn_decision_log {
    struct tn_input input;
    struct tn_json_tree header;
    struct tn_json_tree line; /* the current one */
    uint64_t line_number;
    const char *conf;      /* borrowed from the header */
    uint64_t device_total; /* bytes */
    bool device_is_full;   /* other processes use so much that the device refuses requests */
    bool settled;          /* all work not after a block_stream was done before each malloc */
    tarn_stream streams[TN_LOG_STREAMS_MAX];
    uint32_t stream_count;
    const char *brief[TN_BRIEF_MAX];
    uint32_t brief_count;
};

/* Opens a log and reads its header. On failure there is nothing to close. */
enum tarn_status tn_decision_log_open(struct tn_decision_log *log, const char *path,
                                      struct tarn_error *error) TN_MUST_CHECK;
void tn_decision_log_close(struct tn_decision_log *log);

/* The next call. TARN_ERR_NOT_FOUND at the end of the log. */
enum tarn_status tn_decision_log_next(struct tn_decision_log *log, struct tn_decision *decision_out,
                                      struct tarn_error *error) TN_MUST_CHECK;

/* Handle of a stream in the log: an index into the header's list; any other number is the handle
 * itself. */
tarn_stream tn_decision_log_stream(const struct tn_decision_log *log,
                                   const struct tn_json_value *value);

const char *tn_decision_name(enum tn_decision_op op);

#endif
