/* SPDX-License-Identifier: MIT */
/* Recordings with the stacks that torch's recorder gathers, and snapshots in torch's types. Any
 * thread. */
#ifndef PLUG_PYTORCH_HISTORY_H
#define PLUG_PYTORCH_HISTORY_H

#include "plug/pytorch/glue.h"
#include "plug/pytorch/torch_interface.h"

namespace tarn_torch
{

using Stack = std::shared_ptr<c10::GatheredContext>;

/* As tarn_devices_record, with stacks of that recorder, which may be null. */
tarn_status history_record(tarn_recording recording, cca::CreateContextFn recorder,
                           tarn_error *error);

/* The settings, and all devices' segments, events and annotations; of one pool, if it is not 0. */
cca::SnapshotInfo history_snapshot(int device_count, tarn_pool_id pool, bool with_traces);

/* torch's stack for libtarn's, of a block or an event of that device; null where there is none. The
 * device's history captures all of its stacks, if it has one: no other receiver could. No lock. */
Stack history_stack(int ordinal, uint64_t stack);

/* The same for libtarn's number of a host language's stack. */
Stack stack_of(uint64_t host_stack);

/* Whether torch has events of that action; the event in torch's terms. */
inline bool has_entry(tarn_action action)
{
    return action <= (TORCH_VERSION_MINOR < 14 ? TARN_ACTION_OOM : TARN_ACTION_ANNOTATE);
}

cca::TraceEntry trace_entry(const tarn_trace_event &event, Stack stack);

} // namespace tarn_torch

#endif
