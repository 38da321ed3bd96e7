/* SPDX-License-Identifier: MIT */
/* What the files of the reference allocator share. The names are those of PyTorch's source. */
#ifndef TESTS_REFERENCE_MODEL_CORE_H
#define TESTS_REFERENCE_MODEL_CORE_H

#include "device/device_ops.h"
#include "reference/model.h"

enum {
    REF_MIN_BLOCK = 512
};
#define REF_SMALL_SIZE   ((uint64_t)1048576)
#define REF_SMALL_BUFFER ((uint64_t)2097152)
#define REF_MIN_LARGE    ((uint64_t)10485760)
#define REF_ROUND_LARGE  ((uint64_t)2097152)
#define REF_ABSURD_SIZE  ((uint64_t)1152921504606846976)

struct ref_private;

/* A set of streams, in the order of insertion. */
struct ref_streams {
    tarn_stream *item;
    size_t count;
    size_t capacity;
};

/* Nodes of a graph under capture. */
struct ref_nodes {
    tn_graph_node *item;
    size_t count;
    size_t capacity;
};

/* One reserved address range that pages are mapped into. */
struct ref_expandable {
    uint64_t address;
    uint64_t page_size;
    uint64_t page_count;
    tarn_stream stream;
    tn_page_handle *page; /* 0 = not mapped */
};

struct ref_block {
    tarn_stream stream;
    uint64_t size;
    uint64_t requested_size;
    uint64_t ptr;
    uint64_t registration_counter; /* of its segment: parts of a block inherit it */
    struct ref_pool *pool;
    bool allocated;
    bool mapped;
    struct ref_block *prev;
    struct ref_block *next;
    uint64_t event_count;
    int64_t gc_count_base;
    struct ref_streams stream_uses;
    struct ref_streams graph_stream_uses; /* those recorded while a capture was under way */
    struct ref_nodes free_markers; /* deferred: nodes that reuse in the capture comes after */
    struct ref_expandable *expandable;
};

/* Pointers to blocks; sorted where that is said. */
struct ref_blocks {
    struct ref_block **item;
    size_t count;
    size_t capacity;
};

struct ref_pool {
    struct ref_blocks blocks;   /* free, by stream, size, since 2.13 the counter, address */
    struct ref_blocks unmapped; /* by stream, address */
    bool is_small;
    struct ref_private *owner; /* NULL: a default pool */
    int64_t get_free_blocks_call_count;
    bool by_counter; /* the comparator is BlockComparatorSizeCounterAddress */
};

struct ref_private {
    struct tarn_pool_id id;
    int64_t use_count;
    bool freeable;
    bool use_on_oom;
    bool no_split;
    struct ref_pool large;
    struct ref_pool small;
    struct ref_private *next; /* made later */
};

struct ref_capture {
    struct tarn_pool_id id;
    tarn_pool_filter filter;
    void *context;
};

struct ref_wait {
    tn_event_handle event;
    struct ref_block *block;
};

struct ref_queue {
    tarn_stream stream;
    struct ref_wait *item;
    size_t count;
    size_t capacity;
};

struct ref_model {
    struct tarn_device *device;
    struct tarn_config config;
    struct tarn_stats stats;
    struct ref_pool large;
    struct ref_pool small;
    struct ref_blocks active;   /* handed out or waiting, no order */
    struct ref_blocks deferred; /* freed during a capture, oldest first */
    struct ref_private *privates;
    struct ref_capture *captures; /* oldest first */
    size_t capture_count;
    size_t capture_capacity;
    size_t active_captures; /* 2.13's num_active_captures_ */
    uint64_t registrations; /* segments from the device, or reserved ranges, ever */
    struct ref_queue *queues;
    size_t queue_count;
    size_t queue_capacity;
    uint64_t total_allocated_memory;
    uint64_t limit;
    uint64_t reclaimed_in_capture; /* blocks */
    bool keep_mapped;
    bool (*callback)(void *context);
    void *callback_context;
    tn_page_handle *created; /* pages that the allocation under way created in advance */
    size_t created_count;
    size_t created_capacity;
    struct tarn_trace_event *events;
    size_t event_count;
    size_t event_capacity;
};

/* One request on its way. */
struct ref_request {
    tarn_stream stream;
    uint64_t requested;
    uint64_t size;
    uint64_t alloc_size;
    struct ref_pool *pool;
    struct ref_block *block;
    bool expandable; /* expandable segments may serve it */
    bool rejected;   /* refused before the device was asked */
};

