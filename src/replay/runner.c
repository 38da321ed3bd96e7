/* SPDX-License-Identifier: MIT */
#include "replay/runner.h"

#include "alloc/config/size_class.h"
#include "alloc/engine/native.h"
#include "base/host_mem.h"
#include "tarn/sim.h"

#include <math.h>

struct tn_runner_room tn_runner_room_recorded(const struct tn_limit *limit)
{
    return (struct tn_runner_room){.device = limit->by_device ? limit->bytes : 0,
                                   .limit = limit->by_device ? 0 : limit->bytes};
}

enum tarn_status tn_runner_script_segment(struct tn_runner *runner, uint64_t address,
                                          struct tarn_error *error)
{
    const enum tarn_status st = runner->keeps_addresses && address % TN_MIN_BLOCK_SIZE == 0
                                    ? tarn_sim_script_alloc(runner->device, address)
                                    : TARN_ERR_INVALID_ARGUMENT;

    return st == TARN_OK || st == TARN_ERR_INVALID_ARGUMENT ? TARN_OK : tn_fail_memory(error);
}

static enum tarn_status runner_limit(struct tn_runner *runner, uint64_t limit, uint64_t capacity,
                                     struct tarn_error *error)
{
    double fraction = (double)limit / (double)capacity;

    if ((uint64_t)(fraction * (double)capacity) < limit) { /* the limit is rounded down */
        fraction = nextafter(fraction, 1.0);
    }
    return tarn_allocator_set_memory_fraction(runner->allocator, fraction, error);
}

enum tarn_status tn_runner_open(struct tn_runner *runner, const struct tn_program *program,
                                const struct tarn_config *config, const struct tn_runner_room *room,
                                struct tarn_error *error)
{
    const size_t slots = program->slot_count;
    const struct tarn_sim_options options = {
        .struct_size = sizeof options,
        .ordinal = program->device,
        .capacity = room->device ? room->device : program->device_bound,
        .base_address = room->base_address,
        .manual_events = true,
    };
    enum tarn_status st;

    *runner = (struct tn_runner){.program = program,
                                 .entries = UINT64_MAX,
                                 .is_limited = room->device || room->limit,
                                 .keeps_addresses = !room->base_address};
    tn_device_lag_init(&runner->lag, room->lag_ms);
    runner->ptrs = tn_host_alloc_zero(slots * sizeof *runner->ptrs);
    runner->events = tn_host_alloc_zero(slots * sizeof *runner->events);
    st = slots > 0 && (!runner->ptrs || !runner->events)
             ? tn_fail_memory(error)
             : tarn_sim_open(&options, &runner->device, error);
    st = st ? st : tn_allocator_create_own(runner->device, config, &runner->allocator, error);
    runner->engine = st == TARN_OK && tn_allocator_is_native(runner->allocator)
                         ? tn_allocator_engine(runner->allocator)
                         : NULL;
    if (st == TARN_OK && room->limit && room->limit < options.capacity) {
        st = runner_limit(runner, room->limit, options.capacity, error);
    }
    if (st) {
        tn_runner_close(runner);
    }
    return st;
}

void tn_runner_close(struct tn_runner *runner)
{
    const size_t slots = runner->program->slot_count;

    tarn_allocator_destroy(runner->allocator);
    tarn_device_close(runner->device);
    tn_device_lag_fini(&runner->lag);
    tn_host_free(runner->ptrs, slots * sizeof *runner->ptrs);
    tn_host_free(runner->events, slots * sizeof *runner->events);
}
