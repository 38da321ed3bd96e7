/* SPDX-License-Identifier: MIT */
/*
 * Virtual memory of the simulated device: reservations are ranges of the address space, pages are
 * charged memory without an address, a mapping maps one whole page inside one reservation. On a
 * backed device a page is a memory object of the system and a reservation a range of host addresses
 * without memory, so that a page mapped twice has the same contents at both addresses.
 *
 * Releasing a page or reservation with something mapped is an error here; the real driver keeps
 * such a page until it is unmapped, but the allocator never relies on that. Unmapping and granting
 * take any run of adjacent whole mappings in one reservation. Grants are checked but change
 * nothing.
 */
#include "device/sim_device.h"

#include "base/assertion.h"
#include "base/host_mem.h"
#include "base/os_map.h"

#include <inttypes.h>

enum {
    PEERS_MAX = 64
};

struct sim_page {
    struct tn_tree_node node;
    tn_page_handle handle;
    uint64_t size;
    uint64_t mappings;    /* number of mappings */
    int object;           /* its memory on a backed device, else -1 */
    tn_page_handle there; /* of the device whose memory it is, or 0 */
    bool imported;        /* another device's memory: not charged */
};

struct sim_mapping {
    struct tn_tree_node node;
    uint64_t start;
    uint64_t size;
    struct sim_page *page;
    void *host;     /* inside its reservation, or NULL */
    tarn_ptr there; /* on the device whose memory it is, or 0 */
    struct sim_mapping *next_spare;
};

/* Records of mappings that are gone are kept: the compact policy maps pages all the time. */
static struct sim_mapping *mapping_create(struct tn_sim_vmm *vmm)
{
    struct sim_mapping *mapping = vmm->spare;

    if (!mapping) {
        return tn_host_alloc_zero(sizeof *mapping);
    }
    vmm->spare = mapping->next_spare;
    *mapping = (struct sim_mapping){.start = 0};
    return mapping;
}

static void mapping_keep(struct tn_sim_vmm *vmm, struct sim_mapping *mapping)
{
    mapping->next_spare = vmm->spare;
    vmm->spare = mapping;
}

static struct sim_page *page_of(const struct tn_tree_node *node)
{
    return TN_TREE_ENTRY(node, struct sim_page, node);
}

static struct sim_mapping *mapping_of(const struct tn_tree_node *node)
{
    return TN_TREE_ENTRY(node, struct sim_mapping, node);
}

static int page_compare(const struct tn_tree_node *a, const struct tn_tree_node *b)
{
    return tn_tree_order_u64(page_of(a)->handle, page_of(b)->handle);
}

static int mapping_compare(const struct tn_tree_node *a, const struct tn_tree_node *b)
{
    return tn_tree_order_u64(mapping_of(a)->start, mapping_of(b)->start);
}

void tn_sim_vmm_init(struct tn_sim_vmm *vmm)
{
    tn_tree_init(&vmm->pages, page_compare, NULL);
    tn_tree_init(&vmm->mappings, mapping_compare, NULL);
    vmm->spare = NULL;
    vmm->last_page = 0;
}

static bool is_granular(uint64_t number)
{
    return number % TN_SIM_ALIGNMENT == 0;
}

/* A size that virtual memory operations take: not 0, whole granules. */
static enum tarn_status size_check(struct tn_sim *sim, uint64_t size)
{
    if (size > 0 && is_granular(size)) {
        return TARN_OK;
    }
    return tn_sim_fail(sim, TARN_ERR_DEVICE, "size %" PRIu64 " is not a multiple of 2 MiB", size);
}

/* First mapping that ends after the address, or NULL. */
static struct sim_mapping *mapping_find_from(const struct tn_sim *sim, uint64_t address)
{
    const struct sim_mapping key = {.start = address};
    struct tn_tree_node *node = tn_tree_find_at_most(&sim->vmm.mappings, &key.node);

    if (node && address - mapping_of(node)->start < mapping_of(node)->size) {
        return mapping_of(node);
    }
    node = node ? tn_tree_next(node) : tn_tree_first(&sim->vmm.mappings);
    return node ? mapping_of(node) : NULL;
}

