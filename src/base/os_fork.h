/* SPDX-License-Identifier: MIT */
/*
 * Whether this process is a forked child. A child has a copy of the memory but only the forking
 * thread: a lock that another thread held stays locked forever, the data it guards may be
 * inconsistent, and driver state of the parent is unusable.
 *
 * So objects with locks register a watch. In a child every registered watch is marked before fork
 * returns. Entry points check their watch before taking a lock, which costs one load, or replace
 * their function table in the callback, which costs nothing.
 */
#ifndef TN_BASE_OS_FORK_H
#define TN_BASE_OS_FORK_H

#include "base/attr.h"
#include "tarn/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Starts counting forks and marking watches; idempotent. False when the system has no memory for
 * the handler. */
bool tn_os_forks_watch(void) TN_MUST_CHECK;

/* Number of forks between the process that started watching and this one; so it differs between
 * parent and child. Costs one load. */
uint32_t tn_os_forks(void);

/* Embedded in an object that a forked child cannot use. All zero: not registered. */
struct tn_fork_watch {
    struct tn_fork_watch *next;                  /* guarded by tn_fork_hold, as is the next */
    struct tn_fork_watch **link;                 /* the pointer that points here */
    void (*forked)(struct tn_fork_watch *watch); /* constant */
    bool passed;                                 /* this process is a child of the object's
                                                    process */
};

/* Registers a watch, after tn_os_forks_watch succeeded. `forked` (may be NULL) is called in each
 * child, where no other thread runs. */
void tn_fork_watch_init(struct tn_fork_watch *watch, void (*forked)(struct tn_fork_watch *watch));
void tn_fork_watch_fini(struct tn_fork_watch *watch);

static inline bool tn_fork_passed(const struct tn_fork_watch *watch)
{
    return tn_unlikely(watch->passed);
}

/* Guards the few fields that a child keeps using: between the two calls no fork can happen, and
 * only one thread is inside. Take no locks in between. */
void tn_fork_hold(void);
void tn_fork_release(void);

/* Fails with TARN_ERR_STATE and its text; `what` is for example "the allocator". */
enum tarn_status tn_fork_refuse(struct tarn_error *error, const char *what);

#endif
