/* SPDX-License-Identifier: MIT */
/*
 * The exported function at an address, from the tables that the dynamic linker has in memory: no
 * file is read, and no library is needed. Functions that a module does not export have no name.
 *
 * Another thread may close modules meanwhile: the linker's lock is held during the search, so a
 * module is found whole or not at all, and the result is a copy. Tables that contradict the
 * module's segments are not followed.
 *
 * Thread-safe. Takes no memory. Cost: linear in the module's exported symbols, 2 ns each; meant for
 * addresses that are resolved once, late.
 */
#ifndef TN_BASE_OS_SYMBOL_H
#define TN_BASE_OS_SYMBOL_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TN_OS_SYMBOL_MAX = 32768, /* bytes of a name with its NUL; longer ones count as none */
    TN_OS_MODULE_MAX = 4096   /* of a module's path, cut if longer */
};

struct tn_os_symbol {
    char name[TN_OS_SYMBOL_MAX];   /* as the linker knows it; "" without an exported function */
    char module[TN_OS_MODULE_MAX]; /* path of the module */
};

/* False, storing nothing, when no module's code has the address. */
bool tn_os_symbol_find(uintptr_t address, struct tn_os_symbol *symbol_out);

#endif
