/* SPDX-License-Identifier: MIT */
/*
 * Whether this process is a forked child. Such a child has a copy of everything, but only the
 * thread that forked: a lock that another thread held stays taken there for ever, what it guards
 * may be half changed, and what a driver holds for the parent is no use.
 *
 * So who has locks keeps a watch. In a child every watch that was kept is marked before fork
 * returns: entry points look at theirs before they take a lock, which costs one load, or replace
 * their table of functions when they are told, which costs nothing.
 */
#ifndef TN_BASE_OS_FORK_H
#define TN_BASE_OS_FORK_H

#include "base/attr.h"
#include "tarn/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Counts forks and marks watches from now on; any number of calls do the same. False when the
 * system has no memory to remember it. */
bool tn_os_forks_watch(void) TN_MUST_CHECK;

/* How many forks lie between this process and the one that began to watch. Differs in a child from
 * what the parent was told; costs one load. */
uint32_t tn_os_forks(void);

/* Part of an object that a forked child cannot use. All zero: nothing is watched. */
struct tn_fork_watch {
    struct tn_fork_watch *next;                  /* guarded by tn_fork_hold, as the next */
    struct tn_fork_watch **link;                 /* what points here */
    void (*forked)(struct tn_fork_watch *watch); /* constant */
    bool passed;                                 /* this process is a child of the object's */
};

/* Keeps watch, once tn_os_forks_watch succeeded. `forked` (NULL: nothing) is called in each child,
 * where no other thread runs. */
void tn_fork_watch_init(struct tn_fork_watch *watch, void (*forked)(struct tn_fork_watch *watch));
void tn_fork_watch_fini(struct tn_fork_watch *watch);

static inline bool tn_fork_passed(const struct tn_fork_watch *watch)
{
    return tn_unlikely(watch->passed);
}

/* For the few fields that a child goes on using: between the two no fork happens, and only one
 * thread is there. Nothing may be called in between that locks. */
void tn_fork_hold(void);
void tn_fork_release(void);

/* TARN_ERR_STATE and its text; `what` as in "the allocator". */
enum tarn_status tn_fork_refuse(struct tarn_error *error, const char *what);

#endif
