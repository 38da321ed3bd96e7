/* SPDX-License-Identifier: MIT */
/*
 * Memory of other processes that an allocator has open: each shared segment, or run of pages, once,
 * with a use count. Closed with the last use, or with the allocator.
 *
 * A plain segment is a handle that the driver opened; pages are imported and mapped into an address
 * range of their own. Two messages describe the same memory if they have the same handle, or the
 * same descriptors of the same process. The size of that memory comes from the device, not from the
 * message, and what a message describes must lie in it.
 *
 * Invariants: a record is in both trees; uses >= 1.
 * Locks: `lock` (rank TN_LOCK_REGISTRY: no engine's lock is taken under it). The device is called
 * under it, as in PyTorch, so that two threads cannot open the same memory twice. Cost: O(log n)
 * and the device's work.
 */
#ifndef TN_ALLOC_ENGINE_IPC_CACHE_H
#define TN_ALLOC_ENGINE_IPC_CACHE_H

#include "alloc/engine/ipc_message.h"
#include "alloc/pool/peers.h"
#include "base/lock.h"
#include "base/tree.h"

struct tn_ipc_cache {
    struct tarn_device *device; /* constant */
    struct tn_lock lock;
    struct tn_tree by_name;
    struct tn_tree by_address;
    struct tn_peers peers; /* devices that have access to its pages */
};

void tn_ipc_cache_init(struct tn_ipc_cache *cache, struct tarn_device *device);

/* Closes everything. */
void tn_ipc_cache_fini(struct tn_ipc_cache *cache);

/* Opens what the message describes, or adds a use if it is open. *ptr_out is the allocation. */
enum tarn_status tn_ipc_cache_open(struct tn_ipc_cache *cache, const struct tn_ipc_content *content,
                                   tarn_ptr *ptr_out, struct tarn_error *error) TN_MUST_CHECK;

/* Ends one use of the memory that contains the address. */
enum tarn_status tn_ipc_cache_close(struct tn_ipc_cache *cache, tarn_ptr ptr,
                                    struct tarn_error *error) TN_MUST_CHECK;

/* Gives a device access to the pages that are open and to those that will be, once. The driver's
 * access to plain segments is not by segment. */
enum tarn_status tn_ipc_cache_add_peer(struct tn_ipc_cache *cache, int ordinal,
                                       struct tarn_error *error) TN_MUST_CHECK;

/* Adds every violated invariant to `findings`, returns how many. */
uint64_t tn_ipc_cache_check(struct tn_ipc_cache *cache, struct tarn_findings *findings);

#endif
