/* SPDX-License-Identifier: MIT */
/* The option --device, which selects one device. */
#ifndef CLI_DEVICE_OPT_H
#define CLI_DEVICE_OPT_H

#include "command.h"

#include <limits.h>

/* Default of --device: all devices. For a command's `defaults`. */
#define CLI_DEVICE_ALL UINT64_MAX

#define CLI_DEVICE_OPT(type)                                                                       \
    {                                                                                              \
        .name = "device", .letter = 'd', .kind = CLI_OPT_NUMBER, .at = offsetof(type, device),     \
        .value = "N", .help = "only this device"                                                   \
    }

/* The same, of commands that replay one device. */
#define CLI_REPLAY_DEVICE_OPT(type)                                                                \
    {                                                                                              \
        .name = "device", .letter = 'd', .kind = CLI_OPT_NUMBER, .at = offsetof(type, device),     \
        .value = "N", .help = "device whose trace to use (default: the first with a trace)",       \
        .hint =                                                                                    \
            "it is the number of a device, and the memory of a card is --card of fit and scale"    \
    }

/* Whether --device was given; *device_out is then its number, INT_MAX if out of range. */
static inline bool cli_device_is_given(uint64_t value, int *device_out)
{
    *device_out = value > INT_MAX ? INT_MAX : (int)value;
    return value != CLI_DEVICE_ALL;
}

#endif
