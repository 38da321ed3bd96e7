/* SPDX-License-Identifier: MIT */
#include "history/stack.h"

#include "base/assertion.h"
#include "base/os_code.h"
#include "base/os_stack.h"
#include "history/libunwind.h"
#include "tarn/history.h"

#include <stdbool.h>
#include <string.h>
#include <unwind.h>

enum {
    OWN_FRAMES_MAX = 32 /* of this library, between here and its caller */
};

/* What a frame pointer points to, on x86-64 and on aarch64. */
struct frame_record {
    const struct frame_record *outer;
    uintptr_t return_address;
};

/* Return addresses may be signed on aarch64: the signature is above the address. */
static uint64_t plain_address(uintptr_t address)
{
#if defined(__aarch64__)
    return address & 0xffffffffffffu;
#else
    return address;
#endif
}

#if defined(__SANITIZE_ADDRESS__)
#define NO_SANITIZE __attribute__((no_sanitize_address))
#elif defined(__clang__)
#define NO_SANITIZE __attribute__((no_sanitize("address", "memory")))
#else
#define NO_SANITIZE
#endif

/* Code ranges of recent return addresses: mostly the same two. */
struct known_code {
    struct tn_code_range last;
    struct tn_code_range other;
};

/* Whether the address is in code. Values read after a broken chain usually are not: the stack ends
 * there, instead of differing each time. */
static inline bool is_code(struct known_code *known, uintptr_t address)
{
    if (tn_likely(tn_code_range_has(&known->last, address))) {
        return true;
    }
    const struct tn_code_range other = known->other;

    known->other = known->last;
    if (tn_code_range_has(&other, address)) {
        known->last = other;
        return true;
    }
    return tn_os_code_find(address, &known->last);
}

TN_NOINLINE NO_SANITIZE size_t tn_stack_walk(uint64_t *addresses, size_t max, uint64_t *hash_io)
{
    const struct tn_os_stack stack = tn_os_stack_bounds();
    const struct frame_record *frame = __builtin_frame_address(0);
    uintptr_t low = (uintptr_t)frame;
    const struct tn_code_range own = tn_os_code_own();
    struct known_code known = {{0, 0}, {0, 0}};
    uint64_t hash = *hash_io;
    size_t count = 0;

    if (low - stack.low >= stack.end - stack.low) { /* not on the thread's own stack */
        if (max > 0) {
            addresses[count++] = plain_address((uintptr_t)__builtin_return_address(0));
            *hash_io = tn_stack_hash(hash, addresses[0]);
        }
        return count;
    }
    while (count < max && low % sizeof(uintptr_t) == 0 && low <= stack.end - sizeof *frame) {
        const uintptr_t outer = (uintptr_t)frame->outer;
        const uint64_t address = plain_address(frame->return_address);

        if (!is_code(&known, address)) {
            break;
        }
        if (count > 0 || !tn_code_range_has(&own, address)) {
            addresses[count++] = address;
            hash = tn_stack_hash(hash, address);
        }
        if (outer <= low) { /* outer frames have higher addresses */
            break;
        }
        low = outer;
        frame = (const struct frame_record *)outer;
    }
    *hash_io = hash;
    return count;
}

struct unwinding {
    uint64_t *addresses;
    size_t max;
    size_t count;
    uint64_t hash;
    struct tn_code_range own;
    bool begun; /* the first step is the calling function */
};

/* The next frame outwards; false at the end. */
static bool unwinding_add(struct unwinding *unwinding, uintptr_t found)
{
    const uint64_t address = plain_address(found);

    if (!unwinding->begun) {
        unwinding->begun = true;
        return true;
    }
    if (unwinding->count == unwinding->max || address == 0) {
        return false;
    }
    if (unwinding->count > 0 || !tn_code_range_has(&unwinding->own, address)) {
        unwinding->addresses[unwinding->count++] = address;
        unwinding->hash = tn_stack_hash(unwinding->hash, address);
    }
    return true;
}

static _Unwind_Reason_Code unwind_step(struct _Unwind_Context *context, void *argument)
{
    return unwinding_add(argument, (uintptr_t)_Unwind_GetIP(context)) ? _URC_NO_REASON
                                                                      : _URC_END_OF_STACK;
}

TN_NOINLINE size_t tn_stack_unwind(uint64_t *addresses, size_t max, uint64_t *hash_io)
{
    void *found[TARN_STACK_FRAMES_MAX + OWN_FRAMES_MAX];
    tn_libunwind_trace *trace = tn_libunwind_get();
    struct unwinding unwinding = {
        .addresses = addresses, .max = max, .hash = *hash_io, .own = tn_os_code_own()};

    tn_assert(max <= TARN_STACK_FRAMES_MAX);
    if (trace) {
        memset(found, 0, (max + OWN_FRAMES_MAX) * sizeof found[0]); /* for sanitizers */
        const int count = trace(found, (int)(max + OWN_FRAMES_MAX));

        for (int i = 0; i < count && unwinding_add(&unwinding, (uintptr_t)found[i]); i++) {
        }
    } else {
        (void)_Unwind_Backtrace(unwind_step, &unwinding);
    }
    *hash_io = unwinding.hash;
    return unwinding.count;
}
