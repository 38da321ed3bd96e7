/* SPDX-License-Identifier: MIT */
#include "support/page_watch.h"

#include "base/attr.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE ((uint64_t)2 << 20)

enum {
    EVENTS_MAX = 4096,
    PLACES_MAX = 65536,
    PAGES_MAX = 65536
};

/* How far each stream had come. */
struct clocks {
    uint64_t of[WATCH_STREAMS];
};

struct place { /* one page of addresses */
    uint64_t address;
    tn_page_handle page;  /* mapped there, or 0 */
    struct clocks uses;   /* by work since it was mapped */
    struct clocks before; /* of its page, by work at other addresses until then */
    uint64_t live;        /* blocks in it */
    unsigned pool;        /* number + 1 of the pool whose graphs know the address; 0: none */
};

struct page {
    struct clocks uses;
    uint64_t mappings;
    const struct place *live_at; /* where a live block is; NULL = none */
    const struct place *at;      /* where it was mapped last, if it still is; else NULL */
};

struct page_watch {
    struct tarn_device base; /* first */
    struct tarn_device *inner;
    struct clocks now;                  /* of each stream */
    struct clocks done;                 /* what the host knows to be done */
    struct clocks after[WATCH_STREAMS]; /* what each stream's next work comes after */
    struct clocks marked[EVENTS_MAX];   /* by event */
    tn_event_handle event[EVENTS_MAX];  /* their handles */
    struct place places[PLACES_MAX];
    struct page pages[PAGES_MAX]; /* by handle */
    enum watch_graphs graphs[WATCH_POOLS];
    uint64_t moves;
    uint64_t waits;
    bool ended;
    char error[WATCH_TEXT_MAX];
};

static struct page_watch *watch_of(struct tarn_device *device)
{
    return (struct page_watch *)(void *)device;
}

static TN_PRINTF(2, 3) void report(struct page_watch *watch, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (watch->error[0] == '\0') {
        (void)vsnprintf(watch->error, sizeof watch->error, format, arguments);
    }
    va_end(arguments);
}

static void clocks_raise(struct clocks *clocks, const struct clocks *to)
{
    for (unsigned i = 0; i < WATCH_STREAMS; i++) {
        clocks->of[i] = clocks->of[i] > to->of[i] ? clocks->of[i] : to->of[i];
    }
}

static struct clocks *event_clocks(struct page_watch *watch, tn_event_handle event)
{
    for (unsigned i = 0; i < EVENTS_MAX; i++) {
        if (watch->event[i] == event || watch->event[i] == 0) {
            watch->event[i] = event;
            return &watch->marked[i];
        }
    }
    abort();
}

static struct place *place_at(struct page_watch *watch, uint64_t address)
{
    const uint64_t key = address / PAGE;

    for (uint64_t i = key;; i++) {
        struct place *place = &watch->places[i % PLACES_MAX];

        if (place->address == key * PAGE || place->address == 0) {
            place->address = key * PAGE;
            return place;
        }
    }
}

static struct page *page_of(struct page_watch *watch, tn_page_handle handle)
{
    return &watch->pages[handle % PAGES_MAX];
}

/* ---- what the device does ---- */

#define TN_OP_DEVICE struct tarn_device *device
#define TN_OP_SELF   watch_of(device)->inner
#define TN_DEVICE_OP(NAME, name, purpose, parameters, arguments)                                   \
    static enum tarn_status forward_##name parameters                                              \
    {                                                                                              \
        return watch_of(device)->inner->ops->name arguments;                                       \
    }
#include "device/device_ops.def"
#undef TN_DEVICE_OP
#undef TN_OP_SELF

static enum tarn_status watch_event_record(struct tarn_device *device, tn_event_handle event,
                                           tarn_stream stream)
{
    struct page_watch *watch = watch_of(device);
    const enum tarn_status st = forward_event_record(device, event, stream);

    if (st == TARN_OK) {
        struct clocks *marked = event_clocks(watch, event);

        *marked = watch->after[stream];
        marked->of[stream] = ++watch->now.of[stream];
    }
    return st;
}

static enum tarn_status watch_event_query(struct tarn_device *device, tn_event_handle event)
{
    struct page_watch *watch = watch_of(device);
    const enum tarn_status st = forward_event_query(device, event);

    if (st == TARN_OK) {
        clocks_raise(&watch->done, event_clocks(watch, event));
    }
    return st;
}

static enum tarn_status watch_event_wait(struct tarn_device *device, tn_event_handle event)
{
    struct page_watch *watch = watch_of(device);
    const enum tarn_status st = forward_event_wait(device, event);

    if (st == TARN_OK) {
        clocks_raise(&watch->done, event_clocks(watch, event));
    }
    return st;
}

