/* SPDX-License-Identifier: MIT */
/*
 * What cuda_event.c keeps of a GPU's events. Whether one is done is a question to the driver that
 * takes a quarter of a microsecond, and while blocks wait for other streams the allocator asks
 * before each allocation, because its next decision depends on the answer. So an event that is
 * asked often gets a *flag*: a word of pinned host memory into which the stream writes a number as
 * soon as the event is done.
 * Asking then reads the word. To queue that write costs the host a microsecond for each recording,
 * so only while events are asked more than TN_CUDA_FLAG_WORTH times on average do they get flags
 * (`balance`), and at first.
 *
 * A flag is never early, and not late for anybody who could tell: it is set before any work that
 * was queued on the stream after the event is done, and before a wait for the stream returns. An
 * error of the device never sets it, so every TN_CUDA_ASK_DRIVER-th question goes to the driver,
 * and so do all about an event that is recorded again while its last write is still queued.
 *
 * Owns: the events of a device, in slots that never move, and the memory of the flags, both until
 * the device is closed; an event that is not destroyed before goes with it. A slot keeps its flag
 * for good, and slots beyond the last flag have none. `lock` (TN_LOCK_DEVICE) guards which slots
 * are used; one event is used by one thread at a time.
 */
#ifndef TN_DEVICE_CUDA_EVENT_SLOTS_H
#define TN_DEVICE_CUDA_EVENT_SLOTS_H

#include "base/lock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    TN_CUDA_FLAGS = 1024,
    TN_CUDA_FLAG_WORTH = 5,   /* questions that cost as much as one write */
    TN_CUDA_FLAGS_TRIED = 4,  /* recordings that get flags before anything is known */
    TN_CUDA_ASK_DRIVER = 256, /* one in so many questions goes to the driver */
    TN_CUDA_BALANCE_MAX = 256,
    TN_CUDA_EVENTS_FIRST = 64, /* slots of the first chunk; each further one doubles their number */
    TN_CUDA_EVENT_CHUNKS = 26
};

/* A slot; its number + 1 is the handle. */
struct tn_cuda_event {
    uint64_t driver;    /* the driver's event; 0: the slot is not used */
    uint32_t next_free; /* of an unused slot: the next one's handle, 0 = none */
    uint32_t written;   /* the last number that was queued for the flag */
    uint32_t asked;     /* answered "not ready" since it was recorded */
    bool flagged;       /* the last recording sets the flag */
    bool counted;       /* the last recording is in the balance, or there is none */
};

struct tn_cuda_events {
    struct tn_lock lock;
    struct tn_cuda_event *chunks[TN_CUDA_EVENT_CHUNKS + 1]; /* the last is always NULL */
    _Atomic uint32_t slot_count;     /* in the chunks, all of them once used */
    uint32_t first_free;             /* handle of an unused slot, 0 = none */
    atomic_int balance;              /* positive: flags pay */
    bool flags_tried;                /* they are tried once; guarded by the lock, as is the next */
    uint64_t address;                /* of the flags, for the GPU */
    _Atomic uint32_t *_Atomic flags; /* NULL: none yet */
};

#endif
