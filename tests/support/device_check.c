/* SPDX-License-Identifier: MIT */
#include "support/device_check.h"

#include "base/assertion.h"
#include "base/finding.h"
#include "base/host_mem.h"
#include "base/lock.h"
#include "base/tree.h"

#include <inttypes.h>

/* Kinds of live objects. */
enum check_kind {
    CHECK_ALLOCATION,
    CHECK_POOL_BLOCK,
    CHECK_RESERVATION,
    CHECK_PAGE,
    CHECK_MAPPING,
    CHECK_EVENT,
    CHECK_STREAM,
    CHECK_OPENED, /* allocation of another process */
    CHECK_HOST,
    CHECK_REGISTERED,
    CHECK_KIND_COUNT
};

struct check_item {
    struct tn_tree_node node; /* by kind, then key */
    enum check_kind kind;
    uint64_t key;  /* address or handle */
    uint64_t size; /* 0 for events and streams */
    uint64_t uses; /* mappings of a page */
    uint64_t page; /* the page of a mapping */
};

struct check_device {
    struct tarn_device base; /* first */
    struct tarn_device *inner;
    struct tn_lock lock; /* guards the items and the findings */
    struct tn_tree items;
    struct tarn_findings *findings;
};

static void check_destroy(struct tarn_device *device);

static const char *kind_name(enum check_kind kind)
{
    static const char *const names[CHECK_KIND_COUNT] = {
        "allocation", "pool block", "reservation", "page",
        "mapping",    "event",      "stream",      "opened allocation"};
    return names[kind];
}

static struct check_device *check_of(struct tarn_device *device)
{
    return TN_TREE_ENTRY(device, struct check_device, base);
}

static struct check_item *item_of(const struct tn_tree_node *node)
{
    return TN_TREE_ENTRY(node, struct check_item, node);
}

static int item_compare(const struct tn_tree_node *a, const struct tn_tree_node *b)
{
    const int order = (int)item_of(a)->kind - (int)item_of(b)->kind;

    return order ? order : tn_tree_order_u64(item_of(a)->key, item_of(b)->key);
}

static struct check_item *item_find(const struct check_device *check, enum check_kind kind,
                                    uint64_t key)
{
    const struct check_item wanted = {.kind = kind, .key = key};
    const struct tn_tree_node *node = tn_tree_find(&check->items, &wanted.node);

    return node ? item_of(node) : NULL;
}

/* The item of that kind that overlaps [start, start + size) with the lowest address, or NULL. */
static struct check_item *item_find_overlap(const struct check_device *check, enum check_kind kind,
                                            uint64_t start, uint64_t size)
{
    const struct check_item wanted = {.kind = kind, .key = start};
    struct tn_tree_node *node = tn_tree_find_at_most(&check->items, &wanted.node);

    if (node && item_of(node)->kind == kind && start - item_of(node)->key < item_of(node)->size) {
        return item_of(node);
    }
    node = tn_tree_find_at_least(&check->items, &wanted.node);
    if (node && item_of(node)->kind == kind && item_of(node)->key - start < size) {
        return item_of(node);
    }
    return NULL;
}

static void item_remove(struct check_device *check, struct check_item *item)
{
    tn_tree_remove(&check->items, &item->node);
    tn_host_free(item, sizeof *item);
}

/* Rejects an invalid call. */
static enum tarn_status refuse(struct check_device *check, const char *call, const char *why,
                               uint64_t key)
{
    tn_finding_add(check->findings, "%s: %s (%#" PRIx64 ")", call, why, key);
    return TARN_ERR_DEVICE;
}

/* Allocates the record before the call, so that no call succeeds without one. */
static struct check_item *item_prepare(enum check_kind kind, uint64_t size)
{
    struct check_item *item = tn_host_alloc_zero(sizeof *item);

    if (item) {
        item->kind = kind;
        item->size = size;
    }
    return item;
}

static bool kind_has_address(enum check_kind kind)
{
    return kind == CHECK_ALLOCATION || kind == CHECK_POOL_BLOCK || kind == CHECK_RESERVATION ||
           kind == CHECK_OPENED;
}

