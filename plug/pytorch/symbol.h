/* SPDX-License-Identifier: MIT */
/* Symbols of other libraries in the process, looked up at run time, so that neither building nor
 * loading the plug needs torch, the C++ library or CUDA. Any thread. */
#ifndef PLUG_PYTORCH_SYMBOL_H
#define PLUG_PYTORCH_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>

/* Address of a symbol, NULL if no loaded library has it. */
void *tn_torch_symbol(const char *name);

/* Copies the address of a function into `function_out`, a pointer to a function pointer. False if
 * it does not exist. */
bool tn_torch_function(const char *name, void *function_out);

/* Size in bytes of the object that starts at that address, 0 if unknown. */
size_t tn_torch_object_size(const void *address);

/* Whether a symbol at that address has a name with this prefix. */
bool tn_torch_is_named(const void *address, const char *beginning);

/* Whether the address is in code of a loaded library or program. */
bool tn_torch_is_code(const void *address);

#endif
