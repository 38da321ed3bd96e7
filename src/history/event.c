/* SPDX-License-Identifier: MIT */
#include "history/event.h"

const char *tn_action_name(enum tn_action action)
{
    static const char *const names[] = {
#define ACTION_NAME(name, text) [TN_ACTION_##name] = text,
        TN_ACTION_MAP(ACTION_NAME)
#undef ACTION_NAME
    };
    return (unsigned)action < TN_ACTION_COUNT ? names[action] : "unknown";
}
