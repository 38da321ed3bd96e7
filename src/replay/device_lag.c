/* SPDX-License-Identifier: MIT */
#include "replay/device_lag.h"

struct asked {
    uint64_t event;
    uint32_t first_ms;
};

void tn_device_lag_init(struct tn_device_lag *lag, uint32_t lag_ms)
{
    *lag = (struct tn_device_lag){.lag_ms = lag_ms};
    tn_vec_init(&lag->asked, sizeof(struct asked));
}

void tn_device_lag_fini(struct tn_device_lag *lag)
{
    tn_vec_fini(&lag->asked);
}

static struct asked *find(const struct tn_device_lag *lag, uint64_t event)
{
    struct asked *asked = lag->asked.items;

    for (size_t i = 0; i < lag->asked.count; i++) {
        if (asked[i].event == event) {
            return &asked[i];
        }
    }
    return NULL;
}

bool tn_device_lag_passed(struct tn_device_lag *lag, uint64_t event)
{
    struct asked *found = find(lag, event);

    if (lag->lag_ms == 0) {
        return true;
    }
    if (!found) {
        (void)tn_vec_add(&lag->asked, &(struct asked){.event = event, .first_ms = lag->now_ms});
        return false;
    }
    if (lag->now_ms - found->first_ms < lag->lag_ms) {
        return false;
    }
    *found = ((struct asked *)lag->asked.items)[--lag->asked.count];
    return true;
}
