/* SPDX-License-Identifier: MIT */
#include "history/symbol.h"

#include "base/arena.h"
#include "base/cxx_name.h"
#include "base/host_mem.h"
#include "base/map.h"
#include "base/vec.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <string.h>
#include <unistd.h>

/* The resolved frames of an address. */
struct answer {
    const struct tarn_stack_frame *frames;
    size_t count;
};

struct tn_symbols {
    Dwfl *dwfl; /* NULL when libdw failed: all addresses are unknown */
    struct tn_budget budget;
    struct tn_arena arena;
    struct tn_map known;  /* address to struct answer */
    struct tn_vec frames; /* of the current address */
    bool modules_listed;
};

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_linux_proc_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
};

void tn_symbols_expect_modules(struct tn_symbols *symbols)
{
    symbols->modules_listed = false;
}

static void list_modules(struct tn_symbols *symbols)
{
    dwfl_report_begin_add(symbols->dwfl);
    (void)dwfl_linux_proc_report(symbols->dwfl, getpid());
    (void)dwfl_report_end(symbols->dwfl, NULL, NULL);
    symbols->modules_listed = true;
}

struct tn_symbols *tn_symbols_create(void)
{
    struct tn_symbols *symbols = tn_host_alloc_zero(sizeof *symbols);

    if (symbols) {
        tn_arena_init(&symbols->arena, &symbols->budget);
        tn_vec_init(&symbols->frames, sizeof(struct tarn_stack_frame));
        symbols->dwfl = dwfl_begin(&callbacks);
    }
    return symbols;
}

void tn_symbols_destroy(struct tn_symbols *symbols)
{
    if (symbols) {
        if (symbols->dwfl) {
            dwfl_end(symbols->dwfl);
        }
        tn_vec_fini(&symbols->frames);
        tn_map_fini(&symbols->known);
        tn_arena_fini(&symbols->arena);
        tn_host_free(symbols, sizeof *symbols);
    }
}

static const char *or_unknown(const char *text)
{
    return text ? text : "??";
}

/* The demangled name, stored with the results; NULL when host memory runs out. */
static const char *source_name(struct tn_symbols *symbols, const char *name)
{
    char *found = tn_cxx_name(name);

    if (!found) {
        return name;
    }
    const size_t size = strlen(found) + 1;
    char *kept = tn_arena_alloc(&symbols->arena, size);

    if (kept) {
        memcpy(kept, found, size);
    }
    tn_cxx_name_free(found);
    return kept;
}

static bool add_frame(struct tn_symbols *symbols, const char *name, const char *filename,
                      uint64_t line)
{
    const char *shown = source_name(symbols, or_unknown(name));
    struct tarn_stack_frame *frame = shown ? tn_vec_push(&symbols->frames) : NULL;

    if (frame) {
        *frame = (struct tarn_stack_frame){
            .name = shown,
            .filename = or_unknown(filename),
            .line = line,
        };
    }
    return frame != NULL;
}

/* Where an inlined function was called. */
static const char *call_site(Dwarf_Die *die, Dwarf_Files *files, uint64_t *line_out)
{
    Dwarf_Attribute attribute;
    Dwarf_Word number = 0;
    Dwarf_Word line = 0;

    if (dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attribute), &line) != 0 ||
        dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attribute), &number) != 0) {
        return NULL;
    }
    *line_out = line;
    return dwarf_filesrc(files, number, NULL, NULL);
}

/* For C++, the linkage name, which includes scopes and parameters; otherwise the source name. */
static const char *function_name(Dwarf_Die *function)
{
    Dwarf_Attribute attribute;
    const char *linked =
        dwarf_formstring(dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute));

    return linked && strncmp(linked, "_Z", 2) == 0 ? linked : dwarf_diename(function);
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
        int more = dwarf_child(&pending[--count], &part);

        while (more == 0) {
            const int tag = dwarf_tag(&part);

            if (has_code(tag) && dwarf_haspc(&part, address) > 0) {
                *part_out = part;
                return true;
            }
            if (has_functions(tag) && count < PENDING_MAX) {
                pending[count++] = part;
            }
            more = dwarf_siblingof(&part, &part);
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
        const int tag = dwarf_tag(&part);

        if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine) {
            functions[count++] = part;
        }
        scope = part;
    }
    return count;
}

