/* SPDX-License-Identifier: MIT */
/* What pinned memory keeps twice is the same both times. */
#include "base/finding.h"
#include "pinned/pinned_core.h"

#include <inttypes.h>

/* Counters recomputed from the blocks. */
struct tally {
    uint64_t blocks;
    uint64_t bytes;
    uint64_t active;
    uint64_t active_bytes;
    uint64_t events;
    uint64_t cached;
};

static void tally_block(struct tally *tally, const struct tn_pinned_block *block)
{
    tally->blocks++;
    tally->bytes += block->memory.size;
    tally->events += block->event_count;
    if (block->state == TN_PINNED_CACHED) {
        tally->cached++;
    } else {
        tally->active++;
        tally->active_bytes += block->memory.size;
    }
}

static void expect(struct tarn_findings *findings, const char *what, int64_t counted, uint64_t real)
{
    if (counted != (int64_t)real) {
        tn_finding_add(findings, "pinned memory: %s is %" PRId64 ", the blocks say %" PRIu64, what,
                       counted, real);
    }
}

static uint64_t count_cached(const struct tarn_pinned *pinned, struct tarn_findings *findings)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < TN_PINNED_SIZES; i++) {
        for (const struct tn_pinned_block *block = pinned->cached[i]; block; block = block->next) {
            count++;
            if (block->state != TN_PINNED_CACHED || tn_pinned_list_of(block->memory.size) != i ||
                block->event_count > 0 || block->uses.count > 0) {
                tn_finding_add(findings,
                               "pinned memory: a block of %" PRIu64
                               " bytes is in a free list that it does not belong to",
                               block->memory.size);
            }
        }
    }
    return count;
}

uint64_t tarn_pinned_check(struct tarn_pinned *pinned, struct tarn_findings *findings)
{
    const uint64_t before = findings->count;
    struct tally tally = {0};

    if (tn_fork_passed(&pinned->fork)) {
        return 0;
    }
    tn_lock_acquire(&pinned->lock);
    (void)tn_tree_check(&pinned->blocks, findings);
    for (const struct tn_tree_node *node = tn_tree_first(&pinned->blocks); node;
         node = tn_tree_next(node)) {
        tally_block(&tally, tn_pinned_block_of(node));
    }
    expect(findings, "the number of blocks", pinned->stats.allocations.current, tally.blocks);
    expect(findings, "allocated bytes", pinned->stats.allocated_bytes.current, tally.bytes);
    expect(findings, "active requests", pinned->stats.active_requests.current, tally.active);
    expect(findings, "active bytes", pinned->stats.active_bytes.current, tally.active_bytes);
    expect(findings, "the number of events", (int64_t)(pinned->events.count + pinned->asked),
           tally.events);
    expect(findings, "the number of cached blocks", (int64_t)count_cached(pinned, findings),
           tally.cached);
    tn_lock_release(&pinned->lock);
    return findings->count - before;
}
