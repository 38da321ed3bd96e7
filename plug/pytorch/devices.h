/* SPDX-License-Identifier: MIT */
/* The allocators of the process, one per device, created on first use. Any thread. */
#ifndef PLUG_PYTORCH_DEVICES_H
#define PLUG_PYTORCH_DEVICES_H

#include "plug/pytorch/plug.h"
#include "tarn/graph_pool.h"

#include <atomic>
#include <functional>

namespace tarn_torch
{

struct Device {
    std::atomic<tarn_allocator *> allocator; /* null: not opened yet; then constant */
    std::atomic<tarn_history *> history;     /* null: never recorded; then constant */
    tarn_device *device;                     /* null: none yet */
};

extern Device devices[TARN_TORCH_DEVICES_MAX];

/* Called for a device that has just got its allocator and is not in use yet; may fail. Set it
 * before the first device is opened. */
extern tarn_status (*on_open)(int ordinal, tarn_allocator *allocator, tarn_error *error);

/* Fills *error, which may be null; returns its status. */
tarn_status fail(tarn_error *error, tarn_status status, const char *text);

/* Keeps a failure, if it is one, for tarn_torch_last_error. */
void note(tarn_status status, const tarn_error &error);

/* torch tells captures from other uses of a pool (2.13 and newer, the class). Otherwise any use may
 * be one. */
extern bool announces_captures;

/* A capture or a torch.cuda.use_mem_pool begins or ends: as tarn_allocator_begin_pool and its
 * counterpart. The filter, which must not throw, is kept until then. */
using Filter = std::function<bool(void *)>;
tarn_status begin_pool(int ordinal, tarn_pool_id id, Filter filter, tarn_error *error);
tarn_status end_pool(int ordinal, tarn_pool_id id, tarn_error *error);

inline tarn_ptr ptr_of(const void *ptr)
{
    return reinterpret_cast<tarn_ptr>(ptr);
}

inline void *pointer_of(tarn_ptr ptr)
{
    return reinterpret_cast<void *>(ptr);
}

inline tarn_allocator *find_allocator(int ordinal)
{
    return ordinal >= 0 && ordinal < TARN_TORCH_DEVICES_MAX
               ? devices[ordinal].allocator.load(std::memory_order_acquire)
               : nullptr;
}

/* Calls `action(ordinal, allocator)` for each device with an allocator, until it fails. */
template <class Action> tarn_status each_open(Action action)
{
    tarn_status status = TARN_OK;

    for (int i = 0; i < TARN_TORCH_DEVICES_MAX && status == TARN_OK; i++) {
        tarn_allocator *const allocator = find_allocator(i);

        status = allocator ? action(i, allocator) : TARN_OK;
    }
    return status;
}

/*
 * The device whose allocator a pointer came from. With one device in use that is the one. With
 * several, each allocation leaves its device's number in a table indexed by the 2 MiB of address
 * space that it begins in, which no two devices share. The table only tells where to try first: an
 * address that collides with another is found by trying all.
 */
extern std::atomic<signed char> hints[1 << 16];

inline std::atomic<signed char> &hint_of(tarn_ptr ptr)
{
    return hints[(ptr >> 21) & 0xffff];
}

inline void leave_hint(tarn_ptr ptr, int ordinal)
{
    std::atomic<signed char> &hint = hint_of(ptr);

    if (hint.load(std::memory_order_relaxed) != ordinal) {
        hint.store(static_cast<signed char>(ordinal), std::memory_order_relaxed);
    }
}

/* Calls `function(allocator, ptr, arguments..., error)` for the likely owner, then for the others,
 * until the status is not TARN_ERR_INVALID_POINTER. */
template <class Function, class... Arguments>
tarn_status on_owner(tarn_error *error, Function function, tarn_ptr ptr, Arguments... arguments)
{
    tarn_allocator *const first = find_allocator(hint_of(ptr).load(std::memory_order_relaxed));
    tarn_status status =
        first ? function(first, ptr, arguments..., error)
              : fail(error, TARN_ERR_INVALID_POINTER, "the pointer was not allocated by tarn");

    for (int i = 0; status == TARN_ERR_INVALID_POINTER && i < TARN_TORCH_DEVICES_MAX; i++) {
        tarn_allocator *const other = find_allocator(i);

        if (other && other != first) {
            status = function(other, ptr, arguments..., error);
        }
    }
    return status;
}

} // namespace tarn_torch

#endif
