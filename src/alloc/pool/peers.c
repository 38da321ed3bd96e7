/* SPDX-License-Identifier: MIT */
#include "alloc/pool/peers.h"

#include "base/errinfo.h"

#include <stdbool.h>

static bool has(const struct tn_peers *peers, int ordinal)
{
    for (unsigned i = 0; i < peers->count; i++) {
        if (peers->ordinals[i] == ordinal) {
            return true;
        }
    }
    return false;
}

enum tarn_status tn_peers_add(struct tn_peers *peers, int ordinal, tn_peer_grant *grant,
                              void *context, struct tarn_error *error)
{
    if (has(peers, ordinal)) {
        return TARN_OK;
    }
    if (peers->count == TN_PEERS_MAX) {
        return tn_fail(error, TARN_ERR_LIMIT, "an allocator takes at most %d peers", TN_PEERS_MAX);
    }
    const enum tarn_status st = grant(context, ordinal, error);

    if (st == TARN_OK) {
        peers->ordinals[peers->count++] = ordinal;
    }
    return st;
}
