/* SPDX-License-Identifier: MIT */
/* Opening simulated devices in tests. Include after support/test.h. */
#ifndef TESTS_SUPPORT_SIM_H
#define TESTS_SUPPORT_SIM_H

#include "device/device_ops.h"
#include "device/sim_device.h"
#include "support/test.h"
#include "tarn/host.h"
#include "tarn/sim.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

#define SIM_BASE ((uint64_t)0x7f0000000000) /* first address of a device opened here */

static inline struct tarn_device *sim_open_with(struct tarn_sim_options options)
{
    struct tarn_device *device = NULL;

    options.struct_size = sizeof options;
    assert_int_equal(tarn_sim_open(&options, &device, NULL), TARN_OK);
    return device;
}

static inline struct tarn_device *sim_open(uint64_t capacity)
{
    return sim_open_with((struct tarn_sim_options){.capacity = capacity});
}

/* Closes after checking the invariants. */
static inline void sim_close(struct tarn_device *device)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    if (tn_sim_check(tn_sim_from(device), &findings) != 0) {
        fail_msg("%s", findings.text[0]);
    }
    tarn_device_close(device);
}

static inline struct tarn_sim_counters sim_counters(struct tarn_device *device)
{
    struct tarn_sim_counters counters = {.struct_size = sizeof counters};

    tarn_sim_get_counters(device, &counters);
    return counters;
}

static inline tarn_ptr sim_alloc_ok(struct tarn_device *device, uint64_t size)
{
    tarn_ptr address = 0;

    assert_int_equal(device->ops->alloc(device, size, &address), TARN_OK);
    return address;
}

#endif
