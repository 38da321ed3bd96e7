/* SPDX-License-Identifier: MIT */
/* Whether this process is a forked child: what a driver holds for the parent is no use there. */
#ifndef TN_BASE_OS_FORK_H
#define TN_BASE_OS_FORK_H

#include "base/attr.h"

#include <stdbool.h>
#include <stdint.h>

/* Counts forks from now on; any number of calls do the same. False when the system has no memory to
 * remember it. */
bool tn_os_forks_watch(void) TN_MUST_CHECK;

/* How many forks lie between this process and the one that began to watch. Differs in a child from
 * what the parent was told; costs one load. */
uint32_t tn_os_forks(void);

#endif
