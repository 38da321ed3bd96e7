/* SPDX-License-Identifier: MIT */
/*
 * Failure plan of the simulated device: which call of which kind fails with which status. A plan is
 * consumed by its call. Also counts the calls. Locks: the device's.
 */
#ifndef TN_DEVICE_SIM_FAULT_H
#define TN_DEVICE_SIM_FAULT_H

#include "tarn/sim.h"

struct tn_sim_plan {
    uint64_t left; /* calls until the one that fails; 0 = no plan */
    enum tarn_status status;
};

struct tn_sim_faults {
    struct tn_sim_plan plan[TARN_SIM_CALL_COUNT + 1]; /* the last one: any call */
    uint64_t calls[TARN_SIM_CALL_COUNT];
};

/* n = 0 or TARN_OK as the status removes the plan. */
void tn_sim_fault_plan(struct tn_sim_faults *faults, enum tarn_sim_call call, uint64_t n,
                       enum tarn_status status);

/* Counts one call. Returns TARN_OK, or the status with which it must fail. If the plan of the kind
 * and the plan for any call select the same call, both are consumed and the kind's status is
 * used. */
enum tarn_status tn_sim_fault_next(struct tn_sim_faults *faults, enum tarn_sim_call call);

/* "map", "event_query": as the device table names them. */
const char *tn_sim_call_name(enum tarn_sim_call call);

#endif
