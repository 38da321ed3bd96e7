/* SPDX-License-Identifier: MIT */
/* A library that is linked with libcuda.so.1, and opened with RTLD_DEEPBIND. */
#include "preload/program.h"

#define CU_DECLARE(exported, plain, since, parameters) int exported parameters;
CU_FUNCTIONS(CU_DECLARE)
#undef CU_DECLARE

__attribute__((visibility("default"))) void deep_work(void);

/* Calls by name, and not by address: those go through the table that the linker fills late. */
void deep_work(void)
{
    uint64_t kept = 0;
    uint64_t block = 0;
    void *context = 0;

    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxPushCurrent_v2(context) ||
        cuMemAlloc_v2(&kept, (size_t)5 << 20) || cuMemAlloc_v2(&block, 1024) ||
        cuMemFree_v2(block)) {
        program_fail("deep_work");
    }
}
