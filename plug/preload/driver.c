/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* dlvsym */
#include "plug/preload/driver.h"

#include "plug/preload/hooks.h"

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

struct hook {
    const char *exported;
    const char *plain;
    int since;
    uint64_t flags;
    size_t member; /* offset in struct run_driver */
};

static const struct hook hooks[] = {
#define RUN_HOOK(exported, plain, since, flags, parameters)                                        \
    {#exported, #plain, since, flags, offsetof(struct run_driver, exported)},
#include "plug/preload/hooks.def"
#undef RUN_HOOK
};

enum {
    HOOKS = sizeof hooks / sizeof *hooks
};

static const char *const known[] = {
#define RUN_KNOWN(name) #name,
#include "plug/preload/known.def"
#undef RUN_KNOWN
};

static struct run_driver driver; /* written once, before `found` is set, */
static void *by_name[HOOKS];     /* as are addresses as the driver exports them, */
static _Atomic(void *)
    by_address[HOOKS]; /* and before `asked` as its cuGetProcAddress gives them */
static _Atomic(bool) found;
static _Atomic(bool) asked;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ISO C has no cast between the two; POSIX says that they have one size. */
static void *address_of(size_t hook)
{
#define RUN_HOOK(exported, plain, since, flags, parameters)                                        \
    {                                                                                              \
        int(*function) parameters = exported;                                                      \
        memcpy(&ours[at++], &function, sizeof function);                                           \
    }
    void *ours[HOOKS];
    size_t at = 0;

#include "plug/preload/hooks.def"
#undef RUN_HOOK
    return ours[hook];
}

static void member_set(size_t offset, void *address)
{
    static_assert(sizeof address == sizeof driver.cuCtxGetDevice, "functions are not addresses");
    memcpy((char *)&driver + offset, &address, sizeof address);
}

/* What cuGetProcAddress gives for the hook's function, NULL if it does not. */
static void *proc_address(const struct hook *hook)
{
    void *function = NULL;
    int status = 0;

    if (driver.cuGetProcAddress_v2) {
        (void)driver.cuGetProcAddress_v2(hook->plain, &function, hook->since, hook->flags, &status);
    } else if (driver.cuGetProcAddress) {
        (void)driver.cuGetProcAddress(hook->plain, &function, hook->since, hook->flags);
    }
    return function;
}

static void driver_fill(void *library)
{
    for (size_t i = 0; i < HOOKS; i++) {
        by_name[i] = run_real_dlsym(library, hooks[i].exported);
        member_set(hooks[i].member, by_name[i]);
    }
#define FIND(name) member_set(offsetof(struct run_driver, name), run_real_dlsym(library, #name))
    FIND(cuCtxGetDevice);
    FIND(cuCtxGetCurrent);
    FIND(cuCtxSynchronize);
    FIND(cuCtxPushCurrent_v2);
    FIND(cuCtxPopCurrent_v2);
    FIND(cuDevicePrimaryCtxRetain);
    FIND(cuStreamIsCapturing);
#undef FIND
}

const struct run_driver *run_driver(void)
{
    if (atomic_load_explicit(&found, memory_order_acquire)) {
        return &driver;
    }
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

    if (!library) {
        (void)dlerror(); /* the program asked for something else */
        return NULL;
    }
    (void)pthread_mutex_lock(&lock);
    if (!atomic_load_explicit(&found, memory_order_relaxed)) {
        driver_fill(library);
        atomic_store_explicit(&found, true, memory_order_release);
    }
    (void)pthread_mutex_unlock(&lock);
    return &driver; /* the library stays open: its functions are kept here */
}

void run_driver_ask(void)
{
    if (!run_driver() || atomic_load_explicit(&asked, memory_order_acquire)) {
        return;
    }
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < HOOKS && !atomic_load_explicit(&asked, memory_order_relaxed); i++) {
        atomic_store_explicit(&by_address[i], proc_address(&hooks[i]), memory_order_relaxed);
    }
    atomic_store_explicit(&asked, true, memory_order_release);
    (void)pthread_mutex_unlock(&lock);
}

void *run_driver_hook(const void *function)
{
    if (!function || !run_driver()) {
        return NULL;
    }
    for (size_t i = 0; i < HOOKS; i++) {
        if (by_name[i] == function ||
            atomic_load_explicit(&by_address[i], memory_order_relaxed) == function) {
            return address_of(i);
        }
    }
    return NULL;
}

void *run_driver_hook_named(const char *exported, void **real_out)
{
    for (size_t i = 0; i < HOOKS; i++) {
        if (strcmp(hooks[i].exported, exported) == 0) {
            if (real_out) {
                const bool there = atomic_load_explicit(&found, memory_order_acquire);

                *real_out = there ? by_name[i] : NULL;
            }
            return address_of(i);
        }
    }
    return NULL;
}

static bool name_begins(const char *name, const char *start)
{
    return strncmp(name, start, strlen(start)) == 0;
}

/* Whether `name` is `stem`, with or without a version or a kind of default stream after it. */
static bool name_is(const char *name, const char *stem)
{
    const size_t length = strlen(stem);

    return strncmp(name, stem, length) == 0 && (name[length] == '\0' || name[length] == '_');
}

bool run_driver_is_variant(const char *name)
{
    for (size_t i = 0; i < HOOKS; i++) {
        if (strcmp(name, hooks[i].plain) == 0) {
            return true;
        }
    }
    return false;
}

bool run_driver_is_new(const char *name)
{
    if (!name_begins(name, "cuMem") || name_begins(name, "cuMemcpy") ||
        name_begins(name, "cuMemset")) {
        return false;
    }
    for (size_t i = 0; i < HOOKS; i++) {
        if (strcmp(name, hooks[i].exported) == 0 || strcmp(name, hooks[i].plain) == 0) {
            return false;
        }
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (name_is(name, known[i])) {
            return false;
        }
    }
    return true;
}