static enum tarn_status watch_stream_wait(struct tarn_device *device, tarn_stream stream)
{
    struct page_watch *watch = watch_of(device);
    const enum tarn_status st = forward_stream_wait(device, stream);

    if (st == TARN_OK) {
        clocks_raise(&watch->done, &watch->after[stream]);
        watch->done.of[stream] = ++watch->now.of[stream];
    }
    return st;
}

static enum tarn_status watch_device_wait(struct tarn_device *device)
{
    struct page_watch *watch = watch_of(device);
    const enum tarn_status st = forward_device_wait(device);

    for (unsigned i = 0; st == TARN_OK && i < WATCH_STREAMS; i++) {
        watch->done.of[i] = ++watch->now.of[i];
    }
    return st;
}

static enum tarn_status watch_stream_wait_event(struct tarn_device *device, tarn_stream stream,
                                                tn_event_handle event)
{
    struct page_watch *watch = watch_of(device);
    const enum tarn_status st = forward_stream_wait_event(device, stream, event);

    if (st == TARN_OK) {
        clocks_raise(&watch->after[stream], event_clocks(watch, event));
        watch->waits++;
    }
    return st;
}

static bool is_replayed(const struct page_watch *watch, const struct place *place)
{
    return place && place->pool > 0 && watch->graphs[place->pool - 1] == WATCH_REPLAYED &&
           !watch->ended;
}

static void page_come(struct page_watch *watch, struct page *page, const struct place *place)
{
    if (page->mappings > 0) {
        watch->moves++;
        if (is_replayed(watch, page->at)) {
            report(watch, "the page at 0x%" PRIx64 " moves, where a graph may be replayed",
                   page->at->address);
        }
    }
    page->mappings++;
    page->at = place;
}

static enum tarn_status watch_map(struct tarn_device *device, tarn_ptr address, uint64_t size,
                                  tn_page_handle page)
{
    struct page_watch *watch = watch_of(device);
    const enum tarn_status st = forward_map(device, address, size, page);

    if (st == TARN_OK && size == PAGE) {
        struct place *place = place_at(watch, address);

        place->page = page;
        place->uses = (struct clocks){{0}};
        place->before = page_of(watch, page)->uses;
        page_come(watch, page_of(watch, page), place);
    }
    return st;
}

static void place_leave(struct page_watch *watch, struct place *place)
{
    for (unsigned i = 0; i < WATCH_STREAMS && !watch->ended; i++) {
        if (place->uses.of[i] > watch->done.of[i]) {
            report(watch, "0x%" PRIx64 " is unmapped while stream %u may use it", place->address,
                   i);
        }
    }
    if (place->live > 0 && !watch->ended) {
        report(watch, "0x%" PRIx64 " is unmapped with a live block in it", place->address);
    }
    if (is_replayed(watch, place)) {
        report(watch, "0x%" PRIx64 " is unmapped, where a graph may be replayed", place->address);
    }
    struct page *page = page_of(watch, place->page);

    page->mappings--;
    page->at = page->at == place ? NULL : page->at;
    place->page = 0;
}

static enum tarn_status watch_unmap(struct tarn_device *device, tarn_ptr address, uint64_t size)
{
    struct page_watch *watch = watch_of(device);
    const enum tarn_status st = forward_unmap(device, address, size);

    for (uint64_t at = address; st == TARN_OK && at < address + size; at += PAGE) {
        place_leave(watch, place_at(watch, at));
    }
    return st;
}

static enum tarn_status watch_page_create(struct tarn_device *device, uint64_t size,
                                          tn_page_handle *page_out)
{
    const enum tarn_status st = forward_page_create(device, size, page_out);

    if (st == TARN_OK) {
        *page_of(watch_of(device), *page_out) = (struct page){0};
    }
    return st;
}

static enum tarn_status forward_capture_info(struct tarn_device *device, tarn_stream stream,
                                             uint64_t *capture_out, tn_graph_node *nodes,
                                             uint32_t capacity, uint32_t *count_out)
{
    struct tarn_device *inner = watch_of(device)->inner;

    return inner->ops->capture_info(inner, stream, capture_out, nodes, capacity, count_out);
}

static enum tarn_status forward_stream_check(struct tarn_device *device, tarn_stream stream)
{
    struct tarn_device *inner = watch_of(device)->inner;

    return inner->ops->stream_check(inner, stream);
}

static enum tarn_status forward_processes(struct tarn_device *device, tarn_process_visitor visit,
                                          void *context, int *number_out)
{
    struct tarn_device *inner = watch_of(device)->inner;

    return inner->ops->processes(inner, visit, context, number_out);
}

static uint64_t forward_now_ns(struct tarn_device *device)
{
    struct tarn_device *inner = watch_of(device)->inner;

    return inner->ops->now_ns(inner);
}