/* Adds frames of the functions at the address; `file` and `line` belong to the innermost. False
 * when host memory runs out; adds no frame without debug information. */
static bool add_functions(struct tn_symbols *symbols, Dwarf_Die *unit, Dwarf_Addr address,
                          const char *file, uint64_t line)
{
    Dwarf_Die functions[SCOPES_MAX];
    Dwarf_Files *files = NULL;
    size_t file_count;
    bool fits = true;

    if (dwarf_getsrcfiles(unit, &files, &file_count) != 0) {
        files = NULL;
    }
    for (size_t i = find_functions(unit, address, functions); i > 0 && fits; i--) {
        Dwarf_Die *function = &functions[i - 1];

        fits = add_frame(symbols, function_name(function), file, line);
        line = 0;
        file = files && i > 1 ? call_site(function, files, &line) : NULL;
    }
    return fits;
}

/* The module at an address. libdw extends the last module without limit, so check its end. */
static Dwfl_Module *module_at(struct tn_symbols *symbols, Dwarf_Addr address)
{
    Dwarf_Addr begin = 0;
    Dwarf_Addr end = 0;

    if (symbols->dwfl && !symbols->modules_listed) {
        list_modules(symbols);
    }
    Dwfl_Module *module = symbols->dwfl ? dwfl_addrmodule(symbols->dwfl, address) : NULL;

    if (module) {
        (void)dwfl_module_info(module, NULL, &begin, &end, NULL, NULL, NULL, NULL);
    }
    return address >= begin && address < end ? module : NULL;
}

/* Fills symbols->frames; false when host memory runs out. */
static bool look_up(struct tn_symbols *symbols, uint64_t address)
{
    const Dwarf_Addr at = address - 1; /* of the call, not of the next instruction */
    Dwfl_Module *module = module_at(symbols, at);

    symbols->frames.count = 0;
    if (!module) {
        return add_frame(symbols, NULL, NULL, 0);
    }
    Dwarf_Addr bias = 0;
    int line = 0;
    Dwfl_Line *line_info = dwfl_module_getsrc(module, at);
    const char *file = line_info ? dwfl_lineinfo(line_info, NULL, &line, NULL, NULL, NULL) : NULL;
    Dwarf_Die *unit = dwfl_module_addrdie(module, at, &bias);

    if (unit && !add_functions(symbols, unit, at - bias, file, (uint64_t)line)) {
        return false;
    }
    if (symbols->frames.count > 0) {
        return true;
    }
    if (!file) {
        file = dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    }
    return add_frame(symbols, dwfl_module_addrname(module, at), file, (uint64_t)line);
}

/* Stores the result in symbols->frames. */
static const struct answer *keep_answer(struct tn_symbols *symbols, uint64_t address)
{
    const size_t count = symbols->frames.count;
    struct answer *answer = tn_arena_alloc(&symbols->arena, sizeof *answer);
    struct tarn_stack_frame *frames = tn_arena_alloc_array(&symbols->arena, count, sizeof *frames);

    if (!answer || !frames || !tn_map_reserve(&symbols->known, 1)) {
        return NULL;
    }
    memcpy(frames, symbols->frames.items, count * sizeof *frames);
    *answer = (struct answer){.frames = frames, .count = count};
    tn_map_insert(&symbols->known, address, (uint64_t)(uintptr_t)answer);
    return answer;
}

const struct tarn_stack_frame *tn_symbols_find(struct tn_symbols *symbols, uint64_t address,
                                               size_t *count_out)
{
    const uint64_t *known = tn_map_find(&symbols->known, address);
    const struct answer *answer = known ? (const struct answer *)(uintptr_t)*known : NULL;

    if (!answer && look_up(symbols, address)) {
        answer = keep_answer(symbols, address);
    }
    if (!answer) {
        return NULL;
    }
    *count_out = answer->count;
    return answer->frames;
}
