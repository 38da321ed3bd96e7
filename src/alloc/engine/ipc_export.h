/* SPDX-License-Identifier: MIT */
/* How the caching engine describes an allocation to other processes: see tarn/ipc.h. */
#ifndef TN_ALLOC_ENGINE_IPC_EXPORT_H
#define TN_ALLOC_ENGINE_IPC_EXPORT_H

#include "alloc/engine/ipc_message.h"

struct tn_engine;

/* Writes the message about the block that is allocated at `ptr`. Takes the lock. */
enum tarn_status tn_native_ipc_export(struct tn_engine *engine, tarn_ptr ptr,
                                      struct tn_ipc_buffer *buffer,
                                      struct tarn_error *error) TN_MUST_CHECK;

#endif
