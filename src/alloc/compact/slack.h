/* SPDX-License-Identifier: MIT */
/*
 * How much more than what lives may be reserved before pages move, while memory is plentiful: a
 * program that does the same in every step then comes to move nothing. A 128th of what lived at
 * most; and where that is too little, because pages go on moving within their stream, a 64th of
 * what is reserved on top, up to four times. Guarded by the heap's lock.
 */
#ifndef TN_ALLOC_COMPACT_SLACK_H
#define TN_ALLOC_COMPACT_SLACK_H

#include <stdint.h>

struct tn_slack {
    uint64_t live_peak; /* bytes active at most when a request, which counts, needed pages */
    uint64_t moved;     /* bytes moved since live_peak last grew, or the slack did */
    uint64_t grown_to;  /* bytes that may be reserved since too much had moved; 0 = it had not */
    uint32_t growths;
};

/* So many bytes live; more than ever: the slack begins anew. */
void tn_slack_note_live(struct tn_slack *slack, uint64_t bytes);

/* Bytes moved from one place of a stream to another one, though more might have been reserved. */
void tn_slack_note_moved(struct tn_slack *slack, uint64_t bytes, uint64_t reserved);

/* Bytes that may be reserved before any move. */
uint64_t tn_slack_allowed(const struct tn_slack *slack);

#endif