/* Whether a new address overlaps any live allocation. */
static bool address_is_taken(const struct check_device *check, uint64_t address, uint64_t size)
{
    return item_find_overlap(check, CHECK_ALLOCATION, address, size) ||
           item_find_overlap(check, CHECK_POOL_BLOCK, address, size) ||
           item_find_overlap(check, CHECK_RESERVATION, address, size) ||
           item_find_overlap(check, CHECK_OPENED, address, size);
}

/* Checks the output of a creating call, then keeps or frees the record. */
static void item_settle(struct check_device *check, struct check_item *item, enum tarn_status st,
                        uint64_t key, const char *call)
{
    bool keep = st == TARN_OK;

    if (st != TARN_OK && key != 0) {
        tn_finding_add(check->findings, "%s: a failing call set its output", call);
    }
    if (st == TARN_OK && key == 0) {
        tn_finding_add(check->findings, "%s: succeeded with 0", call);
        keep = false;
    }
    if (keep && (item_find(check, item->kind, key) ||
                 (kind_has_address(item->kind) && address_is_taken(check, key, item->size)))) {
        tn_finding_add(check->findings, "%s: returned %#" PRIx64 ", which is already allocated",
                       call, key);
        keep = false;
    }
    if (!keep) {
        tn_host_free(item, sizeof *item);
        return;
    }
    item->key = key;
    tn_tree_insert(&check->items, &item->node);
}

/* Creating calls with and without a size. */
typedef enum tarn_status sized_maker(struct tarn_device *device, uint64_t size, uint64_t *key_out);
typedef enum tarn_status maker(struct tarn_device *device, uint64_t *key_out);

static enum tarn_status make(struct tarn_device *device, const char *call, enum check_kind kind,
                             uint64_t size, uint64_t *key_out, sized_maker *make_sized,
                             maker *make_plain)
{
    struct check_device *check = check_of(device);
    struct check_item *item = item_prepare(kind, size);
    uint64_t key = 0;

    tn_assert(make_sized || make_plain);
    if (!item) {
        return TARN_ERR_HOST_MEMORY;
    }
    tn_lock_acquire(&check->lock);
    const enum tarn_status st =
        make_sized ? make_sized(check->inner, size, &key) : make_plain(check->inner, &key);
    item_settle(check, item, st, key, call);
    tn_lock_release(&check->lock);
    if (st == TARN_OK) {
        *key_out = key;
    }
    return st;
}

/* A call that releases a live object of that kind; everything else is rejected with `why`. */
static enum tarn_status give(struct tarn_device *device, const char *call, enum check_kind kind,
                             uint64_t key, const char *why,
                             enum tarn_status (*give_back)(struct tarn_device *, uint64_t))
{
    struct check_device *check = check_of(device);
    enum tarn_status st;

    tn_lock_acquire(&check->lock);
    struct check_item *item = item_find(check, kind, key);
    if (!item) {
        st = refuse(check, call, why, key);
        goto out;
    }
    st = give_back(check->inner, key);
    if (st == TARN_OK) {
        item_remove(check, item);
    }
out:
    tn_lock_release(&check->lock);
    return st;
}

static enum tarn_status check_alloc(struct tarn_device *device, uint64_t size,
                                    tarn_ptr *address_out)
{
    return make(device, "alloc", CHECK_ALLOCATION, size, address_out,
                check_of(device)->inner->ops->alloc, NULL);
}

static enum tarn_status check_free(struct tarn_device *device, tarn_ptr address)
{
    return give(device, "free", CHECK_ALLOCATION, address, "not allocated",
                check_of(device)->inner->ops->free);
}

static enum tarn_status check_event_create(struct tarn_device *device, tn_event_handle *event_out)
{
    return make(device, "event_create", CHECK_EVENT, 0, event_out, NULL,
                check_of(device)->inner->ops->event_create);
}

static enum tarn_status check_event_destroy(struct tarn_device *device, tn_event_handle event)
{
    return give(device, "event_destroy", CHECK_EVENT, event, "no such event",
                check_of(device)->inner->ops->event_destroy);
}

