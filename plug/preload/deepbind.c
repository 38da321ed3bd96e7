/* SPDX-License-Identifier: MIT */
/*
 * A library opened with RTLD_DEEPBIND finds libcuda.so.1 and the C library's dlsym before this
 * library. dlopen only notes it; at the next dlsym, which the opener needs to call anything in it,
 * the slots in its table are replaced. So what its constructors call is not followed.
 */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "plug/preload/driver.h"
#include "plug/preload/elf_object.h"
#include "plug/preload/lookup.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static atomic_bool noted;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* What a slot holds that bypasses this library. Filled before the loader's lists are walked: under
 * their lock nothing may be opened. */
struct loader_function {
    const char *name;
    void *real;
};

static struct loader_function loader_functions[] = {
    {"dlsym", NULL}, {"dlvsym", NULL}, {"dlopen", NULL}};

enum {
    LOADER_FUNCTIONS = sizeof loader_functions / sizeof *loader_functions
};

static void loader_functions_find(void)
{
    for (size_t i = 0; i < LOADER_FUNCTIONS; i++) {
        loader_functions[i].real = run_libc_find(loader_functions[i].name);
    }
}

/* What the slot of that name should hold, NULL if it is none of ours; *real_out: what it holds when
 * it bypasses this library. */
static void *replacement_of(const char *name, void **real_out)
{
    for (size_t i = 0; i < LOADER_FUNCTIONS; i++) {
        if (strcmp(name, loader_functions[i].name) == 0) {
            *real_out = loader_functions[i].real;
            return run_lookup_loader_hook(name);
        }
    }
    *real_out = NULL;
    return name[0] == 'c' && name[1] == 'u' ? run_driver_hook_named(name, real_out) : NULL;
}

static void slot_write(const struct run_object *object, uintptr_t at, void *value)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = at & ~(page - 1);
    const bool guarded = at >= object->protected_begin && at < object->protected_end;
    void *const first = (void *)begin;

    if (guarded && mprotect(first, page, PROT_READ | PROT_WRITE) != 0) {
        return;
    }
    atomic_store((_Atomic(void *) *)at, value);
    if (guarded) {
        (void)mprotect(first, page, PROT_READ);
    }
}

static void relocation_settle(const struct run_object *object, const Elf64_Rela *relocation)
{
    const unsigned long kind = ELF64_R_TYPE(relocation->r_info);
    const Elf64_Sym *symbol = &object->symbols[ELF64_R_SYM(relocation->r_info)];
    void *real = NULL;

    if ((kind != RUN_RELOCATION_SLOT && kind != RUN_RELOCATION_DATA) ||
        symbol->st_shndx != SHN_UNDEF) {
        return;
    }
    void *hook = replacement_of(object->strings + symbol->st_name, &real);
    const uintptr_t at = object->base + relocation->r_offset;

    if (!hook) {
        return;
    }
    void *const now = atomic_load((_Atomic(void *) *)at);
    const uintptr_t value = (uintptr_t)now;
    const bool lazy = value >= object->begin && value < object->end;

    if (now != hook && (now == real || lazy)) {
        slot_write(object, at, hook);
    }
}

static int object_settle(struct dl_phdr_info *info, size_t size, void *context)
{
    const uintptr_t own = (uintptr_t)context;
    struct run_object object;

    (void)size;
    if (info->dlpi_name[0] == '\0' || !run_object_read(info, &object) ||
        (own >= object.begin && own < object.end)) {
        return 0;
    }
    for (size_t i = 0; i < object.slot_count; i++) {
        relocation_settle(&object, &object.slots[i]);
    }
    for (size_t i = 0; i < object.relocation_count; i++) {
        relocation_settle(&object, &object.relocations[i]);
    }
    return 0;
}

void run_deepbind_note(void)
{
    atomic_store(&noted, true);
}

void run_deepbind_settle(void)
{
    if (atomic_load_explicit(&noted, memory_order_relaxed) && atomic_exchange(&noted, false)) {
        (void)pthread_mutex_lock(&lock);
        (void)run_driver();
        loader_functions_find();
        (void)dl_iterate_phdr(object_settle, &noted);
        (void)pthread_mutex_unlock(&lock);
    }
}
