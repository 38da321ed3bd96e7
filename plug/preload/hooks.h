/* SPDX-License-Identifier: MIT */
/* The functions that stand in for the driver's, under the driver's names (hooks.def). */
#ifndef RUN_HOOKS_H
#define RUN_HOOKS_H

#include "plug/preload/driver.h"

#define RUN_EXPORT __attribute__((visibility("default")))

#define RUN_HOOK(exported, plain, since, flags, parameters) RUN_EXPORT int exported parameters;
#include "plug/preload/hooks.def"
#undef RUN_HOOK

#endif
