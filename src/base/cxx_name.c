/* SPDX-License-Identifier: MIT */
#include "base/cxx_name.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Itanium C++ ABI: the result is allocated with malloc and owned by the caller. */
typedef char *(*demangler)(const char *mangled, char *buffer, size_t *size, int *status);

/* The function in a library that is already loaded; NULL when it is not. */
static void *find_loaded(const char *library)
{
    void *const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    void *const found = handle ? dlsym(handle, "__cxa_demangle") : NULL;

    if (handle) {
        (void)dlclose(handle); /* others keep it loaded */
    }
    return found;
}

/* A host language may load its C++ modules with local scope. Then the runtime is not in the global
 * scope and must be found by name. */
static void *find_any(void)
{
    static const char *const libraries[] = {NULL, "libstdc++.so.6", "libc++abi.so.1"};
    void *found = NULL;

    for (size_t i = 0; !found && i < sizeof libraries / sizeof *libraries; i++) {
        found = find_loaded(libraries[i]);
    }
    return found;
}

static demangler find_demangler(void)
{
    static _Atomic uintptr_t known; /* 0 = not found so far; racing threads find the same value */
    uintptr_t address = atomic_load_explicit(&known, memory_order_relaxed);
    demangler function = NULL;

    if (address == 0) {
        address = (uintptr_t)find_any();
        atomic_store_explicit(&known, address, memory_order_relaxed);
    }
    static_assert(sizeof function == sizeof address, "functions are not addresses here");
    memcpy(&function, &address, sizeof function);
    return function;
}

char *tn_cxx_name(const char *mangled)
{
    int status = -1;

    if (strncmp(mangled, "_Z", 2) != 0) {
        return NULL;
    }
    const demangler demangle = find_demangler();
    char *name = demangle ? demangle(mangled, NULL, NULL, &status) : NULL;

    if (status != 0) {
        tn_cxx_name_free(name);
        name = NULL;
    }
    return name;
}

void tn_cxx_name_free(char *name)
{
    free(name); /* of the C++ runtime's malloc */
}
