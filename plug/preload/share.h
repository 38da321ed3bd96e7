/* SPDX-License-Identifier: MIT */
/*
 * Memory that tarn serves, shared with another process under the same policy: cuIpcGetMemHandle and
 * its counterparts. The driver cannot share it, because it knows only the segments and pages that
 * blocks lie in.
 *
 * A handle has 64 bytes, and a message of tarn/ipc.h more. So the handle says where the message is
 * in the memory of the process that made it, from where the other one reads it. The system allows
 * that where it allows fetching descriptors, which pages need anyway; to that end the first export
 * declares that processes of the same user may trace this one (PR_SET_PTRACER).
 *
 * Any thread, between run_enter and run_leave.
 */
#ifndef RUN_SHARE_H
#define RUN_SHARE_H

#include "plug/preload/driver.h"

/* The handle of an allocation of ours. False: it cannot be shared, which is said once. */
bool run_share_export(uint64_t base, struct run_cu_ipc_handle *handle_out);

/* Whether run_share_export made it, in some process. */
bool run_share_made(const struct run_cu_ipc_handle *handle);

/* Opens it on the device. False: it was freed, or cannot be opened, which is said once. */
bool run_share_open(int device, const struct run_cu_ipc_handle *handle, uint64_t *address_out);

/* The allocation is about to be freed: its handle opens nothing any more. */
void run_share_end(uint64_t base);

void run_share_forked(void);

#endif