static enum tarn_status check_stream_create(struct tarn_device *device, tarn_stream *stream_out)
{
    return make(device, "stream_create", CHECK_STREAM, 0, stream_out, NULL,
                check_of(device)->inner->ops->stream_create);
}

static enum tarn_status check_stream_destroy(struct tarn_device *device, tarn_stream stream)
{
    return give(device, "stream_destroy", CHECK_STREAM, stream, "no such stream",
                check_of(device)->inner->ops->stream_destroy);
}

static enum tarn_status check_va_reserve(struct tarn_device *device, uint64_t size,
                                         tarn_ptr *address_out)
{
    return make(device, "va_reserve", CHECK_RESERVATION, size, address_out,
                check_of(device)->inner->ops->va_reserve, NULL);
}

static enum tarn_status check_page_create(struct tarn_device *device, uint64_t size,
                                          tn_page_handle *page_out)
{
    return make(device, "page_create", CHECK_PAGE, size, page_out,
                check_of(device)->inner->ops->page_create, NULL);
}

static enum tarn_status check_ipc_close(struct tarn_device *device, tarn_ptr address)
{
    return give(device, "ipc_close", CHECK_OPENED, address, "not open",
                check_of(device)->inner->ops->ipc_close);
}

static enum tarn_status check_memory_info(struct tarn_device *device, uint64_t *free_out,
                                          uint64_t *total_out)
{
    struct tarn_device *inner = check_of(device)->inner;

    return inner->ops->memory_info(inner, free_out, total_out);
}

static enum tarn_status check_processes(struct tarn_device *device, tarn_process_visitor visit,
                                        void *context, int *number_out)
{
    struct tarn_device *inner = check_of(device)->inner;

    return inner->ops->processes(inner, visit, context, number_out);
}

static enum tarn_status check_event_record(struct tarn_device *device, tn_event_handle event,
                                           tarn_stream stream)
{
    struct check_device *check = check_of(device);

    tn_lock_acquire(&check->lock);
    const enum tarn_status st = item_find(check, CHECK_EVENT, event)
                                    ? check->inner->ops->event_record(check->inner, event, stream)
                                    : refuse(check, "event_record", "no such event", event);
    tn_lock_release(&check->lock);
    return st;
}

static enum tarn_status check_event_query(struct tarn_device *device, tn_event_handle event)
{
    struct check_device *check = check_of(device);

    tn_lock_acquire(&check->lock);
    const enum tarn_status st = item_find(check, CHECK_EVENT, event)
                                    ? check->inner->ops->event_query(check->inner, event)
                                    : refuse(check, "event_query", "no such event", event);
    tn_lock_release(&check->lock);
    return st;
}

/* The lock is not held while waiting. */
static enum tarn_status check_event_wait(struct tarn_device *device, tn_event_handle event)
{
    struct check_device *check = check_of(device);

    tn_lock_acquire(&check->lock);
    const enum tarn_status st = item_find(check, CHECK_EVENT, event)
                                    ? TARN_OK
                                    : refuse(check, "event_wait", "no such event", event);
    tn_lock_release(&check->lock);
    return st == TARN_OK ? check->inner->ops->event_wait(check->inner, event) : st;
}

static enum tarn_status check_stream_wait(struct tarn_device *device, tarn_stream stream)
{
    struct tarn_device *inner = check_of(device)->inner;

    return inner->ops->stream_wait(inner, stream);
}

static enum tarn_status check_stream_check(struct tarn_device *device, tarn_stream stream)
{
    struct tarn_device *inner = check_of(device)->inner;

    return inner->ops->stream_check(inner, stream);
}

static enum tarn_status check_stream_wait_event(struct tarn_device *device, tarn_stream stream,
                                                tn_event_handle event)
{
    struct check_device *check = check_of(device);

    tn_lock_acquire(&check->lock);
    const enum tarn_status st =
        item_find(check, CHECK_EVENT, event)
            ? check->inner->ops->stream_wait_event(check->inner, stream, event)
            : refuse(check, "stream_wait_event", "no such event", event);
    tn_lock_release(&check->lock);
    return st;
}

