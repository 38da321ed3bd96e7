/* SPDX-License-Identifier: MIT */
#include "tracker/module_stats.h"

#include "base/assertion.h"
#include "base/host_mem.h"

#include <string.h>

static struct tn_module_state *state_at(const struct tn_module *module, size_t at)
{
    return (struct tn_module_state *)module->states.items + at;
}

const struct tn_module_state *tn_module_state_at(const struct tn_module *module, size_t at)
{
    tn_assert(at < module->state_count);
    return state_at(module, at);
}

static struct tn_breakdown *call_at(const struct tn_module_state *state, size_t at)
{
    return (struct tn_breakdown *)state->calls.items + at;
}

struct tn_module *tn_module_create(uint64_t id, uint32_t name)
{
    struct tn_module *module = tn_host_alloc_zero(sizeof *module);

    if (module) {
        module->id = id;
        module->name = name;
        module->output_bytes = -1;
        tn_vec_init(&module->states, sizeof(struct tn_module_state));
    }
    return module;
}

void tn_module_destroy(struct tn_module *module)
{
    for (size_t i = 0; i < module->states.count; i++) {
        struct tn_module_state *state = state_at(module, i);

        /* A slot reserved for a call that never happened also has rows. */
        for (size_t call = 0; call < state->calls.capacity; call++) {
            tn_breakdown_fini(call_at(state, call));
        }
        tn_vec_fini(&state->calls);
    }
    tn_vec_fini(&module->states);
    tn_host_free(module, sizeof *module);
}

/* Among the first `count`. */
static struct tn_module_state *state_find(const struct tn_module *module, uint32_t state,
                                          size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (state_at(module, i)->state == state) {
            return state_at(module, i);
        }
    }
    return NULL;
}

/* Reserves space for one more call; slots beyond the count are zeroed or have reusable rows. */
static bool state_reserve(struct tn_module_state *state)
{
    const size_t had = state->calls.capacity;

    if (!tn_vec_reserve(&state->calls, 1)) {
        return false;
    }
    for (size_t i = had; i < state->calls.capacity; i++) {
        *call_at(state, i) = (struct tn_breakdown){0};
    }
    return true;
}

bool tn_module_reserve_call(struct tn_module *module, uint32_t number, size_t devices,
                            size_t calls_kept)
{
    struct tn_module_state *state = state_find(module, number, module->states.count);

    if (!state) {
        state = tn_vec_push(&module->states);
        if (!state) {
            return false;
        }
        state->state = number;
        tn_vec_init(&state->calls, sizeof(struct tn_breakdown));
    }
    if (calls_kept > 0 && state->calls.count >= calls_kept) {
        return tn_breakdown_reserve(call_at(state, 0), devices);
    }
    return state_reserve(state) &&
           tn_breakdown_reserve(call_at(state, state->calls.count), devices);
}

/* A state that gets its first call follows those that have some. */
static struct tn_module_state *state_begin(struct tn_module *module, struct tn_module_state *state)
{
    struct tn_module_state *at = state_at(module, module->state_count++);
    const struct tn_module_state other = *at;

    *at = *state;
    *state = other;
    return at;
}

void tn_module_add_call(struct tn_module *module, uint32_t number, const struct tn_breakdown *now,
                        size_t calls_kept)
{
    struct tn_module_state *state = state_find(module, number, module->states.count);

    if (tn_never(!state)) { /* a call was reserved in it */
        return;
    }
    if (state->calls.count == 0) {
        state = state_begin(module, state);
    }
    if (calls_kept > 0 && state->calls.count >= calls_kept) {
        const struct tn_breakdown oldest = *call_at(state, 0);
        const size_t rest = state->calls.count - 1;

        memmove(call_at(state, 0), call_at(state, 1), rest * sizeof oldest);
        *call_at(state, rest) = oldest;
    } else {
        state->calls.count++;
    }
    tn_breakdown_copy(call_at(state, state->calls.count - 1), now);
}

struct tn_breakdown *tn_module_newest_call(const struct tn_module *module, uint32_t number)
{
    const struct tn_module_state *state = state_find(module, number, module->state_count);

    return state ? call_at(state, state->calls.count - 1) : NULL;
}

void tn_module_begin_peaks(struct tn_module *module, const struct tn_breakdown *now)
{
    module->peak_count = now->count;
    for (size_t i = 0; i < now->count; i++) {
        module->peaks[i] = (struct tn_local_peak){now->rows[i].device, now->rows[i].total};
    }
}

/* The device's peak total, 0 if it has none yet. */
static struct tn_local_peak *peak_get(struct tn_module *module, uint32_t device, int64_t *bytes_out)
{
    for (size_t i = 0; i < module->peak_count; i++) {
        if (module->peaks[i].device == device) {
            *bytes_out = module->peaks[i].bytes;
            return &module->peaks[i];
        }
    }
    *bytes_out = 0;
    return NULL;
}

void tn_module_raise_peaks(struct tn_module *module, struct tn_breakdown *call,
                           const struct tn_breakdown *now)
{
    for (size_t i = 0; i < now->count; i++) {
        const struct tarn_track_row *row = &now->rows[i];
        int64_t highest;
        struct tn_local_peak *peak = peak_get(module, row->device, &highest);

        if (row->total <= highest) {
            continue;
        }
        if (!peak) {
            tn_assert(module->peak_count < TARN_TRACK_DEVICES_MAX);
            peak = &module->peaks[module->peak_count++];
            peak->device = row->device;
        }
        peak->bytes = row->total;
        tn_breakdown_put(call, row);
    }
}
