/* SPDX-License-Identifier: MIT */
/*
 * The reference allocator: PyTorch's CUDA caching allocator once more, 2.11's and, with `rules`,
 * what newer versions changed. It is written from its
 * description and not from src/alloc, as literally and as slowly as it reads. Sets are sorted
 * arrays, everything is found by looking at everything. It exists to be compared with: two
 * allocators that were written apart and agree after every call are probably both right.
 *
 * It asks a device through the same table as the real engine does. Give each its own simulated
 * device with the same options and do to both the same things: the device is deterministic, so both
 * get the same answers. The device must not fail but for want of memory, and host memory must
 * suffice: the model stops the program otherwise.
 *
 * Where PyTorch leaves the order to a hash table, the model fixes one: private pools in the order
 * of their making; event queues in the order in which their streams were first waited for; the
 * segments of a checkpoint by address.
 *
 * Where PyTorch fails an internal check half way, the model refuses with the state as it was. Where
 * 2.11 leaves pages mapped after an allocation that failed later on, the model can do either: see
 * `keep_mapped`.
 */
#ifndef TESTS_REFERENCE_MODEL_H
#define TESTS_REFERENCE_MODEL_H

#include "tarn/allocator.h"
#include "tarn/event.h"

struct ref_model;
struct ref_checkpoint;

/* The device is borrowed. Caller owns the model, free with ref_destroy. */
struct ref_model *ref_create(struct tarn_device *device, const struct tarn_config *config);

/* Gives its memory back to the device. */
void ref_destroy(struct ref_model *model);

/* New settings from now on; max_split_size in the counters stays. */
void ref_set_config(struct ref_model *model, const struct tarn_config *config);

/* An allocation in a expandable segment that finds the device full keeps what it had mapped before
 * that, as 2.11 does; else it creates all pages first, as later versions do (the default). */
void ref_keep_mapped(struct ref_model *model, bool keep);

/* Called when no free block fits, before the device is asked: says whether it freed something. */
void ref_set_callback(struct ref_model *model, bool (*callback)(void *context), void *context);

/* Streams whose queues are polled first, in this order: for recorded decisions. */
void ref_poll_first(struct ref_model *model, const tarn_stream *streams, size_t count);

/* As their namesakes in tarn/allocator.h and tarn/graph_pool.h. */
enum tarn_status ref_alloc(struct ref_model *model, uint64_t size, tarn_stream stream,
                           tarn_ptr *ptr_out);
enum tarn_status ref_alloc_at(struct ref_model *model, uint64_t size, tarn_stream stream,
                              tarn_ptr ptr);
enum tarn_status ref_free(struct ref_model *model, tarn_ptr ptr);
enum tarn_status ref_record_stream(struct ref_model *model, tarn_ptr ptr, tarn_stream stream);
enum tarn_status ref_empty_cache(struct ref_model *model, struct tarn_pool_id id);
enum tarn_status ref_base_allocation(struct ref_model *model, tarn_ptr ptr, tarn_ptr *base_out,
                                     uint64_t *size_out);
enum tarn_status ref_set_fraction(struct ref_model *model, double fraction);
uint64_t ref_get_limit(const struct ref_model *model);
/* Blocks that graph_capture_record_stream_reuse made reusable so far. */
uint64_t ref_reclaimed_in_capture(const struct ref_model *model);
void ref_get_stats(const struct ref_model *model, struct tarn_stats *stats_out);
void ref_reset_peak_stats(struct ref_model *model);
void ref_reset_accumulated_stats(struct ref_model *model);
uint64_t ref_cache_info(struct ref_model *model, uint64_t largest);
void ref_walk(const struct ref_model *model, const struct tarn_walker *walker);

enum tarn_status ref_begin_pool(struct ref_model *model, struct tarn_pool_id id,
                                tarn_pool_filter filter, void *context);
enum tarn_status ref_end_pool(struct ref_model *model, struct tarn_pool_id id);
enum tarn_status ref_begin_capture(struct ref_model *model);
enum tarn_status ref_end_capture(struct ref_model *model);
enum tarn_status ref_acquire_pool(struct ref_model *model, struct tarn_pool_id id);
enum tarn_status ref_release_pool(struct ref_model *model, struct tarn_pool_id id);
uint64_t ref_pool_use_count(const struct ref_model *model, struct tarn_pool_id id);
enum tarn_status ref_set_use_on_oom(struct ref_model *model, struct tarn_pool_id id, bool on);
enum tarn_status ref_set_no_split(struct ref_model *model, struct tarn_pool_id id, bool on);
enum tarn_status ref_get_checkpoint(struct ref_model *model, struct tarn_pool_id id,
                                    struct ref_checkpoint **checkpoint_out);
enum tarn_status ref_set_checkpoint(struct ref_model *model,
                                    const struct ref_checkpoint *checkpoint,
                                    struct tarn_checkpoint_delta *delta_out);
void ref_checkpoint_destroy(struct ref_checkpoint *checkpoint);
void ref_delta_fini(struct tarn_checkpoint_delta *delta);
enum tarn_status ref_check_pool_live(const struct ref_model *model, struct tarn_pool_id id,
                                     const tarn_ptr *expected, size_t count, bool *live_out);

/* For recorded decisions: the segments of a checkpoint restored next are taken in the order of
 * these addresses. */
void ref_order_checkpoint(struct ref_checkpoint *checkpoint, const tarn_ptr *heads, size_t count);

/* Events since the last clear, oldest first. Borrowed until the next call. */
const struct tarn_trace_event *ref_events(const struct ref_model *model, size_t *count_out);
void ref_clear_events(struct ref_model *model);

#endif
