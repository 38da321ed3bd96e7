/* SPDX-License-Identifier: MIT */
#include "base/dl.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

void *tn_dl_open(const char *path, char *why, size_t size)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

    if (!library) {
        const char *reason = dlerror();

        (void)snprintf(why, size, "%s", reason ? reason : "no reason given");
    }
    return library;
}

bool tn_dl_find(void *library, const char *name, void *function_out)
{
    void *const found = dlsym(library, name);

    if (!found) {
        return false;
    }
    /* POSIX guarantees that a function pointer fits; ISO C has no cast for it. */
    static_assert(sizeof found == sizeof(void (*)(void)), "functions are not addresses here");
    memcpy(function_out, &found, sizeof found);
    return true;
}
