/* SPDX-License-Identifier: MIT */
/*
 * Publishes the counters of this process's allocators in a page that other processes read
 * (watch_page.h). A thread of its own sleeps until a reader asks; then it looks at each source once
 * and writes what it found. Nothing else in the process does anything for it.
 *
 * The page exists while there is a source, and is removed when the process exits. A forked child
 * has none of it: what it makes itself is published in a page of its own.
 *
 * Thread-safe. Sources are looked at under a mutex that tn_publisher_remove takes as well: after it
 * returned nobody looks.
 */
#ifndef TN_ALLOC_WATCH_PUBLISHER_H
#define TN_ALLOC_WATCH_PUBLISHER_H

#include "alloc/watch/watch_page.h"
#include "base/attr.h"
#include "tarn/status.h"

/* Where the numbers come from. */
struct tn_publisher_source {
    void *context;

    /* Writes what is known now over what was known before. False when it would have to wait: the
     * record is as before. `renews_rows`: the rows too, which takes longer; then rows_time_ns is
     * set to `now_ns`. On the publisher's thread, and once on that of tn_publisher_add. */
    bool (*look)(void *context, struct tn_page_record *record, uint64_t now_ns, bool renews_rows);

    uint64_t device_free; /* when it is added */
    uint64_t device_total;
    const char *bus_id; /* of the device; NULL = none */

    /* Called by the publisher: its place. */
    int slot;
};

/* Starts publishing. `runtime`: the user's folder for running programs ($XDG_RUNTIME_DIR), NULL =
 * not set; only the first source decides. TARN_ERR_LIMIT for too many sources, TARN_ERR_IO when the
 * page cannot be made, with the reason; TARN_ERR_HOST_MEMORY when there is no thread. */
enum tarn_status tn_publisher_add(struct tn_publisher_source *source, const char *runtime,
                                  bool controlled, struct tarn_error *error) TN_MUST_CHECK;

/* Publishes its last numbers and forgets it. Does nothing if it was not added by this process. */
void tn_publisher_remove(struct tn_publisher_source *source);

/* Says in the page that requests are taken. */
void tn_publisher_set_controlled(void);

/* Notes a failed request, for the next time that a reader asks. */
void tn_publisher_note_oom(const struct tn_publisher_source *source, const struct tn_page_oom *oom);

#endif
