/* SPDX-License-Identifier: MIT */
/*
 * The page of counters that a process shares: one file, PID.page, in a private folder. All numbers
 * are little-endian as on every system that tarn runs on, and at fixed places; a change of any of
 * them is a new version.
 *
 *   head    4 KiB: what the process is, and the two words by which a reader asks for new numbers
 *   slots   one per allocator: a generation, and two copies of a record (latch.h)
 *
 * A reader adds 1 to `asked` and wakes its sleepers; the process then publishes all records,
 * stores what it has answered in `answered`, and wakes those. A process that nobody asks does
 * nothing. Readers read the file and never touch a mapping, so that no writer can make them fault.
 */
#ifndef TN_ALLOC_WATCH_WATCH_PAGE_H
#define TN_ALLOC_WATCH_WATCH_PAGE_H

#include "tarn/stats.h"

#include <assert.h>
#include <stdatomic.h>

#define TN_PAGE_MAGIC "tarnpage"

enum {
    TN_PAGE_VERSION = 1,
    TN_PAGE_HEAD_SIZE = 4096,
    TN_PAGE_SLOTS = 16, /* allocators of a process */
    TN_PAGE_ROWS = 64,  /* streams and pools of an allocator */
    TN_PAGE_NAME_MAX = 64,
    TN_PAGE_BUS_ID_MAX = 32
};

struct tn_page_head {
    char magic[8];
    uint32_t version;
    uint32_t head_size;
    uint32_t slot_size;
    uint32_t slot_count;
    uint64_t process;
    uint64_t process_start; /* tn_os_process_start */
    uint64_t created_ns;    /* since 1970 */
    char program[TN_PAGE_NAME_MAX];
    char tarn_version[16];
    _Atomic uint32_t controlled; /* enum tn_control_state */
    uint32_t reserved;
    _Atomic uint32_t asked;
    _Atomic uint32_t answered;
    char bus_ids[TN_PAGE_SLOTS][TN_PAGE_BUS_ID_MAX]; /* PCI addresses of the slots' devices, written
                                                        before the slot is; "" = none. Early pages
                                                        of this version have zeros there */
};

static_assert(sizeof(struct tn_page_head) == 656, "the head is the same on every system");

enum tn_control_state {
    TN_CONTROL_OFF,
    TN_CONTROL_WANTED, /* but what takes requests is not in the process */
    TN_CONTROL_TAKEN   /* by a socket beside the page, PID.sock */
};

enum tn_slot_state {
    TN_SLOT_FREE,
    TN_SLOT_LIVE,
    TN_SLOT_CLOSED /* the allocator was destroyed; the numbers are its last */
};

/* A stream in a pool. */
struct tn_page_row {
    uint64_t pool_first; /* struct tarn_pool_id */
    uint64_t pool_second;
    uint64_t stream;
    uint64_t is_large;
    uint64_t segments;
    uint64_t reserved; /* bytes, as the following */
    uint64_t allocated;
    uint64_t active;
    uint64_t requested;
    uint64_t largest_free;
};

struct tn_page_oom {
    uint64_t time_ns; /* since 1970; 0: none yet */
    uint64_t requested;
    uint64_t rounded;
    uint64_t segment_size;
    uint64_t stream;
    uint64_t limit;
    uint64_t device_free;
    uint64_t device_total;
    uint64_t allocated;
    uint64_t reserved;
    uint64_t private_free;
    uint64_t rejected;
};

struct tn_page_record {
    uint64_t state;   /* enum tn_slot_state */
    uint64_t time_ns; /* of these numbers, since 1970 */
    int64_t device;
    uint64_t missed; /* times that the numbers could not be read, since they last could */
    char backend[16];
    char policy[16];
    uint64_t limit;
    uint64_t device_total;
    uint64_t device_free; /* when the device was last asked */
    uint64_t device_time_ns;
    int64_t by_pool[TARN_STAT_KINDS][TARN_STAT_POOLS][4]; /* current, peak, allocated, freed */
    int64_t retries;
    int64_t ooms;
    int64_t oom_rejections;
    int64_t waits; /* for all streams */
    int64_t device_allocs;
    int64_t device_frees;
    uint64_t page_size; /* of the compact policy, 0 under another */
    uint64_t pages_created;
    uint64_t pages_moved;
    uint64_t pages_kept;
    uint64_t pages_retired;
    uint64_t page_requests;
    uint64_t page_request_ns;
    uint64_t page_longest_ns;
    struct tn_page_oom oom;
    uint64_t rows_time_ns; /* rows are renewed less often; 0: never */
    uint64_t row_count;
    uint64_t rows_left_out;
    struct tn_page_row rows[TN_PAGE_ROWS];
};

enum {
    TN_RECORD_WORDS = sizeof(struct tn_page_record) / sizeof(uint64_t)
};

static_assert(sizeof(struct tn_page_record) == 6312, "the record is the same on every system");

/* One of two copies. */
struct tn_page_copy {
    _Atomic uint64_t generation;
    _Atomic uint64_t words[TN_RECORD_WORDS];
};

struct tn_page_slot {
    _Atomic uint64_t current; /* generation that is complete; its copy is current % 2. 0: none */
    struct tn_page_copy copies[2];
};

enum {
    TN_PAGE_SLOT_SIZE = sizeof(struct tn_page_slot),
    TN_PAGE_SIZE = TN_PAGE_HEAD_SIZE + TN_PAGE_SLOTS * TN_PAGE_SLOT_SIZE
};

#endif