static enum tarn_status check_device_wait(struct tarn_device *device)
{
    struct tarn_device *inner = check_of(device)->inner;

    return inner->ops->device_wait(inner);
}

/* What is wrong with the caller's arrays, or NULL. */
static const char *room_is_wrong(const tn_graph_node *nodes, uint32_t capacity,
                                 const uint32_t *count_out)
{
    if (!count_out) {
        return "nowhere to put the count";
    }
    return !nodes && capacity > 0 ? "room for nodes that is not there" : NULL;
}

static enum tarn_status check_capture_info(struct tarn_device *device, tarn_stream stream,
                                           uint64_t *capture_out, tn_graph_node *nodes,
                                           uint32_t capacity, uint32_t *count_out)
{
    struct check_device *check = check_of(device);
    const char *wrong = room_is_wrong(nodes, capacity, count_out);
    enum tarn_status st;

    wrong = capture_out ? wrong : "nowhere to put the capture";
    tn_lock_acquire(&check->lock);
    if (wrong) {
        st = refuse(check, "capture_info", wrong, stream);
        goto out;
    }
    st = check->inner->ops->capture_info(check->inner, stream, capture_out, nodes, capacity,
                                         count_out);
    if (st == TARN_OK && *capture_out == 0 && *count_out > 0) {
        tn_finding_add(check->findings, "capture_info: nodes without a capture");
    }
out:
    tn_lock_release(&check->lock);
    return st;
}

static enum tarn_status check_graph_node_parents(struct tarn_device *device, tn_graph_node node,
                                                 tn_graph_node *nodes, uint32_t capacity,
                                                 uint32_t *count_out)
{
    struct check_device *check = check_of(device);
    const char *wrong = room_is_wrong(nodes, capacity, count_out);

    wrong = node ? wrong : "no node";
    tn_lock_acquire(&check->lock);
    const enum tarn_status st =
        wrong
            ? refuse(check, "graph_node_parents", wrong, node)
            : check->inner->ops->graph_node_parents(check->inner, node, nodes, capacity, count_out);
    tn_lock_release(&check->lock);
    return st;
}

static enum tarn_status va_release_locked(struct check_device *check, tarn_ptr address,
                                          uint64_t size)
{
    struct check_item *item = item_find(check, CHECK_RESERVATION, address);

    if (!item || item->size != size) {
        return refuse(check, "va_release", "no such reservation", address);
    }
    if (item_find_overlap(check, CHECK_MAPPING, address, size)) {
        return refuse(check, "va_release", "something is mapped in it", address);
    }
    const enum tarn_status st = check->inner->ops->va_release(check->inner, address, size);
    if (st == TARN_OK) {
        item_remove(check, item);
    }
    return st;
}

static enum tarn_status check_va_release(struct tarn_device *device, tarn_ptr address,
                                         uint64_t size)
{
    struct check_device *check = check_of(device);

    tn_lock_acquire(&check->lock);
    const enum tarn_status st = va_release_locked(check, address, size);
    tn_lock_release(&check->lock);
    return st;
}

static enum tarn_status page_release_locked(struct check_device *check, tn_page_handle page)
{
    struct check_item *item = item_find(check, CHECK_PAGE, page);

    if (!item) {
        return refuse(check, "page_release", "no such page", page);
    }
    if (item->uses > 0) {
        return refuse(check, "page_release", "it is mapped", page);
    }
    const enum tarn_status st = check->inner->ops->page_release(check->inner, page);
    if (st == TARN_OK) {
        item_remove(check, item);
    }
    return st;
}

static enum tarn_status check_page_release(struct tarn_device *device, tn_page_handle page)
{
    struct check_device *check = check_of(device);

    tn_lock_acquire(&check->lock);
    const enum tarn_status st = page_release_locked(check, page);
    tn_lock_release(&check->lock);
    return st;
}

