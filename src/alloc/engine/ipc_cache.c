/* SPDX-License-Identifier: MIT */
#include "alloc/engine/ipc_cache.h"

#include "alloc/engine/check_number.h"
#include "alloc/pool/failure.h"
#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/host_mem.h"

#include <inttypes.h>
#include <string.h>

/* One opened segment or run of pages. */
struct opened {
    struct tn_tree_node by_name;
    struct tn_tree_node by_address;
    struct tn_ipc_head head; /* identifies the memory: of the message that opened it */
    unsigned char *body;     /* likewise */
    size_t body_size;
    tarn_ptr address;
    uint64_t size; /* bytes, from the device */
    uint64_t uses;
    tn_page_handle *pages; /* NULL for a plain segment */
    uint64_t page_count;   /* imported */
    uint64_t mapped_count; /* and mapped */
};

static struct opened *from_name(const struct tn_tree_node *node)
{
    return TN_TREE_ENTRY(node, struct opened, by_name);
}

static struct opened *from_address(const struct tn_tree_node *node)
{
    return TN_TREE_ENTRY(node, struct opened, by_address);
}

/* Any order does, as long as equal means the same memory. The head says how large the body is. */
static int name_compare(const struct tn_tree_node *a, const struct tn_tree_node *b)
{
    const struct opened *x = from_name(a);
    const struct opened *y = from_name(b);
    const int order = memcmp(&x->head, &y->head, sizeof x->head);

    tn_assert(order != 0 || x->body_size == y->body_size);
    return order != 0 ? order : memcmp(x->body, y->body, x->body_size);
}

static int address_compare(const struct tn_tree_node *a, const struct tn_tree_node *b)
{
    return tn_tree_order_u64(from_address(a)->address, from_address(b)->address);
}

void tn_ipc_cache_init(struct tn_ipc_cache *cache, struct tarn_device *device)
{
    cache->device = device;
    tn_lock_init(&cache->lock, TN_LOCK_REGISTRY);
    tn_tree_init(&cache->by_name, name_compare, NULL);
    tn_tree_init(&cache->by_address, address_compare, NULL);
    cache->peers.count = 0;
}

/* The part of a head that identifies the memory. A plain segment is identified by its handle alone,
 * whatever else the message says. */
static struct tn_ipc_head head_of_memory(const struct tn_ipc_content *content)
{
    struct tn_ipc_head head = content->head;

    head.offset = 0;
    head.size = 0;
    if (head.kind == TN_IPC_PLAIN) {
        head.process = 0;
        head.extent = 0;
        head.page_size = 0;
    }
    return head;
}

static uint64_t page_room(const struct opened *opened)
{
    return opened->head.kind == TN_IPC_PAGES ? opened->head.extent / opened->head.page_size : 0;
}

static void opened_free(struct opened *opened)
{
    tn_host_free(opened->pages, page_room(opened) * sizeof *opened->pages);
    tn_host_free(opened->body, opened->body_size);
    tn_host_free(opened, sizeof *opened);
}

/* A record that has nothing open yet; NULL without host memory. */
static struct opened *opened_make(const struct tn_ipc_content *content)
{
    struct opened *opened = tn_host_alloc_zero(sizeof *opened);

    if (!opened) {
        return NULL;
    }
    opened->head = head_of_memory(content);
    opened->body_size = content->body_size;
    opened->body = tn_host_alloc(opened->body_size);
    if (opened->head.kind == TN_IPC_PAGES) {
        opened->pages = tn_host_alloc(page_room(opened) * sizeof *opened->pages);
    }
    if (!opened->body || (opened->head.kind == TN_IPC_PAGES && !opened->pages)) {
        opened_free(opened);
        return NULL;
    }
    memcpy(opened->body, content->body, opened->body_size);
    return opened;
}

/* ---- pages ---- */

/* Unmaps every page, releases them, then the addresses. After a failure, another call continues
 * where this one stopped. */
static enum tarn_status pages_close(struct tarn_device *device, struct opened *opened)
{
    const uint64_t page_size = opened->head.page_size;
    enum tarn_status st = TARN_OK;

    while (st == TARN_OK && opened->mapped_count > 0) {
        st = device->ops->unmap(device, opened->address + (opened->mapped_count - 1) * page_size,
                                page_size);
        opened->mapped_count -= st == TARN_OK;
    }
    while (st == TARN_OK && opened->page_count > 0) {
        st = device->ops->page_release(device, opened->pages[opened->page_count - 1]);
        opened->page_count -= st == TARN_OK;
    }
    return st ? st : device->ops->va_release(device, opened->address, opened->head.extent);
}

