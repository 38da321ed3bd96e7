/* SPDX-License-Identifier: MIT */
/*
 * A worker (worker.h) around an allocator of offsets: one range as large as tarn's simulated
 * device, requests rounded up to 512 bytes as tarn does. What the patterns hold is the peer's own
 * handle, so that it needs no way from an address to a block, which tarn has to find.
 *
 * None of these is safe for threads. The threads of a pattern share a mutex; patterns of one thread
 * take none.
 */
#ifndef BENCH_PEERS_RANGE_HPP
#define BENCH_PEERS_RANGE_HPP

#include "worker.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace peer
{

constexpr std::uint64_t UNIT = 512;
constexpr std::uint64_t RANGE = std::uint64_t{1} << 40;

inline thread_local bool shares = false; /* this thread is one of a pattern's */
inline std::mutex mutex;

class Guard
{
  public:
    Guard() : locked_(shares)
    {
        if (locked_) {
            mutex.lock();
        }
    }
    ~Guard()
    {
        if (locked_) {
            mutex.unlock();
        }
    }
    Guard(const Guard &) = delete;
    Guard &operator=(const Guard &) = delete;

  private:
    bool locked_;
};

[[noreturn]] inline void fail(const char *what)
{
    (void)std::fprintf(stderr, "bench: %s\n", what);
    std::exit(1);
}

inline void thread_begin(void *)
{
    shares = true;
}

template <class Range> std::uint64_t range_alloc(void *context, std::uint64_t size, std::uint64_t)
{
    const Guard guard;

    return static_cast<Range *>(context)->alloc((size + UNIT - 1) / UNIT * UNIT);
}

template <class Range> void range_free(void *context, std::uint64_t handle, std::uint64_t)
{
    const Guard guard;

    static_cast<Range *>(context)->free(handle);
}

/* Range: `std::uint64_t alloc(std::uint64_t size)`, a handle that is not 0, and
 * `void free(std::uint64_t handle)`. The program's exit status. */
template <class Range> int serve(const char *name, const char *version)
{
    Range range;
    bench_allocator measured = {};

    measured.name = name;
    measured.version = version;
    measured.context = &range;
    measured.alloc = range_alloc<Range>;
    measured.free = range_free<Range>;
    measured.thread_begin = thread_begin;
    return worker_serve(&measured);
}

} // namespace peer

#endif
