/* SPDX-License-Identifier: MIT */
#include "device/last_error.h"

#include <stdatomic.h>
#include <stdio.h>

enum {
    ERROR_TEXT_MAX = 256
};

static _Thread_local struct {
    uint64_t device;
    char text[ERROR_TEXT_MAX];
} last_failure;

static atomic_uint_fast64_t devices_made;

uint64_t tn_last_error_new_device(void)
{
    return atomic_fetch_add(&devices_made, 1) + 1;
}

void tn_last_error_set(uint64_t device, const char *format, va_list args)
{
    (void)vsnprintf(last_failure.text, sizeof last_failure.text, format, args);
    last_failure.device = device;
}

const char *tn_last_error_get(uint64_t device)
{
    return last_failure.device == device ? last_failure.text : "";
}
