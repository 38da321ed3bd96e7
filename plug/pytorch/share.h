/* SPDX-License-Identifier: MIT */
/* Methods of torch's allocator that share memory between processes, as C sees them. They throw. */
#ifndef PLUG_PYTORCH_SHARE_H
#define PLUG_PYTORCH_SHARE_H

#include <stddef.h>

enum {
    TN_TORCH_STRING_BYTES = 32 /* a std::string of libstdc++ */
};

/* struct ShareableHandle { ptrdiff_t offset; std::string handle; } */
struct tn_torch_handle {
    ptrdiff_t offset;
    _Alignas(8) char string[TN_TORCH_STRING_BYTES];
};

/* ShareableHandle shareIpcHandle(void *ptr). Returned in the caller's memory, in C as in C++. */
struct tn_torch_handle tn_torch_share(void *self, void *ptr);

/* std::shared_ptr<void> getIpcDevPtr(std::string handle). Because it has a destructor, it is
 * also returned in the caller's memory, where C would return two words in registers. So the address
 * of that memory is the first parameter here, as on x86-64. On other machines C cannot implement
 * this call. */
void *tn_torch_open_shared(void *result, void *self, const void *handle);

#if defined(__x86_64__)
#define TN_TORCH_OPEN_SHARED tn_torch_open_shared
#else
#define TN_TORCH_OPEN_SHARED NULL
#endif

#endif
