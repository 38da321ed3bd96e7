/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "base/os_code.h"

#include "base/attr.h"
#include "base/clock.h"

#include <link.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define LOOK_AGAIN_NS 10000000u

/* For another thread's rebuild; longer, and that thread is one that a signal interrupted, which is
 * this one. Turns to run are no measure: on a busy machine the other one gets none for long. */
#define WAIT_MAX_NS UINT64_C(1000000000)

/* Sorted by address. A seqlock: the writer increments `version` before and after it stores a new
 * table, so odd means being written, and a reader that sees a change searches again. Modules are
 * collected before that, while readers use the old table. `builder` is the process whose thread is
 * at it, or 0: a process that was forked meanwhile has no such thread, and takes over. */
static _Atomic uintptr_t begins[TN_CODE_RANGES_MAX];
static _Atomic uintptr_t ends[TN_CODE_RANGES_MAX];
static _Atomic uint32_t range_count;
static _Atomic uint32_t version;
static _Atomic int builder;
static _Atomic uint64_t looked_at; /* clock_ns of the last rebuild, 0 = never */

/* Lets other threads run; false once that has lasted too long since the first call. */
static bool wait_on(uint64_t *since)
{
    const uint64_t now = tn_clock_now_ns();

    *since = *since == 0 ? now : *since;
    (void)sched_yield();
    return now - *since < WAIT_MAX_NS;
}

struct collection {
    struct tn_code_range ranges[TN_CODE_RANGES_MAX];
    uint32_t count;
};

static int collect_module(struct dl_phdr_info *info, size_t size, void *context)
{
    struct collection *collection = context;

    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];

        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) != 0 &&
            collection->count < TN_CODE_RANGES_MAX) {
            const uintptr_t begin = info->dlpi_addr + part->p_vaddr;

            collection->ranges[collection->count++] =
                (struct tn_code_range){.begin = begin, .end = begin + part->p_memsz};
        }
    }
    return 0;
}

static int range_compare(const void *a, const void *b)
{
    const uintptr_t x = ((const struct tn_code_range *)a)->begin;
    const uintptr_t y = ((const struct tn_code_range *)b)->begin;

    return (x > y) - (x < y);
}

/* By the builder. After a fork in the middle of it `version` is odd already. */
static void publish(const struct collection *collection)
{
    const uint32_t odd = atomic_load_explicit(&version, memory_order_relaxed) | 1u;

    atomic_store_explicit(&version, odd, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    for (uint32_t i = 0; i < collection->count; i++) {
        atomic_store_explicit(&begins[i], collection->ranges[i].begin, memory_order_release);
        atomic_store_explicit(&ends[i], collection->ranges[i].end, memory_order_release);
    }
    atomic_store_explicit(&range_count, collection->count, memory_order_release);
    atomic_store_explicit(&version, odd + 1, memory_order_release);
}

/* Rebuilds the table, unless that was done recently; waits for another thread that does it. */
static TN_COLD void look_again(void)
{
    const uint64_t now = tn_clock_now_ns();
    const uint64_t last = atomic_load_explicit(&looked_at, memory_order_relaxed);
    struct collection collection = {.count = 0};
    const int process = (int)getpid();
    int found = atomic_load_explicit(&builder, memory_order_relaxed);

    if (found == process || !atomic_compare_exchange_strong(&builder, &found, process)) {
        for (uint64_t since = 0; atomic_load(&builder) == process && wait_on(&since);) {
        }
        return;
    }
    if (last == 0 || now - last >= LOOK_AGAIN_NS) {
        (void)dl_iterate_phdr(collect_module, &collection);
        qsort(collection.ranges, collection.count, sizeof collection.ranges[0], range_compare);
        publish(&collection);
        atomic_store_explicit(&looked_at, now, memory_order_relaxed);
    }
    atomic_store_explicit(&builder, 0, memory_order_release);
}

/* What a search came to. */
enum outcome {
    OUTCOME_MISSING,
    OUTCOME_FOUND,
    OUTCOME_CHANGED /* the table changed meanwhile: search again */
};

/* Finds the last range that starts at or below the address and checks that it contains it. */
static enum outcome search_once(uintptr_t address, struct tn_code_range *range_out)
{
    const uint32_t before = atomic_load_explicit(&version, memory_order_acquire);
    uint32_t low = 0;
    uint32_t high = atomic_load_explicit(&range_count, memory_order_acquire);

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (atomic_load_explicit(&begins[middle], memory_order_acquire) <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    struct tn_code_range range = {0, 0};

    if (low > 0) {
        range.begin = atomic_load_explicit(&begins[low - 1], memory_order_acquire);
        range.end = atomic_load_explicit(&ends[low - 1], memory_order_acquire);
    }
    if (before % 2 != 0 || before != atomic_load_explicit(&version, memory_order_relaxed)) {
        return OUTCOME_CHANGED;
    }
    *range_out = range;
    return low > 0 && tn_code_range_has(&range, address) ? OUTCOME_FOUND : OUTCOME_MISSING;
}

/* Whether the table will be whole without this thread's doing. */
static bool is_being_built(void)
{
    const int process = atomic_load(&builder);

    return process == 0 || process == (int)getpid();
}

static bool search(uintptr_t address, struct tn_code_range *range_out)
{
    enum outcome outcome = search_once(address, range_out);
    uint64_t since = 0;

    while (tn_unlikely(outcome == OUTCOME_CHANGED) && is_being_built() && wait_on(&since)) {
        outcome = search_once(address, range_out);
    }
    return outcome == OUTCOME_FOUND;
}

bool tn_os_code_find(uintptr_t address, struct tn_code_range *range_out)
{
    if (tn_likely(search(address, range_out))) {
        return true;
    }
    look_again();
    return search(address, range_out);
}

static int find_own(struct dl_phdr_info *info, size_t size, void *context)
{
    struct tn_code_range *own = context;

    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const struct tn_code_range range = {.begin = info->dlpi_addr + part->p_vaddr,
                                            .end = info->dlpi_addr + part->p_vaddr + part->p_memsz};

        if (part->p_type == PT_LOAD && tn_code_range_has(&range, (uintptr_t)&tn_os_code_own)) {
            const bool is_program = !info->dlpi_name || info->dlpi_name[0] == '\0';

            *own = is_program ? (struct tn_code_range){0, 0} : range;
            return 1;
        }
    }
    return 0;
}

struct tn_code_range tn_os_code_own(void)
{
    static _Atomic uintptr_t begin;
    static _Atomic uintptr_t end;
    static _Atomic bool is_known; /* set last; several threads may find the same */
    struct tn_code_range own = {0, 0};

    if (tn_unlikely(!atomic_load_explicit(&is_known, memory_order_acquire))) {
        (void)dl_iterate_phdr(find_own, &own);
        atomic_store_explicit(&begin, own.begin, memory_order_relaxed);
        atomic_store_explicit(&end, own.end, memory_order_relaxed);
        atomic_store_explicit(&is_known, true, memory_order_release);
    }
    own.begin = atomic_load_explicit(&begin, memory_order_relaxed);
    own.end = atomic_load_explicit(&end, memory_order_relaxed);
    return own;
}

static int take_unloads(struct dl_phdr_info *info, size_t size, void *context)
{
    uint64_t *unloads = context;

    (void)size;
    *unloads = info->dlpi_subs; /* of all modules: the first says it */
    return 1;
}

uint64_t tn_os_code_unloads(void)
{
    uint64_t unloads = 0;

    (void)dl_iterate_phdr(take_unloads, &unloads);
    return unloads;
}