/* ---- model_core.c ---- */

/* Host memory or the end of the program. */
void *ref_grow(void *array, size_t *capacity, size_t needed, size_t element);
/* Ends the program unless the condition holds: the model itself is wrong or misused. */
void ref_require(bool condition, const char *what);

void ref_emit(struct ref_model *model, enum tarn_action action, uint64_t address, uint64_t size,
              tarn_stream stream, const struct ref_pool *pool);

void ref_increase(struct tarn_stat *stat, uint64_t amount);
void ref_decrease(struct tarn_stat *stat, uint64_t amount);
void ref_increase_kind(struct ref_model *model, enum tarn_stat_kind kind,
                       const struct ref_pool *pool, uint64_t amount);
void ref_decrease_kind(struct ref_model *model, enum tarn_stat_kind kind,
                       const struct ref_pool *pool, uint64_t amount);

struct ref_block *ref_block_new(tarn_stream stream, uint64_t size, struct ref_pool *pool,
                                uint64_t ptr);
/* The same for a part of another block. */
struct ref_block *ref_block_part(const struct ref_block *whole, uint64_t size, uint64_t ptr);
void ref_block_delete(struct ref_block *block);
void ref_splice(struct ref_block *block, struct ref_block *before, struct ref_block *after);
bool ref_is_split(const struct ref_block *block);

bool ref_streams_have(const struct ref_streams *streams, tarn_stream stream);
void ref_streams_add(struct ref_streams *streams, tarn_stream stream);

void ref_blocks_push(struct ref_blocks *blocks, struct ref_block *block);
void ref_blocks_remove(struct ref_blocks *blocks, const struct ref_block *block);

/* The free set: insert resets the age. lower_bound is the first block that is not before
 * (stream, size, counter 0, address 0). */
void ref_insert_into_blocks(struct ref_pool *pool, struct ref_block *block);
size_t ref_lower_bound(const struct ref_pool *pool, tarn_stream stream, uint64_t size);
/* The order of the rules; the ages of blocks stay. */
void ref_apply_rules(struct ref_model *model);
void ref_pool_apply_rules(struct ref_pool *pool, const struct tarn_config *config);
void ref_insert_into_unmapped(struct ref_pool *pool, struct ref_block *block);

uint64_t ref_try_merge(struct ref_block *dst, struct ref_block *src, struct ref_pool *pool);
void ref_free_block(struct ref_model *model, struct ref_block *block);
void ref_alloc_found_block(struct ref_model *model, struct ref_request *request, bool split);
void ref_free_allocated(struct ref_model *model, struct ref_block *block);

/* 2.11: captures_underway is not empty. 2.13 splits that list into the scopes that route requests
 * to pools and a number of captures, and asks for the latter (is_capture_context). */
bool ref_is_capture_context(const struct ref_model *model);

/* ---- model_device.c: what comes from the device and goes back ---- */

bool ref_alloc_block(struct ref_model *model, struct ref_request *request, bool is_retry);
void ref_release_block(struct ref_model *model, struct ref_block *block);
void ref_release_blocks(struct ref_model *model, struct ref_pool *pool);
bool ref_release_available(struct ref_model *model, const struct ref_request *request);
void ref_release_cached(struct ref_model *model, struct tarn_pool_id id);
void ref_collect_garbage(struct ref_model *model);

/* ---- model_stream.c: uses on other streams ---- */

void ref_insert_events(struct ref_model *model, struct ref_block *block);
void ref_insert_deferred(struct ref_model *model);
void ref_process_events(struct ref_model *model);
void ref_synchronize(struct ref_model *model, const struct ref_private *only);

/* ---- model_graph.c: reuse within a capture ---- */

/* The block is freed while a capture is under way, and the setting is on. */
void ref_record_free_markers(const struct ref_model *model, struct ref_block *block);
/* An allocation on the stream, likewise. */
void ref_free_safe_blocks(struct ref_model *model, tarn_stream stream);

/* ---- model_pool.c: private pools ---- */

struct ref_private *ref_find_private(const struct ref_model *model, struct tarn_pool_id id);
struct ref_pool *ref_get_pool(struct ref_model *model, uint64_t size, tarn_stream stream);
/* Every block that PyTorch's get_all_blocks would list, by address; caller frees `item`. */
struct ref_blocks ref_all_blocks(const struct ref_model *model);

#endif
