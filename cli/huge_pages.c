/* SPDX-License-Identifier: MIT */
/* sbrk and madvise are not in POSIX. */
#define _GNU_SOURCE 1
#include "huge_pages.h"

#include "tarn/host.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    LARGE = 32 << 10,  /* bytes of an allocation from which on the heap is looked at */
    ALONE = 8 << 20,   /* larger allocations are mappings of their own, given back at once */
    GROWTH = 16 << 20, /* by which the heap grows; what is not touched takes no memory */
    KEPT = 64 << 20    /* free memory at the end of the heap that is not given back */
};

/* Where the part of the heap ends for which huge pages were requested. */
static atomic_uintptr_t advised;

/* Failing costs nothing but the pages. */
static void range_advise(uintptr_t begin, uintptr_t end)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    begin = (begin + page - 1) / page * page;
    if (begin < end) {
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
    }
}

/* Whatever the heap grew by. A thread that comes too late requests them a second time. */
static void heap_advise(void)
{
    const uintptr_t end = (uintptr_t)sbrk(0);
    const uintptr_t before = atomic_load_explicit(&advised, memory_order_relaxed);

    if (end > before) {
        atomic_store_explicit(&advised, end, memory_order_relaxed);
        range_advise(before, end);
    }
}

static void *memory_get(void *context, size_t size, size_t alignment)
{
    void *memory = NULL;

    (void)context;
    if (alignment <= _Alignof(max_align_t)) {
        memory = malloc(size);
    } else if (posix_memalign(&memory, alignment, size) != 0) {
        return NULL;
    }
    if (memory && size >= ALONE) {
        range_advise((uintptr_t)memory, (uintptr_t)memory + size);
    } else if (memory && size >= LARGE) {
        heap_advise();
    }
    return memory;
}

static void memory_release(void *context, void *memory, size_t size)
{
    (void)context;
    (void)size;
    free(memory);
}

/* Whether addresses are limited (ulimit -v, -d): then the heap must not take more than it needs. */
static bool is_limited(void)
{
    struct rlimit space;
    struct rlimit data;

    return (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) ||
           (getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur != RLIM_INFINITY);
}

void cli_huge_pages_init(void)
{
    static const struct tarn_host_hooks hooks = {
        .struct_size = sizeof hooks, .alloc = memory_get, .release = memory_release};

    /* None of these fails with values that fit; if one did, memory would come as before. */
    (void)mallopt(M_MMAP_THRESHOLD, ALONE);
    if (!is_limited()) {
        (void)mallopt(M_TOP_PAD, GROWTH);
    }
    (void)mallopt(M_TRIM_THRESHOLD, KEPT);
    atomic_store(&advised, (uintptr_t)sbrk(0));
    (void)!tarn_host_set_hooks(&hooks);
}
