/* SPDX-License-Identifier: MIT */
/*
 * Resolves return addresses to function, file and line: with the debug information of the program's
 * own modules (debug_info.h) or, where that is missing or has no name, by the functions that the
 * modules export (base/os_symbol.h); then the file is the module. Inlined functions are separate
 * frames; C++ functions have scopes and parameters (base/cxx_name.h). Results are cached.
 *
 * Owns the debug information's session and the results. Not thread-safe: its owner locks. Cost:
 * those files' for an unknown address, a hash lookup for a known one.
 */
#ifndef TN_HISTORY_SYMBOL_H
#define TN_HISTORY_SYMBOL_H

#include "base/attr.h"
#include "tarn/history.h"

struct tn_symbols;

/* NULL without host memory. */
struct tn_symbols *tn_symbols_create(void) TN_MUST_CHECK;
void tn_symbols_destroy(struct tn_symbols *symbols);

/* Modules may have been loaded: the next unknown address refreshes the module list. */
void tn_symbols_expect_modules(struct tn_symbols *symbols);

/* The frames of one return address (not 0), innermost first: at least one. NULL when host memory
 * runs out. Borrowed until `symbols` is destroyed. */
const struct tarn_stack_frame *tn_symbols_find(struct tn_symbols *symbols, uint64_t address,
                                               size_t *count_out) TN_MUST_CHECK;

#endif
