/* SPDX-License-Identifier: MIT */
/* Histories of the devices. Any thread. */
#ifndef PLUG_PYTORCH_RECORD_H
#define PLUG_PYTORCH_RECORD_H

#include "tarn/allocator.h"
#include "tarn/history.h"

/* A device got its allocator, which is not in use yet: starts recording it if recording is on. On
 * failure, nothing refers to the allocator. */
enum tarn_status tn_torch_record_opened(int device, struct tarn_allocator *allocator,
                                        struct tarn_error *error);

/* The device's allocator was destroyed. */
void tn_torch_record_closed(int device);

#endif
