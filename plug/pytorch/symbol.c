/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* RTLD_DEFAULT, dladdr1, dl_iterate_phdr */
#include "plug/pytorch/symbol.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

/* Python loads extensions with local symbols. But a library that is already loaded can be opened
 * again by name, which gives access to its symbols. */
static const char *const libraries[] = {
    "libc10.so",          "libc10_cuda.so", "libtorch_cuda.so",
    "libtorch_python.so", "libcuda.so.1",   "libstdc++.so.6",
};

void *tn_torch_symbol(const char *name)
{
    void *address = dlsym(RTLD_DEFAULT, name);

    for (size_t i = 0; !address && i < sizeof libraries / sizeof libraries[0]; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);

        if (library) {
            address = dlsym(library, name);
            (void)dlclose(library);
        }
    }
    return address;
}

bool tn_torch_function(const char *name, void *function_out)
{
    void *const address = tn_torch_symbol(name);

    memcpy(function_out, &address, sizeof address);
    return address != NULL;
}

size_t tn_torch_object_size(const void *address)
{
    Dl_info info;
    ElfW(Sym) *symbol = NULL;
    void *extra = NULL;

    if (!dladdr1(address, &info, &extra, RTLD_DL_SYMENT) || info.dli_saddr != address) {
        return 0;
    }
    symbol = extra;
    return symbol ? (size_t)symbol->st_size : 0;
}

bool tn_torch_is_named(const void *address, const char *beginning)
{
    Dl_info info;

    return dladdr(address, &info) && info.dli_saddr == address && info.dli_sname &&
           strncmp(info.dli_sname, beginning, strlen(beginning)) == 0;
}

struct code_search {
    uintptr_t address;
    bool found;
};

static int search_object(struct dl_phdr_info *object, size_t size, void *context)
{
    struct code_search *search = context;

    (void)size;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        const uintptr_t begin = (uintptr_t)object->dlpi_addr + (uintptr_t)part->p_vaddr;

        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) && search->address >= begin &&
            search->address - begin < part->p_memsz) {
            search->found = true;
        }
    }
    return search->found;
}

bool tn_torch_is_code(const void *address)
{
    struct code_search search = {.address = (uintptr_t)address};

    (void)dl_iterate_phdr(search_object, &search);
    return search.found;
}
