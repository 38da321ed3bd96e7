/* SPDX-License-Identifier: MIT */
/*
 * A wrapper around a device that knows which work may still touch which page, for tests of moving
 * pages. The test says when blocks are allocated and freed and on which streams they are used; the
 * wrapper sees events, waits and mappings, and reports
 *
 *   - a block whose page other work may still use: neither done nor ordered before the block's
 *     stream;
 *   - two live blocks in one page that is mapped twice;
 *   - a mapping that goes away while work may use it, or a live block is in it;
 *   - a page that moves or goes away although a captured graph may be replayed into it.
 *
 * Every stream has a clock that advances with each event recorded on it: work is done when an event
 * recorded after it was found done, and ordered before another stream's work when that stream
 * waited for such an event. Not for several threads.
 */
#ifndef TESTS_SUPPORT_PAGE_WATCH_H
#define TESTS_SUPPORT_PAGE_WATCH_H

#include "device/device_ops.h"

#include <stdbool.h>

enum {
    WATCH_STREAMS = 4, /* handles 0, 1, 2 ... are different streams */
    WATCH_POOLS = 4,
    WATCH_TEXT_MAX = 256
};

/* What graphs that were captured into a pool do. */
enum watch_graphs {
    WATCH_GONE,     /* released with the pool: its pages are free for anything */
    WATCH_REPLAYED, /* at any time */
    WATCH_ASLEEP    /* they need the same addresses, with other pages, when the pool wakes up */
};

struct page_watch;

/* Takes ownership of neither; close with page_watch_close, before the inner device. */
struct page_watch *page_watch_open(struct tarn_device *inner);
void page_watch_close(struct page_watch *watch);

/* The device to create the allocator on. */
struct tarn_device *page_watch_device(struct page_watch *watch);

/* From now on mappings may go away: the allocator is being destroyed. */
void page_watch_end(struct page_watch *watch);

/* A block of so many bytes begins or ends to live at the address; `streams` has a bit for each
 * stream that it was used on. */
void page_watch_alloc(struct page_watch *watch, uint64_t address, uint64_t size,
                      tarn_stream stream);
void page_watch_free(struct page_watch *watch, uint64_t address, uint64_t size, unsigned streams);

/* The block at the address was allocated for a graph that is captured into the pool, a number below
 * WATCH_POOLS. Its graphs begin as WATCH_GONE. */
void page_watch_capture(struct page_watch *watch, uint64_t address, uint64_t size, unsigned pool);
void page_watch_graphs(struct page_watch *watch, unsigned pool, enum watch_graphs graphs);

/* The first error; NULL if there is none. */
const char *page_watch_error(const struct page_watch *watch);

/* Physical pages that live blocks touch. */
uint64_t page_watch_live_pages(const struct page_watch *watch);

/* Pages of addresses that graphs may be replayed into. */
uint64_t page_watch_captured(const struct page_watch *watch);

/* Mappings made of a page that is mapped elsewhere, and waits of one stream for another. */
uint64_t page_watch_moves(const struct page_watch *watch);
uint64_t page_watch_waits(const struct page_watch *watch);

#endif