/* Imports the next page and maps it after those that are mapped, for the peers too. */
static enum tarn_status page_open(const struct tn_ipc_cache *cache, struct opened *opened,
                                  int descriptor)
{
    struct tarn_device *device = cache->device;
    const uint64_t page_size = opened->head.page_size;
    tn_page_handle *page = &opened->pages[opened->page_count];
    enum tarn_status st =
        device->ops->page_import(device, opened->head.process, descriptor, page_size, page);

    if (st) {
        return st;
    }
    opened->page_count++;
    const tarn_ptr at = opened->address + opened->mapped_count * page_size;

    st = device->ops->map(device, at, page_size, *page);
    opened->mapped_count += st == TARN_OK;
    for (unsigned i = 0; st == TARN_OK && i < cache->peers.count; i++) {
        st = device->ops->va_grant(device, at, page_size, cache->peers.ordinals[i]);
    }
    return st;
}

static enum tarn_status pages_open(const struct tn_ipc_cache *cache, struct opened *opened,
                                   const struct tn_ipc_content *content, struct tarn_error *error)
{
    struct tarn_device *device = cache->device;
    const uint64_t count = page_room(opened);
    enum tarn_status st = device->ops->va_reserve(device, opened->head.extent, &opened->address);

    if (st) {
        return tn_device_failed(device, st, "reserving addresses for shared memory", error);
    }
    for (uint64_t i = 0; st == TARN_OK && i < count; i++) {
        st = page_open(cache, opened, tn_ipc_descriptor(content, i));
    }
    if (st) {
        (void)tn_device_failed(device, st, "opening shared memory", error);
        (void)pages_close(device, opened);
    }
    opened->size = opened->head.extent; /* every page has the size it was imported with */
    return st;
}

/* ---- both kinds ---- */

static enum tarn_status memory_open(const struct tn_ipc_cache *cache, struct opened *opened,
                                    const struct tn_ipc_content *content, struct tarn_error *error)
{
    struct tarn_device *device = cache->device;
    struct tn_ipc_handle handle;

    if (opened->head.kind == TN_IPC_PAGES) {
        return pages_open(cache, opened, content, error);
    }
    memcpy(&handle, content->body, sizeof handle);
    const enum tarn_status st =
        device->ops->ipc_open(device, &handle, &opened->address, &opened->size);

    return st ? tn_device_failed(device, st, "opening shared memory", error) : TARN_OK;
}

static enum tarn_status memory_close(struct tarn_device *device, struct opened *opened)
{
    return opened->pages ? pages_close(device, opened)
                         : device->ops->ipc_close(device, opened->address);
}

static void cache_remove(struct tn_ipc_cache *cache, struct opened *opened)
{
    tn_tree_remove(&cache->by_name, &opened->by_name);
    tn_tree_remove(&cache->by_address, &opened->by_address);
    opened_free(opened);
}

void tn_ipc_cache_fini(struct tn_ipc_cache *cache)
{
    while (cache->by_name.root) {
        struct opened *opened = from_name(cache->by_name.root);

        (void)memory_close(cache->device, opened);
        cache_remove(cache, opened);
    }
    tn_lock_fini(&cache->lock);
}

static struct opened *find_name(const struct tn_ipc_cache *cache,
                                const struct tn_ipc_content *content)
{
    const struct opened key = {.head = head_of_memory(content),
                               .body = (unsigned char *)(uintptr_t)content->body,
                               .body_size = content->body_size};
    const struct tn_tree_node *node = tn_tree_find(&cache->by_name, &key.by_name);

    return node ? from_name(node) : NULL;
}

static struct opened *find_address(const struct tn_ipc_cache *cache, tarn_ptr ptr)
{
    const struct opened key = {.address = ptr};
    const struct tn_tree_node *node = tn_tree_find_at_most(&cache->by_address, &key.by_address);
    struct opened *opened = node ? from_address(node) : NULL;

    return opened && ptr - opened->address < opened->size ? opened : NULL;
}

/* The record of the same memory, if the driver had it open already through another handle; else
 * NULL. The driver counts opens, so one of the two is closed again. Pages have fresh addresses, and
 * so has everything else that the driver had not open. */
static struct opened *find_same(struct tn_ipc_cache *cache, const struct opened *opened)
{
    struct opened *known = find_address(cache, opened->address);

    return known && tn_always(known->address == opened->address && !known->pages && !opened->pages)
               ? known
               : NULL;
}

/* Opens what the message describes. The record is new and without uses, or one that was open
 * already. NULL with the status on failure. */
