/* SPDX-License-Identifier: MIT */
/* The first of two libraries with the same function: it asks for the next one. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <string.h>

__attribute__((visibility("default"))) int preload_next(void);

int preload_next(void)
{
    void *found = dlsym(RTLD_NEXT, "preload_next");
    int (*function)(void);

    memcpy(&function, &found, sizeof function);
    return found ? 1 + function() : -1;
}
