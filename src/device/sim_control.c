/* SPDX-License-Identifier: MIT */
/*
 * Implements the controls of tarn/sim.h: how tests and replays control the simulated device. They
 * are not device calls: neither counted nor subject to planned failures.
 */
#include "device/sim_device.h"

#include "base/finding.h"

#include <inttypes.h>
#include <string.h>

static enum tarn_status script_add(struct tarn_device *device, enum tn_sim_kind kind,
                                   tarn_ptr address)
{
    struct tn_sim *sim = tn_sim_from(device);

    if (!sim || address == 0 || address >= TN_SIM_SPACE_END) {
        return TARN_ERR_INVALID_ARGUMENT;
    }
    tn_biased_lock_acquire(&sim->lock);
    const enum tarn_status st = tn_sim_space_script(&sim->space, kind, address);
    tn_biased_lock_release(&sim->lock);
    return st;
}

enum tarn_status tarn_sim_script_alloc(struct tarn_device *device, tarn_ptr address)
{
    return script_add(device, TN_SIM_PLAIN, address);
}

enum tarn_status tarn_sim_script_reserve(struct tarn_device *device, tarn_ptr address)
{
    if (address % TN_SIM_ALIGNMENT != 0) {
        return TARN_ERR_INVALID_ARGUMENT;
    }
    return script_add(device, TN_SIM_RESERVED, address);
}

void tarn_sim_set_address_oracle(struct tarn_device *device,
                                 tarn_ptr (*oracle)(void *context, bool reservation, uint64_t size),
                                 void *context)
{
    struct tn_sim *sim = tn_sim_from(device);

    if (sim) {
        tn_biased_lock_acquire(&sim->lock);
        sim->space.oracle = oracle;
        sim->space.oracle_context = context;
        tn_biased_lock_release(&sim->lock);
    }
}

void tarn_sim_script_clear(struct tarn_device *device)
{
    struct tn_sim *sim = tn_sim_from(device);

    if (sim) {
        tn_biased_lock_acquire(&sim->lock);
        tn_sim_space_script_clear(&sim->space);
        tn_biased_lock_release(&sim->lock);
    }
}

void tarn_sim_set_foreign_memory(struct tarn_device *device, uint64_t bytes)
{
    struct tn_sim *sim = tn_sim_from(device);

    if (sim) {
        tn_biased_lock_acquire(&sim->lock);
        sim->space.foreign = bytes;
        tn_biased_lock_release(&sim->lock);
    }
}

uint64_t tarn_sim_now_ns(struct tarn_device *device)
{
    struct tn_sim *sim = tn_sim_from(device);

    if (!sim) {
        return 0;
    }
    tn_biased_lock_acquire(&sim->lock);
    const uint64_t now = sim->streams.now_ns;
    tn_biased_lock_release(&sim->lock);
    return now;
}

void tarn_sim_advance_ns(struct tarn_device *device, uint64_t ns)
{
    struct tn_sim *sim = tn_sim_from(device);

    if (sim) {
        tn_biased_lock_acquire(&sim->lock);
        const uint64_t left = UINT64_MAX - sim->streams.now_ns;
        sim->streams.now_ns += ns < left ? ns : left;
        tn_biased_lock_release(&sim->lock);
    }
}

/* What to do with one stream, the lock held. */
typedef enum tarn_status stream_action(struct tn_sim *sim, struct tn_sim_stream *stream,
                                       uint64_t value);

static enum tarn_status stream_apply(struct tarn_device *device, tarn_stream handle,
                                     stream_action *action, uint64_t value)
{
    struct tn_sim *sim = tn_sim_from(device);
    enum tarn_status st = TARN_ERR_HOST_MEMORY;

    if (!sim) {
        return TARN_ERR_INVALID_ARGUMENT;
    }
    tn_biased_lock_acquire(&sim->lock);
    struct tn_sim_stream *stream = tn_sim_stream_get(&sim->streams, handle);
    if (stream) {
        st = action(sim, stream, value);
    }
    tn_biased_lock_release(&sim->lock);
    return st;
}

static enum tarn_status stream_enqueue(struct tn_sim *sim, struct tn_sim_stream *stream,
                                       uint64_t ns)
{
    return tn_sim_stream_enqueue(&sim->streams, stream, ns);
}

static enum tarn_status stream_block(struct tn_sim *sim, struct tn_sim_stream *stream,
                                     uint64_t value)
{
    (void)value;
    return tn_sim_stream_block(&sim->streams, stream);
}

static enum tarn_status stream_unblock(struct tn_sim *sim, struct tn_sim_stream *stream,
                                       uint64_t value)
{
    (void)value;
    return tn_sim_stream_unblock(&sim->streams, stream);
}

