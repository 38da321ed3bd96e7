/* SPDX-License-Identifier: MIT */
#include "device/cuda_driver.h"

#include "base/dl.h"
#include "base/errinfo.h"
#include "base/os_fork.h"

#include <stdio.h>
#include <string.h>

enum {
    TEXT_MAX = 256
};

enum need {
    REQUIRED,
    OPTIONAL
};

struct symbol {
    const char *plain;
    const char *exported;
    int since;
    enum need need;
    size_t offset; /* of its member */
};

static const struct symbol symbols[] = {
#define TN_CUDA_SYM(exported, plain, since, need, parameters)                                      \
    {#plain, #exported, since, need, offsetof(struct tn_cuda_driver, exported)},
#include "device/cuda_syms.def"
#undef TN_CUDA_SYM
};

/* How functions are looked up. At most one of the two is set. */
struct finder {
    void *library;
    int (*get)(const char *name, void **function, int version, uint64_t flags, int *found);
    int (*get_v1)(const char *name, void **function, int version,
                  uint64_t flags); /* 11.3 to 11.8 */
};

bool tn_cuda_is_lost(int result)
{
    static const int lost[] = {TN_CU_DEVICE_UNAVAILABLE,
                               TN_CU_ECC_UNCORRECTABLE,
                               TN_CU_NVLINK_UNCORRECTABLE,
                               TN_CU_CONTAINED,
                               TN_CU_ILLEGAL_ADDRESS,
                               TN_CU_LAUNCH_TIMEOUT,
                               TN_CU_CONTEXT_IS_DESTROYED,
                               TN_CU_ASSERT,
                               TN_CU_HARDWARE_STACK_ERROR,
                               TN_CU_ILLEGAL_INSTRUCTION,
                               TN_CU_MISALIGNED_ADDRESS,
                               TN_CU_INVALID_ADDRESS_SPACE,
                               TN_CU_INVALID_PC,
                               TN_CU_LAUNCH_FAILED,
                               TN_CU_MPS_CLIENT_TERMINATED,
                               TN_CU_EXTERNAL_DEVICE,
                               TN_CU_UNKNOWN};

    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++) {
        if (lost[i] == result) {
            return true;
        }
    }
    return false;
}

enum tarn_status tn_cuda_status(int result)
{
    switch (result) {
    case TN_CU_SUCCESS:
        return TARN_OK;
    case TN_CU_OUT_OF_MEMORY:
        return TARN_ERR_OUT_OF_MEMORY;
    case TN_CU_NOT_READY:
        return TARN_ERR_NOT_READY;
    default:
        return TARN_ERR_DEVICE;
    }
}

void tn_cuda_explain(const struct tn_cuda_driver *driver, const char *call, int result, char *text,
                     size_t size)
{
    const char *name = NULL;
    const char *words = NULL;
    const char *advice = "";

    if (driver->cuGetErrorName(result, &name) != TN_CU_SUCCESS || !name) {
        (void)snprintf(text, size, "%s: unknown CUDA error %d", call, result);
        return;
    }
    if (driver->cuGetErrorString(result, &words) != TN_CU_SUCCESS || !words) {
        words = "the driver gives no description";
    }
    if (tn_cuda_is_lost(result)) {
        advice = "; this process can no longer use the device and must be restarted";
    } else if (result == TN_CU_NOT_INITIALIZED && tn_os_forks() > 0) {
        advice = "; CUDA was started before this process was forked: start it in the child only, "
                 "or start the child as a new program";
    }
    (void)snprintf(text, size, "%s: %s, %s%s", call, name, words, advice);
}

/* Looks up by name and version, or else by the exported name; false if neither exists. */
static bool symbol_find(const struct finder *finder, const struct symbol *symbol,
                        void *function_out)
{
    void *function = NULL;
    int found = 0;
    int result = TN_CU_NOT_FOUND;

    if (finder->get) {
        result = finder->get(symbol->plain, &function, symbol->since, 0, &found);
    } else if (finder->get_v1) {
        result = finder->get_v1(symbol->plain, &function, symbol->since, 0);
    }
    if (result == TN_CU_SUCCESS && function) {
        memcpy(function_out, &function, sizeof function);
        return true;
    }
    return tn_dl_find(finder->library, symbol->exported, function_out);
}

