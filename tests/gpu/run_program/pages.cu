/* SPDX-License-Identifier: MIT */
/* A program that maps its memory itself, and releases the handles as soon as they are mapped. */
#include <cstdio>
#include <cstdlib>

#include <cuda.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        const CUresult result = (call);                                                            \
        if (result != CUDA_SUCCESS) {                                                              \
            std::printf("%s: %d\n", #call, (int)result);                                           \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

int main()
{
    CUdevice device;
    CUcontext context;
    CUmemAllocationProp prop = {};
    CUmemAccessDesc access = {};
    size_t page = 0;
    CUdeviceptr range = 0;
    unsigned back[4] = {};

    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    CHECK(cuMemGetAllocationGranularity(&page, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CHECK(cuMemAddressReserve(&range, 8 * page, 0, 0, 0));
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    for (int i = 0; i < 8; i++) {
        CUmemGenericAllocationHandle handle;

        CHECK(cuMemCreate(&handle, page, &prop, 0));
        CHECK(cuMemMap(range + i * page, page, 0, handle, 0));
        CHECK(cuMemRelease(handle));
    }
    CHECK(cuMemSetAccess(range, 8 * page, &access, 1));
    CHECK(cuMemsetD32(range, 7, 8 * page / 4));
    CHECK(cuMemcpyDtoH(back, range + 5 * page, sizeof back));
    std::printf("%u %u\n", back[0], back[3]);
    CHECK(cuMemUnmap(range, 4 * page)); /* four of eight stay */
    std::printf("done\n");
    return 0;
}
