/* SPDX-License-Identifier: MIT */
/*
 * Which device is current in the calling thread, for processes with several. torch asks the CUDA
 * runtime: 40 ns on a host with two H200s, 500 where eight threads ask at once, 10,000 where these
 * threads have no current context. The driver says in 8 ns which context is current, however many
 * ask, and a primary context belongs to the same device for as long as torch runs.
 */
#ifndef PLUG_PYTORCH_CURRENT_DEVICE_H
#define PLUG_PYTORCH_CURRENT_DEVICE_H

#include "plug/pytorch/torch_interface.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>

#include <cuda.h>

#include <atomic>
#include <vector>

namespace tarn_torch
{

class CurrentDevice
{
  public:
    /* Once, before threads ask. Without these functions each answer is the runtime's. */
    void find_driver(int device_count)
    {
        find("cuCtxGetDevice", &get_device_);
        find("cuDevicePrimaryCtxRetain", &retain_);
        find("cuDevicePrimaryCtxRelease", &release_);
        if (get_device_ && retain_ && release_) {
            find("cuCtxGetCurrent", &get_context_);
        }
        primary_ = std::vector<std::atomic<CUcontext>>(static_cast<size_t>(device_count));
    }

    int ordinal() const
    {
        CUcontext context = nullptr;

        c10::cuda::SetTargetDevice(); /* torch defers it while the device has no context */
        if (C10_LIKELY(get_context_ && get_context_(&context) == CUDA_SUCCESS && context)) {
            for (size_t i = 0; i < primary_.size(); i++) {
                if (primary_[i].load(std::memory_order_relaxed) == context) {
                    return static_cast<int>(i);
                }
            }
        }
        return learn(context);
    }

  private:
    /* A context that is not primary is never known: its address may be used again. */
    __attribute__((noinline)) int learn(CUcontext context) const
    {
        const int device = c10::cuda::current_device();

        if (get_context_) {
            if (!context) {
                C10_CUDA_CHECK(cudaSetDevice(device)); /* as any call that needs the device */
            }
            keep_primary(&primary_.at(static_cast<size_t>(device)));
        }
        return device;
    }

    /* Of the current device. */
    void keep_primary(std::atomic<CUcontext> *primary) const
    {
        CUdevice device = 0;
        CUcontext found = nullptr;

        if (!primary->load() && get_device_(&device) == CUDA_SUCCESS &&
            retain_(&found, device) == CUDA_SUCCESS) {
            (void)release_(device);
            primary->store(found);
        }
    }

    /* From CUDA 12 on the current device always has the current context. */
    template <class Function> static void find(const char *name, Function *found)
    {
        void *address = nullptr;
#if CUDART_VERSION >= 12050
        const cudaError_t result =
            cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault);
#elif CUDART_VERSION >= 12000
        const cudaError_t result = cudaGetDriverEntryPoint(name, &address, cudaEnableDefault);
#else
        const cudaError_t result = cudaSuccess;
#endif

        if (result != cudaSuccess) {
            (void)cudaGetLastError(); /* torch would throw it */
        } else {
            *found = reinterpret_cast<Function>(address);
        }
    }

    decltype(&cuCtxGetCurrent) get_context_ = nullptr;
    decltype(&cuCtxGetDevice) get_device_ = nullptr;
    decltype(&cuDevicePrimaryCtxRetain) retain_ = nullptr;
    decltype(&cuDevicePrimaryCtxRelease) release_ = nullptr;
    mutable std::vector<std::atomic<CUcontext>> primary_; /* by device; null: not known */
};

} // namespace tarn_torch

#endif