static struct sim_mapping *mapping_next(const struct sim_mapping *mapping)
{
    struct tn_tree_node *node = tn_tree_next(&mapping->node);

    return node ? mapping_of(node) : NULL;
}

bool tn_sim_vmm_covers(const struct tn_sim *sim, tarn_ptr address, uint64_t size)
{
    const uint64_t end = address + size; /* the caller's range lies in the space: no overflow */
    uint64_t at = address;

    for (const struct sim_mapping *mapping = mapping_find_from(sim, address);
         mapping && at < end && mapping->start <= at; mapping = mapping_next(mapping)) {
        at = mapping->start + mapping->size;
    }
    return at >= end;
}

/* The first of the adjacent whole mappings that make up exactly that part of one reservation, or
 * NULL. */
static struct sim_mapping *mapping_find_run(const struct tn_sim *sim, uint64_t address,
                                            uint64_t size)
{
    const struct tn_sim_range *range = tn_sim_space_find(&sim->space, address);
    struct sim_mapping *first = mapping_find_from(sim, address);
    uint64_t at = address;
    uint64_t left = size;

    if (!range || size > range->size - (address - range->start)) {
        return NULL;
    }
    for (const struct sim_mapping *mapping = first; left > 0; mapping = mapping_next(mapping)) {
        if (!mapping || mapping->start != at || mapping->size > left) {
            return NULL;
        }
        at += mapping->size;
        left -= mapping->size;
    }
    return first;
}

enum tarn_status tn_sim_op_va_reserve(struct tn_sim *sim, uint64_t size, tarn_ptr *address_out)
{
    struct tn_sim_range *range = NULL;
    void *host = NULL;
    tarn_ptr there = 0;
    enum tarn_status st = size_check(sim, size);

    if (st != TARN_OK) {
        return st;
    }
    if (sim->backed && !(host = tn_os_range_reserve(size, false))) {
        return TARN_ERR_HOST_MEMORY;
    }
    st = tn_sim_there_reserve(sim, size, &there);
    if (st != TARN_OK) {
        return st;
    }
    st = tn_sim_space_take(&sim->space, TN_SIM_RESERVED, size, &range);
    if (st != TARN_OK) {
        (void)tn_sim_there_release(sim, there, size);
        tn_os_range_release(host, size);
        return st == TARN_ERR_OUT_OF_MEMORY
                   ? tn_sim_fail(sim, st, "no address range of %" PRIu64 " bytes is free", size)
                   : st;
    }
    range->host = host;
    range->there = there;
    *address_out = range->start;
    return TARN_OK;
}

enum tarn_status tn_sim_op_va_release(struct tn_sim *sim, tarn_ptr address, uint64_t size)
{
    struct tn_sim_range *range = tn_sim_space_find_start(&sim->space, address, TN_SIM_RESERVED);

    if (!range || range->size != size) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE,
                           "release of %#" PRIx64 " + %" PRIu64 ", which is no reservation",
                           address, size);
    }
    const struct sim_mapping *mapping = mapping_find_from(sim, address);
    if (mapping && mapping->start - address < size) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE,
                           "release of a reservation with a mapping at %#" PRIx64, mapping->start);
    }
    const enum tarn_status st = tn_sim_there_release(sim, range->there, range->size);
    if (st != TARN_OK) {
        return st;
    }
    tn_os_range_release(range->host, range->size);
    tn_sim_space_give(&sim->space, range);
    return TARN_OK;
}

/* Gives a new page its number. */
static tn_page_handle page_enter(struct tn_sim *sim, struct sim_page *page, uint64_t size)
{
    page->handle = ++sim->vmm.last_page;
    page->size = size;
    tn_tree_insert(&sim->vmm.pages, &page->node);
    return page->handle;
}

enum tarn_status tn_sim_op_page_create(struct tn_sim *sim, uint64_t size, tn_page_handle *page_out)
{
    enum tarn_status st = size_check(sim, size);

