/* SPDX-License-Identifier: MIT */
/* What the stand-in for torch's libraries (torch_stub.cpp) lets a test see and set. */
#ifndef TESTS_PLUG_TORCH_STUB_H
#define TESTS_PLUG_TORCH_STUB_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace torch_stub
{

extern signed char device; /* the current one */
extern signed char target; /* what torch will make current; -1: nothing */
extern int device_questions;
extern int retained;        /* primary contexts */
extern std::string missing; /* a function of the driver */
extern thread_local uintptr_t stream;
extern int plain_copies, peer_copies;

/* Which context of CUDA's driver is current in the thread. */
enum class Context {
    of_device, /* the current device's primary one */
    none,
    other
};
extern thread_local Context context;

/* What the thread has of torch's profiler. */
enum class Profiler {
    none,
    of_time,
    of_memory
};
extern Profiler profiler;
extern int reports, oom_reports;
extern int64_t reported_size;
extern size_t reported_total;

} // namespace torch_stub

#endif
