/* SPDX-License-Identifier: MIT */
/* Failures that all engines report with the same text. Each returns the status it was given. */
#ifndef TN_ALLOC_POOL_FAILURE_H
#define TN_ALLOC_POOL_FAILURE_H

#include "device/device_ops.h"
#include "tarn/base.h"
#include "tarn/status.h"

/* A pointer that is not allocated. */
enum tarn_status tn_pointer_unknown(tarn_ptr ptr, struct tarn_error *error);

/* With the device's own text. */
enum tarn_status tn_device_failed(struct tarn_device *device, enum tarn_status status,
                                  const char *what, struct tarn_error *error);

/* Use, in a forked child, of an allocator that was made before the fork. */
enum tarn_status tn_forked_refuse(struct tarn_error *error);

#endif