static enum tarn_status stream_set_capturing(struct tn_sim *sim, struct tn_sim_stream *stream,
                                             uint64_t value)
{
    if (value != 0) {
        return tn_sim_stream_begin_capture(&sim->streams, stream);
    }
    tn_sim_stream_end_capture(&sim->streams, stream);
    return TARN_OK;
}

static enum tarn_status stream_join(struct tn_sim *sim, struct tn_sim_stream *stream,
                                    uint64_t other)
{
    struct tn_sim_stream *joined = tn_sim_stream_get(&sim->streams, other);

    return joined ? tn_sim_stream_join(&sim->streams, stream, joined) : TARN_ERR_HOST_MEMORY;
}

enum tarn_status tarn_sim_enqueue_ns(struct tarn_device *device, tarn_stream stream, uint64_t ns)
{
    return stream_apply(device, stream, stream_enqueue, ns);
}

enum tarn_status tarn_sim_block_stream(struct tarn_device *device, tarn_stream stream)
{
    return stream_apply(device, stream, stream_block, 0);
}

enum tarn_status tarn_sim_unblock_stream(struct tarn_device *device, tarn_stream stream)
{
    return stream_apply(device, stream, stream_unblock, 0);
}

enum tarn_status tarn_sim_set_capturing(struct tarn_device *device, tarn_stream stream,
                                        bool capturing)
{
    return stream_apply(device, stream, stream_set_capturing, capturing);
}

enum tarn_status tarn_sim_join_stream(struct tarn_device *device, tarn_stream stream,
                                      tarn_stream other)
{
    return stream_apply(device, stream, stream_join, other);
}

enum tarn_status tarn_sim_complete_event(struct tarn_device *device, uint64_t event)
{
    struct tn_sim *sim = tn_sim_from(device);

    if (!sim) {
        return TARN_ERR_INVALID_ARGUMENT;
    }
    tn_biased_lock_acquire(&sim->lock);
    const enum tarn_status st = tn_sim_event_complete(&sim->streams, event);
    tn_biased_lock_release(&sim->lock);
    return st;
}

void tarn_sim_set_event_oracle(struct tarn_device *device,
                               bool (*oracle)(void *context, uint64_t event, tarn_stream stream),
                               void *context)
{
    struct tn_sim *sim = tn_sim_from(device);

    if (sim) {
        tn_biased_lock_acquire(&sim->lock);
        sim->streams.oracle = oracle;
        sim->streams.oracle_context = context;
        tn_biased_lock_release(&sim->lock);
    }
}

void tarn_sim_fail_nth(struct tarn_device *device, enum tarn_sim_call call, uint64_t n,
                       enum tarn_status status)
{
    struct tn_sim *sim = tn_sim_from(device);

    if (sim) {
        tn_biased_lock_acquire(&sim->lock);
        tn_sim_fault_plan(&sim->faults, call, n, status);
        tn_biased_lock_release(&sim->lock);
    }
}

static void counters_read(const struct tn_sim *sim, struct tarn_sim_counters *counters)
{
    memcpy(counters->calls, sim->faults.calls, sizeof counters->calls);
    counters->failures = sim->failures;
    counters->scripted_skipped = sim->space.scripted_skipped;
    counters->forced_unblocks = sim->streams.forced_unblocks;
    counters->used_bytes = sim->space.used;
    counters->peak_used_bytes = sim->space.peak;
    counters->live_allocations = sim->space.live[TN_SIM_PLAIN];
    counters->live_reservations = sim->space.live[TN_SIM_RESERVED];
    counters->live_pages = sim->vmm.pages.count;
    counters->live_mappings = sim->vmm.mappings.count;
    counters->live_events = sim->streams.live_events;
    counters->live_streams = sim->streams.live_streams;
    counters->live_opened = sim->space.live[TN_SIM_OPENED];
    counters->live_host = sim->host.pieces.count;
}

void tarn_sim_get_counters(struct tarn_device *device, struct tarn_sim_counters *counters_out)
{
    struct tn_sim *sim = tn_sim_from(device);
    struct tarn_sim_counters counters = {.struct_size = counters_out->struct_size};

    if (sim) {
        tn_biased_lock_acquire(&sim->lock);
        counters_read(sim, &counters);
        tn_biased_lock_release(&sim->lock);
    }
    memcpy(counters_out, &counters,
           counters.struct_size < sizeof counters ? counters.struct_size : sizeof counters);
}

uint64_t tn_sim_check(struct tn_sim *sim, struct tarn_findings *findings)
{
    const uint64_t before = findings->count;

    tn_biased_lock_acquire(&sim->lock);
    (void)tn_sim_space_check(&sim->space, findings);
    (void)tn_tree_check(&sim->vmm.pages, findings);
    (void)tn_tree_check(&sim->vmm.mappings, findings);
    (void)tn_sim_pool_check(sim, findings);
    tn_sim_streams_check(&sim->streams, findings);
    tn_biased_lock_release(&sim->lock);
    return findings->count - before;
}
