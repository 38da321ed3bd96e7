/* SPDX-License-Identifier: MIT */
/*
 * How the page encodes the block that an entry refers to. Lifetimes are numbered as in
 * analysis/lifetime_walk.h.
 *
 * Allocated ones, and addresses that the trace freed, are in one array each: a new one goes to the
 * end, and the last one takes the place of one that is removed. A place counted from the end is a
 * small number where blocks are freed, or their addresses reused, soon; where any of them may be
 * next it is as small as it can be.
 *
 * Owns: the tables. Guarded by its owner. Cost: O(1) expected per entry.
 */
#ifndef TN_PAGE_LIFETIME_IDS_H
#define TN_PAGE_LIFETIME_IDS_H

#include "analysis/lifetime_walk.h"
#include "base/vec.h"

struct tn_lifetime_ids {
    struct tn_lifetime_walk walk; /* values of freed addresses: TN_LIFETIME_FREED + the index in
                                     `freed`, TN_LIFETIME_NONE: it is not in it */
    struct tn_vec row;            /* uint64_t: allocated lifetimes */
    struct tn_vec index;          /* uint64_t per lifetime: its index in the row */
    struct tn_vec freed;          /* uint64_t: addresses */
};

/* What an entry is about. */
struct tn_lifetime_id {
    struct tn_lifetime_step step;
    uint64_t behind; /* lifetimes in the row behind the one ended, or else the one named before */
    uint64_t reuse;  /* of an allocation: 1 more than addresses in `freed` behind its own; 0: it
                        is not there */
};

void tn_lifetime_ids_init(struct tn_lifetime_ids *lifetimes);
void tn_lifetime_ids_fini(struct tn_lifetime_ids *lifetimes);

/* The next entry. False when host memory is missing. */
bool tn_lifetime_ids_step(struct tn_lifetime_ids *lifetimes, const struct tn_trace_entry *entry,
                          struct tn_lifetime_id *id_out) TN_MUST_CHECK;

/* Renumbers the lifetimes that last now, from 0 on and in this order in the row, and forgets the
 * others' numbers and the freed addresses. `carried_out` is an empty vector of uint64_t and gets
 * their old numbers, in order. False when host memory is missing. */
bool tn_lifetime_ids_carry(struct tn_lifetime_ids *lifetimes,
                           struct tn_vec *carried_out) TN_MUST_CHECK;

#endif
