/* SPDX-License-Identifier: MIT */
/*
 * The simulated device: one struct and one lock for everything. Each function of the table enters
 * (takes the lock, counts the call, checks the failure plan), does its work through the parts
 * (space, streams, virtual memory, pool) and leaves. Parts fail before they change anything.
 *
 * Memory is charged while it exists: plain allocations by their exact size, physical pages, and the
 * units of the stream-ordered pool. Freeing plain memory does not advance the clock, although
 * cudaFree waits for the device: callers only free memory that no stream still uses.
 *
 * Locks: `lock` guards all fields except `base`, `id`, `backed` and `memory`, which never change,
 * and `fork`. In a forked child every call fails before it takes the lock.
 */
#ifndef TN_DEVICE_SIM_DEVICE_H
#define TN_DEVICE_SIM_DEVICE_H

#include "base/biased_lock.h"
#include "base/map.h"
#include "base/os_fork.h"
#include "device/device_ops.h"
#include "device/sim_fault.h"
#include "device/sim_space.h"
#include "device/sim_stream.h"

/* Virtual memory (sim_vmm.c): physical pages by number, mappings by address. Mappings never overlap
 * and each lies inside one reservation; a page counts its mappings. */
struct tn_sim_vmm {
    struct tn_tree pages;
    struct tn_tree mappings;
    struct sim_mapping *spare; /* records to use again, or NULL */
    tn_page_handle last_page;  /* numbers are never reused */
};

/* A block of the pool, allocated or free. */
struct tn_sim_pool_block {
    struct tn_tree_node by_address;
    struct tn_tree_node by_size; /* while free */
    struct tn_sim_range *chunk;
    uint64_t start;
    uint64_t size;
    uint64_t asked;            /* bytes, while allocated */
    tarn_stream stream;        /* that freed it; meaningless while allocated */
    struct tn_sim_point point; /* of the free; zero while allocated */
    bool used;
};

/* Stream-ordered pool (sim_async.c): every block by address; free ones also by size. */
struct tn_sim_pool {
    struct tn_tree blocks;
    struct tn_tree free;
    uint64_t reserved; /* bytes of units */
    uint64_t used;     /* requested bytes of allocated blocks */
    uint64_t reserved_peak;
    uint64_t used_peak;
};

/* Pinned host memory (sim_host.c): every allocation by its address. */
struct tn_sim_host {
    struct tn_map pieces; /* bytes, with the lowest bit set for registered memory */
};

struct tn_sim {
    struct tarn_device base; /* first: the table's functions get a pointer to it */
    struct tn_fork_watch fork;
    struct tn_biased_lock lock;
    uint64_t id; /* never used twice in a process */
    bool backed;
    struct tarn_device *memory; /* provides the memory, or NULL */
    bool explained;             /* the current call has set its error text */
    uint64_t failures;
    struct tn_sim_space space;
    struct tn_sim_streams streams;
    struct tn_sim_vmm vmm;
    struct tn_sim_pool pool;
    struct tn_sim_host host;
    struct tn_sim_faults faults;
};

extern const struct tn_device_ops tn_sim_ops;

static inline struct tn_sim *tn_sim_of(struct tarn_device *device)
{
    return TN_TREE_ENTRY(device, struct tn_sim, base);
}

/* The simulated device of a device; NULL if it is of another kind, or was created before a fork. */
struct tn_sim *tn_sim_from(struct tarn_device *device);

/* Starts a call: takes the lock and counts. Not TARN_OK when the call is planned to fail. In either
 * case the caller finishes with tn_sim_leave, which releases the lock and returns the status passed
 * to it. */
enum tarn_status tn_sim_enter(struct tarn_device *device, enum tarn_sim_call call);
enum tarn_status tn_sim_leave(struct tarn_device *device, enum tarn_status status);

/* Sets this thread's error text and returns `status`. */
enum tarn_status tn_sim_fail(struct tn_sim *sim, enum tarn_status status, const char *format, ...)
    TN_PRINTF(3, 4);

