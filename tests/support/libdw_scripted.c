/* SPDX-License-Identifier: MIT */
/* A libdw that says what a test wants, also what no compiler writes: libdw_scripted.h. */
#include "support/libdw_scripted.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stddef.h>

#pragma GCC visibility push(default)

extern struct scripted_libdw scripted;
struct scripted_libdw scripted;

/* What is opaque to callers has an address all the same. */
#define OPAQUE(type, object) ((type *)(void *)(object))

static struct scripted_entry *entry_of(const Dwarf_Die *die)
{
    return die->addr;
}

static int die_set(struct scripted_entry *entry, Dwarf_Die *die_out)
{
    die_out->addr = entry;
    return entry ? 0 : 1;
}

Dwfl *dwfl_begin(const Dwfl_Callbacks *callbacks)
{
    (void)callbacks;
    if (scripted.has_no_memory) {
        return NULL;
    }
    scripted.sessions++;
    return OPAQUE(Dwfl, &scripted);
}

void dwfl_end(Dwfl *dwfl)
{
    scripted.sessions -= dwfl != NULL;
}

void dwfl_report_begin_add(Dwfl *dwfl)
{
    (void)dwfl;
}

int dwfl_linux_proc_report(Dwfl *dwfl, pid_t process)
{
    (void)dwfl;
    return process > 0 ? 0 : -1;
}

int dwfl_report_end(Dwfl *dwfl,
                    int (*removed)(Dwfl_Module *module, void *data, const char *name,
                                   Dwarf_Addr base, void *context),
                    void *context)
{
    (void)dwfl;
    (void)removed;
    (void)context;
    return 0;
}

Dwfl_Module *dwfl_addrmodule(Dwfl *dwfl, Dwarf_Addr address)
{
    (void)dwfl;
    (void)address;
    return OPAQUE(Dwfl_Module, &scripted);
}

const char *dwfl_module_info(Dwfl_Module *module, void ***data, Dwarf_Addr *start, Dwarf_Addr *end,
                             Dwarf_Addr *dwarf_bias, Dwarf_Addr *symbol_bias, const char **file,
                             const char **debug_file)
{
    (void)module;
    (void)data;
    (void)dwarf_bias;
    (void)symbol_bias;
    (void)file;
    (void)debug_file;
    if (start) {
        *start = scripted.begin;
        *end = scripted.end;
    }
    return "module";
}

Dwarf_Die *dwfl_module_addrdie(Dwfl_Module *module, Dwarf_Addr address, Dwarf_Addr *bias)
{
    static Dwarf_Die unit;

    (void)module;
    (void)address;
    *bias = 0;
    return die_set(scripted.unit, &unit) == 0 ? &unit : NULL;
}

Dwarf_Die *dwfl_module_nextcu(Dwfl_Module *module, Dwarf_Die *last, Dwarf_Addr *bias)
{
    (void)module;
    (void)last;
    (void)bias;
    return NULL;
}

const char *dwfl_module_addrname(Dwfl_Module *module, GElf_Addr address)
{
    (void)module;
    (void)address;
    return scripted.exported;
}

int dwfl_linux_proc_find_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                             char **file_name, Elf **elf)
{
    (void)module;
    (void)data;
    (void)name;
    (void)base;
    (void)file_name;
    (void)elf;
    return -1;
}

int dwfl_standard_find_debuginfo(Dwfl_Module *module, void **data, const char *name,
                                 Dwarf_Addr base, const char *file, const char *debug_link,
                                 GElf_Word check, char **debug_file)
{
    (void)module;
    (void)data;
    (void)name;
    (void)base;
    (void)file;
    (void)debug_link;
    (void)check;
    (void)debug_file;
    return -1;
}

/* An attribute is the entry that has it. */
Dwarf_Attribute *dwarf_attr(Dwarf_Die *die, unsigned name, Dwarf_Attribute *result)
{
    const struct scripted_entry *entry = entry_of(die);
    const bool is_there = name == DW_AT_call_line      ? entry->call_line > 0
                          : name == DW_AT_call_file    ? entry->call_in != NULL
                          : name == DW_AT_linkage_name ? entry->linkage_name != NULL
                                                       : false;

    result->code = name;
    result->valp = (unsigned char *)(uintptr_t)entry;
    return is_there ? result : NULL;
}

Dwarf_Attribute *dwarf_attr_integrate(Dwarf_Die *die, unsigned name, Dwarf_Attribute *result)
{
    return dwarf_attr(die, name, result);
}

/* The number of a file is the address of its name. */
int dwarf_formudata(Dwarf_Attribute *attribute, Dwarf_Word *value_out)
{
    if (!attribute) {
        return -1;
    }
    const struct scripted_entry *entry = OPAQUE(struct scripted_entry, attribute->valp);

    *value_out = attribute->code == DW_AT_call_line ? entry->call_line : (uintptr_t)entry->call_in;
    return 0;
}

const char *dwarf_filesrc(Dwarf_Files *files, size_t number, Dwarf_Word *time, Dwarf_Word *length)
{
    (void)files;
    (void)time;
    (void)length;
    return (const char *)number;
}

const char *dwarf_formstring(Dwarf_Attribute *attribute)
{
    return attribute ? OPAQUE(struct scripted_entry, attribute->valp)->linkage_name : NULL;
}

const char *dwarf_diename(Dwarf_Die *die)
{
    return entry_of(die)->name;
}

int dwarf_child(Dwarf_Die *die, Dwarf_Die *child_out)
{
    return die_set(entry_of(die)->child, child_out);
}

int dwarf_siblingof(Dwarf_Die *die, Dwarf_Die *next_out)
{
    return die_set(entry_of(die)->next, next_out);
}

int dwarf_tag(Dwarf_Die *die)
{
    return entry_of(die)->tag;
}

int dwarf_haspc(Dwarf_Die *die, Dwarf_Addr address)
{
    (void)address;
    return entry_of(die)->has_address;
}

Dwarf_Line *dwarf_getsrc_die(Dwarf_Die *unit, Dwarf_Addr address)
{
    (void)unit;
    (void)address;
    return scripted.file ? OPAQUE(Dwarf_Line, &scripted) : NULL;
}

int dwarf_getsrcfiles(Dwarf_Die *unit, Dwarf_Files **files_out, size_t *count_out)
{
    (void)unit;
    *files_out = OPAQUE(Dwarf_Files, &scripted);
    *count_out = 1;
    return scripted.has_no_files ? -1 : 0;
}

int dwarf_lineno(Dwarf_Line *line, int *number_out)
{
    (void)line;
    *number_out = 7;
    return 0;
}

const char *dwarf_linesrc(Dwarf_Line *line, Dwarf_Word *time, Dwarf_Word *length)
{
    (void)line;
    (void)time;
    (void)length;
    return scripted.file;
}
