/* SPDX-License-Identifier: MIT */
/*
 * A limit on the host memory that one parsed file may use. Several owners (arenas, vectors, tables)
 * share one budget; the counter is exact. Not thread-safe: each reader has its own budget.
 *
 * The limit may grow with the input, for inputs of unknown size: memory then stays proportional to
 * the bytes read so far.
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
    uint64_t per_byte;     /* growth of the limit per input byte */
    uint64_t most;         /* upper bound of the limit */
};

/* As tn_host_alloc, but NULL also when the budget is exhausted. Free with tn_budget_free. */
void *tn_budget_alloc(struct tn_budget *budget, size_t size) TN_MUST_CHECK;

/* memory may be NULL. */
void tn_budget_free(struct tn_budget *budget, void *memory, size_t size);

/* Permanently counts bytes that are not allocated here: the cost of shared data if it were not
 * shared, or memory of a library. False when the budget is exhausted. */
bool tn_budget_charge(struct tn_budget *budget, uint64_t size) TN_MUST_CHECK;

/* The limit for the input so far, 0 = none. */
uint64_t tn_budget_limit(struct tn_budget *budget);

/* The reason why the last tn_budget_alloc returned NULL. */
enum tarn_status tn_budget_status(const struct tn_budget *budget);

#endif
