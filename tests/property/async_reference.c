/* SPDX-License-Identifier: MIT */
#include "property/async_reference.h"

#include "support/sim.h"
#include "tarn/config.h"

#include <stdio.h>

void reference_open(struct async_reference *reference, struct tarn_device *device)
{
    *reference = (struct async_reference){.device = device, .limit = TARN_SIZE_UNLIMITED};
}

void reference_close(struct async_reference *reference)
{
    sim_close(reference->device);
}

uint64_t reference_used(const struct async_reference *reference)
{
    uint64_t used = 0;

    for (unsigned i = 0; i < reference->count; i++) {
        used += reference->blocks[i].size;
    }
    return used;
}

/* Nothing but the pool takes memory of this device. */
uint64_t reference_reserved(const struct async_reference *reference)
{
    return sim_counters(reference->device).used_bytes;
}

/* Each peak is the most of what was current after any step. */
static void peaks_raise(struct async_reference *reference)
{
    const uint64_t used = reference_used(reference);
    const uint64_t reserved = reference_reserved(reference);

    reference->used_peak = used > reference->used_peak ? used : reference->used_peak;
    reference->reserved_peak =
        reserved > reference->reserved_peak ? reserved : reference->reserved_peak;
}

void reference_reset_peaks(struct async_reference *reference)
{
    reference->used_peak = reference_used(reference);
    reference->reserved_peak = reference_reserved(reference);
}

/* Where it is in the list; `count` if the user has no such block. */
static unsigned index_of(const struct async_reference *reference, tarn_ptr ptr)
{
    unsigned i = 0;

    while (i < reference->count &&
           (reference->blocks[i].ptr != ptr || reference->blocks[i].deferred > 0)) {
        i++;
    }
    return i;
}

static struct reference_block *find(struct async_reference *reference, tarn_ptr ptr)
{
    const unsigned i = index_of(reference, ptr);

    return i < reference->count ? &reference->blocks[i] : NULL;
}

const struct reference_block *reference_find(const struct async_reference *reference, tarn_ptr ptr)
{
    const unsigned i = index_of(reference, ptr);

    return i < reference->count ? &reference->blocks[i] : NULL;
}

/* ---- giving back ---- */

/* The first use makes the stream and the event that join others; so does the end of a capture. */
static enum tarn_status prepare_join(struct async_reference *reference)
{
    struct tarn_device *device = reference->device;
    enum tarn_status st = TARN_OK;

    if (!reference->joins) {
        st = device->ops->stream_create(device, &reference->join_stream);
        if (st != TARN_OK) {
            return st;
        }
        st = device->ops->event_create(device, &reference->join_event);
        if (st != TARN_OK) {
            (void)device->ops->stream_destroy(device, reference->join_stream);
        }
        reference->joins = st == TARN_OK;
    }
    return st;
}

/* The clock's number of a stream. */
static unsigned clock_of(tarn_stream stream)
{
    return stream < CLOCK_STREAMS ? (unsigned)stream : CLOCK_JOINING;
}

static enum tarn_status join(struct async_reference *reference, tarn_stream waiting,
                             tarn_stream stream)
{
    struct tarn_device *device = reference->device;
    enum tarn_status st = device->ops->event_record(device, reference->join_event, stream);

    if (st == TARN_OK) {
        st = device->ops->stream_wait_event(device, waiting, reference->join_event);
    }
    if (st == TARN_OK) {
        clock_join(&reference->clock, clock_of(waiting), clock_of(stream));
    }
    return st;
}

/* A capture cannot end before its stream has waited for this one. */
static void note_freed_on(struct async_reference *reference, tarn_stream stream)
{
    for (unsigned i = 0; i < reference->freed_on_count; i++) {
        if (reference->freed_on[i] == stream) {
            return;
        }
    }
    reference->freed_on[reference->freed_on_count++] = stream;
}

/* A block that only its stream used goes back on it. Otherwise a stream of the allocator's own
 * waits for its stream and for all others, and frees it. */
static enum tarn_status give_back(struct async_reference *reference, struct reference_block *block)
{
    struct tarn_device *device = reference->device;
    const bool joins = block->use_count > 0;
    const tarn_stream last = joins ? reference->join_stream : block->stream;
    unsigned streams = 1u << block->stream;
    enum tarn_status st = joins ? join(reference, last, block->stream) : TARN_OK;

    for (unsigned i = 0; i < block->use_count && st == TARN_OK; i++) {
        st = join(reference, last, block->uses[i]);
        streams |= 1u << block->uses[i];
    }
    if (st == TARN_OK) {
        st = device->ops->pool_free(device, block->ptr, last);
    }
    if (st != TARN_OK) {
        return st;
    }
    clock_free(&reference->clock, block->ptr, block->size,
               joins ? CLOCK_NOBODY : (unsigned)block->stream, streams);
    if (reference->capturing && block->captured) {
        note_freed_on(reference, last);
    }
    reference->joined += joins;
    reference->put_off += block->deferred > 0;
    *block = reference->blocks[--reference->count];
    return TARN_OK;
}