/* NULL when that page may be mapped there, else why not. */
static const char *map_objection(const struct check_device *check, tarn_ptr address, uint64_t size,
                                 const struct check_item *page)
{
    const struct check_item *range = item_find_overlap(check, CHECK_RESERVATION, address, size);

    if (!page || page->size != size) {
        return "no page of that size";
    }
    if (!range || address < range->key || size > range->size - (address - range->key)) {
        return "outside a reservation";
    }
    if (address % check->base.granularity != 0) {
        return "not aligned";
    }
    return item_find_overlap(check, CHECK_MAPPING, address, size) ? "over a mapping" : NULL;
}

static enum tarn_status map_locked(struct check_device *check, tarn_ptr address, uint64_t size,
                                   tn_page_handle handle, struct check_item *item)
{
    struct check_item *page = item_find(check, CHECK_PAGE, handle);
    const char *objection = map_objection(check, address, size, page);
    const enum tarn_status st = objection
                                    ? refuse(check, "map", objection, address)
                                    : check->inner->ops->map(check->inner, address, size, handle);

    if (st != TARN_OK) {
        tn_host_free(item, sizeof *item);
        return st;
    }
    page->uses++;
    item->key = address;
    item->page = handle;
    tn_tree_insert(&check->items, &item->node);
    return TARN_OK;
}

static enum tarn_status check_map(struct tarn_device *device, tarn_ptr address, uint64_t size,
                                  tn_page_handle page)
{
    struct check_device *check = check_of(device);
    struct check_item *item = item_prepare(CHECK_MAPPING, size);

    if (!item) {
        return TARN_ERR_HOST_MEMORY;
    }
    tn_lock_acquire(&check->lock);
    const enum tarn_status st = map_locked(check, address, size, page, item);
    tn_lock_release(&check->lock);
    return st;
}

/* Whether the range consists of adjacent whole mappings. */
static bool is_mapped_whole(const struct check_device *check, tarn_ptr address, uint64_t size)
{
    uint64_t at = address;
    uint64_t left = size;

    while (left > 0) {
        const struct check_item *item = item_find(check, CHECK_MAPPING, at);

        if (!item || item->size > left) {
            return false;
        }
        at += item->size;
        left -= item->size;
    }
    return size > 0;
}

static void mappings_remove(struct check_device *check, tarn_ptr address, uint64_t size)
{
    for (uint64_t done = 0; done < size;) {
        struct check_item *item = item_find(check, CHECK_MAPPING, address + done);
        struct check_item *page = item_find(check, CHECK_PAGE, item->page);

        tn_assert(page && page->uses > 0);
        page->uses--;
        done += item->size;
        item_remove(check, item);
    }
}

static enum tarn_status unmap_locked(struct check_device *check, tarn_ptr address, uint64_t size)
{
    if (!is_mapped_whole(check, address, size)) {
        return refuse(check, "unmap", "not whole mappings", address);
    }
    const enum tarn_status st = check->inner->ops->unmap(check->inner, address, size);
    if (st == TARN_OK) {
        mappings_remove(check, address, size);
    }
    return st;
}

static enum tarn_status check_unmap(struct tarn_device *device, tarn_ptr address, uint64_t size)
{
    struct check_device *check = check_of(device);

    tn_lock_acquire(&check->lock);
    const enum tarn_status st = unmap_locked(check, address, size);
    tn_lock_release(&check->lock);
    return st;
}

static enum tarn_status check_va_grant(struct tarn_device *device, tarn_ptr address, uint64_t size,
                                       int peer)
{
    struct check_device *check = check_of(device);

    tn_lock_acquire(&check->lock);
    const enum tarn_status st = is_mapped_whole(check, address, size)
                                    ? check->inner->ops->va_grant(check->inner, address, size, peer)
                                    : refuse(check, "va_grant", "not whole mappings", address);
    tn_lock_release(&check->lock);
    return st;
}

static enum tarn_status check_ipc_export(struct tarn_device *device, tarn_ptr address,
                                         struct tn_ipc_handle *handle_out)
{
    struct check_device *check = check_of(device);

