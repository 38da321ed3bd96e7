/* SPDX-License-Identifier: MIT */
/*
 * A second allocator with `backend:cudaMallocAsync`, slow and simple, written from the description
 * of PyTorch's alone: a list of blocks, sums over all of it, and the calls of the driver that
 * PyTorch would make. It has a simulated device of its own, which must do the same work and fail in
 * the same calls as that of the allocator under test: then the pools of both decide alike, and
 * addresses, statuses and reserved bytes can be compared.
 *
 * What it knows by itself, and not from its device: allocated bytes and peaks, who may have memory
 * that was freed (stream_clock.h), and that live blocks do not overlap.
 *
 * A failed call changes nothing but what it says. Not for several threads.
 */
#ifndef TESTS_PROPERTY_ASYNC_REFERENCE_H
#define TESTS_PROPERTY_ASYNC_REFERENCE_H

#include "device/device_ops.h"
#include "property/stream_clock.h"

enum {
    REFERENCE_BLOCKS = 1024
};

struct reference_block {
    tarn_ptr ptr;
    uint64_t size; /* as requested */
    tarn_stream stream;
    tarn_stream uses[CLOCK_STREAMS]; /* other streams, in the order of their records */
    unsigned use_count;
    bool captured;     /* allocated during a capture */
    uint64_t deferred; /* 1, 2, ... in the order of the frees that were put off; 0: not freed */
};

struct async_reference {
    struct tarn_device *device;
    struct stream_clock clock;
    struct reference_block blocks[REFERENCE_BLOCKS];
    unsigned count;
    uint64_t deferrals;
    uint64_t limit; /* TARN_SIZE_UNLIMITED: none */
    uint64_t used_peak;
    uint64_t reserved_peak;
    bool capturing;
    bool joins; /* has the stream and the event that join others */
    tarn_stream join_stream;
    tn_event_handle join_event;
    tarn_stream freed_on[CLOCK_ALL]; /* in the last capture, not joined since, each once */
    unsigned freed_on_count;
    uint64_t joined;    /* blocks freed that several streams had used */
    uint64_t put_off;   /* blocks that a capture kept and that were freed later */
    const char *wrong;  /* what the pool did that it must not; NULL: nothing */
    char oom_text[512]; /* of the last call that found no memory */
};

/* Takes ownership of the device. */
void reference_open(struct async_reference *reference, struct tarn_device *device);
void reference_close(struct async_reference *reference);

/* The calls of tarn/allocator.h and tarn/graph_pool.h. */
enum tarn_status reference_alloc(struct async_reference *reference, uint64_t size,
                                 tarn_stream stream, tarn_ptr *ptr_out);
enum tarn_status reference_free(struct async_reference *reference, tarn_ptr ptr);
enum tarn_status reference_record_stream(struct async_reference *reference, tarn_ptr ptr,
                                         tarn_stream stream);
enum tarn_status reference_empty_cache(struct async_reference *reference);
enum tarn_status reference_trim(struct async_reference *reference, uint64_t target);
enum tarn_status reference_cache_info(struct async_reference *reference, uint64_t *largest_out);
enum tarn_status reference_set_fraction(struct async_reference *reference, double fraction);
enum tarn_status reference_begin(struct async_reference *reference);
enum tarn_status reference_end(struct async_reference *reference);
enum tarn_status reference_join_frees(struct async_reference *reference, tarn_stream stream);
void reference_reset_peaks(struct async_reference *reference);

/* The block that the user has at the address, or NULL. */
const struct reference_block *reference_find(const struct async_reference *reference, tarn_ptr ptr);

/* Bytes of blocks that have not been given back to the pool, and of the device. */
uint64_t reference_used(const struct async_reference *reference);
uint64_t reference_reserved(const struct async_reference *reference);

#endif
