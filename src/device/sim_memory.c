/* SPDX-License-Identifier: MIT */
/*
 * The memory behind the addresses of a simulated device: none, host memory, or the memory of
 * another device. In the last case each call that allocates or releases memory is first made there,
 * and fails here if it fails there.
 */
#include "device/sim_device.h"

#include <inttypes.h>
#include <stdio.h>

/* Whether those bytes of the range have memory. */
static bool range_is_memory(const struct tn_sim *sim, const struct tn_sim_range *range,
                            tarn_ptr address, uint64_t size)
{
    if (size == 0 || size > range->size - (address - range->start)) {
        return false;
    }
    if (range->kind == TN_SIM_RESERVED) {
        return tn_sim_vmm_covers(sim, address, size);
    }
    return range->kind != TN_SIM_POOL || tn_sim_pool_covers(sim, address, size);
}

/* The range that contains those bytes and their memory, or NULL. */
static const struct tn_sim_range *range_find(const struct tn_sim *sim, tarn_ptr address,
                                             uint64_t size)
{
    const struct tn_sim_range *range = tn_sim_space_find(&sim->space, address);

    return range && range_is_memory(sim, range, address, size) ? range : NULL;
}

void *tarn_sim_host_memory(struct tarn_device *device, tarn_ptr address, uint64_t size)
{
    struct tn_sim *sim = tn_sim_from(device);
    void *memory = NULL;

    if (!sim || !sim->backed) {
        return NULL;
    }
    tn_biased_lock_acquire(&sim->lock);
    const struct tn_sim_range *range = range_find(sim, address, size);
    if (range) {
        memory = (char *)range->host + (address - range->start);
    }
    tn_biased_lock_release(&sim->lock);
    return memory;
}

tarn_ptr tarn_sim_memory_address(struct tarn_device *device, tarn_ptr address, uint64_t size)
{
    struct tn_sim *sim = tn_sim_from(device);
    tarn_ptr there = 0;

    if (!sim || !sim->memory) {
        return 0;
    }
    tn_biased_lock_acquire(&sim->lock);
    const struct tn_sim_range *range = range_find(sim, address, size);
    if (range && range->there) {
        there = range->there + (address - range->start);
    }
    tn_biased_lock_release(&sim->lock);
    return there;
}

/* ---- the device that provides the memory ---- */

/* Reports its failure with its error text. */
static enum tarn_status there_result(struct tn_sim *sim, enum tarn_status st)
{
    char text[256]; /* the maximum length */

    if (st == TARN_OK) {
        return TARN_OK;
    }
    /* Copied, because a thread has one text for all devices. */
    (void)snprintf(text, sizeof text, "%s", sim->memory->ops->last_error(sim->memory));
    return tn_sim_fail(sim, st, "%s", text);
}

enum tarn_status tn_sim_there_alloc(struct tn_sim *sim, uint64_t size, tarn_ptr *there_out)
{
    *there_out = 0;
    return sim->memory ? there_result(sim, sim->memory->ops->alloc(sim->memory, size, there_out))
                       : TARN_OK;
}

enum tarn_status tn_sim_there_free(struct tn_sim *sim, tarn_ptr there)
{
    return there ? there_result(sim, sim->memory->ops->free(sim->memory, there)) : TARN_OK;
}

enum tarn_status tn_sim_there_reserve(struct tn_sim *sim, uint64_t size, tarn_ptr *there_out)
{
    *there_out = 0;
    return sim->memory
               ? there_result(sim, sim->memory->ops->va_reserve(sim->memory, size, there_out))
               : TARN_OK;
}

enum tarn_status tn_sim_there_release(struct tn_sim *sim, tarn_ptr there, uint64_t size)
{
    return there ? there_result(sim, sim->memory->ops->va_release(sim->memory, there, size))
                 : TARN_OK;
}

enum tarn_status tn_sim_there_page_create(struct tn_sim *sim, uint64_t size,
                                          tn_page_handle *there_out)
{
    *there_out = 0;
    return sim->memory
               ? there_result(sim, sim->memory->ops->page_create(sim->memory, size, there_out))
               : TARN_OK;
}

enum tarn_status tn_sim_there_page_release(struct tn_sim *sim, tn_page_handle there)
{
    return there ? there_result(sim, sim->memory->ops->page_release(sim->memory, there)) : TARN_OK;
}

enum tarn_status tn_sim_there_map(struct tn_sim *sim, tarn_ptr there, uint64_t size,
                                  tn_page_handle page)
{
    if (!page) {
        return tn_sim_fail(sim, TARN_ERR_NOT_SUPPORTED,
                           "a page of another process has no memory on this device");
    }
    return there_result(sim, sim->memory->ops->map(sim->memory, there, size, page));
}

enum tarn_status tn_sim_there_unmap(struct tn_sim *sim, tarn_ptr there, uint64_t size)
{
    return there ? there_result(sim, sim->memory->ops->unmap(sim->memory, there, size)) : TARN_OK;
}

/* Translates one side of a copy for the other device; false if there is no such memory. */
static bool there_side(struct tarn_device **device, uint64_t *address, uint64_t size)
{
    struct tn_sim *sim = tn_sim_from(*device);

    if (*device) {
        *address = tarn_sim_memory_address(*device, *address, size);
        *device = sim ? sim->memory : NULL;
    }
    return *address != 0;
}

enum tarn_status tn_sim_there_copy(struct tarn_device *device, const struct tn_copy *copy,
                                   tarn_stream stream)
{
    struct tn_sim *sim = tn_sim_from(device);
    struct tn_copy there = *copy;
    const bool found = there_side(&there.to_device, &there.to, copy->size) &&
                       there_side(&there.from_device, &there.from, copy->size);
    enum tarn_status st = tn_sim_enter(device, TARN_SIM_COPY);

    (void)stream; /* unused: copies complete immediately */
    if (st == TARN_OK && !found) {
        st = tn_sim_fail(sim, TARN_ERR_DEVICE,
                         "copy of %" PRIu64 " bytes, where the device has no memory", copy->size);
    }
    if (st == TARN_OK) {
        st = there_result(sim, sim->memory->ops->copy(sim->memory, &there, 0));
    }
    if (st == TARN_OK) {
        st = there_result(sim, sim->memory->ops->stream_wait(sim->memory, 0));
    }
    return tn_sim_leave(device, st);
}