static void defer(struct async_reference *reference, struct reference_block *block)
{
    block->deferred = ++reference->deferrals;
}

/* What captures that have ended kept, in the order of the frees. */
static enum tarn_status give_back_deferred(struct async_reference *reference)
{
    enum tarn_status st = TARN_OK;

    while (st == TARN_OK && !reference->capturing) {
        struct reference_block *first = NULL;

        for (unsigned i = 0; i < reference->count; i++) {
            struct reference_block *block = &reference->blocks[i];

            if (block->deferred > 0 && (!first || block->deferred < first->deferred)) {
                first = block;
            }
        }
        if (!first) {
            break;
        }
        st = give_back(reference, first);
    }
    return st;
}

enum tarn_status reference_free(struct async_reference *reference, tarn_ptr ptr)
{
    struct reference_block *block = find(reference, ptr);

    if (ptr == 0) {
        return TARN_OK;
    }
    if (!block) {
        return TARN_ERR_INVALID_POINTER;
    }
    if (reference->capturing && !block->captured) {
        defer(reference, block);
        return TARN_OK;
    }
    return give_back(reference, block);
}

/* ---- allocating ---- */

/* As PyTorch's format_size. */
static const char *size_text(char text[32], uint64_t size)
{
    const double bytes = (double)size;

    if (size <= KIB) {
        (void)snprintf(text, 32, "%llu bytes", (unsigned long long)size);
    } else if (size <= MIB) {
        (void)snprintf(text, 32, "%.2f KiB", bytes / (double)KIB);
    } else if (size <= GIB) {
        (void)snprintf(text, 32, "%.2f MiB", bytes / (double)MIB);
    } else {
        (void)snprintf(text, 32, "%.2f GiB", bytes / (double)GIB);
    }
    return text;
}

static enum tarn_status exceeds(struct async_reference *reference, uint64_t size)
{
    struct tarn_device *device = reference->device;
    uint64_t available = 0;
    uint64_t total = device->total_memory;
    char text[5][32];

    (void)device->ops->memory_info(device, &available, &total);
    (void)snprintf(reference->oom_text, sizeof reference->oom_text,
                   "Allocation on device 0 would exceed allowed memory. (out of memory)\n"
                   "Currently allocated     : %s\n"
                   "Requested               : %s\n"
                   "Device limit            : %s\n"
                   "Free (according to CUDA): %s\n"
                   "PyTorch limit (set by user-supplied memory fraction)\n"
                   "                        : %s",
                   size_text(text[0], reference_used(reference)), size_text(text[1], size),
                   size_text(text[2], total), size_text(text[3], available),
                   size_text(text[4], reference->limit));
    return TARN_ERR_OUT_OF_MEMORY;
}

static enum tarn_status alloc_on_device(struct async_reference *reference, uint64_t size,
                                        tarn_stream stream, tarn_ptr *ptr_out)
{
    struct tarn_device *device = reference->device;
    enum tarn_status st = give_back_deferred(reference);

    if (st != TARN_OK) {
        return st;
    }
    if (reference_used(reference) + size > reference->limit) { /* each is below 2^60 */
        return exceeds(reference, size);
    }
    st = device->ops->pool_alloc(device, size, stream, ptr_out);
    if (st == TARN_ERR_OUT_OF_MEMORY) {
        return exceeds(reference, size);
    }
    return st;
}

/* Whether a block there would overlap one that has not been given back to the pool. */
static bool is_taken(const struct async_reference *reference, tarn_ptr ptr, uint64_t size)
{
    for (unsigned i = 0; i < reference->count; i++) {
        const struct reference_block *block = &reference->blocks[i];

        if (block->ptr < ptr + size && ptr < block->ptr + block->size) {
            return true;
        }
    }
    return false;
}

/* Nobody else has the memory, or may still use it. */
static void insert(struct async_reference *reference, struct reference_block block)
{
    if (block.ptr % 512 != 0) {
        reference->wrong = "the address is no multiple of 512";
    }
    if (is_taken(reference, block.ptr, block.size)) {
        reference->wrong = "a live block has the memory";
    }
    if (clock_is_used(&reference->clock, block.ptr, block.size, (unsigned)block.stream)) {
        reference->wrong = "work of another stream may still use the memory";
    }
    assert_true(reference->count < REFERENCE_BLOCKS);
    reference->blocks[reference->count++] = block;
    peaks_raise(reference);
}

