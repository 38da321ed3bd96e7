/* SPDX-License-Identifier: MIT */
/* A libdw of another age: it has one of the functions that are looked for, which must not be called
 * when the others are missing. */
#include <stdlib.h>

__attribute__((visibility("default"))) void *dwfl_begin(const void *callbacks);

void *dwfl_begin(const void *callbacks)
{
    (void)callbacks;
    abort();
}
