/* SPDX-License-Identifier: MIT */
#include "tarn/event.h"

const char *tarn_action_name(enum tarn_action action)
{
    static const char *const names[] = {
#define ACTION_NAME(name, text) [TARN_ACTION_##name] = text,
        TARN_ACTION_MAP(ACTION_NAME)
#undef ACTION_NAME
    };
    return (unsigned)action < TARN_ACTION_COUNT ? names[action] : "unknown";
}
