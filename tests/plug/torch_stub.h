/* SPDX-License-Identifier: MIT */
/* What the stand-in for torch's libraries (torch_stub.cpp) lets a test see and set. */
#ifndef TESTS_PLUG_TORCH_STUB_H
#define TESTS_PLUG_TORCH_STUB_H

#include <cstddef>
#include <cstdint>

namespace torch_stub
{

extern signed char device; /* the current one */
extern signed char target; /* what torch will make current; -1: nothing */
extern thread_local uintptr_t stream;
extern int plain_copies, peer_copies;

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
