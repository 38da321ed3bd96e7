/* SPDX-License-Identifier: MIT */
#ifndef TN_TRACKER_TRACK_JSON_H
#define TN_TRACKER_TRACK_JSON_H

#include "tracker/track_text.h"

/* A breakdown as PyTorch's dictionary of devices; the lock is held. */
void tn_track_put_json(struct tn_text_out *out, const struct tarn_tracker *tracker,
                       const struct tn_breakdown *breakdown);

#endif
