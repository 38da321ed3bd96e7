/* SPDX-License-Identifier: MIT */
/* What threads do under the scheduler, and what must hold afterwards. */
#ifndef TESTS_SCHEDULE_WORKLOAD_H
#define TESTS_SCHEDULE_WORKLOAD_H

#include "schedule/schedule.h"

struct workload {
    const char *name;
    unsigned threads;
    void *(*open)(uint64_t seed); /* the seed draws settings and sizes as well */
    schedule_body *body;
    const char *(*close)(void *context); /* what is wrong, or NULL; frees the context */
};

struct tarn_allocator;

/* What the allocator's own check finds first, NULL if nothing; valid until the next call. */
const char *workload_finding(struct tarn_allocator *allocator);

extern const struct workload workload_lock;
extern const struct workload workload_biased_lock;
extern const struct workload workload_allocator;
extern const struct workload workload_async;
extern const struct workload workload_stream_caches;
extern const struct workload workload_sinks;
extern const struct workload workload_pinned;
extern const struct workload workload_page;
extern const struct workload workload_devices;
extern const struct workload workload_sleep;
extern const struct workload workload_failures;
extern const struct workload workload_snapshots;
extern const struct workload workload_tracker;

#endif
