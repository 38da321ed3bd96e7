/* SPDX-License-Identifier: MIT */
/*
 * The simulated device's address space and capacity.
 *
 * A range is an allocated piece of address space: a plain allocation, a reservation for virtual
 * memory, a chunk of the stream-ordered pool, or an opened allocation of another process. A new
 * range gets the next scripted address of its kind if that is free, or else the lowest multiple of
 * TN_SIM_ALIGNMENT at or above the base where it fits. Charges (bytes of memory) are separate from
 * ranges: a reservation costs nothing, a physical page has no address.
 *
 * Ranges are a tree by address. Each knows the free gap before it and the largest usable gap in its
 * subtree, so finding the lowest fit and releasing are O(log n); releasing needs no host memory. A
 * record of size 0 at the end of the space owns the last gap.
 *
 * Invariants: ranges do not overlap; gap_start = end of the previous range (0 for the first);
 *   used + foreign <= capacity unless foreign memory was set later; used <= peak.
 * Locks: the device's.
 */
#ifndef TN_DEVICE_SIM_SPACE_H
#define TN_DEVICE_SIM_SPACE_H

#include "base/tree.h"
#include "tarn/status.h"

enum {
    TN_SIM_SCRIPT_MAX = 1 << 20
}; /* scripted addresses per queue */

#define TN_SIM_ALIGNMENT ((uint64_t)2 << 20) /* of addresses and virtual memory operations */
#define TN_SIM_SPACE_END ((uint64_t)1 << 57) /* as x86-64 with five-level pages */

enum tn_sim_kind {
    TN_SIM_PLAIN,
    TN_SIM_RESERVED,
    TN_SIM_POOL,
    TN_SIM_OPENED, /* an allocation of another process */
    TN_SIM_KIND_COUNT
};

struct tn_ipc_handle;

struct tn_sim_range {
    struct tn_tree_node node;
    uint64_t start;     /* first address */
    uint64_t size;      /* bytes, not rounded; 0 only in the end record */
    uint64_t gap_start; /* end of the previous range */
    uint64_t best_gap;  /* largest usable gap of the subtree, bytes */
    uint64_t floor;     /* the space's base: gaps below are not usable */
    enum tn_sim_kind kind;
    void *host;     /* backing memory of at least `size` bytes, or NULL; the device's */
    int object;     /* of plain and opened ranges with backing memory: its memory object */
    tarn_ptr there; /* address on the device that provides the memory, or 0 */
    struct tn_ipc_handle *opened; /* handle of an opened range; owned */
};

/* A FIFO queue of addresses. */
struct tn_sim_script {
    tarn_ptr *address; /* `capacity` slots */
    size_t head;       /* next to use */
    size_t count;      /* waiting, from head on */
    size_t capacity;
};

struct tn_sim_space {
    struct tn_tree ranges;
    uint64_t base;
    struct tn_sim_range end;
    struct tn_sim_script script[TN_SIM_KIND_COUNT];
    uint64_t scripted_skipped;
    tarn_ptr (*oracle)(void *context, bool reservation, uint64_t size); /* may be NULL */
    void *oracle_context;
    uint64_t live[TN_SIM_KIND_COUNT]; /* ranges of each kind */
    uint64_t capacity;
    uint64_t foreign; /* bytes of other processes */
    uint64_t used;
    uint64_t peak;
};

/* `base` is a multiple of TN_SIM_ALIGNMENT and below TN_SIM_SPACE_END. */
void tn_sim_space_init(struct tn_sim_space *space, uint64_t base, uint64_t capacity);

/* Frees all records; backing memory must have been released. */
void tn_sim_space_fini(struct tn_sim_space *space);

/* Allocates a range of `size` > 0 bytes. *range_out is borrowed until its release. Fails with
 * TARN_ERR_OUT_OF_MEMORY when no gap is large enough and with TARN_ERR_HOST_MEMORY. */
enum tarn_status tn_sim_space_take(struct tn_sim_space *space, enum tn_sim_kind kind, uint64_t size,
                                   struct tn_sim_range **range_out);
void tn_sim_space_give(struct tn_sim_space *space, struct tn_sim_range *range);

/* The range that contains the address, or NULL. */
struct tn_sim_range *tn_sim_space_find(const struct tn_sim_space *space, uint64_t address);

/* The range of that kind that starts at the address, or NULL. */
struct tn_sim_range *tn_sim_space_find_start(const struct tn_sim_space *space, uint64_t address,
                                             enum tn_sim_kind kind);

/* The ranges by address; NULL at the end. */
struct tn_sim_range *tn_sim_space_first(const struct tn_sim_space *space);
struct tn_sim_range *tn_sim_space_next(const struct tn_sim_space *space,
                                       const struct tn_sim_range *range);

/* Appends an address to the kind's queue. */
enum tarn_status tn_sim_space_script(struct tn_sim_space *space, enum tn_sim_kind kind,
                                     tarn_ptr address);
void tn_sim_space_script_clear(struct tn_sim_space *space);

/* Charges bytes of memory; false, changing nothing, if there are not enough. */
bool tn_sim_space_charge(struct tn_sim_space *space, uint64_t bytes);
void tn_sim_space_refund(struct tn_sim_space *space, uint64_t bytes);

/* Bytes that can still be charged. */
uint64_t tn_sim_space_room(const struct tn_sim_space *space);

/* Adds every violated invariant to `findings`, returns how many. O(n). */
uint64_t tn_sim_space_check(const struct tn_sim_space *space, struct tarn_findings *findings);

#endif
