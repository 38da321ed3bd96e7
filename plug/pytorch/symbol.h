/* SPDX-License-Identifier: MIT */
/* What other libraries of the process define: looked up at run time, so that nothing of torch, of
 * the C++ library or of CUDA is needed to build or to load the plug. Any thread. */
#ifndef PLUG_PYTORCH_SYMBOL_H
#define PLUG_PYTORCH_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>

/* Address of a symbol, NULL where no library that is loaded has it. */
void *tn_torch_symbol(const char *name);

/* Copies the address of a function into `function_out`, a pointer to a pointer to a function. Is
 * it there? */
bool tn_torch_function(const char *name, void *function_out);

/* Size in bytes of the object that begins at that address, 0 where that is not known. */
size_t tn_torch_object_size(const void *address);

/* Whether a symbol whose name begins so is at that address. */
bool tn_torch_is_named(const void *address, const char *beginning);

/* Whether code of a loaded library or program is at that address. */
bool tn_torch_is_code(const void *address);

#endif
