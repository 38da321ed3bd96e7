/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* dl_phdr_info */
#include "plug/preload/elf_object.h"

/* The linker has made addresses of what the file has as offsets, except in objects that it does not
 * write to. */
static uintptr_t address_of(const struct run_object *object, Elf64_Addr value)
{
    return value < object->base ? object->base + value : value;
}

static void segment_read(struct run_object *object, const Elf64_Phdr *part)
{
    const uintptr_t begin = object->base + part->p_vaddr;
    const uintptr_t end = begin + part->p_memsz;

    if (part->p_type == PT_LOAD) {
        object->begin = object->begin == 0 || begin < object->begin ? begin : object->begin;
        object->end = end > object->end ? end : object->end;
    } else if (part->p_type == PT_GNU_RELRO) {
        object->protected_begin = begin;
        object->protected_end = end;
    }
}

static void entry_read(struct run_object *object, const Elf64_Dyn *entry)
{
    const uintptr_t address = address_of(object, entry->d_un.d_ptr);

    switch (entry->d_tag) {
    case DT_SYMTAB:
        object->symbols = (const Elf64_Sym *)address;
        break;
    case DT_STRTAB:
        object->strings = (const char *)address;
        break;
    case DT_GNU_HASH:
        object->gnu_hash = (const uint32_t *)address;
        break;
    case DT_JMPREL:
        object->slots = (const Elf64_Rela *)address;
        break;
    case DT_PLTRELSZ:
        object->slot_count = entry->d_un.d_val / sizeof(Elf64_Rela);
        break;
    case DT_RELA:
        object->relocations = (const Elf64_Rela *)address;
        break;
    case DT_RELASZ:
        object->relocation_count = entry->d_un.d_val / sizeof(Elf64_Rela);
        break;
    default:
        break;
    }
}

bool run_object_read(const struct dl_phdr_info *info, struct run_object *object_out)
{
    const Elf64_Dyn *dynamic = NULL;

    *object_out = (struct run_object){.base = info->dlpi_addr};
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        segment_read(object_out, &info->dlpi_phdr[i]);
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            dynamic = (const Elf64_Dyn *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        }
    }
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        entry_read(object_out, dynamic);
    }
    object_out->slot_count = object_out->slots ? object_out->slot_count : 0;
    object_out->relocation_count = object_out->relocations ? object_out->relocation_count : 0;
    return object_out->symbols && object_out->strings;
}
