/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "base/os_symbol.h"

#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The dynamic symbols of a module: numbers `first` to `end` may be defined there. */
struct table {
    const Elf64_Sym *symbols;
    const char *strings;
    size_t strings_size;
    uint32_t first;
    uint32_t end;
};

struct search {
    uintptr_t address;
    struct tn_os_symbol *symbol;
    bool found;
};

/* The segment of the module that contains the address; NULL when there is none. */
static const Elf64_Phdr *segment_at(const struct dl_phdr_info *module, uintptr_t address)
{
    for (unsigned i = 0; i < module->dlpi_phnum; i++) {
        const Elf64_Phdr *segment = &module->dlpi_phdr[i];

        if (segment->p_type == PT_LOAD &&
            address - (module->dlpi_addr + segment->p_vaddr) < segment->p_memsz) {
            return segment;
        }
    }
    return NULL;
}

/* Bytes that can be read from the address on, within one segment of the module. */
static size_t readable_from(const struct dl_phdr_info *module, uintptr_t address)
{
    const Elf64_Phdr *segment = segment_at(module, address);

    return segment && (segment->p_flags & PF_R) != 0
               ? segment->p_memsz - (address - (module->dlpi_addr + segment->p_vaddr))
               : 0;
}

static const Elf64_Dyn *dynamic_section(const struct dl_phdr_info *module, size_t *count_out)
{
    for (unsigned i = 0; i < module->dlpi_phnum; i++) {
        const Elf64_Phdr *segment = &module->dlpi_phdr[i];
        const uintptr_t address = module->dlpi_addr + segment->p_vaddr;

        if (segment->p_type == PT_DYNAMIC && readable_from(module, address) >= segment->p_memsz) {
            *count_out = segment->p_memsz / sizeof(Elf64_Dyn);
            return (const Elf64_Dyn *)address; /* NOLINT(performance-no-int-to-ptr) */
        }
    }
    return NULL;
}

/* The linker makes these addresses absolute, except in the vDSO. */
static const void *table_at(const struct dl_phdr_info *module, Elf64_Addr address, size_t size)
{
    const uintptr_t absolute = address < module->dlpi_addr ? module->dlpi_addr + address : address;

    /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
    return readable_from(module, absolute) >= size ? (const void *)absolute : NULL;
}

/* A GNU hash table has no count of symbols: it ends with the last chain, the one that begins at the
 * highest number. Words: buckets, first hashed symbol, words of the filter, shift; filter; first
 * symbol of each bucket, 0 = empty; hashes of the symbols, odd at the end of a chain. */
static void count_gnu_hash(const struct dl_phdr_info *module, const uint32_t *head,
                           struct table *table)
{
    enum {
        HEAD_WORDS = 4
    };
    const size_t words = readable_from(module, (uintptr_t)head) / sizeof *head;
    const size_t buckets = HEAD_WORDS + (size_t)head[2] * (sizeof(Elf64_Addr) / sizeof *head);
    const size_t chains = buckets + head[0];
    uint32_t last = 0;

    if (chains > words) {
        return;
    }
    for (size_t i = buckets; i < chains; i++) {
        last = head[i] > last ? head[i] : last;
    }
    if (last < head[1] || head[1] == 0) {
        return; /* all buckets are empty */
    }
    while (last - head[1] < words - chains && head[chains + (last - head[1])] % 2 == 0) {
        last++;
    }
    if (last - head[1] < words - chains) {
        table->first = head[1];
        table->end = last + 1;
    }
}

/* The older table: buckets, symbols, and two arrays of that many words. */
static void count_hash(const uint32_t *head, struct table *table)
{
    table->end = head[1];
}

static const Elf64_Dyn *dynamic_entry(const Elf64_Dyn *entries, size_t count, Elf64_Sxword tag)
{
    for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++) {
        if (entries[i].d_tag == tag) {
            return &entries[i];
        }
    }
    return NULL;
}

