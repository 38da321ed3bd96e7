/* SPDX-License-Identifier: MIT */
/*
 * Lets other processes of the same user watch an allocator while it runs: a page of counters in
 * shared memory (docs/watch.md), which `tarn watch` and tarn/watch_read.h read. The process that is
 * watched does nothing until somebody asks, and its calls are as fast as without.
 *
 *     tarn_watch_start(allocator, NULL, &error);
 *
 * The environment does the same for every allocator whose settings come from it: TARN_WATCH=1
 * (tarn_config_from_env). A forked child is watched through what it creates itself.
 */
#ifndef TARN_WATCH_H
#define TARN_WATCH_H

#include "allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zeros mean the defaults. */
struct tarn_watch_options {
    uint32_t struct_size;       /* sizeof(struct tarn_watch_options) */
    const char *runtime_folder; /* the value of XDG_RUNTIME_DIR; NULL = not set: /run/user/UID or,
                                   where there is none, /tmp */
    bool control;               /* says that a control socket is wanted (tarn/watch_control.h) */
};

/* Starts publishing the allocator's counters: creates the page, PID.page in the folder `tarn`
 * inside the runtime folder, unless this process has one, and a thread that sleeps until a reader
 * asks. `options` may be NULL; of several allocators the first decides. Does nothing if the
 * allocator is watched already. Any thread, but not from a sink, callback or walker.
 * TARN_ERR_INVALID_ARGUMENT, TARN_ERR_LIMIT for more than 16 allocators, TARN_ERR_IO when there is
 * no private folder or no room in it, TARN_ERR_HOST_MEMORY; TARN_ERR_STATE in a forked child. */
TARN_API enum tarn_status tarn_watch_start(struct tarn_allocator *allocator,
                                           const struct tarn_watch_options *options,
                                           struct tarn_error *error) TARN_MUST_CHECK;

/* Stops; the page goes with the last allocator. Destroying the allocator, and the end of the
 * process, do the same. Any thread. */
TARN_API void tarn_watch_stop(struct tarn_allocator *allocator);

/* Whether the allocator is watched. Any thread. */
TARN_API bool tarn_watch_is_on(struct tarn_allocator *allocator);

#ifdef __cplusplus
}
#endif

#endif
