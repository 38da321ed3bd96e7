/* SPDX-License-Identifier: MIT */
/* Implements tarn/peer.h. */
#include "tarn/peer.h"

#include "alloc/allocator.h"
#include "alloc/expandable.h"
#include "alloc/segment.h"

static bool engine_has_peer(const struct tn_engine *engine, int ordinal)
{
    for (unsigned i = 0; i < engine->peer_count; i++) {
        if (engine->peers[i] == ordinal) {
            return true;
        }
    }
    return ordinal == engine->device->ordinal;
}

static enum tarn_status peer_grant_all(struct tn_engine *engine, int ordinal,
                                       struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    for (struct tn_segment *s = tn_segment_first(engine); s && st == TARN_OK;
         s = tn_segment_next(s)) {
        if (s->expandable) {
            st = tn_expandable_grant(engine, s, ordinal, error);
        }
    }
    return st;
}

enum tarn_status tarn_allocator_add_peer(struct tarn_allocator *allocator, int ordinal,
                                         struct tarn_error *error)
{
    struct tn_engine *engine;
    enum tarn_status st = TARN_OK;

    if (!tn_allocator_is_native(allocator)) {
        return TARN_OK; /* it has no growing segments */
    }
    engine = tn_allocator_engine(allocator);
    tn_engine_lock(engine);
    if (!engine_has_peer(engine, ordinal)) {
        st = engine->peer_count < TN_PEERS_MAX
                 ? peer_grant_all(engine, ordinal, error)
                 : tn_fail(error, TARN_ERR_LIMIT, "an allocator takes at most %d peers",
                           TN_PEERS_MAX);
        if (st == TARN_OK) {
            engine->peers[engine->peer_count++] = ordinal;
        }
    }
    tn_engine_unlock(engine);
    return st;
}

bool tarn_allocator_has_growing_segments(struct tarn_allocator *allocator)
{
    struct tn_engine *engine;
    bool found = false;

    if (!tn_allocator_is_native(allocator)) {
        return false;
    }
    engine = tn_allocator_engine(allocator);
    tn_engine_lock_to_look(engine);
    for (const struct tn_segment *s = tn_segment_first(engine); s && !found;
         s = tn_segment_next(s)) {
        found = s->expandable != NULL;
    }
    tn_engine_unlock(engine);
    return found;
}

enum tarn_copy_kind tarn_allocator_choose_copy(struct tarn_allocator *destination,
                                               struct tarn_allocator *source, bool peer_access)
{
    if (peer_access || destination->device->ordinal == source->device->ordinal ||
        (!tarn_allocator_has_growing_segments(destination) &&
         !tarn_allocator_has_growing_segments(source))) {
        return TARN_COPY_PLAIN;
    }
    return TARN_COPY_PEER;
}
