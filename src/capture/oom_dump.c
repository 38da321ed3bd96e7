/* SPDX-License-Identifier: MIT */
/*
 * Implements tarn/oom_dump.h: an observer of failures that captures and saves.
 *
 * Locks: `lock` (rank TN_LOCK_REGISTRY) serializes threads that fail concurrently, and guards the
 * count and the last error. The allocator calls observers without holding a lock, so capturing
 * under this one is allowed.
 */
#include "tarn/oom_dump.h"

#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/lock.h"
#include "base/os_fork.h"
#include "base/os_process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATH_MAX_BYTES = TARN_OOM_PATH_BYTES - 1
};

struct tarn_oom_dump {
    struct tarn_capture_source source; /* constant */
    char path[PATH_MAX_BYTES + 1];     /* constant */
    struct tn_fork_watch fork;
    struct tn_lock lock;
    uint64_t count;
    struct tarn_error last; /* status TARN_OK: none */
};

/* ---- the path ---- */

static const char *rank_of_process(void)
{
    static const char *const variables[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                            "SLURM_PROCID"};

    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *rank = getenv(variables[i]);

        if (rank && *rank) {
            return rank;
        }
    }
    return "0";
}

/* Replacement of the letter after a percent sign; NULL for any other letter. */
static const char *expansion(char letter, char *number, size_t size)
{
    switch (letter) {
    case 'p':
        (void)snprintf(number, size, "%lld", (long long)tn_os_process_id());
        return number;
    case 'r':
        return rank_of_process();
    case '%':
        return "%";
    default:
        return NULL;
    }
}

/* Appends to the path; false if it becomes too long. */
static bool path_add(char *text, size_t *used, const char *piece, size_t length)
{
    if (length > PATH_MAX_BYTES - *used) {
        return false;
    }
    memcpy(text + *used, piece, length);
    *used += length;
    text[*used] = '\0';
    return true;
}

static enum tarn_status path_expand(const char *path, char *text, struct tarn_error *error)
{
    char number[32];
    size_t used = 0;
    bool fits = *path != '\0';

    for (const char *at = path; fits && *at; at++) {
        const char *piece = *at == '%' ? expansion(at[1], number, sizeof number) : at;

        if (!piece) {
            return tn_fail_at(error, TARN_ERR_INVALID_ARGUMENT, at - path,
                              "path of a dump, position %td: only %%p (process), %%r (rank) and "
                              "%%%% may follow a percent sign",
                              at - path);
        }
        fits = path_add(text, &used, piece, *at == '%' ? strlen(piece) : 1);
        at += *at == '%';
    }
    return fits ? TARN_OK
                : tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "the path of a dump has 1 to %d bytes",
                          PATH_MAX_BYTES);
}

/* NULL if neither the caller nor the environment sets it. */
static const char *path_given(const char *path)
{
    return path ? path : getenv("TARN_DUMP_ON_OOM");
}

enum tarn_status tarn_oom_dump_expand(const char *path, char *text, struct tarn_error *error)
{
    const char *given = path_given(path);

    text[0] = '\0';
    return given ? path_expand(given, text, error) : TARN_OK;
}

/* ---- dumping ---- */

static enum tarn_status dump_write(struct tarn_oom_dump *dump)
{
    struct tarn_snapshot *snapshot = NULL;
    enum tarn_status st = tarn_snapshot_capture(&dump->source, 1, NULL, &snapshot, &dump->last);

    if (st == TARN_OK) {
        st = tarn_snapshot_save(snapshot, dump->path, &dump->last);
        tarn_snapshot_destroy(snapshot);
    }
    return st;
}

static void dump_observe(void *context, const struct tarn_oom *oom)
{
    struct tarn_oom_dump *dump = context;

    (void)oom;
    if (tn_never(tn_fork_passed(&dump->fork))) { /* the allocator is older, and refuses before */
        return;
    }
    tn_lock_acquire(&dump->lock);
    dump->count++;
    dump->last.status = dump_write(dump);
    tn_lock_release(&dump->lock);
}

enum tarn_status tarn_oom_dump_create(struct tarn_allocator *allocator,
                                      struct tarn_history *history, const char *path,
                                      struct tarn_oom_dump **dump_out, struct tarn_error *error)
{
    const char *given = path_given(path);

    *dump_out = NULL;
    if (!given) {
        return TARN_OK;
    }
    struct tarn_oom_dump *dump = tn_host_alloc_zero(sizeof *dump);

    if (!dump) {
        return tn_fail_memory(error);
    }
    dump->source = (struct tarn_capture_source){allocator, history};
    enum tarn_status st = path_expand(given, dump->path, error);

    if (st == TARN_OK) {
        st = tarn_allocator_add_oom_observer(allocator, dump_observe, dump);
        if (st) {
            (void)tn_fail(error, st, "dumping when memory runs out: %s", tarn_status_text(st));
        }
    }
    if (st) {
        tn_host_free(dump, sizeof *dump);
        return st;
    }
    tn_lock_init(&dump->lock, TN_LOCK_REGISTRY);
    tn_fork_watch_init(&dump->fork, NULL);
    *dump_out = dump;
    return TARN_OK;
}

void tarn_oom_dump_destroy(struct tarn_oom_dump *dump)
{
    if (dump && !tn_fork_passed(&dump->fork)) {
        tn_fork_watch_fini(&dump->fork);
        tn_lock_fini(&dump->lock);
        tn_host_free(dump, sizeof *dump);
    }
}

uint64_t tarn_oom_dump_count(struct tarn_oom_dump *dump)
{
    if (tn_fork_passed(&dump->fork)) {
        return 0;
    }
    tn_lock_acquire(&dump->lock);
    const uint64_t count = dump->count;

    tn_lock_release(&dump->lock);
    return count;
}

enum tarn_status tarn_oom_dump_get_status(struct tarn_oom_dump *dump, struct tarn_error *error)
{
    if (tn_fork_passed(&dump->fork)) {
        return tn_fork_refuse(error, "what dumps when memory runs out");
    }
    tn_lock_acquire(&dump->lock);
    const enum tarn_status st = dump->last.status;

    if (st && error) {
        *error = dump->last;
    }
    tn_lock_release(&dump->lock);
    return st;
}

const char *tarn_oom_dump_get_path(const struct tarn_oom_dump *dump)
{
    return dump->path;
}
