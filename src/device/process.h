/* SPDX-License-Identifier: MIT */
/* Processes that use a device, in PyTorch's wording. */
#ifndef TN_DEVICE_PROCESS_H
#define TN_DEVICE_PROCESS_H

#include "tarn/device.h"

/* The part of PyTorch's out-of-memory message about them: a sentence and a blank for each, with a
 * different sentence for this process. Writes as many whole sentences as fit into `size` bytes (at
 * least 1); "" if nothing is known, because PyTorch's message then omits this part. */
void tn_processes_describe(struct tarn_device *device, char *text, size_t size);

#endif
