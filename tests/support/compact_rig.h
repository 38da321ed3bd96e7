/* SPDX-License-Identifier: MIT */
/* What the tests of the compact policy have in common. */
#ifndef TESTS_SUPPORT_COMPACT_RIG_H
#define TESTS_SUPPORT_COMPACT_RIG_H

#include "support/any_stream.h"
#include "support/test.h"

#include "support/rig.h"
#include "tarn/ipc.h"
#include "tarn/pages.h"

#define COMPACT "policy:compact"

static inline uint64_t reserved(struct rig *rig)
{
    return (uint64_t)rig_now(rig, TARN_STAT_RESERVED_BYTES);
}

static inline uint64_t moved(struct rig *rig)
{
    return rig_engine(rig->allocator)->compact.pages_moved;
}

/* A hole of 30 MiB with 2 MiB in use behind it. */
static inline tarn_ptr leave_hole(struct rig *rig, tarn_stream stream)
{
    const tarn_ptr hole = rig_alloc(rig, 30 * MIB, stream);

    (void)rig_alloc(rig, 2 * MIB, stream);
    rig_free(rig, hole);
    return hole;
}

static inline bool only_stream_1(void *context, tarn_stream stream)
{
    (void)context;
    return stream == 1;
}

static inline uint64_t device_waits(struct rig *rig)
{
    return sim_counters(rig->device).calls[TARN_SIM_STREAM_WAIT_EVENT];
}

/* Old addresses of 32 MiB, `first` and 42 MiB live, and `left` are free. The stream is blocked. */
static inline void fall_behind_with(struct rig *rig, uint64_t first, uint64_t left)
{
    (void)rig_alloc(rig, first, 0);
    const tarn_ptr hole = rig_alloc(rig, 32 * MIB, 0);

    (void)rig_alloc(rig, 2 * MIB, 0);
    assert_int_equal(tarn_sim_block_stream(rig->device, 0), TARN_OK);
    rig_free(rig, hole);
    (void)rig_alloc(rig, 40 * MIB, 0);
    assert_int_equal(moved(rig), 16);
    const tarn_ptr last = rig_alloc(rig, left, 0);

    (void)rig_alloc(rig, 2 * MIB, 0);
    rig_free(rig, last);
    assert_int_equal(reserved(rig), first + 44 * MIB + left);
}

static inline void take_turns(struct rig *rig, int times)
{
    for (int i = 0; i < times; i++) {
        rig_free(rig, rig_alloc(rig, 40 * MIB, 1));
        rig_free(rig, rig_alloc(rig, 40 * MIB, 2));
    }
}

static const struct tn_device_ops *usual_ops;
static uint64_t clock_ns; /* of the slow device */

static inline uint64_t clock_now_ns(struct tarn_device *device)
{
    (void)device;
    return clock_ns;
}

static inline enum tarn_status map_slowly(struct tarn_device *device, tarn_ptr address,
                                          uint64_t size, tn_page_handle page)
{
    clock_ns += 1000000;
    return usual_ops->map(device, address, size, page);
}

/* A hole whose first half has lost its pages. Returns its address. */
static inline tarn_ptr leave_half_a_hole(struct rig *rig)
{
    (void)rig_alloc(rig, 2 * MIB, 0);
    const tarn_ptr first = rig_alloc(rig, 8 * MIB, 0);
    const tarn_ptr second = rig_alloc(rig, 8 * MIB, 0);

    (void)rig_alloc(rig, 2 * MIB, 0);
    rig_free(rig, first);
    (void)rig_alloc(rig, 30 * MIB, 0);
    assert_int_equal(moved(rig), 4);
    (void)rig_alloc(rig, 20 * MIB, 0); /* the old addresses are unmapped */
    rig_free(rig, second);
    return first;
}

/* As if much had moved: nothing may for a second. */
static inline void spend_time(struct rig *rig)
{
    rig_engine(rig->allocator)->heap.tidy_from_ns = tarn_sim_now_ns(rig->device) + 1000000000;
}

static inline struct tarn_page_stats pages_of(struct rig *rig)
{
    struct tarn_page_stats pages = {.struct_size = sizeof pages};

    tarn_allocator_get_page_stats(rig->allocator, &pages);
    return pages;
}

static inline void share(struct rig *rig, tarn_ptr ptr)
{
    unsigned char message[1024];
    size_t length = 0;

    assert_int_equal(
        tarn_ipc_export(rig->allocator, ptr, message, sizeof message, &length, &rig->error),
        TARN_OK);
}

/* 15 pages of the stream, which is blocked, and five new ones are kept after a failure. */
static inline void keep_pages(struct rig *rig, tarn_stream stream)
{
    tarn_ptr ptr = 0;

    (void)leave_hole(rig, stream);
    assert_int_equal(tarn_sim_block_stream(rig->device, stream), TARN_OK);
    tarn_sim_fail_nth(rig->device, TARN_SIM_MAP, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_alloc(rig->allocator, 40 * MIB, stream, &ptr, NULL),
                     TARN_ERR_DEVICE);
    assert_int_equal(pages_of(rig).kept, 20);
}

#endif