    tn_lock_acquire(&check->lock);
    const enum tarn_status st =
        item_find(check, CHECK_ALLOCATION, address)
            ? check->inner->ops->ipc_export(check->inner, address, handle_out)
            : refuse(check, "ipc_export", "not allocated", address);
    tn_lock_release(&check->lock);
    return st;
}

static enum tarn_status check_ipc_open(struct tarn_device *device,
                                       const struct tn_ipc_handle *handle, tarn_ptr *address_out,
                                       uint64_t *size_out)
{
    struct check_device *check = check_of(device);
    struct check_item *item = item_prepare(CHECK_OPENED, 0);
    tarn_ptr address = 0;

    if (!item) {
        return TARN_ERR_HOST_MEMORY;
    }
    tn_lock_acquire(&check->lock);
    const enum tarn_status st =
        check->inner->ops->ipc_open(check->inner, handle, &address, size_out);
    item_settle(check, item, st, address, "ipc_open");
    tn_lock_release(&check->lock);
    if (st == TARN_OK) {
        *address_out = address;
    }
    return st;
}

static enum tarn_status check_page_export(struct tarn_device *device, tn_page_handle page,
                                          int *descriptor_out)
{
    struct check_device *check = check_of(device);

    tn_lock_acquire(&check->lock);
    const enum tarn_status st =
        item_find(check, CHECK_PAGE, page)
            ? check->inner->ops->page_export(check->inner, page, descriptor_out)
            : refuse(check, "page_export", "no such page", page);
    tn_lock_release(&check->lock);
    return st;
}

static enum tarn_status check_page_import(struct tarn_device *device, int64_t process,
                                          int descriptor, uint64_t size, tn_page_handle *page_out)
{
    struct check_device *check = check_of(device);
    struct check_item *item = item_prepare(CHECK_PAGE, size);
    tn_page_handle page = 0;

    if (!item) {
        return TARN_ERR_HOST_MEMORY;
    }
    tn_lock_acquire(&check->lock);
    const enum tarn_status st =
        check->inner->ops->page_import(check->inner, process, descriptor, size, &page);
    item_settle(check, item, st, page, "page_import");
    tn_lock_release(&check->lock);
    if (st == TARN_OK) {
        *page_out = page;
    }
    return st;
}

static enum tarn_status check_host_alloc(struct tarn_device *device, uint64_t size,
                                         void **memory_out)
{
    struct check_device *check = check_of(device);
    struct check_item *item = item_prepare(CHECK_HOST, size);
    void *memory = NULL;

    if (!item) {
        return TARN_ERR_HOST_MEMORY;
    }
    tn_lock_acquire(&check->lock);
    const enum tarn_status st = check->inner->ops->host_alloc(check->inner, size, &memory);
    item_settle(check, item, st, (uint64_t)(uintptr_t)memory, "host_alloc");
    tn_lock_release(&check->lock);
    if (st == TARN_OK) {
        *memory_out = memory;
    }
    return st;
}

static enum tarn_status check_host_register(struct tarn_device *device, void *memory, uint64_t size)
{
    struct check_device *check = check_of(device);
    struct check_item *item = item_prepare(CHECK_REGISTERED, size);

    if (!item) {
        return TARN_ERR_HOST_MEMORY;
    }
    tn_lock_acquire(&check->lock);
    const enum tarn_status st = check->inner->ops->host_register(check->inner, memory, size);
    item_settle(check, item, st, st == TARN_OK ? (uint64_t)(uintptr_t)memory : 0, "host_register");
    tn_lock_release(&check->lock);
    return st;
}

/* Releases a live object of that kind. */
static enum tarn_status host_give(struct check_device *check, enum check_kind kind, void *memory,
                                  const char *call,
                                  enum tarn_status (*give_back)(struct tarn_device *, void *))
{
    enum tarn_status st;

    tn_lock_acquire(&check->lock);
    struct check_item *item = item_find(check, kind, (uint64_t)(uintptr_t)memory);
    if (!item) {
        st = refuse(check, call, "no such memory", (uint64_t)(uintptr_t)memory);
        goto out;
    }
    st = give_back(check->inner, memory);
    if (st == TARN_OK) {
        item_remove(check, item);
    }
out:
    tn_lock_release(&check->lock);
    return st;
}

