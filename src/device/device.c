/* SPDX-License-Identifier: MIT */
/*
 * Implements tarn/device.h: selects the backend that a spec names, and the queries common to all
 * devices. A backend is one row of the table; its name is the text before the colon of a spec, and
 * it parses the rest itself.
 */
#include "device/device_ops.h"

#include "base/checked.h"
#include "base/errinfo.h"
#include "device/cuda_device.h"
#include "tarn/sim.h"

#include <string.h>

enum {
    ORDINAL_DIGITS_MAX = 4,
    SIZE_TEXT_MAX = 32
};

struct backend {
    const char *name;
    /* `rest` is the text after the colon, or NULL */
    enum tarn_status (*open)(const char *rest, struct tarn_device **device_out,
                             struct tarn_error *error);
};

struct unit {
    const char *name;
    unsigned shift;
};

/* Bytes from a decimal number with an optional unit; false when the text is anything else. */
static bool size_parse(const char *text, uint64_t *size_out)
{
    static const struct unit units[] = {
        {"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
    uint64_t number = 0;
    const char *at = text;

    for (; *at >= '0' && *at <= '9'; at++) {
        if (!tn_mul_u64(number, 10, &number) ||
            !tn_add_u64(number, (uint64_t)(*at - '0'), &number)) {
            return false;
        }
    }
    for (size_t i = 0; at > text && i < sizeof units / sizeof *units; i++) {
        if (strcmp(at, units[i].name) == 0) {
            return tn_mul_u64(number, (uint64_t)1 << units[i].shift, size_out);
        }
    }
    return false;
}

/* "SIZE", "backed" or "SIZE,backed"; false when the text is anything else. */
static bool sim_parse(const char *text, struct tarn_sim_options *options)
{
    char size[SIZE_TEXT_MAX] = "";
    const size_t length = strlen(text);
    const size_t size_length = strcspn(text, ",");

    options->backed = strcmp(text, "backed") == 0 || strcmp(text + size_length, ",backed") == 0;
    if (strcmp(text, "backed") == 0) {
        return true;
    }
    if (size_length >= sizeof size || (size_length < length && !options->backed)) {
        return false;
    }
    memcpy(size, text, size_length);
    return size_parse(size, &options->capacity) && options->capacity > 0;
}

static enum tarn_status sim_open_spec(const char *rest, struct tarn_device **device_out,
                                      struct tarn_error *error)
{
    struct tarn_sim_options options = {.struct_size = sizeof options};

    if (rest && !sim_parse(rest, &options)) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "device \"sim:%s\": the size is not a positive number of bytes, or a "
                       "number with KiB, MiB, GiB or TiB, as in \"sim:141GiB\", and nothing but "
                       "\",backed\" may follow",
                       rest);
    }
    return tarn_sim_open(&options, device_out, error);
}

/* Digits only; false when there are none or the number is out of range. */
static bool ordinal_parse(const char *text, int *ordinal_out)
{
    int ordinal = 0;
    const char *at = text;

    for (; *at >= '0' && *at <= '9' && at - text < ORDINAL_DIGITS_MAX; at++) {
        ordinal = ordinal * 10 + (*at - '0');
    }
    *ordinal_out = ordinal;
    return at > text && *at == '\0';
}

static enum tarn_status cuda_open_spec(const char *rest, struct tarn_device **device_out,
                                       struct tarn_error *error)
{
    struct tn_cuda_options options = {.ordinal = 0};

    if (rest && !ordinal_parse(rest, &options.ordinal)) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "device \"cuda:%s\": the number of a GPU is missing, as in \"cuda:0\"",
                       rest);
    }
    return tn_cuda_open(&options, device_out, error);
}

static const struct backend backends[] = {{"cuda", cuda_open_spec}, {"sim", sim_open_spec}};

/* The first GPU, or the simulated device if there is no driver or no GPU. A GPU that exists but
 * cannot be used is an error: silently simulating it would hide the problem. */
static enum tarn_status default_open(struct tarn_device **device_out, struct tarn_error *error)
{
    const enum tarn_status st = cuda_open_spec(NULL, device_out, error);

    return st == TARN_ERR_NOT_FOUND ? sim_open_spec("backed", device_out, error) : st;
}

enum tarn_status tarn_device_open(const char *spec, struct tarn_device **device_out,
                                  struct tarn_error *error)
{
    if (!spec) {
        return default_open(device_out, error);
    }
    const size_t length = strcspn(spec, ":");
    const char *rest = spec[length] == ':' ? spec + length + 1 : NULL;

    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        if (strlen(backends[i].name) == length && memcmp(backends[i].name, spec, length) == 0) {
            return backends[i].open(rest, device_out, error);
        }
    }
    return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                   "device \"%s\": not one of \"cuda\", \"cuda:NUMBER\", \"sim\" and \"sim:SIZE\"",
                   spec);
}

void tarn_device_close(struct tarn_device *device)
{
    if (device) {
        device->ops->destroy(device);
    }
}

void tarn_device_get_info(const struct tarn_device *device, struct tarn_device_info *info_out)
{
    const struct tarn_device_info info = {
        .struct_size = info_out->struct_size,
        .ordinal = device->ordinal,
        .backend = device->ops->name,
        .total_memory = device->total_memory,
        .granularity = device->granularity,
    };
    memcpy(info_out, &info, info.struct_size < sizeof info ? info.struct_size : sizeof info);
}

enum tarn_status tarn_device_memory_info(struct tarn_device *device, uint64_t *free_out,
                                         uint64_t *total_out)
{
    return device->ops->memory_info(device, free_out, total_out);
}
