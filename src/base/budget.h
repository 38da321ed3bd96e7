/* SPDX-License-Identifier: MIT */
/*
 * A limit on the host memory that one parsed file may use. Several owners (arenas, stores, tables)
 * share one budget; the counter is exact. Not thread-safe: a budget belongs to one reader.
 *
 * The limit may grow with the input, for inputs whose size is not known beforehand: what a reader
 * holds then stays in proportion to what it was given.
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
    uint64_t used;  /* bytes held now or charged; used <= limit unless limit is 0 */
    bool exceeded;  /* some request did not fit */

    const uint64_t *input; /* bytes of the input so far; NULL: the limit is fixed */
    uint64_t per_byte;     /* of the input, what the limit grows by */
    uint64_t most;         /* the limit never grows beyond */
};

/* As tn_host_alloc, NULL also when the budget has no room. Free with tn_budget_free. */
void *tn_budget_alloc(struct tn_budget *budget, size_t size) TN_MUST_CHECK;

/* memory may be NULL. */
void tn_budget_free(struct tn_budget *budget, void *memory, size_t size);

/* Counts bytes that nobody allocates as used, for good: what something would take if it were not
 * shared, or what a library takes. False when there is no room. */
bool tn_budget_charge(struct tn_budget *budget, uint64_t size) TN_MUST_CHECK;

/* The limit as the input stands, 0 = none. */
uint64_t tn_budget_limit(struct tn_budget *budget);

/* Why the last tn_budget_alloc returned NULL. */
enum tarn_status tn_budget_status(const struct tn_budget *budget);

#endif
