/* SPDX-License-Identifier: MIT */
/*
 * A limit on the host memory that one parsed file may use. Several owners (arenas, stores, tables)
 * share one budget; the counter is exact. Not thread-safe: a budget belongs to one reader.
 */
#ifndef TN_BASE_BUDGET_H
#define TN_BASE_BUDGET_H

#include "base/attr.h"
#include "tarn/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tn_budget {
    uint64_t limit; /* bytes; 0 = none */
    uint64_t used;  /* bytes held now; used <= limit unless limit is 0 */
    bool exceeded;  /* some request did not fit */
};

/* As tn_host_alloc, NULL also when the budget has no room. Free with tn_budget_free. */
void *tn_budget_alloc(struct tn_budget *budget, size_t size) TN_MUST_CHECK;

/* memory may be NULL. */
void tn_budget_free(struct tn_budget *budget, void *memory, size_t size);

/* Why the last tn_budget_alloc returned NULL. */
enum tarn_status tn_budget_status(const struct tn_budget *budget);

#endif
