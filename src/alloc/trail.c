/* SPDX-License-Identifier: MIT */
#include "alloc/trail.h"

#include "alloc/engine.h"

#include <string.h>

void tn_trail_shorten(struct tn_trail *trail)
{
    const uint32_t kept = TN_TRAIL_STEPS / 2;

    memmove(trail->steps, trail->steps + (trail->end - kept), kept * sizeof *trail->steps);
    trail->end = kept;
    trail->mark = kept;
}

void tn_trail_settle_slow(struct tn_engine *engine, struct tn_trail *trail)
{
    while (trail->end > trail->mark) {
        struct tn_block *block = trail->steps[--trail->end].block;

        tn_ptr_map_take(&engine->map, block->address);
        block->allocated = false;
        tn_engine_reuse(engine, block);
    }
}
