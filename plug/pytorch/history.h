/* SPDX-License-Identifier: MIT */
/* Histories of the devices, with the stacks that torch's recorder gathers. Any thread. */
#ifndef PLUG_PYTORCH_HISTORY_H
#define PLUG_PYTORCH_HISTORY_H

#include "plug/pytorch/devices.h"
#include "plug/pytorch/torch_interface.h"

#include <string>
#include <utility>
#include <vector>

namespace tarn_torch
{

struct Recording {
    bool enabled = false;
    bool clear = false; /* discard the events so far */
    cca::CreateContextFn recorder = nullptr;
    tarn_context_level level = TARN_CONTEXT_NEVER;
    size_t max_entries = 1;
    uint64_t skip_actions = 0; /* bits 1 << TARN_ACTION_... */
};

/* Starts, changes or stops the recording of all devices. After a failure none is recorded. */
tarn_status history_record(const Recording &recording, tarn_error *error);
bool history_is_enabled();

/* A device got its allocator: is it to be recorded? */
tarn_status history_opened(int ordinal, tarn_allocator *allocator, tarn_error *error);

/* Start or end of a record_function: pairs "name", "stage" and any others. */
void history_annotate(int device, const std::vector<std::pair<std::string, std::string>> &fields);

/* A compiled region starts or ends on the calling thread. */
void history_push_context(const std::string &text);
void history_pop_context();

/* Adds a device's segments, events and annotations; of one pool, unless that is {0, 0}. */
tarn_status history_snapshot(int ordinal, tarn_allocator *allocator, tarn_pool_id pool,
                             bool with_traces, cca::SnapshotInfo *info, tarn_error *error);
void fill_settings(const tarn_config &config, cca::AllocatorConfigInfo *info);

/* The event of that action in torch's terms; false where torch has none. */
bool action_of(tarn_action action, cca::TraceEntry::Action *action_out);
cca::TraceEntry trace_entry(cca::TraceEntry::Action action, const tarn_trace_event &event,
                            std::shared_ptr<c10::GatheredContext> stack);

} // namespace tarn_torch

#endif
