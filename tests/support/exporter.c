/* SPDX-License-Identifier: MIT */
/* A module that a test opens and closes: two exported functions, as C and as C++ name them, and one
 * that is not exported; another with several names; and one that another's size covers too. */
#include <stdint.h>

#define EXPORTED __attribute__((visibility("default"), noinline))

EXPORTED int exporter_plain(int x);
EXPORTED int exporter_cxx(int x) __asm__("_ZN8exporter4randEi");
EXPORTED uintptr_t exporter_hidden_address(void);

EXPORTED int exporter_plain(int x)
{
    return x + 1;
}

EXPORTED int exporter_cxx(int x)
{
    return x * 3;
}

__attribute__((noinline)) static int hidden(int x)
{
    return x - 7;
}

EXPORTED uintptr_t exporter_hidden_address(void)
{
    return (uintptr_t)&hidden;
}

/* One function with a weak and a global name, and a symbol that claims to begin before it and to
 * cover it: what disassembled code and old assemblers leave in tables. */
__asm__(".text\n"
        ".globl exporter_outer\n.type exporter_outer, @function\nexporter_outer:\n  nop\n"
        ".weak exporter_a_weak\n.type exporter_a_weak, @function\nexporter_a_weak:\n"
        ".globl exporter_global\n.type exporter_global, @function\nexporter_global:\n"
        ".weak exporter_z_weak\n.type exporter_z_weak, @function\nexporter_z_weak:\n"
        ".globl exporter_object\n.type exporter_object, @object\nexporter_object:\n"
        "  nop\n  nop\n  nop\n  nop\n"
        ".size exporter_a_weak, 4\n.size exporter_global, 4\n.size exporter_z_weak, 4\n"
        ".size exporter_object, 4\n.size exporter_outer, 5\n");