static enum tarn_status symbol_missing(const struct tn_cuda_driver *driver, const char *name,
                                       struct tarn_error *error)
{
    return tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                   "the CUDA driver (CUDA %d.%d) has no function %s, which tarn needs: install a "
                   "complete NVIDIA driver",
                   driver->version / 1000, driver->version % 1000 / 10, name);
}

static enum tarn_status symbols_find(const struct finder *finder, struct tn_cuda_driver *driver,
                                     struct tarn_error *error)
{
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        if (!symbol_find(finder, &symbols[i], (char *)driver + symbols[i].offset) &&
            symbols[i].need == REQUIRED) {
            return symbol_missing(driver, symbols[i].exported, error);
        }
    }
    if (!driver->cuStreamGetCaptureInfo_v2 && !driver->cuStreamGetCaptureInfo_v3) {
        return symbol_missing(driver, "cuStreamGetCaptureInfo_v2", error);
    }
    if (!driver->cuGraphNodeGetDependencies && !driver->cuGraphNodeGetDependencies_v2) {
        return symbol_missing(driver, "cuGraphNodeGetDependencies", error);
    }
    return TARN_OK;
}

/* Checks the driver's version before any other call. */
static enum tarn_status version_check(struct tn_cuda_driver *driver, const char *path,
                                      struct tarn_error *error)
{
    int (*get_version)(int *version) = NULL;

    if (!tn_dl_find(driver->library, "cuDriverGetVersion", &get_version)) {
        return tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                       "%s is not a CUDA driver: it has no function cuDriverGetVersion", path);
    }
    const int result = get_version(&driver->version);
    if (result != TN_CU_SUCCESS) {
        return tn_fail(
            error, TARN_ERR_DEVICE,
            "the CUDA driver does not report its version: cuDriverGetVersion returns CUDA "
            "error %d",
            result);
    }
    if (driver->version < TN_CUDA_OLDEST) {
        return tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                       "the NVIDIA driver supports CUDA %d.%d, and tarn needs %d.%d or newer: "
                       "install a newer driver",
                       driver->version / 1000, driver->version % 1000 / 10, TN_CUDA_OLDEST / 1000,
                       TN_CUDA_OLDEST % 1000 / 10);
    }
    return TARN_OK;
}

static enum tarn_status driver_start(const struct tn_cuda_driver *driver, struct tarn_error *error)
{
    char text[TEXT_MAX];
    const int result = driver->cuInit(0);

    if (result == TN_CU_SUCCESS) {
        return TARN_OK;
    }
    tn_cuda_explain(driver, "cuInit", result, text, sizeof text);
    return result == TN_CU_NO_DEVICE || result == TN_CU_STUB_LIBRARY
               ? tn_fail(error, TARN_ERR_NOT_FOUND, "no GPU was found (%s)", text)
               : tn_fail(error, TARN_ERR_DEVICE, "the CUDA driver fails to initialize (%s)", text);
}

enum tarn_status tn_cuda_driver_open(const char *path, struct tn_cuda_driver *driver_out,
                                     struct tarn_error *error)
{
    const char *const name = path ? path : "libcuda.so.1";
    struct tn_cuda_driver driver = {0};
    struct finder finder = {0};
    char why[TEXT_MAX];

    if (!tn_os_forks_watch()) {
        return tn_fail_memory(error);
    }
    driver.library = tn_dl_open(name, why, sizeof why);
    if (!driver.library) {
        return tn_fail(error, TARN_ERR_NOT_FOUND,
                       "there is no NVIDIA driver on this machine (%s); \"sim\" names a simulated "
                       "device",
                       why);
    }
    enum tarn_status st = version_check(&driver, name, error);
    if (st != TARN_OK) {
        return st;
    }
    finder.library = driver.library;
    if (!tn_dl_find(driver.library, "cuGetProcAddress_v2", &finder.get) &&
        !tn_dl_find(driver.library, "cuGetProcAddress", &finder.get_v1)) {
        finder.get_v1 = NULL; /* then use exported names */
    }
    st = symbols_find(&finder, &driver, error);
    st = st ? st : driver_start(&driver, error);
    if (st == TARN_OK) {
        *driver_out = driver;
    }
    return st;
}
