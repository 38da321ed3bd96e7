/* SPDX-License-Identifier: MIT */
/*
 * What the program allocated: reports of the hooks, one observer per device and one of pinned
 * memory (tarn/observer.h), and at exit the snapshot and the summary. Any thread, between run_enter
 * and run_leave.
 */
#ifndef RUN_RECORD_H
#define RUN_RECORD_H

#include "tarn/allocator.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    RUN_DEVICES_MAX = 64
};

enum run_kind {
    RUN_KIND_PLAIN,   /* cuMemAlloc, cudaMalloc */
    RUN_KIND_ASYNC,   /* cuMemAllocAsync, cudaMallocAsync, of any pool */
    RUN_KIND_MANAGED, /* cuMemAllocManaged, cudaMallocManaged */
    RUN_KIND_PAGES,   /* cuMemCreate */
    RUN_KIND_HOST,    /* cuMemHostAlloc, cudaMallocHost */
    RUN_KINDS
};

/* An allocation that succeeded, and one that failed for lack of memory. `device` is an ordinal. */
void run_record_alloc(enum run_kind kind, int device, uint64_t address, uint64_t size,
                      uint64_t stream);
void run_record_failure(int device, uint64_t size, uint64_t stream);

/* Before a free: takes the record of it, for run_record_restore if the driver refuses. */
struct run_freed {
    int device; /* -1: none was known */
    enum run_kind kind;
    uint64_t address;
    uint64_t size;
    uint64_t stream;
};

void run_record_free(uint64_t address, struct run_freed *freed_out);
void run_record_restore(const struct run_freed *freed);

/* All memory of the device is gone. */
void run_record_reset(int device);

/* Records the events of an allocator, whose state is then part of the file and the summary. */
void run_record_add(struct tarn_allocator *allocator);

/* Physical memory of cuMemCreate lives until its handle is released and it is mapped nowhere. */
void run_pages_created(int device, uint64_t page, uint64_t size);
void run_pages_retained(uint64_t page);
void run_pages_released(uint64_t page);
void run_pages_mapped(uint64_t page, uint64_t address, uint64_t size);
void run_pages_unmapped(uint64_t address, uint64_t size);
void run_pages_forked(void);

/* Writes the file as things are now; the second also the summary. */
void run_record_write(void);
void run_record_finish(void);
void run_record_forked(void);

#endif
