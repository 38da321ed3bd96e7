/* SPDX-License-Identifier: MIT */
/* GPUs that are not there: opening devices on the fake driver. Include after support/test.h. */
#ifndef TESTS_SUPPORT_CUDA_H
#define TESTS_SUPPORT_CUDA_H

#include "base/dl.h"
#include "device/cuda_device.h"
#include "support/fake_cuda.h"
#include "support/sim.h"

#ifndef FAKE_CUDA
#define FAKE_CUDA "" /* the build says where it is (tarn_cuda_test) */
#endif

/* The table of that driver, as new. */
static inline const struct fake_cuda *fake_open(const char *path)
{
    char why[256];
    fake_cuda_function *get = NULL;
    void *library = tn_dl_open(path, why, sizeof why);

    if (!library) {
        fail_msg("%s", why);
    }
    assert_true(tn_dl_find(library, "fake_cuda", &get));
    const struct fake_cuda *fake = get();
    fake->reset();
    return fake;
}

static inline struct tarn_device *cuda_open_at(const char *path, int ordinal)
{
    const struct tn_cuda_options options = {
        .ordinal = ordinal, .driver_path = path, .nvml_path = path};
    struct tarn_device *device = NULL;
    struct tarn_error error = {.status = TARN_OK};

    if (tn_cuda_open(&options, &device, &error) != TARN_OK) {
        fail_msg("%s", error.text);
    }
    return device;
}

#ifdef FAKE_CUDA /* tests that tarn_cuda_test made have the paths */
static inline struct tarn_device *cuda_open(void)
{
    return cuda_open_at(FAKE_CUDA, 0);
}
#endif

#endif