    if (st != TARN_OK) {
        return st;
    }
    if (size > tn_sim_space_room(&sim->space)) {
        return tn_sim_fail_memory(sim, size);
    }
    struct sim_page *page = tn_host_alloc_zero(sizeof *page);
    if (!page) {
        return TARN_ERR_HOST_MEMORY;
    }
    page->object = sim->backed ? tn_os_object_open(size) : -1;
    if (sim->backed && page->object < 0) {
        tn_host_free(page, sizeof *page);
        return TARN_ERR_HOST_MEMORY;
    }
    st = tn_sim_there_page_create(sim, size, &page->there);
    if (st != TARN_OK) {
        tn_os_object_close(page->object);
        tn_host_free(page, sizeof *page);
        return st;
    }
    const bool charged = tn_sim_space_charge(&sim->space, size);
    tn_assert(charged);
    (void)charged;
    *page_out = page_enter(sim, page, size);
    return TARN_OK;
}

static struct sim_page *page_find(const struct tn_sim *sim, tn_page_handle handle)
{
    const struct sim_page key = {.handle = handle};
    const struct tn_tree_node *node = tn_tree_find(&sim->vmm.pages, &key.node);

    return node ? page_of(node) : NULL;
}

bool tn_sim_page_find(const struct tn_sim *sim, tn_page_handle handle, uint64_t *size_out,
                      int *object_out)
{
    const struct sim_page *page = page_find(sim, handle);

    if (page) {
        *size_out = page->size;
        *object_out = page->object;
    }
    return page != NULL;
}

bool tn_sim_page_adopt(struct tn_sim *sim, uint64_t size, int object, tn_page_handle *page_out)
{
    struct sim_page *page = tn_host_alloc_zero(sizeof *page);

    if (!page) {
        return false;
    }
    page->object = object;
    page->imported = true;
    *page_out = page_enter(sim, page, size);
    return true;
}

static void page_destroy(struct tn_sim *sim, struct sim_page *page)
{
    if (!page->imported) {
        tn_sim_space_refund(&sim->space, page->size);
    }
    tn_tree_remove(&sim->vmm.pages, &page->node);
    (void)tn_sim_there_page_release(sim, page->there);
    tn_os_object_close(page->object);
    tn_host_free(page, sizeof *page);
}

enum tarn_status tn_sim_op_page_release(struct tn_sim *sim, tn_page_handle handle)
{
    struct sim_page *page = page_find(sim, handle);

    if (!page) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE, "no page %" PRIu64, handle);
    }
    if (page->mappings > 0) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE,
                           "release of page %" PRIu64 ", which is mapped %" PRIu64 " times", handle,
                           page->mappings);
    }
    const enum tarn_status st = tn_sim_there_page_release(sim, page->there);
    if (st == TARN_OK) {
        page->there = 0;
        page_destroy(sim, page);
    }
    return st;
}

/* Whether that page may be mapped there. */
static enum tarn_status map_check(struct tn_sim *sim, tarn_ptr address, uint64_t size,
                                  const struct sim_page *page, const struct tn_sim_range *range)
{
    if (!page) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE, "map of a page that does not exist");
    }
    if (size != page->size) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE, "map of %" PRIu64 " bytes of a page of %" PRIu64,
                           size, page->size);
    }
    if (!is_granular(address)) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE,
                           "map at %#" PRIx64 ", which is not a multiple of 2 MiB", address);
    }
    if (!range || range->kind != TN_SIM_RESERVED || size > range->size - (address - range->start)) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE, "map outside a reservation at %#" PRIx64, address);
    }
    const struct sim_mapping *mapping = mapping_find_from(sim, address);
    if (mapping && (mapping->start < address || mapping->start - address < size)) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE, "map over the mapping at %#" PRIx64,
                           mapping->start);
    }
    return TARN_OK;
}

