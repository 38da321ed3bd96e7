/* SPDX-License-Identifier: MIT */
/* The allocators of the process, one per device, created on first use. Any thread. */
#ifndef PLUG_PYTORCH_DEVICES_H
#define PLUG_PYTORCH_DEVICES_H

#include "tarn/allocator.h"

/* The allocator of a device, opened on demand; borrowed. Fails in a forked child and after shutdown
 * (TARN_ERR_STATE), for a device number out of range, and with the errors of opening. */
enum tarn_status tn_torch_allocator(int device, struct tarn_allocator **allocator_out,
                                    struct tarn_error *error);

/* TARN_ERR_STATE in a forked child and after the plug was shut down. */
enum tarn_status tn_torch_check_phase(struct tarn_error *error);

/* Whether frees must do nothing: the memory belongs to the parent, or the process is exiting. */
bool tn_torch_is_over(void);

/* Fills *error; returns its status. */
enum tarn_status tn_torch_fail(struct tarn_error *error, enum tarn_status status, const char *text);

#endif
