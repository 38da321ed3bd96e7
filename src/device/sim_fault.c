/* SPDX-License-Identifier: MIT */
#include "device/sim_fault.h"

#include "base/assertion.h"

void tn_sim_fault_plan(struct tn_sim_faults *faults, enum tarn_sim_call call, uint64_t n,
                       enum tarn_status status)
{
    if ((unsigned)call > TARN_SIM_ANY) {
        return;
    }
    faults->plan[call] = (struct tn_sim_plan){.left = status == TARN_OK ? 0 : n, .status = status};
}

/* Whether the plan's call is this one. */
static bool plan_hits(struct tn_sim_plan *plan)
{
    return plan->left > 0 && --plan->left == 0;
}

enum tarn_status tn_sim_fault_next(struct tn_sim_faults *faults, enum tarn_sim_call call)
{
    tn_assert((unsigned)call < TARN_SIM_CALL_COUNT);
    struct tn_sim_plan *own = &faults->plan[call];
    struct tn_sim_plan *any = &faults->plan[TARN_SIM_ANY];
    const bool own_hits = plan_hits(own);
    const bool any_hits = plan_hits(any);

    faults->calls[call]++;
    if (own_hits) {
        return own->status;
    }
    return any_hits ? any->status : TARN_OK;
}

const char *tn_sim_call_name(enum tarn_sim_call call)
{
    static const char *const names[TARN_SIM_CALL_COUNT] = {
        [TARN_SIM_CAPTURE_INFO] = "capture_info",
        [TARN_SIM_COPY] = "copy",
#define TN_DEVICE_OP(NAME, name, purpose, parameters, arguments) [TARN_SIM_##NAME] = #name,
#include "device/device_ops.def"
#undef TN_DEVICE_OP
    };
    return (unsigned)call < TARN_SIM_CALL_COUNT ? names[call] : "any";
}