/* Fails with TARN_ERR_OUT_OF_MEMORY and its text. */
enum tarn_status tn_sim_fail_memory(struct tn_sim *sim, uint64_t wanted);

/* Allocates an address range, charges its memory and, on a backed device, provides host memory;
 * releases it, opened ranges included. For plain allocations and chunks of the pool. */
enum tarn_status tn_sim_memory_take(struct tn_sim *sim, enum tn_sim_kind kind, uint64_t size,
                                    struct tn_sim_range **range_out);
void tn_sim_memory_give(struct tn_sim *sim, struct tn_sim_range *range);

/* sim_memory.c: the same on the device that provides the memory. Without one, does nothing and sets
 * `*there_out` to 0. */
enum tarn_status tn_sim_there_alloc(struct tn_sim *sim, uint64_t size, tarn_ptr *there_out);
enum tarn_status tn_sim_there_free(struct tn_sim *sim, tarn_ptr there);
enum tarn_status tn_sim_there_reserve(struct tn_sim *sim, uint64_t size, tarn_ptr *there_out);
enum tarn_status tn_sim_there_release(struct tn_sim *sim, tarn_ptr there, uint64_t size);
enum tarn_status tn_sim_there_page_create(struct tn_sim *sim, uint64_t size,
                                          tn_page_handle *there_out);
enum tarn_status tn_sim_there_page_release(struct tn_sim *sim, tn_page_handle there);
enum tarn_status tn_sim_there_map(struct tn_sim *sim, tarn_ptr there, uint64_t size,
                                  tn_page_handle page);
enum tarn_status tn_sim_there_unmap(struct tn_sim *sim, tarn_ptr there, uint64_t size);
enum tarn_status tn_sim_there_copy(struct tarn_device *device, const struct tn_copy *copy,
                                   tarn_stream stream);

/* The work of each call, with the lock held; see device_ops.h. In sim_device.c, sim_vmm.c,
 * sim_ipc.c, sim_copy.c, sim_host.c and sim_async.c. */
#define TN_OP_DEVICE struct tn_sim *sim
#define TN_DEVICE_OP(NAME, name, purpose, parameters, arguments)                                   \
    enum tarn_status tn_sim_op_##name parameters;
#include "device/device_ops.def"
#undef TN_DEVICE_OP
#undef TN_OP_DEVICE

/* sim_copy.c: takes the locks of the devices itself, one after the other. */
enum tarn_status tn_sim_copy(struct tarn_device *device, const struct tn_copy *copy,
                             tarn_stream stream);

/* sim_vmm.c */
void tn_sim_vmm_init(struct tn_sim_vmm *vmm);
void tn_sim_vmm_fini(struct tn_sim *sim);
/* Whether every byte of [address, address + size) is mapped. */
bool tn_sim_vmm_covers(const struct tn_sim *sim, tarn_ptr address, uint64_t size);

/* The page's size and memory object (-1 = none); false when there is no such page. */
bool tn_sim_page_find(const struct tn_sim *sim, tn_page_handle page, uint64_t *size_out,
                      int *object_out);
/* Adds a page of another device's memory, which is not charged; takes ownership of the object.
 * False when host memory runs out. */
bool tn_sim_page_adopt(struct tn_sim *sim, uint64_t size, int object,
                       tn_page_handle *page_out) TN_MUST_CHECK;

/* sim_host.c */
void tn_sim_host_fini(struct tn_sim_host *host);

/* sim_async.c */
void tn_sim_pool_init(struct tn_sim_pool *pool);
void tn_sim_pool_fini(struct tn_sim *sim);
/* Whether one allocated block contains all of [address, address + size). */
bool tn_sim_pool_covers(const struct tn_sim *sim, tarn_ptr address, uint64_t size);

/* Adds every violated invariant of the device to `findings` and returns their number. Takes the
 * lock. */
uint64_t tn_sim_check(struct tn_sim *sim, struct tarn_findings *findings);

/* The parts of it that belong to the pool; the lock is held. */
uint64_t tn_sim_pool_check(const struct tn_sim *sim, struct tarn_findings *findings);

#endif
