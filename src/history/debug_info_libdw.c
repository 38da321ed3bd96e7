/* SPDX-License-Identifier: MIT */
/*
 * Debug information through libdw. The library is loaded when the first address is looked up, so
 * that a program that records no stacks does not have it, and libtarn.so needs the C library alone.
 * Where it is not installed there is no debug information to be had.
 */
#include "history/debug_info.h"

#include "base/dl.h"
#include "base/host_mem.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define LIBDW_FUNCTIONS(F)                                                                         \
    F(dwfl_begin)                                                                                  \
    F(dwfl_end)                                                                                    \
    F(dwfl_report_begin_add)                                                                       \
    F(dwfl_linux_proc_report)                                                                      \
    F(dwfl_report_end)                                                                             \
    F(dwfl_addrmodule)                                                                             \
    F(dwfl_module_info)                                                                            \
    F(dwfl_module_addrdie)                                                                         \
    F(dwfl_module_nextcu)                                                                          \
    F(dwfl_module_addrname)                                                                        \
    F(dwfl_linux_proc_find_elf)                                                                    \
    F(dwfl_standard_find_debuginfo)                                                                \
    F(dwarf_formudata)                                                                             \
    F(dwarf_attr)                                                                                  \
    F(dwarf_filesrc)                                                                               \
    F(dwarf_formstring)                                                                            \
    F(dwarf_attr_integrate)                                                                        \
    F(dwarf_diename)                                                                               \
    F(dwarf_child)                                                                                 \
    F(dwarf_tag)                                                                                   \
    F(dwarf_haspc)                                                                                 \
    F(dwarf_siblingof)                                                                             \
    F(dwarf_getsrc_die)                                                                            \
    F(dwarf_getsrcfiles)                                                                           \
    F(dwarf_lineno)                                                                                \
    F(dwarf_linesrc)

static struct {
#define LIBDW_MEMBER(name) __typeof__(name) *name;
    LIBDW_FUNCTIONS(LIBDW_MEMBER)
#undef LIBDW_MEMBER
    Dwfl_Callbacks callbacks;
    bool is_there;
} libdw; /* written once, by libdw_load */

static pthread_once_t libdw_once = PTHREAD_ONCE_INIT;

static bool libdw_find(void *library)
{
    static const struct {
        const char *name;
        void *function_out;
    } wanted[] = {
#define LIBDW_WANTED(name) {#name, (void *)&libdw.name},
        LIBDW_FUNCTIONS(LIBDW_WANTED)
#undef LIBDW_WANTED
    };

    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        if (!tn_dl_find(library, wanted[i].name, wanted[i].function_out)) {
            return false;
        }
    }
    return true;
}

static void libdw_load(void)
{
    char why[256];
    void *library = tn_dl_open("libdw.so.1", why, sizeof why);

    libdw.is_there = library && libdw_find(library);
    libdw.callbacks.find_elf = libdw.dwfl_linux_proc_find_elf;
    libdw.callbacks.find_debuginfo = libdw.dwfl_standard_find_debuginfo;
}

struct tn_debug_info {
    Dwfl *dwfl;
    bool modules_listed;
};

void tn_debug_info_expect_modules(struct tn_debug_info *info)
{
    if (info) {
        info->modules_listed = false;
    }
}

static void list_modules(struct tn_debug_info *info)
{
    libdw.dwfl_report_begin_add(info->dwfl);
    (void)libdw.dwfl_linux_proc_report(info->dwfl, getpid());
    (void)libdw.dwfl_report_end(info->dwfl, NULL, NULL);
    info->modules_listed = true;
}

bool tn_debug_info_open(struct tn_debug_info **info_out)
{
    *info_out = NULL;
    (void)pthread_once(&libdw_once, libdw_load);
    if (!libdw.is_there) {
        return true;
    }
    Dwfl *dwfl = libdw.dwfl_begin(&libdw.callbacks);
    struct tn_debug_info *info = dwfl ? tn_host_alloc_zero(sizeof *info) : NULL;

    *info_out = info;
    if (info) {
        info->dwfl = dwfl;
    } else {
        libdw.dwfl_end(dwfl); /* NULL is allowed */
    }
    return info || !dwfl;
}

void tn_debug_info_close(struct tn_debug_info *info)
{
    if (info) {
        libdw.dwfl_end(info->dwfl);
        tn_host_free(info, sizeof *info);
    }
}

/* Where an inlined function was called. */
static const char *call_site(Dwarf_Die *die, Dwarf_Files *files, uint64_t *line_out)
{
    Dwarf_Attribute attribute;
    Dwarf_Word number = 0;
    Dwarf_Word line = 0;

    if (libdw.dwarf_formudata(libdw.dwarf_attr(die, DW_AT_call_line, &attribute), &line) != 0 ||
        libdw.dwarf_formudata(libdw.dwarf_attr(die, DW_AT_call_file, &attribute), &number) != 0) {
        return NULL;
    }
    *line_out = line;
    return libdw.dwarf_filesrc(files, number, NULL, NULL);
}

/* For C++, the linkage name, which includes scopes and parameters; otherwise the source name. */
static const char *function_name(Dwarf_Die *function)
{
    Dwarf_Attribute attribute;
    const char *linked = libdw.dwarf_formstring(
        libdw.dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute));

    return linked && strncmp(linked, "_Z", 2) == 0 ? linked : libdw.dwarf_diename(function);
}

