/* SPDX-License-Identifier: MIT */
/*
 * Requests to a process that runs: a snapshot now, history on and off, cached memory back to the
 * device, a pool asleep and awake. Off unless the process asks for it: TARN_WATCH=control, or
 * `control` in struct tarn_watch_options (tarn/watch.h). Then it takes requests of the same user,
 * and of root, on a socket beside its page.
 *
 * What serves requests writes snapshots, so it is in libtarn-tools. A process takes requests for
 * allocators that are watched after that library is there: a shared one enables itself when it is
 * loaded, as in Python; a program that is linked to libtarn-tools calls tarn_control_enable.
 */
#ifndef TARN_WATCH_CONTROL_H
#define TARN_WATCH_CONTROL_H

#include "graph_pool.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* From now on requests are taken for allocators whose watching begins with control. Any thread. */
TARN_API void tarn_control_enable(void);

/*
 * Requests. `runtime_folder` is the value of XDG_RUNTIME_DIR, NULL where it is not set. A request
 * waits until the process has done what it is asked for, at most `timeout_ms` milliseconds; a
 * process that hangs may never do it. The error is that of the process. TARN_ERR_NOT_FOUND when the
 * process takes no requests, with the reason, TARN_ERR_NOT_READY when it did not answer in time,
 * TARN_ERR_FORMAT when it answers something else, TARN_ERR_UNSAFE and TARN_ERR_IO as
 * tarn_watch_open.
 */

/* Writes a snapshot of all watched allocators, as tarn_snapshot_save, with their history where that
 * is on or the program records its own. The process writes the file: `path` is absolute and must
 * not exist (TARN_ERR_IO). */
TARN_API enum tarn_status tarn_control_snapshot(const char *runtime_folder, int64_t process,
                                                const char *path, uint32_t timeout_ms,
                                                struct tarn_error *error) TARN_MUST_CHECK;

/* tarn_allocator_trim of each watched allocator. *reserved_out, which may be NULL: what all of them
 * have reserved afterwards. */
TARN_API enum tarn_status tarn_control_trim(const char *runtime_folder, int64_t process,
                                            uint64_t bytes, uint64_t *reserved_out,
                                            uint32_t timeout_ms,
                                            struct tarn_error *error) TARN_MUST_CHECK;

/* tarn_allocator_sleep and tarn_allocator_wake of that pool (tarn/sleep.h), in each watched
 * allocator that has it. Only for a program that expects it: work on memory that is asleep fails.
 * TARN_ERR_NOT_FOUND when no allocator has the pool. */
TARN_API enum tarn_status tarn_control_sleep(const char *runtime_folder, int64_t process,
                                             struct tarn_pool_id pool, bool discard,
                                             uint32_t timeout_ms,
                                             struct tarn_error *error) TARN_MUST_CHECK;
TARN_API enum tarn_status tarn_control_wake(const char *runtime_folder, int64_t process,
                                            struct tarn_pool_id pool, uint32_t timeout_ms,
                                            struct tarn_error *error) TARN_MUST_CHECK;

/* Begins to record events with stacks, of which the last `max_entries` are kept (0: the default of
 * tarn/history.h), or ends that and forgets them. Beginning again changes nothing. TARN_ERR_STATE
 * when the program records stacks itself: that goes on. A program that begins to do so takes this
 * history's place. */
TARN_API enum tarn_status tarn_control_history(const char *runtime_folder, int64_t process, bool on,
                                               uint64_t max_entries, uint32_t timeout_ms,
                                               struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
