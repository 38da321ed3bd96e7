/* SPDX-License-Identifier: MIT */
#include "alloc/fast/trail.h"

#include "alloc/engine/engine.h"

#include <string.h>

static void trail_stand_at(struct tn_trail *trail, uint32_t mark)
{
    trail->mark = mark;
    trail->counted = mark;
    trail->low = mark;
    trail->high = mark;
    trail->floor = 0;
    trail->ceiling = trail->end;
}

/* Forgets the older half: those blocks are allocations like others then. */
static TN_COLD void trail_shorten(struct tn_trail *trail)
{
    const uint32_t kept = TN_TRAIL_STEPS / 2;

    memmove(trail->steps, trail->steps + (trail->end - kept), kept * sizeof *trail->steps);
    trail->end = kept;
}

struct tn_trail_step *tn_trail_add(struct tn_trail *trail)
{
    tn_assert(tn_trail_is_settled(trail) && trail->counted == trail->mark);
    if (tn_unlikely(trail->end == TN_TRAIL_STEPS)) {
        trail_shorten(trail);
    }
    trail->end++;
    trail_stand_at(trail, trail->end);
    struct tn_trail_step *step = &trail->steps[trail->end - 1];

    step->passes = 0;
    return step;
}

void tn_trail_clear(struct tn_trail *trail)
{
    tn_assert(tn_trail_is_settled(trail) && trail->counted == trail->mark);
    trail->end = 0;
    trail_stand_at(trail, 0);
}

void tn_trail_judge(struct tn_trail *trail)
{
    tn_rest_judge(&trail->rest, trail->again >= TN_TRAIL_STEPS / 4);
    trail->left = 0;
    trail->again = 0;
}

TN_NOINLINE void tn_trail_settle_slow(struct tn_engine *engine, struct tn_trail *trail)
{
    tn_assert(trail->counted == trail->mark);
    while (trail->end > trail->mark) {
        struct tn_block *block = trail->steps[--trail->end].block;

        tn_ptr_map_take(&engine->map, block->address);
        block->allocated = false;
        (void)tn_engine_reuse(engine, block);
    }
    trail_stand_at(trail, trail->mark);
}

/* ---- counting ---- */

/* The state after a step (sign 1) or before it (-1), from the one on its other side. */
static void count_state(struct tn_counters *counters, const struct tn_trail_step *step,
                        int64_t sign)
{
    const int64_t size = (int64_t)step->block->size;
    const int64_t requested = (int64_t)step->requested;

    tn_counter_move(&counters->blocks.out, step->pool, sign);
    tn_counter_move(&counters->bytes.out, step->pool, sign * size);
    tn_counter_move(&counters->requested, step->pool, sign * requested);
    tn_counter_move(&counters->split, step->pool, sign * step->split_blocks);
    tn_counter_move(&counters->split_bytes, step->pool, sign * step->split_bytes);
}

static void shift_state(struct tn_counters *counters, const struct tn_trail_step *step,
                        int64_t sign)
{
    const int64_t size = (int64_t)step->block->size;
    const int64_t requested = (int64_t)step->requested;

    counters->blocks.out.current[step->pool] += sign;
    counters->bytes.out.current[step->pool] += sign * size;
    counters->requested.current[step->pool] += sign * requested;
    counters->split.current[step->pool] += sign * step->split_blocks;
    counters->split_bytes.current[step->pool] += sign * step->split_bytes;
}

/* Increases by a step that was made and unmade so often; one of the two increases. */
static void count_increases(struct tn_counter *counter, unsigned pool, int64_t amount, int64_t made,
                            int64_t unmade)
{
    counter->allocated[pool] += amount > 0 ? made * amount : -unmade * amount;
}

static void count_passes(struct tn_counters *counters, const struct tn_trail_step *step,
                         int64_t unmade)
{
    const int64_t made = step->passes;
    const unsigned pool = step->pool;

    count_increases(&counters->blocks.out, pool, 1, made, unmade);
    count_increases(&counters->bytes.out, pool, (int64_t)step->block->size, made, unmade);
    count_increases(&counters->requested, pool, (int64_t)step->requested, made, unmade);
    count_increases(&counters->split, pool, step->split_blocks, made, unmade);
    count_increases(&counters->split_bytes, pool, step->split_bytes, made, unmade);
}

/* What was allocated and freed; returns the number of steps. */
static uint64_t count_all_passes(struct tn_trail *trail, struct tn_counters *counters)
{
    uint64_t passes = 0;

    for (uint32_t i = trail->low; i < trail->high; i++) {
        struct tn_trail_step *step = &trail->steps[i];
        const int64_t net = (int64_t)(i < trail->mark) - (int64_t)(i < trail->counted);

        count_passes(counters, step, (int64_t)step->passes - net);
        passes += step->passes;
        step->passes = 0;
    }
    trail->again += passes < TN_TRAIL_STEPS ? (uint32_t)passes : TN_TRAIL_STEPS;
    return 2 * passes;
}

static void trail_is_counted(struct tn_trail *trail)
{
    trail->counted = trail->mark;
    trail->low = trail->mark;
    trail->high = trail->mark;
}

/* Every state between the lowest and the highest mark was there: its peaks count. */
TN_NOINLINE uint64_t tn_trail_count_slow(struct tn_trail *trail, struct tn_counters *counters)
{
    const uint64_t steps = count_all_passes(trail, counters);

    for (uint32_t i = trail->counted; i > trail->low; i--) {
        count_state(counters, &trail->steps[i - 1], -1);
    }
    for (uint32_t i = trail->low; i < trail->high; i++) {
        count_state(counters, &trail->steps[i], 1);
    }
    for (uint32_t i = trail->high; i > trail->mark; i--) {
        count_state(counters, &trail->steps[i - 1], -1);
    }
    trail_is_counted(trail);
    return steps;
}

uint64_t tn_trail_count_below_peaks(struct tn_trail *trail, struct tn_counters *counters)
{
    const uint64_t steps = count_all_passes(trail, counters);

    for (uint32_t i = trail->counted; i < trail->mark; i++) {
        shift_state(counters, &trail->steps[i], 1);
    }
    for (uint32_t i = trail->counted; i > trail->mark; i--) {
        shift_state(counters, &trail->steps[i - 1], -1);
    }
    trail_is_counted(trail);
    return steps;
}
