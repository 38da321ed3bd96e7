/* SPDX-License-Identifier: MIT */
/* Processes that use a device, in PyTorch's words. */
#ifndef TN_DEVICE_PROCESS_H
#define TN_DEVICE_PROCESS_H

#include "tarn/device.h"

/* What PyTorch's out-of-memory message says about them: a sentence and a blank for each, this
 * process's worded differently. Whole sentences only, as many as fit into `size` bytes (at least
 * 1); "" when nothing is known, as PyTorch's message does without that part then. */
void tn_processes_describe(struct tarn_device *device, char *text, size_t size);

#endif
