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
        [TARN_SIM_ALLOC] = "alloc",
        [TARN_SIM_FREE] = "free",
        [TARN_SIM_MEMORY_INFO] = "memory_info",
        [TARN_SIM_EVENT_CREATE] = "event_create",
        [TARN_SIM_EVENT_DESTROY] = "event_destroy",
        [TARN_SIM_EVENT_RECORD] = "event_record",
        [TARN_SIM_EVENT_QUERY] = "event_query",
        [TARN_SIM_EVENT_WAIT] = "event_wait",
        [TARN_SIM_STREAM_WAIT] = "stream_wait",
        [TARN_SIM_CAPTURE_INFO] = "capture_info",
        [TARN_SIM_VA_RESERVE] = "va_reserve",
        [TARN_SIM_VA_RELEASE] = "va_release",
        [TARN_SIM_PAGE_CREATE] = "page_create",
        [TARN_SIM_PAGE_RELEASE] = "page_release",
        [TARN_SIM_MAP] = "map",
        [TARN_SIM_UNMAP] = "unmap",
        [TARN_SIM_VA_GRANT] = "va_grant",
        [TARN_SIM_POOL_ALLOC] = "pool_alloc",
        [TARN_SIM_POOL_FREE] = "pool_free",
        [TARN_SIM_POOL_TRIM] = "pool_trim",
        [TARN_SIM_POOL_INFO] = "pool_info",
        [TARN_SIM_POOL_PEAKS] = "pool_peaks",
        [TARN_SIM_POOL_RESET_PEAKS] = "pool_reset_peaks",
        [TARN_SIM_STREAM_WAIT_EVENT] = "stream_wait_event",
        [TARN_SIM_STREAM_CREATE] = "stream_create",
        [TARN_SIM_STREAM_DESTROY] = "stream_destroy",
        [TARN_SIM_DEVICE_WAIT] = "device_wait",
        [TARN_SIM_GRAPH_NODE_PARENTS] = "graph_node_parents",
        [TARN_SIM_IPC_EXPORT] = "ipc_export",
        [TARN_SIM_IPC_OPEN] = "ipc_open",
        [TARN_SIM_IPC_CLOSE] = "ipc_close",
        [TARN_SIM_PAGE_EXPORT] = "page_export",
        [TARN_SIM_PAGE_IMPORT] = "page_import",
        [TARN_SIM_PEER_REACHES] = "peer_reaches",
        [TARN_SIM_PEER_ENABLE] = "peer_enable",
        [TARN_SIM_COPY] = "copy",
        [TARN_SIM_HOST_ALLOC] = "host_alloc",
        [TARN_SIM_HOST_FREE] = "host_free",
        [TARN_SIM_HOST_REGISTER] = "host_register",
        [TARN_SIM_HOST_UNREGISTER] = "host_unregister",
    };
    return (unsigned)call < TARN_SIM_CALL_COUNT ? names[call] : "any";
}
