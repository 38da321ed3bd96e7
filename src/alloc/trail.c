/* SPDX-License-Identifier: MIT */
#include "alloc/trail.h"

#include "alloc/engine.h"

#include <string.h>

/* Forgets the older half: those blocks are allocations like others then. */
static TN_COLD void trail_shorten(struct tn_trail *trail)
{
    const uint32_t kept = TN_TRAIL_STEPS / 2;

    memmove(trail->steps, trail->steps + (trail->end - kept), kept * sizeof *trail->steps);
    trail->end = kept;
    trail->mark = kept;
}

void tn_trail_add(struct tn_trail *trail, const struct tn_trail_step *step)
{
    tn_assert(tn_trail_is_settled(trail));
    if (tn_unlikely(trail->end == TN_TRAIL_STEPS)) {
        trail_shorten(trail);
    }
    trail->steps[trail->end++] = *step;
    trail->mark = trail->end;
}

void tn_trail_settle_slow(struct tn_engine *engine)
{
    struct tn_trail *trail = &engine->trail;

    while (trail->end > trail->mark) {
        struct tn_block *block = trail->steps[--trail->end].block;

        tn_ptr_map_remove(&engine->map, tn_ptr_map_slot(&engine->map, block->address));
        block->allocated = false;
        tn_engine_reuse(engine, block);
    }
}
