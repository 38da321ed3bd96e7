/* SPDX-License-Identifier: MIT */
/*
 * Return addresses to function, file and line, by the debug information of the program's own
 * modules (elfutils libdw). Inlined functions are frames of their own; functions of C++ have their
 * scopes and parameters (base/cxx_name.h). Answers are kept, so that an address is looked up once.
 *
 * Owns: what libdw read, and the answers. Not thread-safe: its owner locks. Cost: milliseconds for
 * the first address of a module, then microseconds; a hash lookup for a known address. libdw takes
 * its memory from malloc.
 */
#ifndef TN_HISTORY_SYMBOL_H
#define TN_HISTORY_SYMBOL_H

#include "base/attr.h"
#include "tarn/history.h"

struct tn_symbols;

/* NULL without host memory. */
struct tn_symbols *tn_symbols_create(void) TN_MUST_CHECK;
void tn_symbols_destroy(struct tn_symbols *symbols);

/* More modules may have been loaded: the next address that is not known lists them anew. */
void tn_symbols_expect_modules(struct tn_symbols *symbols);

/* The frames of one return address (not 0), innermost first: at least one. NULL without host
 * memory. Borrowed until `symbols` goes. */
const struct tarn_stack_frame *tn_symbols_find(struct tn_symbols *symbols, uint64_t address,
                                               size_t *count_out) TN_MUST_CHECK;

#endif
