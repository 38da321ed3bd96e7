/* SPDX-License-Identifier: MIT */
/*
 * Which block each entry of a trace is about: uses of blocks ("lives") are numbered in the order in
 * which the trace first tells of them. A free of a block that the trace did not allocate tells of
 * one that was there before.
 *
 * Lives in use, and addresses that the trace freed, lie in a row each: what comes goes to its end,
 * and the last one takes the place of what goes. A place counted from the end is a small number
 * where blocks are freed, or their addresses used again, soon; where any of them may be next it is
 * no larger than it must be.
 *
 * Owns: the tables. Guarded by its owner. Cost: O(1) expected an entry.
 */
#ifndef TN_PAGE_LIFETIME_IDS_H
#define TN_PAGE_LIFETIME_IDS_H

#include "base/map.h"
#include "base/vec.h"
#include "snapshot/model.h"

#define TN_LIFETIME_NONE UINT64_MAX

struct tn_lifetime_ids {
    struct tn_map live;  /* address -> life */
    struct tn_map freed; /* addresses that the trace freed, until they are allocated again: their
                            places in `shelf`, TN_LIFETIME_NONE: they are not in it */
    struct tn_vec row;   /* uint64_t: lives in use */
    struct tn_vec place; /* uint64_t a life: where it is in the row */
    struct tn_vec shelf; /* uint64_t: addresses */
    uint64_t count;
};

/* What an entry is about. */
struct tn_lifetime_step {
    uint64_t lifetime; /* TN_LIFETIME_NONE: of none, or of a block that is free already */
    uint64_t ended;    /* life that an allocation of the same address ends: its free is missing */
    uint64_t behind;   /* lives in the row behind the one ended, or else the one told of before */
    uint64_t reuse;    /* of an allocation: 1 more than addresses on the shelf behind its own; 0: it
                        is not there */
    bool is_new;
};

void tn_lifetime_ids_init(struct tn_lifetime_ids *lifetimes);
void tn_lifetime_ids_fini(struct tn_lifetime_ids *lifetimes);

/* The next entry. False when host memory is missing. */
bool tn_lifetime_ids_step(struct tn_lifetime_ids *lifetimes, const struct tn_trace_entry *entry,
                          struct tn_lifetime_step *step_out) TN_MUST_CHECK;

/* The life of the block in use at an address now, or TN_LIFETIME_NONE. */
uint64_t tn_lifetime_ids_at(const struct tn_lifetime_ids *lifetimes, uint64_t address);

/* Numbers anew the lives that last now, from 0 on and in this order in the row, and forgets the
 * others' numbers and the shelf. `carried_out` is an empty vector of uint64_t and gets their old
 * numbers, in order. False when host memory is missing. */
bool tn_lifetime_ids_carry(struct tn_lifetime_ids *lifetimes,
                           struct tn_vec *carried_out) TN_MUST_CHECK;

#endif