static const char *forward_last_error(struct tarn_device *device)
{
    struct tarn_device *inner = watch_of(device)->inner;

    return inner->ops->last_error(inner);
}

static struct tn_device_ops watch_ops = {
    .name = "watch",
#define TN_DEVICE_OP(NAME, name, purpose, parameters, arguments) .name = forward_##name,
#include "device/device_ops.def"
#undef TN_DEVICE_OP
    .processes = forward_processes,
    .stream_check = forward_stream_check,
    .capture_info = forward_capture_info,
    .now_ns = forward_now_ns,
    .last_error = forward_last_error,
};
#undef TN_OP_DEVICE

/* ---- what the test does ---- */

struct page_watch *page_watch_open(struct tarn_device *inner)
{
    struct page_watch *watch = calloc(1, sizeof *watch);

    if (watch) {
        watch_ops.event_record = watch_event_record;
        watch_ops.event_query = watch_event_query;
        watch_ops.event_wait = watch_event_wait;
        watch_ops.stream_wait = watch_stream_wait;
        watch_ops.stream_wait_event = watch_stream_wait_event;
        watch_ops.device_wait = watch_device_wait;
        watch_ops.map = watch_map;
        watch_ops.unmap = watch_unmap;
        watch_ops.page_create = watch_page_create;
        watch->base = *inner;
        watch->base.ops = &watch_ops;
        watch->inner = inner;
    }
    return watch;
}

void page_watch_close(struct page_watch *watch)
{
    free(watch);
}

struct tarn_device *page_watch_device(struct page_watch *watch)
{
    return &watch->base;
}

void page_watch_end(struct page_watch *watch)
{
    watch->ended = true;
}

static bool is_ordered(const struct page_watch *watch, tarn_stream stream, unsigned other,
                       uint64_t clock)
{
    return other == stream || clock <= watch->done.of[other] ||
           clock <= watch->after[stream].of[other];
}

void page_watch_alloc(struct page_watch *watch, uint64_t address, uint64_t size, tarn_stream stream)
{
    for (uint64_t at = address / PAGE * PAGE; at < address + size; at += PAGE) {
        struct place *place = place_at(watch, at);
        struct page *page = page_of(watch, place->page);

        if (place->page == 0) {
            report(watch, "0x%" PRIx64 " is allocated and not mapped", at);
            continue;
        }
        if (page->live_at && page->live_at != place) {
            report(watch, "0x%" PRIx64 " and 0x%" PRIx64 " are live in one page", at,
                   page->live_at->address);
        }
        for (unsigned i = 0; i < WATCH_STREAMS; i++) {
            if (!is_ordered(watch, stream, i, place->before.of[i])) {
                report(watch, "stream %u may still use the page at 0x%" PRIx64 " of stream %u", i,
                       at, (unsigned)stream);
            }
        }
        place->live++;
        page->live_at = place;
    }
}

void page_watch_free(struct page_watch *watch, uint64_t address, uint64_t size, unsigned streams)
{
    for (uint64_t at = address / PAGE * PAGE; at < address + size; at += PAGE) {
        struct place *place = place_at(watch, at);
        struct page *page = page_of(watch, place->page);

        for (unsigned i = 0; i < WATCH_STREAMS; i++) {
            if (streams >> i & 1) {
                place->uses.of[i] = watch->now.of[i] + 1;
                page->uses.of[i] = watch->now.of[i] + 1;
            }
        }
        if (--place->live == 0) {
            page->live_at = NULL;
        }
    }
}

void page_watch_capture(struct page_watch *watch, uint64_t address, uint64_t size, unsigned pool)
{
    for (uint64_t at = address / PAGE * PAGE; at < address + size; at += PAGE) {
        place_at(watch, at)->pool = pool + 1;
    }
}

void page_watch_graphs(struct page_watch *watch, unsigned pool, enum watch_graphs graphs)
{
    for (unsigned i = 0; i < PLACES_MAX && watch->graphs[pool] != graphs && graphs == WATCH_GONE;
         i++) {
        watch->places[i].pool = watch->places[i].pool == pool + 1 ? 0 : watch->places[i].pool;
    }
    watch->graphs[pool] = graphs;
}

const char *page_watch_error(const struct page_watch *watch)
{
    return watch->error[0] != '\0' ? watch->error : NULL;
}

uint64_t page_watch_live_pages(const struct page_watch *watch)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < PAGES_MAX; i++) {
        count += watch->pages[i].live_at != NULL;
    }
    return count;
}

uint64_t page_watch_captured(const struct page_watch *watch)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < PLACES_MAX; i++) {
        count += is_replayed(watch, &watch->places[i]);
    }
    return count;
}

uint64_t page_watch_moves(const struct page_watch *watch)
{
    return watch->moves;
}

uint64_t page_watch_waits(const struct page_watch *watch)
{
    return watch->waits;
}
