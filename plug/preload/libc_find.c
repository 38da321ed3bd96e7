/* SPDX-License-Identifier: MIT */
/*
 * Finds functions of the C library in the tables of its own object: dlsym cannot be asked for dlsym
 * where this library stands in for it.
 */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "plug/preload/driver.h"
#include "plug/preload/elf_object.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>

struct search {
    const char *name;
    void *address;
};

static uint32_t gnu_hash(const char *name)
{
    uint32_t hash = 5381;

    for (; *name != '\0'; name++) {
        hash = hash * 33 + (unsigned char)*name;
    }
    return hash;
}

/* The symbol of that name that the object defines, or NULL. */
static const Elf64_Sym *symbol_find(const struct run_object *object, const char *name)
{
    const uint32_t *table = object->gnu_hash;
    const uint32_t hash = gnu_hash(name);
    const uint32_t buckets = table[0];
    const uint32_t first = table[1];
    const uint32_t *bucket = table + 4 + (size_t)table[2] * (sizeof(Elf64_Addr) / sizeof *table);
    const uint32_t *chain = bucket + buckets;

    for (uint32_t at = bucket[hash % buckets]; at >= first && at != 0; at++) {
        const Elf64_Sym *symbol = &object->symbols[at];

        if ((chain[at - first] | 1u) == (hash | 1u) && symbol->st_shndx != SHN_UNDEF &&
            strcmp(object->strings + symbol->st_name, name) == 0) {
            return symbol;
        }
        if ((chain[at - first] & 1u) != 0) {
            break;
        }
    }
    return NULL;
}

static int object_visit(struct dl_phdr_info *info, size_t size, void *context)
{
    struct search *search = context;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *file = slash ? slash + 1 : info->dlpi_name;
    struct run_object object;

    (void)size;
    if ((strcmp(file, "libc.so.6") != 0 && strcmp(file, "libdl.so.2") != 0) ||
        !run_object_read(info, &object) || !object.gnu_hash) {
        return 0;
    }
    const Elf64_Sym *symbol = symbol_find(&object, search->name);

    if (symbol) {
        const uintptr_t address = object.base + symbol->st_value;

        memcpy(&search->address, &address, sizeof address);
    }
    return symbol != NULL;
}

void *run_libc_find(const char *name)
{
    struct search search = {.name = name};

    (void)dl_iterate_phdr(object_visit, &search);
    return search.address;
}

void *run_real_dlsym(void *library, const char *name)
{
    static _Atomic(uintptr_t) kept;
    uintptr_t address = atomic_load_explicit(&kept, memory_order_relaxed);
    void *(*function)(void *library, const char *name);

    if (address == 0) {
        void *there = run_libc_find("dlsym");

        memcpy(&address, &there, sizeof address);
        atomic_store_explicit(&kept, address, memory_order_relaxed);
    }
    memcpy(&function, &address, sizeof function);
    return function ? function(library, name) : NULL;
}
