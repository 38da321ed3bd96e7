/* SPDX-License-Identifier: MIT */
/*
 * Memory of any device. While one is open, it is that one's. Otherwise each allocation leaves its
 * device's number in a table indexed by the 2 MiB of address space that it begins in, which no two
 * devices share. The table only tells where to look first: for an address that collides with
 * another, all are asked.
 */
#include "devices/devices.h"

#include "alloc/engine/allocator.h"

static _Atomic(int8_t) *hint_of(struct tarn_devices *devices, tarn_ptr ptr)
{
    return &devices->hints[(ptr >> 21) % TN_HINTS];
}

/* Mostly written once and then read by all threads. */
static void hint_leave(struct tarn_devices *devices, tarn_ptr ptr, int number)
{
    _Atomic(int8_t) *hint = hint_of(devices, ptr);

    if (atomic_load_explicit(hint, memory_order_relaxed) != number) {
        atomic_store_explicit(hint, (int8_t)number, memory_order_relaxed);
    }
}

static struct tarn_allocator *owner_guess(struct tarn_devices *devices, tarn_ptr ptr)
{
    return tn_devices_at(devices,
                         atomic_load_explicit(hint_of(devices, ptr), memory_order_relaxed));
}

/* The only open device's, or NULL. Never stale for memory of another device: whoever has a pointer
 * to such memory has seen that device being opened. */
static struct tarn_allocator *only_allocator(struct tarn_devices *devices)
{
    return atomic_load_explicit(&devices->only, memory_order_relaxed);
}

/* The number of an open device. */
static int number_of(struct tarn_devices *devices, const struct tarn_allocator *allocator)
{
    int number = 0;

    while (tn_devices_at(devices, number) != allocator) {
        number++;
    }
    return number;
}

void tn_devices_add_owner(struct tarn_devices *devices, struct tarn_allocator *allocator)
{
    const struct tarn_allocator *first = only_allocator(devices);

    if (first) { /* what is allocated until now is that one's */
        const int number = number_of(devices, first);

        for (int i = 0; i < TN_HINTS; i++) {
            atomic_store_explicit(&devices->hints[i], (int8_t)number, memory_order_relaxed);
        }
    }
    atomic_store_explicit(&devices->only, atomic_load(&devices->open_count) == 0 ? allocator : NULL,
                          memory_order_relaxed);
}

/* The first allocation on a device. */
static TN_COLD enum tarn_status alloc_first(struct tarn_devices *devices, int number, uint64_t size,
                                            tarn_stream stream, tarn_ptr *ptr_out,
                                            struct tarn_error *error)
{
    struct tarn_allocator *allocator = NULL;
    const enum tarn_status st = tarn_devices_open(devices, number, &allocator, error);

    return st ? st : tarn_devices_alloc(devices, number, size, stream, ptr_out, error);
}

/* Several devices are open, or none, or not this one. Apart, so that tarn_devices_alloc saves no
 * registers. */
static TN_NOINLINE enum tarn_status alloc_on_any(struct tarn_devices *devices, int number,
                                                 uint64_t size, tarn_stream stream,
                                                 tarn_ptr *ptr_out, struct tarn_error *error)
{
    struct tarn_allocator *allocator = tarn_devices_find(devices, number);

    if (!allocator) {
        return alloc_first(devices, number, size, stream, ptr_out, error);
    }
    const enum tarn_status st = tn_allocator_alloc(allocator, size, stream, ptr_out, error);

    if (tn_likely(st == TARN_OK)) {
        hint_leave(devices, *ptr_out, number);
    }
    return st;
}

enum tarn_status tarn_devices_alloc(struct tarn_devices *devices, int number, uint64_t size,
                                    tarn_stream stream, tarn_ptr *ptr_out, struct tarn_error *error)
{
    struct tarn_allocator *allocator = only_allocator(devices);

    if (tn_unlikely(!allocator || !tn_devices_has(number) ||
                    tn_devices_at(devices, number) != allocator)) {
        return alloc_on_any(devices, number, size, stream, ptr_out, error);
    }
    return tn_allocator_alloc(allocator, size, stream, ptr_out, error);
}

/* The guess was wrong. */
static TN_COLD enum tarn_status free_elsewhere(struct tarn_devices *devices, tarn_ptr ptr,
                                               const struct tarn_allocator *guess,
                                               struct tarn_error *error)
{
    enum tarn_status st = TARN_ERR_INVALID_POINTER;

    for (int i = 0; st == TARN_ERR_INVALID_POINTER && i < TARN_DEVICES_MAX; i++) {
        struct tarn_allocator *other = tn_devices_at(devices, i);

        if (other && other != guess) {
            st = tarn_allocator_free(other, ptr, error);
        }
    }
    return st;
}

/* No device is open. */
static enum tarn_status refuse(struct tarn_error *error)
{
    return tn_fail(error, TARN_ERR_INVALID_POINTER, "the pointer was not allocated by tarn");
}

/* Several devices are open, or none. Apart, as alloc_on_any. */
static TN_NOINLINE enum tarn_status free_on_any(struct tarn_devices *devices, tarn_ptr ptr,
                                                struct tarn_error *error)
{
    struct tarn_allocator *guess = owner_guess(devices, ptr);
    const enum tarn_status st = guess ? tn_allocator_free(guess, ptr, error) : refuse(error);

    return tn_likely(st != TARN_ERR_INVALID_POINTER) ? st
                                                     : free_elsewhere(devices, ptr, guess, error);
}

enum tarn_status tarn_devices_free(struct tarn_devices *devices, tarn_ptr ptr,
                                   struct tarn_error *error)
{
    struct tarn_allocator *only = only_allocator(devices);

    return tn_likely(only != NULL) ? tn_allocator_free(only, ptr, error)
                                   : free_on_any(devices, ptr, error);
}

static bool owns(struct tarn_allocator *allocator, tarn_ptr ptr)
{
    uint64_t size = 0;

    return tarn_allocator_block_size(allocator, ptr, &size, NULL) != TARN_ERR_INVALID_POINTER;
}

static struct tarn_allocator *owner_find(struct tarn_devices *devices, tarn_ptr ptr)
{
    struct tarn_allocator *only = only_allocator(devices);
    struct tarn_allocator *guess = only ? only : owner_guess(devices, ptr);

    if (only || (guess && owns(guess, ptr))) {
        return guess;
    }
    for (int i = 0; i < TARN_DEVICES_MAX; i++) {
        struct tarn_allocator *other = tn_devices_at(devices, i);

        guess = guess ? guess : other;
        if (other && owns(other, ptr)) {
            return other;
        }
    }
    return guess;
}

enum tarn_status tarn_devices_find_owner(struct tarn_devices *devices, tarn_ptr ptr,
                                         struct tarn_allocator **owner_out,
                                         struct tarn_error *error)
{
    *owner_out = owner_find(devices, ptr);
    return *owner_out ? TARN_OK : refuse(error);
}