enum tarn_status reference_alloc(struct async_reference *reference, uint64_t size,
                                 tarn_stream stream, tarn_ptr *ptr_out)
{
    tarn_ptr ptr = 0;

    if (size == 0) {
        *ptr_out = 0;
        return TARN_OK;
    }
    if (size >= (uint64_t)1 << 60) {
        (void)snprintf(reference->oom_text, sizeof reference->oom_text,
                       "CUDA out of memory. Tried to allocate more than 1EB memory.");
        return TARN_ERR_OUT_OF_MEMORY;
    }
    const enum tarn_status st = alloc_on_device(reference, size, stream, &ptr);

    if (st == TARN_OK) {
        insert(reference,
               (struct reference_block){
                   .ptr = ptr, .size = size, .stream = stream, .captured = reference->capturing});
        *ptr_out = ptr;
    }
    return st;
}

/* ---- other calls ---- */

enum tarn_status reference_record_stream(struct async_reference *reference, tarn_ptr ptr,
                                         tarn_stream stream)
{
    struct reference_block *block = find(reference, ptr);

    if (ptr == 0) {
        return TARN_OK;
    }
    if (!block) {
        return TARN_ERR_INVALID_POINTER;
    }
    bool known = stream == block->stream;

    for (unsigned i = 0; i < block->use_count; i++) {
        known = known || block->uses[i] == stream;
    }
    const enum tarn_status st = known ? TARN_OK : prepare_join(reference);

    if (st == TARN_OK && !known) {
        block->uses[block->use_count++] = stream;
    }
    return st;
}

/* Waits for the device, so that all that is free can go. */
enum tarn_status reference_empty_cache(struct async_reference *reference)
{
    struct tarn_device *device = reference->device;
    enum tarn_status st = give_back_deferred(reference);

    if (st == TARN_OK) {
        st = device->ops->device_wait(device);
        if (st == TARN_OK) {
            clock_all_done(&reference->clock, tarn_sim_now_ns(device));
            st = device->ops->pool_trim(device, 0);
        }
    }
    return st;
}

enum tarn_status reference_trim(struct async_reference *reference, uint64_t target)
{
    return reference->device->ops->pool_trim(reference->device, target);
}

/* Tries to allocate all that is free and allowed, then half of it, and so on. */
enum tarn_status reference_cache_info(struct async_reference *reference, uint64_t *largest_out)
{
    struct tarn_device *device = reference->device;
    const uint64_t used = reference_used(reference);
    const uint64_t room = reference->limit > used ? reference->limit - used : 0;
    uint64_t size = 0;
    uint64_t total = 0;
    tarn_ptr ptr = 0;
    enum tarn_status st = device->ops->memory_info(device, &size, &total);

    if (st != TARN_OK) {
        return st;
    }
    for (size = size < room ? size : room; size > 0; size /= 2) {
        st = device->ops->pool_alloc(device, size, 0, &ptr);
        if (st == TARN_OK) {
            break;
        }
        if (st != TARN_ERR_OUT_OF_MEMORY) {
            return st;
        }
    }
    if (size > 0) {
        insert(reference, (struct reference_block){.ptr = ptr, .size = size});
        st = give_back(reference, &reference->blocks[reference->count - 1]);
        if (st != TARN_OK) { /* later, so that it is not lost */
            defer(reference, &reference->blocks[reference->count - 1]);
            return st;
        }
    }
    *largest_out = size;
    return TARN_OK;
}

enum tarn_status reference_set_fraction(struct async_reference *reference, double fraction)
{
    struct tarn_device *device = reference->device;
    uint64_t available;
    uint64_t total;

    if (!(fraction >= 0.0 && fraction <= 1.0)) {
        return TARN_ERR_INVALID_ARGUMENT;
    }
    const enum tarn_status st = device->ops->memory_info(device, &available, &total);

    if (st == TARN_OK) {
        reference->limit = (uint64_t)(fraction * (double)total);
    }
    return st;
}

enum tarn_status reference_begin(struct async_reference *reference)
{
    if (reference->capturing) {
        return TARN_ERR_STATE;
    }
    reference->capturing = true;
    reference->freed_on_count = 0;
    return TARN_OK;
}

enum tarn_status reference_end(struct async_reference *reference)
{
    const bool captures = reference->capturing;

    reference->capturing = false;
    return captures ? TARN_OK : TARN_ERR_STATE;
}

enum tarn_status reference_join_frees(struct async_reference *reference, tarn_stream stream)
{
    enum tarn_status st = TARN_OK;

    if (reference->freed_on_count > 0) {
        st = prepare_join(reference);
    }
    for (unsigned i = 0; i < reference->freed_on_count && st == TARN_OK; i++) {
        st = join(reference, stream, reference->freed_on[i]);
    }
    if (st == TARN_OK) {
        reference->freed_on_count = 0;
    }
    return st;
}
