/* SPDX-License-Identifier: MIT */
/*
 * Demangles C++ names with the program's own C++ runtime (libstdc++ or libc++abi): a program with
 * C++ code has one. It is looked up at the first mangled name but never loaded, so a program
 * without C++ stays without. Thread-safe.
 */
#ifndef TN_BASE_CXX_NAME_H
#define TN_BASE_CXX_NAME_H

#include "base/attr.h"

/* "_ZN3foo3barEi" gives "foo::bar(int)"; free it with tn_cxx_name_free. NULL for other names,
 * without a C++ runtime, and out of memory: then use the name unchanged. */
char *tn_cxx_name(const char *mangled) TN_MUST_CHECK;

/* NULL is allowed. */
void tn_cxx_name_free(char *name);

#endif
