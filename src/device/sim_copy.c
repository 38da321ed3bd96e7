/* SPDX-License-Identifier: MIT */
/*
 * Copying on simulated devices: done immediately, whatever the stream has queued, and only with
 * memory behind the addresses. All simulated devices can access each other.
 */
#include "device/sim_device.h"

#include "base/assertion.h"

#include <inttypes.h>
#include <string.h>

enum tarn_status tn_sim_op_peer_reaches(struct tn_sim *sim, struct tarn_device *peer,
                                        bool *reaches_out)
{
    (void)sim;
    *reaches_out = tn_sim_from(peer) != NULL;
    return TARN_OK;
}

enum tarn_status tn_sim_op_peer_enable(struct tn_sim *sim, struct tarn_device *peer)
{
    return tn_sim_from(peer) ? TARN_OK
                             : tn_sim_fail(sim, TARN_ERR_DEVICE, "a peer of another kind");
}

/* The host address of one side of a copy; NULL when there is no such memory. */
static void *side(struct tarn_device *device, uint64_t address, uint64_t size)
{
    return device ? tarn_sim_host_memory(device, address, size) : (void *)(uintptr_t)address;
}

enum tarn_status tn_sim_copy(struct tarn_device *device, const struct tn_copy *copy,
                             tarn_stream stream)
{
    if (tn_sim_of(device)->memory) {
        return tn_sim_there_copy(device, copy, stream);
    }
    /* The lock of each device guards only its address lookup; no lock is held during the copy. */
    void *to = side(copy->to_device, copy->to, copy->size);
    const void *from = side(copy->from_device, copy->from, copy->size);
    enum tarn_status st = tn_sim_enter(device, TARN_SIM_COPY);

    (void)stream;
    if (st == TARN_OK && (!to || !from)) {
        st = tn_sim_fail(tn_sim_of(device), TARN_ERR_DEVICE,
                         "copy %s %#" PRIx64 " + %" PRIu64 ", where the device has no memory",
                         to ? "from" : "to", to ? copy->from : copy->to, copy->size);
    }
    st = tn_sim_leave(device, st);
    if (st == TARN_OK && tn_always(to && from)) {
        memmove(to, from, copy->size);
    }
    return st;
}
