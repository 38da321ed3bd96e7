/* SPDX-License-Identifier: MIT */
/* The tables of a loaded object that the dynamic linker has in memory. */
#ifndef RUN_ELF_OBJECT_H
#define RUN_ELF_OBJECT_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which kinds of relocation a slot of the object's is filled by. */
#if defined(__x86_64__)
#define RUN_RELOCATION_SLOT R_X86_64_JUMP_SLOT
#define RUN_RELOCATION_DATA R_X86_64_GLOB_DAT
#elif defined(__aarch64__)
#define RUN_RELOCATION_SLOT R_AARCH64_JUMP_SLOT
#define RUN_RELOCATION_DATA R_AARCH64_GLOB_DAT
#endif

struct run_object {
    uintptr_t base;
    uintptr_t begin; /* of its addresses */
    uintptr_t end;
    uintptr_t protected_begin; /* what the linker makes read-only after it has filled it */
    uintptr_t protected_end;
    const Elf64_Sym *symbols;
    const char *strings;
    const uint32_t *gnu_hash; /* NULL = none */
    const Elf64_Rela *slots;  /* NULL = none; those of functions, which may be lazy */
    size_t slot_count;
    const Elf64_Rela *relocations; /* NULL = none */
    size_t relocation_count;
};

/* False for an object without a table of symbols. */
bool run_object_read(const struct dl_phdr_info *info, struct run_object *object_out);

#endif
