/* SPDX-License-Identifier: MIT */
/*
 * The keys and words of a snapshot. A decoder adds them to its model first and in this order, so
 * that the number of each string is its enumerator, and comparing keys is comparing numbers.
 *
 * The class of a key says which kinds of dict have it: the kind of a dict follows from its keys
 * alone. OPEN takes precedence: such a dict may have any key. Metadata may be a dict with any keys
 * as well, so one key does not make a record: an entry has a second one, a block a size and a list
 * that it is in, the values of a frame are of the right kind (decode.c).
 */
#ifndef TN_SNAPSHOT_KEYS_H
#define TN_SNAPSHOT_KEYS_H

#include "snapshot/model.h"

enum tn_key_class {
    TN_CLASS_ANY = 0,
    TN_CLASS_OPEN = 1, /* top level, segment, annotation: kept as pairs */
    TN_CLASS_ENTRY = 2,
    TN_CLASS_BLOCK = 4,
    TN_CLASS_FRAME = 8,
    TN_CLASS_EVENT = 16,   /* with an action: an entry */
    TN_CLASS_SIZE = 32,    /* with a state: a block */
    TN_CLASS_NO_FRAME = 64 /* not of a key: some value is none of a frame */
};

/* enumerator, text, class */
#define TN_KEY_MAP(X)                                                                              \
    X(ACTION, "action", ENTRY)                                                                     \
    X(ADDR, "addr", EVENT)                                                                         \
    X(DEVICE_FREE, "device_free", EVENT)                                                           \
    X(SIZE, "size", SIZE)                                                                          \
    X(STREAM, "stream", ANY)                                                                       \
    X(TIME_US, "time_us", EVENT)                                                                   \
    X(FRAMES, "frames", EVENT)                                                                     \
    X(COMPILE_CONTEXT, "compile_context", ANY)                                                     \
    X(USER_METADATA, "user_metadata", ANY)                                                         \
    X(INTERNAL_METADATA, "internal_metadata", ANY)                                                 \
    X(POOL_ID, "pool_id", ANY)                                                                     \
    X(CATEGORY, "category", ANY)                                                                   \
    X(FORWARD_FRAMES, "forward_frames", ANY)                                                       \
    X(NAME, "name", ANY)                                                                           \
    X(FILENAME, "filename", ANY)                                                                   \
    X(LINE, "line", FRAME)                                                                         \
    X(FX_NODE_OP, "fx_node_op", ANY)                                                               \
    X(FX_NODE_NAME, "fx_node_name", ANY)                                                           \
    X(FX_NODE_TARGET, "fx_node_target", ANY)                                                       \
    X(FX_ORIGINAL_TRACE, "fx_original_trace", ANY)                                                 \
    X(DEVICE, "device", ANY)                                                                       \
    X(ADDRESS, "address", ANY)                                                                     \
    X(TOTAL_SIZE, "total_size", OPEN)                                                              \
    X(ALLOCATED_SIZE, "allocated_size", ANY)                                                       \
    X(ACTIVE_SIZE, "active_size", ANY)                                                             \
    X(REQUESTED_SIZE, "requested_size", ANY)                                                       \
    X(SEGMENT_TYPE, "segment_type", ANY)                                                           \
    X(SEGMENT_POOL_ID, "segment_pool_id", ANY)                                                     \
    X(IS_EXPANDABLE, "is_expandable", ANY)                                                         \
    X(BLOCKS, "blocks", OPEN)                                                                      \
    X(STATE, "state", BLOCK)                                                                       \
    X(HISTORY, "history", BLOCK)                                                                   \
    X(REAL_SIZE, "real_size", OPEN)                                                                \
    X(STAGE, "stage", OPEN)                                                                        \
    X(SEGMENTS, "segments", OPEN)                                                                  \
    X(DEVICE_TRACES, "device_traces", OPEN)                                                        \
    X(ALLOCATOR_SETTINGS, "allocator_settings", OPEN)                                              \
    X(EXTERNAL_ANNOTATIONS, "external_annotations", OPEN)                                          \
    X(HOST_SEGMENTS, "host_segments", OPEN)                                                        \
    X(HOST_TRACES, "host_traces", OPEN)                                                            \
    X(CONF, "PYTORCH_CUDA_ALLOC_CONF", OPEN)                                                       \
    X(MAX_SPLIT_SIZE, "max_split_size", OPEN)                                                      \
    X(GC_THRESHOLD, "garbage_collection_threshold", OPEN)                                          \
    X(EXPANDABLE_SEGMENTS, "expandable_segments", OPEN)                                            \
    X(ROUNDUP, "roundup_power2_divisions", OPEN)                                                   \
    X(TARN_PAGES, "tarn_pages", OPEN) /* of segments under policy:compact; page_list.h */

/* enumerator, text: words that occur as values */
#define TN_WORD_MAP(X)                                                                             \
    X(INACTIVE, "inactive")                                                                        \
    X(ACTIVE_ALLOCATED, "active_allocated")                                                        \
    X(ACTIVE_PENDING_FREE, "active_pending_free")                                                  \
    X(ACTIVE_AWAITING_FREE, "active_awaiting_free")                                                \
    X(LARGE, "large")                                                                              \
    X(SMALL, "small")

/* Keys of roundup_power2_divisions, in order: lower bounds of the intervals in MiB. */
#define TN_INTERVAL_MAP(X)                                                                         \
    X("1")                                                                                         \
    X("2")                                                                                         \
    X("4")                                                                                         \
    X("8")                                                                                         \
    X("16")                                                                                        \
    X("32")                                                                                        \
    X("64")                                                                                        \
    X("128")                                                                                       \
    X("256")                                                                                       \
    X("512")                                                                                       \
    X("1024")                                                                                      \
    X("2048")                                                                                      \
    X("4096")                                                                                      \
    X("8192")                                                                                      \
    X("16384")                                                                                     \
    X("32768")

enum tn_key {
    TN_KEY_NONE,
#define TN_KEY_ENUM(name, text, class) TN_KEY_##name,
    TN_KEY_MAP(TN_KEY_ENUM)
#undef TN_KEY_ENUM
    TN_KEY_END, /* followed by the words, the names of the actions in the order of their enum, and
                   the intervals */
    TN_WORD_BEFORE_FIRST = TN_KEY_END - 1,
#define TN_WORD_ENUM(name, text) TN_WORD_##name,
    TN_WORD_MAP(TN_WORD_ENUM)
#undef TN_WORD_ENUM
    TN_WORD_END,
    TN_WORD_FIRST_ACTION = TN_WORD_END,
    TN_WORD_FIRST_INTERVAL = TN_WORD_FIRST_ACTION + TN_TRACE_OTHER
};

/* The word for an enum tn_block_state. */
uint32_t tn_word_of_state(uint8_t state);

/* Adds all of them to an empty model. TARN_ERR_LIMIT or TARN_ERR_HOST_MEMORY. */
enum tarn_status tn_keys_enter(struct tn_model *model) TN_MUST_CHECK;

#endif
