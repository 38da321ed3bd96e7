/* SPDX-License-Identifier: MIT */
/*
 * The lifetime that each entry of a trace refers to. Lifetimes are numbered in the order in which
 * the trace first mentions them. A free of a block that the trace did not allocate refers to one
 * from before the trace; a second free of an address is lost: it refers to none.
 *
 * Owns: the tables. All zero is a walk before the first entry. Guarded by its owner. Cost: O(1)
 * expected per entry.
 */
#ifndef TN_ANALYSIS_LIFETIME_WALK_H
#define TN_ANALYSIS_LIFETIME_WALK_H

#include "analysis/address_map.h"
#include "analysis/trace_source.h"

#define TN_LIFETIME_NONE UINT64_MAX

/* Least value of an address that the trace freed. */
#define TN_LIFETIME_FREED ((uint64_t)1 << 63)

struct tn_lifetime_walk {
    struct tn_map blocks; /* address -> the lifetime of the block allocated there. From its free
                             until the next allocation the value is the caller's, not below
                             TN_LIFETIME_FREED, at first TN_LIFETIME_NONE */
    uint64_t count;       /* of lifetimes */
};

static inline bool tn_lifetime_is_freed(uint64_t value)
{
    return value >= TN_LIFETIME_FREED;
}

/* What an entry refers to. */
struct tn_lifetime_step {
    uint64_t lifetime; /* that it begins, frees or annotates; TN_LIFETIME_NONE: of none, or lost */
    uint64_t ended;    /* that an allocation of the same address ends, because its free is missing;
                          TN_LIFETIME_NONE: none */
    bool is_new;       /* the first mention of `lifetime` */
};

void tn_lifetime_walk_fini(struct tn_lifetime_walk *walk);

/* The lifetime of the block allocated at an address now, or TN_LIFETIME_NONE. */
uint64_t tn_lifetime_walk_at(const struct tn_lifetime_walk *walk, uint64_t address);

/* Puts an address that the trace has not mentioned into the table. False without host memory. */
bool tn_lifetime_walk_add(struct tn_lifetime_walk *walk, uint64_t address,
                          uint64_t value) TN_MUST_CHECK;

/* After the last entry: visits the blocks that are allocated in the snapshot and not mentioned in
 * the trace. For a truncated file these are unknown, so there are none. False as soon as a visit
 * returns false. */
bool tn_lifetime_walk_survivors(const struct tn_lifetime_walk *walk,
                                const struct tn_trace_source *source,
                                bool (*visit)(void *context, const struct tn_model_segment *segment,
                                              const struct tn_model_block *block),
                                void *context) TN_MUST_CHECK;

/* ---- the next entry ---- */

static inline struct tn_lifetime_step tn_lifetime_step_none(void)
{
    return (struct tn_lifetime_step){.lifetime = TN_LIFETIME_NONE, .ended = TN_LIFETIME_NONE};
}

/* In a header, because a trace has very many: a call, and a struct that goes through memory, take
 * as long as the table. False when host memory is missing. */
TN_MUST_CHECK static inline bool tn_lifetime_walk_alloc(struct tn_lifetime_walk *walk,
                                                        uint64_t address,
                                                        struct tn_lifetime_step *step_out)
{
    uint64_t *value = tn_address_find(&walk->blocks, address);
    const uint64_t number = walk->count;

    *step_out = tn_lifetime_step_none();
    if (value) {
        step_out->ended = tn_lifetime_is_freed(*value) ? TN_LIFETIME_NONE : *value;
        *value = number;
    } else if (!tn_lifetime_walk_add(walk, address, number)) {
        return false;
    }
    walk->count++;
    step_out->lifetime = number;
    step_out->is_new = true;
    return true;
}

/* A free that is requested, or completed. */
TN_MUST_CHECK static inline bool tn_lifetime_walk_free(struct tn_lifetime_walk *walk,
                                                       uint64_t address, bool is_completed,
                                                       struct tn_lifetime_step *step_out)
{
    uint64_t *value = tn_address_find(&walk->blocks, address);

    *step_out = tn_lifetime_step_none();
    if (value) {
        if (!tn_lifetime_is_freed(*value)) {
            step_out->lifetime = *value;
            *value = is_completed ? TN_LIFETIME_NONE : *value;
        }
        return true;
    }
    if (!tn_lifetime_walk_add(walk, address, is_completed ? TN_LIFETIME_NONE : walk->count)) {
        return false;
    }
    step_out->lifetime = walk->count++;
    step_out->is_new = true;
    return true;
}

/* Any entry. */
TN_MUST_CHECK static inline bool tn_lifetime_walk_step(struct tn_lifetime_walk *walk,
                                                       const struct tn_trace_entry *entry,
                                                       struct tn_lifetime_step *step_out)
{
    const bool is_completed = entry->action == TN_TRACE_FREE_COMPLETED;

    if (entry->action == TN_TRACE_ALLOC) {
        return tn_lifetime_walk_alloc(walk, entry->address, step_out);
    }
    if (entry->action == TN_TRACE_FREE_REQUESTED || is_completed) {
        return tn_lifetime_walk_free(walk, entry->address, is_completed, step_out);
    }
    *step_out = tn_lifetime_step_none();
    if (entry->action == TN_TRACE_ANNOTATE) {
        step_out->lifetime = tn_lifetime_walk_at(walk, entry->address);
    }
    return true;
}

#endif
