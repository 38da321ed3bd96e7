/* SPDX-License-Identifier: MIT */
/*
 * Memory of the simulated device shared between processes: the memory object behind a plain
 * allocation or a page, which another process finds by the exporting process's descriptor. The
 * descriptor may be stale or forged: only memory objects of simulated devices (base/os_map.h) of
 * the named size are opened, and for a plain allocation only the one with the handle's random
 * number. Devices that are not backed share only addresses.
 *
 * As with the driver, a process cannot open its own memory, nor the same allocation twice. Opened
 * and imported memory belongs to another device and is not charged.
 */
#include "device/sim_device.h"

#include "base/host_mem.h"
#include "base/os_map.h"
#include "base/os_process.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

/* Contents of a handle. */
struct sim_name {
    char magic[8];
    int64_t process;
    uint64_t device; /* id within the process */
    uint64_t address;
    uint64_t size;
    uint64_t cookie; /* of the object, 0 on a device without memory */
    int64_t object;
};

static const char name_magic[8] = {'t', 'a', 'r', 'n', 's', 'i', 'm', '2'};

static_assert(sizeof(struct sim_name) <= sizeof(struct tn_ipc_handle), "a name fits its handle");

/* ---- plain allocations ---- */

enum tarn_status tn_sim_op_ipc_export(struct tn_sim *sim, tarn_ptr address,
                                      struct tn_ipc_handle *handle_out)
{
    const struct tn_sim_range *range = tn_sim_space_find_start(&sim->space, address, TN_SIM_PLAIN);
    struct sim_name name = {.process = tn_os_process_id(), .device = sim->id, .object = -1};
    uint64_t size;

    if (!range) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE, "export of %#" PRIx64 ", which is not allocated",
                           address);
    }
    memcpy(name.magic, name_magic, sizeof name.magic);
    name.address = address;
    name.size = range->size;
    if (sim->backed) {
        name.object = range->object;
        if (!tn_os_object_identity(range->object, &name.cookie, &size)) {
            return TARN_ERR_HOST_MEMORY;
        }
    }
    memset(handle_out, 0, sizeof *handle_out);
    memcpy(handle_out, &name, sizeof name);
    return TARN_OK;
}

/* Whether the handle's allocation is already open. */
static bool is_open(const struct tn_sim *sim, const struct tn_ipc_handle *handle)
{
    for (const struct tn_sim_range *range = tn_sim_space_first(&sim->space); range;
         range = tn_sim_space_next(&sim->space, range)) {
        if (range->kind == TN_SIM_OPENED && memcmp(range->opened, handle, sizeof *handle) == 0) {
            return true;
        }
    }
    return false;
}

/* Opens the object of another process's descriptor, if it has that size and cookie (NULL: any);
 * else -1. */
static int object_find(int64_t process, int64_t object, const uint64_t *cookie, uint64_t size)
{
    uint64_t found_cookie;
    uint64_t found_size;

    if (process <= 0 || object < 0 || object > INT_MAX) {
        return -1;
    }
    const int found = tn_os_object_reopen(process, (int)object);

    if (found >= 0 && (!tn_os_object_identity(found, &found_cookie, &found_size) ||
                       found_size != size || (cookie && found_cookie != *cookie))) {
        tn_os_object_close(found);
        return -1;
    }
    return found;
}

/* Maps the memory named by a handle at the range. */
static bool range_show(struct tn_sim_range *range, const struct sim_name *name)
{
    range->object = object_find(name->process, name->object, &name->cookie, name->size);
    range->host = range->object < 0 ? NULL : tn_os_range_reserve(name->size, false);
    if (range->host && tn_os_object_map(range->object, range->host, name->size)) {
        return true;
    }
    tn_os_range_release(range->host, name->size);
    range->host = NULL;
    tn_os_object_close(range->object);
    return false;
}

enum tarn_status tn_sim_op_ipc_open(struct tn_sim *sim, const struct tn_ipc_handle *handle,
                                    tarn_ptr *address_out, uint64_t *size_out)
{
    struct tn_sim_range *range = NULL;
    struct sim_name name;

    memcpy(&name, handle, sizeof name);
    if (memcmp(name.magic, name_magic, sizeof name.magic) != 0 || name.size == 0) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE, "open of a handle that no simulated device made");
    }
    if (name.process == tn_os_process_id()) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE, "open of an allocation of this process");
    }
    if (is_open(sim, handle)) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE, "open of what is open already");
    }
    if (sim->backed != (name.object >= 0)) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE,
                           "open of memory of a device that is %sbacked, on one that is %s",
                           sim->backed ? "not " : "", sim->backed ? "" : "not");
    }
    struct tn_ipc_handle *opened = tn_host_alloc(sizeof *opened);
    enum tarn_status st = TARN_ERR_HOST_MEMORY;

    if (opened) {
        st = tn_sim_space_take(&sim->space, TN_SIM_OPENED, name.size, &range);
    }
    if (st == TARN_OK && sim->backed && !range_show(range, &name)) {
        tn_sim_space_give(&sim->space, range);
        st = tn_sim_fail(sim, TARN_ERR_DEVICE,
                         "open of memory of process %" PRId64 ", which has it no longer",
                         name.process);
    }
    if (st != TARN_OK) {
        tn_host_free(opened, sizeof *opened);
        return st;
    }
    *opened = *handle;
    range->opened = opened;
    *address_out = range->start;
    *size_out = name.size;
    return TARN_OK;
}

enum tarn_status tn_sim_op_ipc_close(struct tn_sim *sim, tarn_ptr address)
{
    struct tn_sim_range *range = tn_sim_space_find_start(&sim->space, address, TN_SIM_OPENED);

    if (!range) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE, "close of %#" PRIx64 ", which is not open",
                           address);
    }
    tn_sim_memory_give(sim, range);
    return TARN_OK;
}

/* ---- pages ---- */

enum tarn_status tn_sim_op_page_export(struct tn_sim *sim, tn_page_handle page, int *descriptor_out)
{
    uint64_t size;
    int object;

    if (!tn_sim_page_find(sim, page, &size, &object)) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE, "export of page %" PRIu64 ", which is not there",
                           page);
    }
    /* Without memory behind it a page has no object: an empty one stands for it. */
    const int descriptor = object >= 0 ? tn_os_descriptor_copy(object) : tn_os_object_open(size);

    if (descriptor < 0) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE, "no descriptor for page %" PRIu64, page);
    }
    *descriptor_out = descriptor;
    return TARN_OK;
}

enum tarn_status tn_sim_op_page_import(struct tn_sim *sim, int64_t process, int descriptor,
                                       uint64_t size, tn_page_handle *page_out)
{
    const int object = object_find(process, descriptor, NULL, size);

    if (object < 0) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE,
                           "import of descriptor %d of process %" PRId64
                           ", which is no page of %" PRIu64 " bytes there",
                           descriptor, process, size);
    }
    if (!tn_sim_page_adopt(sim, size, object, page_out)) {
        tn_os_object_close(object);
        return TARN_ERR_HOST_MEMORY;
    }
    return TARN_OK;
}