/* Whether the entry can contain code or functions. */
static bool has_code(int tag)
{
    return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine ||
           tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
}

static bool has_functions(int tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
           tag == DW_TAG_module;
}

/* The child of a scope that contains the address. */
static bool find_part(const Dwarf_Die *scope, Dwarf_Addr address, Dwarf_Die *part_out)
{
    enum {
        PENDING_MAX = 64 /* nested namespaces and classes; deeper functions are not found */
    };
    Dwarf_Die pending[PENDING_MAX] = {*scope};
    size_t count = 1;

    while (count > 0) {
        Dwarf_Die part;
        int more = libdw.dwarf_child(&pending[--count], &part);

        while (more == 0) {
            const int tag = libdw.dwarf_tag(&part);

            if (has_code(tag) && libdw.dwarf_haspc(&part, address) > 0) {
                *part_out = part;
                return true;
            }
            if (has_functions(tag) && count < PENDING_MAX) {
                pending[count++] = part;
            }
            more = libdw.dwarf_siblingof(&part, &part);
        }
    }
    return false;
}

enum {
    SCOPES_MAX = 64 /* nested inlined functions; the outermost are kept */
};

/* The function at the address and the functions inlined there, outermost first. */
static size_t find_functions(const Dwarf_Die *unit, Dwarf_Addr address,
                             Dwarf_Die functions[SCOPES_MAX])
{
    Dwarf_Die scope = *unit;
    Dwarf_Die part;
    size_t count = 0;

    while (count < SCOPES_MAX && find_part(&scope, address, &part)) {
        const int tag = libdw.dwarf_tag(&part);

        if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine) {
            functions[count++] = part;
        }
        scope = part;
    }
    return count;
}

/* Where frames go, and whether there was any. */
struct receiver {
    tn_debug_visitor visit;
    void *context;
    bool has_any;
};

static bool receive(struct receiver *receiver, const char *name, const char *file, uint64_t line)
{
    receiver->has_any = true;
    return receiver->visit(receiver->context, name, file, line);
}

/* Visits the functions at the address; `file` and `line` belong to the innermost. False when the
 * visitor stopped; visits nothing without debug information. */
static bool visit_functions(struct receiver *receiver, Dwarf_Die *unit, Dwarf_Addr address,
                            const char *file, uint64_t line)
{
    Dwarf_Die functions[SCOPES_MAX];
    Dwarf_Files *files = NULL;
    size_t file_count;
    bool more = true;

    if (libdw.dwarf_getsrcfiles(unit, &files, &file_count) != 0) {
        files = NULL;
    }
    for (size_t i = find_functions(unit, address, functions); i > 0 && more; i--) {
        Dwarf_Die *function = &functions[i - 1];

        more = receive(receiver, function_name(function), file, line);
        line = 0;
        file = files && i > 1 ? call_site(function, files, &line) : NULL;
    }
    return more;
}

/* The module at an address. libdw extends the last module without limit, so check its end. */
static Dwfl_Module *module_at(struct tn_debug_info *info, Dwarf_Addr address)
{
    Dwarf_Addr begin = 0;
    Dwarf_Addr end = 0;

    if (!info->modules_listed) {
        list_modules(info);
    }
    Dwfl_Module *module = libdw.dwfl_addrmodule(info->dwfl, address);

    if (module) {
        (void)libdw.dwfl_module_info(module, NULL, &begin, &end, NULL, NULL, NULL, NULL);
    }
    return address >= begin && address < end ? module : NULL;
}

/* The unit that contains the address; NULL without debug information. libdw finds it by a table of
 * addresses, which gcc writes and clang does not: there the units themselves are asked. */
static Dwarf_Die *unit_at(Dwfl_Module *module, Dwarf_Addr address, Dwarf_Addr *bias_out)
{
    Dwarf_Die *unit = libdw.dwfl_module_addrdie(module, address, bias_out);

    if (unit) {
        return unit;
    }
    while ((unit = libdw.dwfl_module_nextcu(module, unit, bias_out)) != NULL &&
           libdw.dwarf_haspc(unit, address - *bias_out) <= 0) {
    }
    return unit;
}

/* The file and line of the address; NULL when unknown. */
static const char *source_line(Dwarf_Die *unit, Dwarf_Addr address, uint64_t *line_out)
{
    Dwarf_Line *line = libdw.dwarf_getsrc_die(unit, address);
    int number = 0;

    if (!line) {
        return NULL;
    }
    (void)libdw.dwarf_lineno(line, &number);
    *line_out = (uint64_t)number;
    return libdw.dwarf_linesrc(line, NULL, NULL);
}

bool tn_debug_info_visit(struct tn_debug_info *info, uint64_t address, tn_debug_visitor visit,
                         void *context)
{
    struct receiver receiver = {.visit = visit, .context = context};
    Dwfl_Module *module = info ? module_at(info, address) : NULL;

    if (!module) {
        return true;
    }
    Dwarf_Addr bias = 0;
    uint64_t line = 0;
    Dwarf_Die *unit = unit_at(module, address, &bias);
    const char *file = unit ? source_line(unit, address - bias, &line) : NULL;

    if (unit && !visit_functions(&receiver, unit, address - bias, file, line)) {
        return false;
    }
    if (receiver.has_any) {
        return true;
    }
    if (!file) { /* otherwise the line is known, but not whose */
        file = libdw.dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    }
    return receive(&receiver, libdw.dwfl_module_addrname(module, address), file, line);
}