static enum tarn_status check_host_free(struct tarn_device *device, void *memory)
{
    struct check_device *check = check_of(device);

    return host_give(check, CHECK_HOST, memory, "host_free", check->inner->ops->host_free);
}

static enum tarn_status check_host_unregister(struct tarn_device *device, void *memory)
{
    struct check_device *check = check_of(device);

    return host_give(check, CHECK_REGISTERED, memory, "host_unregister",
                     check->inner->ops->host_unregister);
}

/* The inner device of a checked one; any other device unchanged. */
static struct tarn_device *device_inside(struct tarn_device *device)
{
    return device && device->ops->destroy == check_destroy ? check_of(device)->inner : device;
}

static enum tarn_status check_peer_reaches(struct tarn_device *device, struct tarn_device *peer,
                                           bool *reaches_out)
{
    struct tarn_device *inner = check_of(device)->inner;

    return inner->ops->peer_reaches(inner, device_inside(peer), reaches_out);
}

static enum tarn_status check_peer_enable(struct tarn_device *device, struct tarn_device *peer)
{
    struct tarn_device *inner = check_of(device)->inner;

    return inner->ops->peer_enable(inner, device_inside(peer));
}

static enum tarn_status check_copy(struct tarn_device *device, const struct tn_copy *copy,
                                   tarn_stream stream)
{
    struct check_device *check = check_of(device);
    struct tn_copy inside = *copy;

    if (copy->size == 0 || (!copy->to_device && !copy->from_device)) {
        tn_lock_acquire(&check->lock);
        const enum tarn_status st = refuse(check, "copy", "nothing to copy", copy->to);
        tn_lock_release(&check->lock);
        return st;
    }
    inside.to_device = device_inside(copy->to_device);
    inside.from_device = device_inside(copy->from_device);
    return check->inner->ops->copy(check->inner, &inside, stream);
}

static enum tarn_status check_pool_alloc(struct tarn_device *device, uint64_t size,
                                         tarn_stream stream, tarn_ptr *address_out)
{
    struct check_device *check = check_of(device);
    struct check_item *item = item_prepare(CHECK_POOL_BLOCK, size);
    tarn_ptr address = 0;

    if (!item) {
        return TARN_ERR_HOST_MEMORY;
    }
    tn_lock_acquire(&check->lock);
    const enum tarn_status st = check->inner->ops->pool_alloc(check->inner, size, stream, &address);
    item_settle(check, item, st, address, "pool_alloc");
    tn_lock_release(&check->lock);
    if (st == TARN_OK) {
        *address_out = address;
    }
    return st;
}

static enum tarn_status check_pool_free(struct tarn_device *device, tarn_ptr address,
                                        tarn_stream stream)
{
    struct check_device *check = check_of(device);
    enum tarn_status st;

    tn_lock_acquire(&check->lock);
    struct check_item *item = item_find(check, CHECK_POOL_BLOCK, address);
    if (!item) {
        st = refuse(check, "pool_free", "not allocated", address);
        goto out;
    }
    st = check->inner->ops->pool_free(check->inner, address, stream);
    if (st == TARN_OK) {
        item_remove(check, item);
    }
out:
    tn_lock_release(&check->lock);
    return st;
}

static enum tarn_status check_pool_trim(struct tarn_device *device, uint64_t keep)
{
    struct tarn_device *inner = check_of(device)->inner;

    return inner->ops->pool_trim(inner, keep);
}

static enum tarn_status check_pool_info(struct tarn_device *device, uint64_t *reserved_out,
                                        uint64_t *used_out)
{
    struct tarn_device *inner = check_of(device)->inner;

    return inner->ops->pool_info(inner, reserved_out, used_out);
}

static enum tarn_status check_pool_peaks(struct tarn_device *device, uint64_t *reserved_out,
                                         uint64_t *used_out)
{
    struct tarn_device *inner = check_of(device)->inner;

    return inner->ops->pool_peaks(inner, reserved_out, used_out);
}

