/* SPDX-License-Identifier: MIT */
/*
 * Names of C++ functions as their source has them, by the program's own C++ runtime (libstdc++ or
 * libc++abi): where there is C++ code to name, there is one. It is looked for when the first such
 * name comes and never loaded for it, so a program without C++ stays without. Thread-safe.
 */
#ifndef TN_BASE_CXX_NAME_H
#define TN_BASE_CXX_NAME_H

#include "base/attr.h"

/* "_ZN3foo3barEi" gives "foo::bar(int)"; free it with tn_cxx_name_free. NULL for what is no such
 * name, without a C++ runtime, and without memory: then the name is best shown as it is. */
char *tn_cxx_name(const char *mangled) TN_MUST_CHECK;

/* NULL is allowed. */
void tn_cxx_name_free(char *name);

#endif
