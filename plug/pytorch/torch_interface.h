/* SPDX-License-Identifier: MIT */
/*
 * torch's headers, and what helps with the differences between versions of its allocator
 * interface. A method that not all versions have, or not with these parameters, has no `override`:
 * it overrides where torch has it. What a version demands and the class lacks fails to compile.
 */
#ifndef PLUG_PYTORCH_TORCH_INTERFACE_H
#define PLUG_PYTORCH_TORCH_INTERFACE_H

#include "tarn/status.h"

#if __has_include(<torch/headeronly/version.h>)
#include <torch/headeronly/version.h>
#else
#include <torch/version.h>
#endif

#if TORCH_VERSION_MAJOR != 2 || TORCH_VERSION_MINOR < 6 || TORCH_VERSION_MINOR > 14
#error "tarn knows the allocator interface of torch 2.6 to 2.14, and this torch is another version"
#endif

#include <c10/cuda/CUDACachingAllocator.h>

#include <type_traits>
#include <utility>

namespace tarn_torch
{

namespace cca = c10::cuda::CUDACachingAllocator;

using MempoolId_t = std::pair<unsigned long long, unsigned long long>; /* of c10 or of c10::cuda */

/* Sets the member, where this version of the struct has it. */
#define TARN_SET_IF_PRESENT(object, member, value)                                                 \
    tarn_torch::set_if_valid(                                                                      \
        object, [&](auto &it) -> decltype(void(it.member = (value))) { it.member = (value); })

template <class Object, class Set> void set_if_valid(Object &object, Set set)
{
    if constexpr (std::is_invocable_v<Set, Object &>) {
        set(object);
    }
}

} // namespace tarn_torch

/* Makes the class torch's allocator. `torch_version` is that of the torch that is running. Fails,
 * changing nothing, with TARN_ERR_MISMATCH when the class was compiled for another version and with
 * TARN_ERR_STATE when CUDA has already started. */
extern "C" TARN_API enum tarn_status tarn_torch_install(const char *torch_version,
                                                        struct tarn_error *error) TARN_MUST_CHECK;

#endif
