/* SPDX-License-Identifier: MIT */
#include "pinned/pinned_source.h"

#include "base/os_map.h"

#include <pthread.h>

enum {
    PAGE_BYTES = 4096,
    THREADS_MAX = 128
};

void tn_pinned_source_init(struct tn_pinned_source *source, struct tarn_device *device,
                           const struct tarn_config *config)
{
    *source = (struct tn_pinned_source){
        .device = device,
        .registers = config->pinned_use_host_register,
        .threads = config->pinned_num_register_threads,
        .reserve_size = config->pinned_reserve_segment_size,
    };
    tn_lock_init(&source->lock, TN_LOCK_ALLOCATOR);
}

/* ---- registered memory ---- */

struct touch {
    volatile unsigned char *start;
    uint64_t size;
};

/* Writes to every page, so that the system commits it now. */
static void *touch_pages(void *argument)
{
    const struct touch *part = argument;

    for (uint64_t at = 0; at < part->size; at += PAGE_BYTES) {
        part->start[at] = 0;
    }
    return NULL;
}

/* Divides the pages among threads, this one included, which also does the part of threads that fail
 * to start. */
static void touch_all(void *start, uint64_t size, uint32_t threads)
{
    const uint64_t pages = (size + PAGE_BYTES - 1) / PAGE_BYTES;
    const uint32_t count = pages < threads ? 1 : threads;
    struct touch parts[THREADS_MAX];
    pthread_t thread[THREADS_MAX];
    uint32_t started = 0;
    uint64_t begin = 0;

    for (uint32_t i = 1; i < count; i++) {
        const uint64_t end = pages * i / count * PAGE_BYTES;
        struct touch *part = &parts[started];

        *part = (struct touch){.start = (unsigned char *)start + begin, .size = end - begin};
        if (pthread_create(&thread[started], NULL, touch_pages, part) == 0) {
            started++;
        } else {
            (void)touch_pages(part);
        }
        begin = end;
    }
    struct touch last = {.start = (unsigned char *)start + begin, .size = size - begin};

    (void)touch_pages(&last);
    for (uint32_t i = 0; i < started; i++) {
        (void)pthread_join(thread[i], NULL);
    }
}

static enum tarn_status register_new(const struct tn_pinned_source *source, uint64_t size,
                                     void **start_out)
{
    struct tarn_device *device = source->device;
    void *start = tn_os_range_reserve(size, true);

    if (!start) {
        return TARN_ERR_HOST_MEMORY;
    }
    touch_all(start, size, source->threads);
    const enum tarn_status st = device->ops->host_register(device, start, size);

    if (st) {
        tn_os_range_release(start, size);
        return st;
    }
    *start_out = start;
    return TARN_OK;
}

/* ---- all kinds ---- */

/* Not from the reserved segment. */
static enum tarn_status take_fresh(const struct tn_pinned_source *source, uint64_t size,
                                   struct tn_pinned_memory *memory_out)
{
    struct tarn_device *device = source->device;
    struct tn_pinned_memory memory = {
        .size = size, .origin = source->registers ? TN_PINNED_REGISTERED : TN_PINNED_DRIVER};
    const enum tarn_status st = source->registers
                                    ? register_new(source, size, &memory.start)
                                    : device->ops->host_alloc(device, size, &memory.start);

    if (st == TARN_OK) {
        *memory_out = memory;
    }
    return st;
}

static enum tarn_status give_fresh(const struct tn_pinned_source *source,
                                   const struct tn_pinned_memory *memory)
{
    struct tarn_device *device = source->device;

    if (memory->origin == TN_PINNED_DRIVER) {
        return device->ops->host_free(device, memory->start);
    }
    const enum tarn_status st = device->ops->host_unregister(device, memory->start);

    if (st == TARN_OK) {
        tn_os_range_release(memory->start, memory->size);
    }
    return st;
}

/* A part of the reserved segment, which is allocated first if configured; false when it is full. */
static bool take_reserved(struct tn_pinned_source *source, uint64_t size,
                          struct tn_pinned_memory *memory_out)
{
    const uint64_t rounded = (size + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    bool taken = false;

    tn_lock_acquire(&source->lock);
    /* Concurrent requests wait here for the segment instead of calling the driver as well. */
    if (source->reserve.size == 0 && source->reserve_size > 0 &&
        take_fresh(source, source->reserve_size, &source->reserve) != TARN_OK) {
        source->reserve_size = 0; /* do without one */
    }
    if (rounded <= source->reserve.size - source->reserve_used) {
        *memory_out = (struct tn_pinned_memory){
            .start = (char *)source->reserve.start + source->reserve_used,
            .size = size,
            .origin = TN_PINNED_RESERVED,
        };
        source->reserve_used += rounded;
        taken = true;
    }
    tn_lock_release(&source->lock);
    return taken;
}

void tn_pinned_source_fini(struct tn_pinned_source *source)
{
    if (source->reserve.size > 0) {
        (void)give_fresh(source, &source->reserve);
    }
    tn_lock_fini(&source->lock);
}

enum tarn_status tn_pinned_source_take(struct tn_pinned_source *source, uint64_t size,
                                       struct tn_pinned_memory *memory_out)
{
    return take_reserved(source, size, memory_out) ? TARN_OK : take_fresh(source, size, memory_out);
}

enum tarn_status tn_pinned_source_give(struct tn_pinned_source *source,
                                       const struct tn_pinned_memory *memory)
{
    return memory->origin == TN_PINNED_RESERVED ? TARN_OK : give_fresh(source, memory);
}
