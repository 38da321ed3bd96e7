/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* RTLD_DEEPBIND, dlvsym */
#include "plug/preload/lookup.h"

#include "plug/preload/hooks.h"
#include "plug/preload/process.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define PLAIN __attribute__((no_sanitize("thread", "address", "undefined")))
#else
#define PLAIN
#endif

RUN_EXPORT void *dlsym(void *library, const char *name);
RUN_EXPORT void *dlvsym(void *library, const char *name, const char *version);
RUN_EXPORT void *dlopen(const char *path, int flags);

typedef void *dlsym_function(void *library, const char *name);
typedef void *dlvsym_function(void *library, const char *name, const char *version);
typedef void *dlopen_function(const char *path, int flags);

static _Atomic(uintptr_t) real_dlsym;
static _Atomic(uintptr_t) real_dlvsym;
static _Atomic(uintptr_t) real_dlopen;

static uintptr_t real_find(_Atomic(uintptr_t) *kept, const char *name)
{
    uintptr_t address = atomic_load_explicit(kept, memory_order_relaxed);

    if (address == 0) {
        void *found = run_libc_find(name);

        memcpy(&address, &found, sizeof address);
        atomic_store_explicit(kept, address, memory_order_relaxed);
    }
    return address;
}

void *run_lookup_replace(const char *name, void *function)
{
    void *hook = run_driver_hook(function);

    if (!hook && function && run_driver() &&
        (run_driver_is_new(name) || run_driver_is_variant(name))) {
        run_say_once(name, "tarn run: the driver's function %s is new: what it allocates is not "
                           "followed\n");
    }
    return hook;
}

/* What the name stands for, if that is one of the driver's functions. */
static void *driver_find(void *library, const char *name)
{
    if (name[0] != 'c' || name[1] != 'u' || run_is_inside()) {
        return NULL;
    }
    void *named = run_driver_hook_named(name, NULL);

    if (!named && !run_driver_is_new(name)) {
        return NULL;
    }
    void *function = run_real_dlsym(library, name);

    return function && function == named ? named : run_lookup_replace(name, function);
}

void *run_lookup_loader_hook(const char *name)
{
    dlsym_function *const symbol = dlsym;
    dlvsym_function *const versioned = dlvsym;
    dlopen_function *const open = dlopen;
    void *hook = NULL;

    if (strcmp(name, "dlsym") == 0) {
        memcpy(&hook, &symbol, sizeof hook);
    } else if (strcmp(name, "dlvsym") == 0) {
        memcpy(&hook, &versioned, sizeof hook);
    } else {
        memcpy(&hook, &open, sizeof hook);
    }
    return hook;
}

PLAIN void *dlsym(void *library, const char *name)
{
    run_deepbind_settle();
    void *hook = driver_find(library, name);

    return hook ? hook : ((dlsym_function *)real_find(&real_dlsym, "dlsym"))(library, name);
}

PLAIN void *dlvsym(void *library, const char *name, const char *version)
{
    run_deepbind_settle();
    void *hook = driver_find(library, name);

    return hook ? hook
                : ((dlvsym_function *)real_find(&real_dlvsym, "dlvsym"))(library, name, version);
}

PLAIN void *dlopen(const char *path, int flags)
{
    if ((flags & RTLD_DEEPBIND) != 0) {
        run_deepbind_note();
    }
    return ((dlopen_function *)real_find(&real_dlopen, "dlopen"))(path, flags);
}
