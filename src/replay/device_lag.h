/* SPDX-License-Identifier: MIT */
/*
 * When the events of a replay's streams are done: a fixed time of the trace after they were first
 * asked for. A trace does not say how far the device was behind the program.
 *
 * Only the compact policy asks: the exact one queries events of frees alone, whose ends are
 * recorded.
 */
#ifndef TN_REPLAY_DEVICE_LAG_H
#define TN_REPLAY_DEVICE_LAG_H

#include "base/vec.h"

#include <stdint.h>

struct tn_device_lag {
    uint32_t lag_ms;     /* constant */
    uint32_t now_ms;     /* time of the trace, from its first event on */
    struct tn_vec asked; /* events asked for and not done */
};

void tn_device_lag_init(struct tn_device_lag *lag, uint32_t lag_ms);
void tn_device_lag_fini(struct tn_device_lag *lag);

/* Whether the event is done now; it may then be recorded again. Without host memory it is not. */
bool tn_device_lag_passed(struct tn_device_lag *lag, uint64_t event);

#endif
