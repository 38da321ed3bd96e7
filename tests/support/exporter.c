/* SPDX-License-Identifier: MIT */
/* A module that a test opens and closes: two exported functions, as C and as C++ name them, and one
 * that is not exported. */
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
