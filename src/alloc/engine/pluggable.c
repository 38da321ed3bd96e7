/* SPDX-License-Identifier: MIT */
#include "alloc/engine/pluggable.h"

#include "alloc/engine/allocator.h"
#include "base/dl.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/os_fork.h"

enum {
    REASON_MAX = 512
};

/* ---- a shared object ---- */

static enum tarn_status find(void *library, const char *name, void *function_out,
                             struct tarn_error *error)
{
    return tn_dl_find(library, name, function_out)
               ? TARN_OK
               : tn_fail(error, TARN_ERR_NOT_FOUND,
                         "pluggable allocator: the library has no function \"%s\"", name);
}

enum tarn_status tarn_pluggable_open(const char *path, const char *alloc_name,
                                     const char *free_name, struct tarn_pluggable **pluggable_out,
                                     struct tarn_error *error)
{
    char why[REASON_MAX];
    struct tarn_pluggable found = {.library = tn_dl_open(path, why, sizeof why)};

    if (!found.library) {
        return tn_fail(error, TARN_ERR_NOT_FOUND,
                       "pluggable allocator: the library cannot be loaded: %s", why);
    }
    enum tarn_status st = find(found.library, alloc_name, &found.alloc, error);

    st = st ? st : find(found.library, free_name, &found.free, error);
    if (st) {
        return st;
    }
    struct tarn_pluggable *pluggable = tn_host_alloc(sizeof *pluggable);

    if (!pluggable) {
        return tn_fail_memory(error);
    }
    *pluggable = found;
    *pluggable_out = pluggable;
    return TARN_OK;
}

enum tarn_status tarn_pluggable_set_hook(struct tarn_pluggable *pluggable,
                                         enum tarn_pluggable_hook hook, const char *name,
                                         struct tarn_error *error)
{
    switch (hook) {
    case TARN_PLUGGABLE_RESET:
        return find(pluggable->library, name, &pluggable->reset, error);
    case TARN_PLUGGABLE_MEMORY_FRACTION:
        return find(pluggable->library, name, &pluggable->memory_fraction, error);
    case TARN_PLUGGABLE_BASE_ALLOC:
        return find(pluggable->library, name, &pluggable->base_alloc, error);
    case TARN_PLUGGABLE_RECORD_STREAM:
        return find(pluggable->library, name, &pluggable->record_stream, error);
    case TARN_PLUGGABLE_HOOKS:
    default:
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "pluggable allocator: there is no hook number %d", (int)hook);
    }
}

/* ---- the current one ---- */

/* Guarded by tn_fork_hold: a forked child goes on using it. */
static struct {
    const struct tarn_pluggable *pluggable; /* NULL = libtarn's own */
    uint64_t allocators;                    /* made and not yet destroyed */
} current;

const struct tarn_pluggable *tn_current_acquire(void)
{
    tn_fork_hold();
    const struct tarn_pluggable *pluggable = current.pluggable;

    current.allocators++;
    tn_fork_release();
    return pluggable;
}

void tn_current_release(void)
{
    tn_fork_hold();
    tn_assert(current.allocators > 0);
    current.allocators--;
    tn_fork_release();
}

enum tarn_status tarn_pluggable_set_current(const struct tarn_pluggable *pluggable,
                                            struct tarn_error *error)
{
    tn_fork_hold();
    const uint64_t allocators = current.allocators;

    if (allocators == 0) {
        current.pluggable = pluggable;
    }
    tn_fork_release();
    return allocators == 0 ? TARN_OK
                           : tn_fail(error, TARN_ERR_STATE,
                                     "Can't swap an already initialized allocator: destroy every "
                                     "allocator first, or change before the first is made");
}

void tarn_pluggable_close(struct tarn_pluggable *pluggable)
{
    if (!pluggable) {
        return;
    }
    tn_fork_hold();
    if (current.pluggable == pluggable) {
        current.pluggable = NULL;
    }
    tn_fork_release();
    tn_host_free(pluggable, sizeof *pluggable);
}

enum tarn_status tarn_pluggable_create_allocator(const struct tarn_pluggable *pluggable,
                                                 struct tarn_device *device,
                                                 struct tarn_allocator **allocator_out,
                                                 struct tarn_error *error)
{
    const enum tarn_status st = tn_pluggable_create(pluggable, device, allocator_out);

    if (st) {
        return tn_fail_memory(error);
    }
    tn_allocator_begin(*allocator_out);
    return TARN_OK;
}
