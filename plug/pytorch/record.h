/* SPDX-License-Identifier: MIT */
/* Histories of the devices, and what torch says while they are recorded. Any thread. */
#ifndef PLUG_PYTORCH_RECORD_H
#define PLUG_PYTORCH_RECORD_H

#include "tarn/allocator.h"
#include "tarn/history.h"

/* A device got its allocator, which nobody uses yet: begins to record it if all are recorded. When
 * it fails nothing of the allocator is kept. */
enum tarn_status tn_torch_record_opened(int device, struct tarn_allocator *allocator,
                                        struct tarn_error *error);

/* The device's allocator is gone. */
void tn_torch_record_closed(int device);

#endif
