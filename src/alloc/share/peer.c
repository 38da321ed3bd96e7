/* SPDX-License-Identifier: MIT */
/* Implements tarn/peer.h. */
#include "tarn/peer.h"

#include "alloc/engine/allocator.h"
#include "alloc/engine/engine_forked.h"
#include "alloc/pool/expandable.h"
#include "alloc/pool/segment.h"

#include <string.h>

/* To the expandable segments. With the lock. */
static enum tarn_status grant_all(void *context, int ordinal, struct tarn_error *error)
{
    struct tn_heap *heap = context;
    enum tarn_status st = TARN_OK;

    for (struct tn_segment *s = tn_segment_first(heap); s && st == TARN_OK;
         s = tn_segment_next(s)) {
        if (s->expandable) {
            st = tn_expandable_grant(heap, s, ordinal, error);
        }
    }
    return st;
}

static enum tarn_status heap_add_peer(struct tn_engine *engine, int ordinal,
                                      struct tarn_error *error)
{
    tn_engine_lock(engine);
    const enum tarn_status st =
        tn_peers_add(&engine->heap.peers, ordinal, grant_all, &engine->heap, error);

    tn_engine_unlock(engine);
    return st;
}

enum tarn_status tarn_allocator_add_peer(struct tarn_allocator *allocator, int ordinal,
                                         struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    if (tn_fork_passed(&allocator->fork)) {
        return tn_forked_refuse(error);
    }
    if (ordinal == allocator->device->ordinal) {
        return TARN_OK;
    }
    if (tn_allocator_is_native(allocator)) { /* others have no expandable segments */
        st = heap_add_peer(tn_allocator_engine(allocator), ordinal, error);
    }
    return st ? st : tn_ipc_cache_add_peer(&allocator->opened, ordinal, error);
}

static uint64_t ordinal_bit(int ordinal)
{
    return (uint64_t)1 << (ordinal % TN_PEERS_MAX);
}

/* Asks the hardware and, if it can, the driver for access to plain memory. The answer is kept. */
static enum tarn_status peer_ask(struct tarn_allocator *allocator, struct tarn_device *peer,
                                 bool *reaches_out, struct tarn_error *error)
{
    struct tarn_device *device = allocator->device;
    const uint64_t bit = ordinal_bit(peer->ordinal);
    enum tarn_status st = TARN_OK;

    if (atomic_load(&allocator->peers_asked) & bit) {
        *reaches_out = (atomic_load(&allocator->peers_reached) & bit) != 0;
        return TARN_OK;
    }
    st = device->ops->peer_reaches(device, peer, reaches_out);
    if (st == TARN_OK && *reaches_out) {
        st = device->ops->peer_enable(device, peer);
    }
    if (st) {
        return tn_device_failed(device, st, "requesting access to a peer", error);
    }
    atomic_fetch_or(&allocator->peers_reached, *reaches_out ? bit : 0);
    atomic_fetch_or(&allocator->peers_asked, bit);
    return TARN_OK;
}

/* Gives a device access to the allocator's expandable segments, once. */
static enum tarn_status peer_let_in(struct tarn_allocator *allocator, int ordinal,
                                    struct tarn_error *error)
{
    const uint64_t bit = ordinal_bit(ordinal);

    if (atomic_load(&allocator->peers_let_in) & bit) {
        return TARN_OK;
    }
    const enum tarn_status st = tarn_allocator_add_peer(allocator, ordinal, error);

    if (st == TARN_OK) {
        atomic_fetch_or(&allocator->peers_let_in, bit);
    }
    return st;
}

enum tarn_status tarn_allocator_reach_peer(struct tarn_allocator *allocator,
                                           struct tarn_allocator *peer, bool *reaches_out,
                                           struct tarn_error *error)
{
    const struct tarn_device *own = allocator->device;
    bool reaches = true;

    if (tn_fork_passed(&allocator->fork) || tn_fork_passed(&peer->fork)) {
        return tn_forked_refuse(error);
    }
    if (strcmp(own->ops->name, peer->device->ops->name) != 0) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "a device of kind %s cannot reach one of kind %s", own->ops->name,
                       peer->device->ops->name);
    }
    if (own->ordinal != peer->device->ordinal) {
        enum tarn_status st = peer_ask(allocator, peer->device, &reaches, error);

        if (st == TARN_OK && reaches) {
            st = peer_let_in(peer, own->ordinal, error);
        }
        if (st) {
            return st;
        }
    }
    *reaches_out = reaches;
    return TARN_OK;
}

bool tarn_allocator_has_expandable_segments(struct tarn_allocator *allocator)
{
    struct tn_engine *engine;
    bool found = false;

    if (!tn_allocator_is_native(allocator)) {
        return false;
    }
    engine = tn_allocator_engine(allocator);
    tn_engine_lock_for(engine, TN_FLUSH_BLOCKS);
    for (const struct tn_segment *s = tn_segment_first(&engine->heap); s && !found;
         s = tn_segment_next(s)) {
        found = s->expandable != NULL;
    }
    tn_engine_unlock(engine);
    return found;
}

enum tarn_copy_kind tarn_allocator_choose_copy(struct tarn_allocator *destination,
                                               struct tarn_allocator *source, bool peer_access)
{
    if (!destination || !source || peer_access ||
        destination->device->ordinal == source->device->ordinal ||
        (!tarn_allocator_has_expandable_segments(destination) &&
         !tarn_allocator_has_expandable_segments(source))) {
        return TARN_COPY_PLAIN;
    }
    return TARN_COPY_PEER;
}
