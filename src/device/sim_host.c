/* SPDX-License-Identifier: MIT */
/*
 * Pinned host memory of the simulated device: ordinary memory with a table of all allocations, so
 * that invalid and double frees are reported. Nothing is page-locked.
 */
#include "device/sim_device.h"

#include "base/os_map.h"

#include <inttypes.h>

#define CALLERS_OWN       ((uint64_t)1)
#define SIZE_MAX_OF_PIECE (UINT64_MAX >> 1)

static uint64_t key_of(const void *memory)
{
    return (uint64_t)(uintptr_t)memory;
}

static void piece_add(struct tn_sim_host *host, const void *memory, uint64_t size, uint64_t own)
{
    tn_map_insert(&host->pieces, key_of(memory), size << 1 | own);
}

static void piece_drop(struct tn_sim_host *host, const void *memory)
{
    tn_map_remove(&host->pieces, tn_map_find(&host->pieces, key_of(memory)));
}

/* Size of a piece of that kind, 0 when there is none. */
static uint64_t piece_find(const struct tn_sim_host *host, const void *memory, uint64_t own)
{
    const uint64_t *found = memory ? tn_map_find(&host->pieces, key_of(memory)) : NULL;

    return found && (*found & CALLERS_OWN) == own ? *found >> 1 : 0;
}

enum tarn_status tn_sim_op_host_alloc(struct tn_sim *sim, uint64_t size, void **memory_out)
{
    if (size == 0 || size > SIZE_MAX_OF_PIECE) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE, "pinned memory of %" PRIu64 " bytes", size);
    }
    if (!tn_map_reserve(&sim->host.pieces, 1)) {
        return TARN_ERR_HOST_MEMORY;
    }
    void *memory = tn_os_range_reserve(size, true);

    if (!memory) {
        return tn_sim_fail(sim, TARN_ERR_OUT_OF_MEMORY,
                           "the system has no %" PRIu64 " bytes to pin", size);
    }
    piece_add(&sim->host, memory, size, 0);
    *memory_out = memory;
    return TARN_OK;
}

enum tarn_status tn_sim_op_host_free(struct tn_sim *sim, void *memory)
{
    const uint64_t size = piece_find(&sim->host, memory, 0);

    if (size == 0) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE, "free of what is not pinned memory");
    }
    tn_os_range_release(memory, size);
    piece_drop(&sim->host, memory);
    return TARN_OK;
}

enum tarn_status tn_sim_op_host_register(struct tn_sim *sim, void *memory, uint64_t size)
{
    if (!memory || size == 0 || size > SIZE_MAX_OF_PIECE) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE, "registering %" PRIu64 " bytes", size);
    }
    if (tn_map_find(&sim->host.pieces, key_of(memory))) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE, "registering what is pinned already");
    }
    if (!tn_map_reserve(&sim->host.pieces, 1)) {
        return TARN_ERR_HOST_MEMORY;
    }
    piece_add(&sim->host, memory, size, CALLERS_OWN);
    return TARN_OK;
}

enum tarn_status tn_sim_op_host_unregister(struct tn_sim *sim, void *memory)
{
    if (piece_find(&sim->host, memory, CALLERS_OWN) == 0) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE, "unregistering what is not registered");
    }
    piece_drop(&sim->host, memory);
    return TARN_OK;
}

void tn_sim_host_fini(struct tn_sim_host *host)
{
    for (uint64_t i = 0; i < host->pieces.capacity; i++) {
        const struct tn_map_slot *slot = &host->pieces.slots[i];

        if (slot->key != 0 && !(slot->value & CALLERS_OWN)) {
            tn_os_range_release((void *)(uintptr_t)slot->key, slot->value >> 1);
        }
    }
    tn_map_fini(&host->pieces);
}
