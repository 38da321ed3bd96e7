/* SPDX-License-Identifier: MIT */
/*
 * Which physical memory is alive: of each cuMemCreate the references of its handle and the ranges
 * that it is mapped at. The driver may give the number of a handle again once it is released,
 * although the memory is still mapped: a page without a handle is recorded by the first address at
 * which it is mapped instead.
 */
#include "plug/preload/record.h"

#include <pthread.h>
#include <search.h>
#include <stdlib.h>

struct page {
    uint64_t handle; /* 0: released */
    uint64_t record; /* what it is recorded as */
    uint64_t size;
    int device;
    uint32_t references;
    uint32_t mappings;
};

struct mapping {
    uint64_t address;
    uint64_t size;
    struct page *page;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *pages;    /* trees of <search.h>: by handle, */
static void *mappings; /* and by address */

static int u64_compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int page_compare(const void *a, const void *b)
{
    return u64_compare(((const struct page *)a)->handle, ((const struct page *)b)->handle);
}

static int mapping_compare(const void *a, const void *b)
{
    return u64_compare(((const struct mapping *)a)->address, ((const struct mapping *)b)->address);
}

static struct page *page_find(uint64_t handle)
{
    const struct page key = {.handle = handle};
    void *const *node = tfind(&key, &pages, page_compare);

    return node ? *node : NULL;
}

static struct mapping *mapping_find(uint64_t address)
{
    const struct mapping key = {.address = address};
    void *const *node = tfind(&key, &mappings, mapping_compare);

    return node ? *node : NULL;
}

/* The lock is held. */
static void page_settle(struct page *page)
{
    struct run_freed freed;

    if (page->references == 0 && page->mappings == 0) {
        run_record_free(page->record, &freed);
        free(page);
    }
}

void run_pages_created(int device, uint64_t handle, uint64_t size)
{
    struct page *page = malloc(sizeof *page);

    if (!page) {
        return;
    }
    *page = (struct page){
        .handle = handle, .record = handle, .size = size, .device = device, .references = 1};
    (void)pthread_mutex_lock(&lock);
    void *const *node = page_find(handle) ? NULL : tsearch(page, &pages, page_compare);

    if (node) {
        run_record_alloc(RUN_KIND_PAGES, device, handle, size, 0);
    } else {
        free(page);
    }
    (void)pthread_mutex_unlock(&lock);
}

void run_pages_retained(uint64_t handle)
{
    (void)pthread_mutex_lock(&lock);
    struct page *page = page_find(handle);

    if (page) {
        page->references++;
    }
    (void)pthread_mutex_unlock(&lock);
}

void run_pages_mapped(uint64_t handle, uint64_t address, uint64_t size)
{
    struct mapping *mapping = malloc(sizeof *mapping);

    (void)pthread_mutex_lock(&lock);
    struct page *page = page_find(handle);

    if (mapping && page) {
        *mapping = (struct mapping){address, size, page};
        void *const *node = tsearch(mapping, &mappings, mapping_compare);

        if (node && *node == mapping) {
            page->mappings++;
            mapping = NULL;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    free(mapping);
}

/* A mapping of the page, any. */
static const struct page *sought;
static uint64_t sought_address;

static void mapping_look(const void *node, VISIT visit, int level)
{
    const struct mapping *mapping = *(void *const *)node;

    (void)level;
    if ((visit == postorder || visit == leaf) && mapping->page == sought) {
        sought_address = mapping->address;
    }
}

/* The handle's number is free again; the memory is not, if it is mapped. */
static void page_rename(struct page *page)
{
    struct run_freed freed;

    sought = page;
    sought_address = 0;
    twalk(mappings, mapping_look);
    run_record_free(page->record, &freed);
    page->record = sought_address;
    run_record_alloc(RUN_KIND_PAGES, page->device, page->record, page->size, 0);
}

void run_pages_released(uint64_t handle)
{
    (void)pthread_mutex_lock(&lock);
    struct page *page = page_find(handle);

    if (page && --page->references == 0) {
        (void)tdelete(page, &pages, page_compare);
        if (page->mappings > 0) {
            page_rename(page);
        }
        page->handle = 0;
        page_settle(page);
    }
    (void)pthread_mutex_unlock(&lock);
}

void run_pages_unmapped(uint64_t address, uint64_t size)
{
    const uint64_t end = address + size;
    struct mapping *mapping = NULL;

    (void)pthread_mutex_lock(&lock);
    while (address < end && (mapping = mapping_find(address)) != NULL) {
        struct page *page = mapping->page;

        address += mapping->size;
        (void)tdelete(mapping, &mappings, mapping_compare);
        free(mapping);
        page->mappings--;
        page_settle(page);
    }
    (void)pthread_mutex_unlock(&lock);
}

void run_pages_forked(void)
{
    (void)pthread_mutex_init(&lock, NULL);
    pages = NULL; /* the parent's, as its memory is */
    mappings = NULL;
}
