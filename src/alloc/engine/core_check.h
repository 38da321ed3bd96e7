/* SPDX-License-Identifier: MIT */
/*
 * Recomputes everything that the engine caches, from the blocks alone, and compares: the invariants
 * of core.h. In every build; the check build calls it after every operation. Under the engine's
 * lock. Cost: O(blocks).
 */
#ifndef TN_ALLOC_ENGINE_CORE_CHECK_H
#define TN_ALLOC_ENGINE_CORE_CHECK_H

#include "alloc/engine/engine.h"
#include "tarn/findings.h"

/* Adds what is wrong to `findings`; returns how many there were. */
uint64_t tn_core_check(const struct tn_engine *engine, struct tarn_findings *findings);

/* Stops the program with the first findings if there are any. */
void tn_core_assert_good(const struct tn_engine *engine);

static inline void tn_core_assert(const struct tn_engine *engine)
{
    if (TN_CHECKS_SLOW) {
        tn_core_assert_good(engine);
    }
}

/* The same without the lock, after the fast path has served a call: flushes nothing. */
void tn_core_assert_served(struct tn_engine *engine);

static inline void tn_core_assert_fast(struct tn_engine *engine)
{
    if (TN_CHECKS_SLOW) {
        tn_core_assert_served(engine);
    }
}

#endif