enum tarn_status tn_sim_op_map(struct tn_sim *sim, tarn_ptr address, uint64_t size,
                               tn_page_handle handle)
{
    struct sim_page *page = page_find(sim, handle);
    const struct tn_sim_range *range = tn_sim_space_find(&sim->space, address);
    enum tarn_status st = map_check(sim, address, size, page, range);

    if (st != TARN_OK) {
        return st;
    }
    struct sim_mapping *mapping = mapping_create(&sim->vmm);
    if (!mapping) {
        return TARN_ERR_HOST_MEMORY;
    }
    if (sim->backed) {
        mapping->host = (char *)range->host + (address - range->start);
        if (!tn_os_object_map(page->object, mapping->host, size)) {
            mapping_keep(&sim->vmm, mapping);
            return TARN_ERR_HOST_MEMORY;
        }
    }
    if (sim->memory) {
        mapping->there = range->there + (address - range->start);
        st = tn_sim_there_map(sim, mapping->there, size, page->there);
        if (st != TARN_OK) {
            mapping_keep(&sim->vmm, mapping);
            return st;
        }
    }
    mapping->start = address;
    mapping->size = size;
    mapping->page = page;
    page->mappings++;
    tn_tree_insert(&sim->vmm.mappings, &mapping->node);
    return TARN_OK;
}

static void mapping_destroy(struct tn_sim *sim, struct sim_mapping *mapping)
{
    tn_assert(mapping->page->mappings > 0);
    mapping->page->mappings--;
    tn_tree_remove(&sim->vmm.mappings, &mapping->node);
    mapping_keep(&sim->vmm, mapping);
}

enum tarn_status tn_sim_op_unmap(struct tn_sim *sim, tarn_ptr address, uint64_t size)
{
    enum tarn_status st = size_check(sim, size);

    if (st != TARN_OK) {
        return st;
    }
    struct sim_mapping *mapping = mapping_find_run(sim, address, size);
    if (!mapping) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE,
                           "unmap of %#" PRIx64 " + %" PRIu64 ", which is not whole mappings",
                           address, size);
    }
    if (mapping->host && !tn_os_range_clear(mapping->host, size)) {
        return TARN_ERR_HOST_MEMORY;
    }
    st = tn_sim_there_unmap(sim, mapping->there, size);
    if (st != TARN_OK) {
        return st;
    }
    for (uint64_t left = size; left > 0;) {
        struct sim_mapping *next = mapping_next(mapping);

        left -= mapping->size;
        mapping_destroy(sim, mapping);
        mapping = next;
    }
    return TARN_OK;
}

enum tarn_status tn_sim_op_va_grant(struct tn_sim *sim, tarn_ptr address, uint64_t size,
                                    int peer_ordinal)
{
    enum tarn_status st = size_check(sim, size);

    if (st != TARN_OK) {
        return st;
    }
    if (peer_ordinal < 0 || peer_ordinal >= PEERS_MAX) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE, "no device %d", peer_ordinal);
    }
    if (!mapping_find_run(sim, address, size)) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE,
                           "grant of %#" PRIx64 " + %" PRIu64 ", which is not whole mappings",
                           address, size);
    }
    return TARN_OK;
}

void tn_sim_vmm_fini(struct tn_sim *sim)
{
    struct tn_sim_range *range = tn_sim_space_first(&sim->space);

    while (sim->vmm.mappings.root) {
        struct sim_mapping *mapping = mapping_of(sim->vmm.mappings.root);

        (void)tn_sim_there_unmap(sim, mapping->there, mapping->size);
        mapping_destroy(sim, mapping);
    }
    while (sim->vmm.spare) {
        struct sim_mapping *mapping = sim->vmm.spare;

        sim->vmm.spare = mapping->next_spare;
        tn_host_free(mapping, sizeof *mapping);
    }
    while (sim->vmm.pages.root) {
        page_destroy(sim, page_of(sim->vmm.pages.root));
    }
    while (range) {
        struct tn_sim_range *next = tn_sim_space_next(&sim->space, range);

        if (range->kind == TN_SIM_RESERVED) {
            (void)tn_sim_there_release(sim, range->there, range->size);
            tn_os_range_release(range->host, range->size);
            tn_sim_space_give(&sim->space, range);
        }
        range = next;
    }
}
