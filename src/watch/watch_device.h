/* SPDX-License-Identifier: MIT */
/*
 * Free memory of a device that a process has named by its PCI address, as the reader itself can ask
 * for: the process does not ask its driver for anybody. Any thread.
 */
#ifndef TN_WATCH_WATCH_DEVICE_H
#define TN_WATCH_WATCH_DEVICE_H

#include "tarn/watch_read.h"

/* Renews the record's numbers of the device, if NVML is there and knows a device at that address
 * with about as much memory: a part of a GPU (MIG) has the address of the whole. */
void tn_watch_device_renew(struct tarn_watch_record *record, const char *bus_id);

/* For tests, before the first use: the path of the library. */
void tn_watch_device_set_library(const char *path);

#endif