static enum tarn_status check_pool_reset_peaks(struct tarn_device *device)
{
    struct tarn_device *inner = check_of(device)->inner;

    return inner->ops->pool_reset_peaks(inner);
}

static uint64_t check_now_ns(struct tarn_device *device)
{
    struct tarn_device *inner = check_of(device)->inner;

    return inner->ops->now_ns(inner);
}

static const char *check_last_error(struct tarn_device *device)
{
    struct tarn_device *inner = check_of(device)->inner;

    return inner->ops->last_error(inner);
}

uint64_t tn_device_check_leaks(struct tarn_device *device, struct tarn_findings *findings)
{
    struct check_device *check = check_of(device);
    uint64_t count = 0;

    tn_lock_acquire(&check->lock);
    for (const struct tn_tree_node *node = tn_tree_first(&check->items); node;
         node = tn_tree_next(node)) {
        const struct check_item *item = item_of(node);

        tn_finding_add(findings, "leak: %s %#" PRIx64 " of %" PRIu64 " bytes",
                       kind_name(item->kind), item->key, item->size);
        count++;
    }
    tn_lock_release(&check->lock);
    return count;
}

static void check_destroy(struct tarn_device *device)
{
    struct check_device *check = check_of(device);

    (void)tn_device_check_leaks(device, check->findings);
    while (check->items.root) {
        item_remove(check, item_of(check->items.root));
    }
    check->inner->ops->destroy(check->inner);
    tn_lock_fini(&check->lock);
    tn_host_free(check, sizeof *check);
}

static const struct tn_device_ops check_ops = {
    .name = "check",
    .alloc = check_alloc,
    .free = check_free,
    .memory_info = check_memory_info,
    .processes = check_processes,
    .event_create = check_event_create,
    .event_destroy = check_event_destroy,
    .event_record = check_event_record,
    .event_query = check_event_query,
    .event_wait = check_event_wait,
    .stream_wait = check_stream_wait,
    .stream_check = check_stream_check,
    .stream_wait_event = check_stream_wait_event,
    .stream_create = check_stream_create,
    .stream_destroy = check_stream_destroy,
    .device_wait = check_device_wait,
    .capture_info = check_capture_info,
    .graph_node_parents = check_graph_node_parents,
    .va_reserve = check_va_reserve,
    .va_release = check_va_release,
    .page_create = check_page_create,
    .page_release = check_page_release,
    .map = check_map,
    .unmap = check_unmap,
    .va_grant = check_va_grant,
    .ipc_export = check_ipc_export,
    .ipc_open = check_ipc_open,
    .ipc_close = check_ipc_close,
    .page_export = check_page_export,
    .page_import = check_page_import,
    .peer_reaches = check_peer_reaches,
    .peer_enable = check_peer_enable,
    .copy = check_copy,
    .host_alloc = check_host_alloc,
    .host_free = check_host_free,
    .host_register = check_host_register,
    .host_unregister = check_host_unregister,
    .pool_alloc = check_pool_alloc,
    .pool_free = check_pool_free,
    .pool_trim = check_pool_trim,
    .pool_info = check_pool_info,
    .pool_peaks = check_pool_peaks,
    .pool_reset_peaks = check_pool_reset_peaks,
    .now_ns = check_now_ns,
    .last_error = check_last_error,
    .destroy = check_destroy,
};

enum tarn_status tn_device_check_create(struct tarn_device *inner, struct tarn_findings *findings,
                                        struct tarn_device **device_out)
{
    struct check_device *check = tn_host_alloc_zero(sizeof *check);

    if (!check) {
        return TARN_ERR_HOST_MEMORY;
    }
    tn_lock_init(&check->lock, TN_LOCK_DEVICE_CHECK);
    check->base = *inner;
    check->base.ops = &check_ops;
    check->inner = inner;
    check->findings = findings;
    tn_tree_init(&check->items, item_compare, NULL);
    *device_out = &check->base;
    return TARN_OK;
}
