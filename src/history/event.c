/* SPDX-License-Identifier: MIT */
#include "tarn/event.h"

#include <string.h>

const char *tarn_action_name(enum tarn_action action)
{
    static const char *const names[] = {
#define ACTION_NAME(name, text) [TARN_ACTION_##name] = text,
        TARN_ACTION_MAP(ACTION_NAME)
#undef ACTION_NAME
    };
    return (unsigned)action < TARN_ACTION_COUNT ? names[action] : "unknown";
}

bool tarn_action_find(const char *name, enum tarn_action *action_out)
{
    for (int action = 0; action < TARN_ACTION_COUNT; action++) {
        if (strcmp(name, tarn_action_name((enum tarn_action)action)) == 0) {
            *action_out = (enum tarn_action)action;
            return true;
        }
    }
    return false;
}
