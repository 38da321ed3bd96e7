/* SPDX-License-Identifier: MIT */
/* Many schedules of a workload. */
#ifndef TESTS_SCHEDULE_EXPLORE_H
#define TESTS_SCHEDULE_EXPLORE_H

#include "schedule/workload.h"

#include <stdbool.h>

/* Runs the schedules of the seeds from `first`, in child processes. On the first that fails, prints
 * its seed, what is wrong and the switches that it needs, and returns false. */
bool explore(const struct workload *workload, uint64_t first, uint64_t count);

/* Runs one schedule in a child process, gives its fingerprint; false if it fails. */
bool explore_one(const struct workload *workload, uint64_t seed, uint64_t *fingerprint_out);

#endif
