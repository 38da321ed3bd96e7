/* SPDX-License-Identifier: MIT */
/* The devices that have access to memory of another one, each once. Guarded by its owner. */
#ifndef TN_ALLOC_POOL_PEERS_H
#define TN_ALLOC_POOL_PEERS_H

#include "base/attr.h"
#include "tarn/status.h"

enum {
    TN_PEERS_MAX = 64
};

/* All zero is empty. */
struct tn_peers {
    int ordinals[TN_PEERS_MAX];
    unsigned count;
};

/* Gives the device access to everything that there is. */
typedef enum tarn_status tn_peer_grant(void *context, int ordinal, struct tarn_error *error);

/* Adds a device that has been granted access, unless it is there already. TARN_ERR_LIMIT beyond
 * TN_PEERS_MAX; after a failure, which may be that of `grant`, it is not there. */
enum tarn_status tn_peers_add(struct tn_peers *peers, int ordinal, tn_peer_grant *grant,
                              void *context, struct tarn_error *error) TN_MUST_CHECK;

#endif
