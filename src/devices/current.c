/* SPDX-License-Identifier: MIT */
/*
 * Which device a thread has current. A primary context is retained by its device, so its address
 * is no other context's while the device is open.
 */
#include "devices/devices.h"

#include "device/cuda_device.h"

/* NULL if that one is not open, or no GPU. */
static struct tn_cuda *open_cuda(struct tarn_devices *devices, int number)
{
    return tn_devices_at(devices, number) ? tn_cuda_from(devices->entries[number].device) : NULL;
}

int tarn_devices_find_current(struct tarn_devices *devices)
{
    void *current = NULL;

    for (int i = 0; i < TARN_DEVICES_MAX; i++) {
        const struct tn_cuda *cuda = open_cuda(devices, i);

        if (!cuda) {
            continue;
        }
        if (!current && !tn_cuda_get_current(cuda, &current)) {
            return TARN_DEVICE_UNKNOWN;
        }
        if (!current) {
            return TARN_DEVICE_UNBOUND;
        }
        if (cuda->context == current) {
            return i;
        }
    }
    return TARN_DEVICE_UNKNOWN;
}
