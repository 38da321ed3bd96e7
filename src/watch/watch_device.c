/* SPDX-License-Identifier: MIT */
#include "watch/watch_device.h"

#include "device/nvml.h"

#include <pthread.h>
#include <time.h>

enum {
    SHARE_KEPT_BACK = 8 /* of the device's memory, at most, the driver keeps from programs */
};

static struct tn_nvml nvml;
static const char *library; /* NULL: the installed one */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void begin(void)
{
    tn_nvml_init(&nvml, library);
}

void tn_watch_device_set_library(const char *path)
{
    library = path;
}

static uint64_t time_of_day_ns(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool is_same_device(uint64_t total, uint64_t whole)
{
    return whole >= total && whole - total <= whole / SHARE_KEPT_BACK;
}

void tn_watch_device_renew(struct tarn_watch_record *record, const char *bus_id)
{
    uint64_t unused = 0;
    uint64_t whole = 0;

    (void)pthread_once(&once, begin);
    if (tn_nvml_memory(&nvml, bus_id, &unused, &whole) &&
        is_same_device(record->device_total, whole)) {
        record->device_free = unused < record->device_total ? unused : record->device_total;
        record->device_time_ns = time_of_day_ns();
    }
}
