/* SPDX-License-Identifier: MIT */
/* An allocator as a source of the page of counters (tarn/watch.h, watch/publisher.h). */
#ifndef TN_ALLOC_ENGINE_WATCH_SOURCE_H
#define TN_ALLOC_ENGINE_WATCH_SOURCE_H

#include "alloc/engine/allocator.h"

/* What an engine shows of itself at one moment. */
struct tn_observation {
    struct tarn_stats stats;
    struct tarn_page_stats pages;
    uint64_t limit;
    const struct tarn_walker *walker; /* in: shown every segment and block; NULL = none */
    bool walked;                      /* not if there are very many blocks */
};

/* What takes requests for allocators (tarn/watch_control.h), where that is in the process: it is in
 * libtarn-tools, which libtarn does not know. Both are called without a lock; after `removed`
 * nobody uses the allocator. */
struct tn_control_hook {
    bool (*added)(struct tarn_allocator *allocator, const char *runtime);
    void (*removed)(struct tarn_allocator *allocator);
};

/* Static storage; for allocators that are watched from now on. */
void tn_watch_source_set_hook(const struct tn_control_hook *hook);

/* Starts if the settings ask for it. That it fails is no reason to fail: the program runs as
 * well. */
void tn_watch_source_begin(struct tarn_allocator *allocator, const struct tarn_config *config);

/* Before the allocator goes. */
void tn_watch_source_end(struct tarn_allocator *allocator);

/* Whether somebody may watch the allocator. */
bool tn_watch_source_is_on(const struct tarn_allocator *allocator);

/* For the next reader; without the engine's lock. */
void tn_watch_source_note_oom(const struct tarn_allocator *allocator, const struct tarn_oom *oom);

#endif
