/* SPDX-License-Identifier: MIT */
/*
 * An allocator on a simulated device of its own, for tests of the allocator. Closing checks every
 * invariant and that all memory of the device and the host went back. Include after
 * support/test.h. Link alloc, base, device and history.
 */
#ifndef TESTS_SUPPORT_RIG_H
#define TESTS_SUPPORT_RIG_H

#include "alloc/engine/allocator.h"
#include "support/sim.h"
#include "tarn/allocator.h"

#include <string.h>

struct rig {
    struct tarn_device *device;
    struct tarn_allocator *allocator;
    struct tarn_error error; /* of the last call that failed */
    uint64_t host_bytes;     /* live before it was opened */
};

/* The only place that knows where an allocator keeps its engine. */
static inline struct tn_engine *rig_engine(struct tarn_allocator *allocator)
{
    return tn_allocator_engine(allocator);
}

static inline void rig_open_with(struct rig *rig, struct tarn_sim_options options, const char *conf)
{
    struct tarn_config config;

    *rig = (struct rig){.host_bytes = tarn_host_get_usage().live_bytes};
    rig->device = sim_open_with(options);
    assert_int_equal(tarn_config_parse(conf, &config, &rig->error), TARN_OK);
    assert_int_equal(tarn_allocator_create(rig->device, &config, &rig->allocator, &rig->error),
                     TARN_OK);
}

/* A device with `capacity` bytes whose events complete at once, unless streams are blocked. */
static inline void rig_open(struct rig *rig, uint64_t capacity, const char *conf)
{
    rig_open_with(rig, (struct tarn_sim_options){.capacity = capacity}, conf);
}

/* The same with events that complete only when told. */
static inline void rig_open_manual(struct rig *rig, uint64_t capacity, const char *conf)
{
    rig_open_with(rig, (struct tarn_sim_options){.capacity = capacity, .manual_events = true},
                  conf);
}

static inline void rig_check(struct rig *rig)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    if (tarn_allocator_check(rig->allocator, &findings) != 0) {
        fail_msg("%s", findings.text[0]);
    }
}

static inline void rig_close(struct rig *rig)
{
    rig_check(rig);
    tarn_allocator_destroy(rig->allocator);
    const struct tarn_sim_counters left = sim_counters(rig->device);

    assert_int_equal(left.used_bytes, 0);
    assert_int_equal(left.live_allocations, 0);
    assert_int_equal(left.live_pages, 0);
    assert_int_equal(left.live_mappings, 0);
    assert_int_equal(left.live_reservations, 0);
    assert_int_equal(left.live_events, 0);
    sim_close(rig->device);
    assert_int_equal(tarn_host_get_usage().live_bytes, rig->host_bytes);
}

static inline tarn_ptr rig_alloc(struct rig *rig, uint64_t size, tarn_stream stream)
{
    tarn_ptr ptr = 0;

    if (tarn_allocator_alloc(rig->allocator, size, stream, &ptr, &rig->error) != TARN_OK) {
        fail_msg("%s", rig->error.text);
    }
    return ptr;
}

/* An allocation that must fail for want of device memory. */
static inline void rig_alloc_oom(struct rig *rig, uint64_t size, tarn_stream stream)
{
    tarn_ptr ptr = 0x123;

    assert_int_equal(tarn_allocator_alloc(rig->allocator, size, stream, &ptr, &rig->error),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(ptr, 0x123);
}

static inline void rig_free(struct rig *rig, tarn_ptr ptr)
{
    if (tarn_allocator_free(rig->allocator, ptr, &rig->error) != TARN_OK) {
        fail_msg("%s", rig->error.text);
    }
}

static inline void rig_record(struct rig *rig, tarn_ptr ptr, tarn_stream stream)
{
    assert_int_equal(tarn_allocator_record_stream(rig->allocator, ptr, stream, &rig->error),
                     TARN_OK);
}

static inline void rig_empty_cache(struct rig *rig)
{
    assert_int_equal(tarn_allocator_empty_cache(rig->allocator, &rig->error), TARN_OK);
}

static inline void rig_configure(struct rig *rig, const char *conf)
{
    struct tarn_config config;

    tarn_allocator_get_config(rig->allocator, &config);
    assert_int_equal(tarn_config_update(conf, &config, &rig->error), TARN_OK);
    assert_int_equal(tarn_allocator_set_config(rig->allocator, &config, &rig->error), TARN_OK);
}

static inline void rig_limit(struct rig *rig, double fraction)
{
    assert_int_equal(tarn_allocator_set_memory_fraction(rig->allocator, fraction, &rig->error),
                     TARN_OK);
}

static inline struct tarn_stats rig_stats(struct rig *rig)
{
    struct tarn_stats stats = {.struct_size = sizeof stats};

    tarn_allocator_get_stats(rig->allocator, &stats);
    return stats;
}

static inline int64_t rig_now(struct rig *rig, enum tarn_stat_kind kind)
{
    return rig_stats(rig).by_pool[kind][TARN_STAT_ALL].current;
}

/* Totals of what a walk shows. */
struct rig_totals {
    uint64_t segments;
    uint64_t expandable; /* of these */
    uint64_t blocks;
    uint64_t allocated; /* blocks */
    uint64_t active;
    uint64_t reserved; /* bytes */
    uint64_t addresses[64];
};

static inline bool rig_count_segment(void *context, const struct tarn_segment_info *segment)
{
    struct rig_totals *totals = context;

    if (totals->segments < 64) {
        totals->addresses[totals->segments] = segment->address;
    }
    totals->segments++;
    totals->expandable += segment->is_expandable;
    totals->reserved += segment->total_size;
    return true;
}

static inline bool rig_count_block(void *context, const struct tarn_block_info *block)
{
    struct rig_totals *totals = context;

    totals->blocks++;
    totals->allocated += block->allocated;
    totals->active += block->active;
    return true;
}

static inline struct rig_totals rig_totals(struct rig *rig)
{
    struct rig_totals totals = {0};
    const struct tarn_walker walker = {&totals, rig_count_segment, rig_count_block};

    assert_int_equal(tarn_allocator_walk(rig->allocator, &walker), TARN_OK);
    return totals;
}

#endif