static struct opened *open_afresh(struct tn_ipc_cache *cache, const struct tn_ipc_content *content,
                                  enum tarn_status *status_out, struct tarn_error *error)
{
    struct opened *opened = opened_make(content);

    if (!opened) {
        *status_out = tn_fail_memory(error);
        return NULL;
    }
    *status_out = memory_open(cache, opened, content, error);
    struct opened *known = *status_out ? NULL : find_same(cache, opened);

    if (*status_out || known) {
        if (known) {
            (void)memory_close(cache->device, opened);
        }
        opened_free(opened);
        return known;
    }
    tn_tree_insert(&cache->by_name, &opened->by_name);
    tn_tree_insert(&cache->by_address, &opened->by_address);
    return opened;
}

/* Checks that what was opened is as large as the message says. */
static enum tarn_status extent_check(const struct opened *opened,
                                     const struct tn_ipc_content *content, struct tarn_error *error)
{
    return content->head.extent <= opened->size
               ? TARN_OK
               : tn_fail(error, TARN_ERR_FORMAT,
                         "not a message of tarn_ipc_export: it names %" PRIu64
                         " bytes where %" PRIu64 " are shared",
                         content->head.extent, opened->size);
}

/* Closes it again if nobody uses it. */
static void drop_unused(struct tn_ipc_cache *cache, struct opened *opened)
{
    if (opened->uses == 0) {
        (void)memory_close(cache->device, opened);
        cache_remove(cache, opened);
    }
}

enum tarn_status tn_ipc_cache_open(struct tn_ipc_cache *cache, const struct tn_ipc_content *content,
                                   tarn_ptr *ptr_out, struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    tn_lock_acquire(&cache->lock);
    struct opened *opened = find_name(cache, content);

    if (!opened) {
        opened = open_afresh(cache, content, &st, error);
    }
    if (!opened) {
        goto out;
    }
    st = extent_check(opened, content, error);
    if (st) {
        drop_unused(cache, opened);
        goto out;
    }
    opened->uses++;
    *ptr_out = opened->address + content->head.offset;
out:
    tn_lock_release(&cache->lock);
    return st;
}

enum tarn_status tn_ipc_cache_close(struct tn_ipc_cache *cache, tarn_ptr ptr,
                                    struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    tn_lock_acquire(&cache->lock);
    struct opened *opened = find_address(cache, ptr);

    if (!opened) {
        st = tn_fail(error, TARN_ERR_INVALID_POINTER,
                     "%#" PRIx64
                     " is not open: it was never opened, or already closed as often as opened",
                     ptr);
    } else if (opened->uses > 1) {
        opened->uses--;
    } else {
        st = memory_close(cache->device, opened);
        if (st) {
            (void)tn_device_failed(cache->device, st, "closing shared memory", error);
        } else {
            cache_remove(cache, opened);
        }
    }
    tn_lock_release(&cache->lock);
    return st;
}

/* The lock is held. */
static enum tarn_status grant_all(void *context, int ordinal, struct tarn_error *error)
{
    const struct tn_ipc_cache *cache = context;
    struct tarn_device *device = cache->device;
    enum tarn_status st = TARN_OK;

    for (const struct tn_tree_node *node = tn_tree_first(&cache->by_address); node && st == TARN_OK;
         node = tn_tree_next(node)) {
        const struct opened *opened = from_address(node);

        if (opened->pages) {
            st = device->ops->va_grant(device, opened->address, opened->size, ordinal);
        }
    }
    return st ? tn_device_failed(device, st, "granting a peer access", error) : TARN_OK;
}

enum tarn_status tn_ipc_cache_add_peer(struct tn_ipc_cache *cache, int ordinal,
                                       struct tarn_error *error)
{
    tn_lock_acquire(&cache->lock);
    const enum tarn_status st = tn_peers_add(&cache->peers, ordinal, grant_all, cache, error);

    tn_lock_release(&cache->lock);
    return st;
}

uint64_t tn_ipc_cache_check(struct tn_ipc_cache *cache, struct tarn_findings *findings)
{
    const uint64_t before = findings->count;
    uint64_t unused = 0;

    tn_lock_acquire(&cache->lock);
    (void)tn_tree_check(&cache->by_name, findings);
    (void)tn_tree_check(&cache->by_address, findings);
    tn_check_number("shared memory by name and by address", cache->by_name.count,
                    cache->by_address.count, findings);
    for (const struct tn_tree_node *node = tn_tree_first(&cache->by_address); node;
         node = tn_tree_next(node)) {
        unused += from_address(node)->uses == 0;
    }
    tn_check_number("shared memory that is open without a use", unused, 0, findings);
    tn_lock_release(&cache->lock);
    return findings->count - before;
}
