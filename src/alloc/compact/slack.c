/* SPDX-License-Identifier: MIT */
#include "alloc/compact/slack.h"

enum {
    FIRST_SHARE = 128, /* of what lived at most */
    GROWS_AFTER = 2,   /* times what is reserved has moved */
    GROWTH_SHARE = 64, /* of what is reserved then */
    GROWTHS_MOST = 4
};

void tn_slack_note_live(struct tn_slack *slack, uint64_t bytes)
{
    if (bytes <= slack->live_peak) {
        return;
    }
    slack->live_peak = bytes;
    if (bytes > slack->grown_to) {
        *slack = (struct tn_slack){.live_peak = bytes};
    }
}

void tn_slack_note_moved(struct tn_slack *slack, uint64_t bytes, uint64_t reserved)
{
    slack->moved += bytes;
    if (slack->moved > reserved * GROWS_AFTER && slack->growths < GROWTHS_MOST) {
        slack->grown_to = reserved + reserved / GROWTH_SHARE;
        slack->growths++;
        slack->moved = 0;
    }
}

uint64_t tn_slack_allowed(const struct tn_slack *slack)
{
    return slack->grown_to > 0 ? slack->grown_to
                               : slack->live_peak + slack->live_peak / FIRST_SHARE;
}
