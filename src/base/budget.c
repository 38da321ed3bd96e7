/* SPDX-License-Identifier: MIT */
#include "base/budget.h"

#include "base/assertion.h"
#include "base/host_mem.h"

void *tn_budget_alloc(struct tn_budget *budget, size_t size)
{
    if (budget->limit != 0 && size > budget->limit - budget->used) {
        budget->exceeded = true;
        return NULL;
    }
    void *memory = tn_host_alloc(size);
    if (memory) {
        budget->used += size;
    }
    return memory;
}

void tn_budget_free(struct tn_budget *budget, void *memory, size_t size)
{
    if (memory) {
        tn_assert(budget->used >= size);
        budget->used -= size;
        tn_host_free(memory, size);
    }
}

enum tarn_status tn_budget_status(const struct tn_budget *budget)
{
    return budget->exceeded ? TARN_ERR_LIMIT : TARN_ERR_HOST_MEMORY;
}