/* False when the module has no table that can be used. */
static bool table_find(const struct dl_phdr_info *module, struct table *table_out)
{
    size_t count = 0;
    const Elf64_Dyn *entries = dynamic_section(module, &count);
    const Elf64_Dyn *symbols = dynamic_entry(entries, count, DT_SYMTAB);
    const Elf64_Dyn *strings = dynamic_entry(entries, count, DT_STRTAB);
    const Elf64_Dyn *strings_size = dynamic_entry(entries, count, DT_STRSZ);
    const Elf64_Dyn *gnu_hash = dynamic_entry(entries, count, DT_GNU_HASH);
    const Elf64_Dyn *hash = dynamic_entry(entries, count, DT_HASH);

    if (!symbols || !strings || !strings_size || (!gnu_hash && !hash)) {
        return false;
    }
    const uint32_t *head = table_at(module, (gnu_hash ? gnu_hash : hash)->d_un.d_ptr, 16);

    *table_out = (struct table){.strings_size = strings_size->d_un.d_val};
    if (head && gnu_hash) {
        count_gnu_hash(module, head, table_out);
    } else if (head) {
        count_hash(head, table_out);
    }
    table_out->symbols =
        table_at(module, symbols->d_un.d_ptr, table_out->end * sizeof *table_out->symbols);
    table_out->strings = table_at(module, strings->d_un.d_ptr, table_out->strings_size);
    return table_out->symbols && table_out->strings && table_out->strings_size > 0;
}

static unsigned symbol_binding(const Elf64_Sym *symbol)
{
    return symbol->st_info >> 4;
}

static bool symbol_covers(const Elf64_Sym *symbol, Elf64_Addr offset)
{
    return offset - symbol->st_value < symbol->st_size && /* rarely true, so first */
           (symbol->st_info & 0xf) == STT_FUNC && symbol->st_shndx != SHN_UNDEF;
}

/* The function that begins last before the offset, if it contains it. Of several names for one
 * function the first global one, as debuggers choose. */
static const Elf64_Sym *symbol_at(const struct table *table, Elf64_Addr offset)
{
    const Elf64_Sym *best = NULL;

    for (uint32_t i = table->first; i < table->end; i++) {
        const Elf64_Sym *symbol = &table->symbols[i];

        if (symbol_covers(symbol, offset) &&
            (!best || symbol->st_value > best->st_value ||
             (symbol->st_value == best->st_value && symbol_binding(best) != STB_GLOBAL &&
              symbol_binding(symbol) == STB_GLOBAL))) {
            best = symbol;
        }
    }
    return best;
}

static void copy_name(const struct table *table, const Elf64_Sym *symbol, char *name_out)
{
    if (symbol && symbol->st_name < table->strings_size) {
        const size_t left = table->strings_size - symbol->st_name;
        const size_t most = left < TN_OS_SYMBOL_MAX ? left : TN_OS_SYMBOL_MAX;
        const char *name = table->strings + symbol->st_name;
        const size_t length = strnlen(name, most);

        if (length < most) {
            memcpy(name_out, name, length + 1);
        }
    }
}

/* Runs under the linker's lock: only copies. */
static int search_module(struct dl_phdr_info *module, size_t size, void *context)
{
    struct search *search = context;
    const Elf64_Phdr *code = segment_at(module, search->address);
    struct table table;

    (void)size;
    if (!code) {
        return 0;
    }
    if ((code->p_flags & PF_X) != 0) {
        search->found = true;
        search->symbol->name[0] = '\0';
        (void)snprintf(search->symbol->module, sizeof search->symbol->module, "%s",
                       module->dlpi_name ? module->dlpi_name : "");
        if (table_find(module, &table)) {
            copy_name(&table, symbol_at(&table, search->address - module->dlpi_addr),
                      search->symbol->name);
        }
    }
    return 1;
}

/* The linker has no name for the program itself. */
static void name_program(struct tn_os_symbol *symbol)
{
    const ssize_t length = readlink("/proc/self/exe", symbol->module, sizeof symbol->module - 1);

    symbol->module[length > 0 ? length : 0] = '\0';
}

bool tn_os_symbol_find(uintptr_t address, struct tn_os_symbol *symbol_out)
{
    struct search search = {.address = address, .symbol = symbol_out};

    (void)dl_iterate_phdr(search_module, &search);
    if (search.found && symbol_out->module[0] == '\0') {
        name_program(symbol_out);
    }
    return search.found;
}
