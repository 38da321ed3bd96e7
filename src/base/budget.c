/* SPDX-License-Identifier: MIT */
#include "base/budget.h"

#include "base/assertion.h"
#include "base/checked.h"
#include "base/host_mem.h"

uint64_t tn_budget_limit(struct tn_budget *budget)
{
    if (budget->input) {
        uint64_t grown;

        if (!tn_mul_u64(*budget->input, budget->per_byte, &grown) || grown > budget->most) {
            grown = budget->most;
        }
        budget->limit = grown > budget->limit ? grown : budget->limit;
    }
    return budget->limit;
}

static bool budget_has_room(struct tn_budget *budget, uint64_t size)
{
    const bool has_room = budget->limit == 0 || size <= budget->limit - budget->used ||
                          size <= tn_budget_limit(budget) - budget->used;

    budget->exceeded = budget->exceeded || !has_room;
    return has_room;
}

bool tn_budget_charge(struct tn_budget *budget, uint64_t size)
{
    const bool has_room = budget_has_room(budget, size);

    budget->used += has_room ? size : 0;
    return has_room;
}

void *tn_budget_alloc(struct tn_budget *budget, size_t size)
{
    if (!budget_has_room(budget, size)) {
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
