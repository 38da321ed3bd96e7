// SPDX-License-Identifier: MIT
//
// Records what PyTorch's CUDA caching allocator decides: drives it with random calls and writes one
// JSON object a line, the call with what it returned, the events it caused and the counters after
// it. `tarn verify` holds our allocator against such logs. The first line is the header.
//
//   record_decisions SCENARIO SEED CALLS >log.jsonl      record_decisions list
//
// Needs a GPU and an installed torch (T is its folder):
//
//   g++ -std=c++20 -O1 -I$T/include -I/usr/local/cuda/include record_decisions.cpp
//       -o record_decisions -L$T/lib -Wl,-rpath,$T/lib -lc10 -lc10_cuda -Wl,--no-as-needed
//       -ltorch_cuda -L/usr/local/cuda/lib64 -L/usr/local/cuda/lib64/stubs -lcudart -lcuda
//
// What is left to chance, and taken from the log when it is verified: the addresses, when an event
// completes, and the orders that come from PyTorch's hash tables. Calls that leave PyTorch's own
// state half changed are not made, or are the last of their log.
#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace CCA = c10::cuda::CUDACachingAllocator;
using PoolId = std::pair<unsigned long long, unsigned long long>;

// ---- scenarios ---------------------------------------------------------------------------------

enum Feature : unsigned {
    RECORD = 1U << 0,     // record_stream
    BLOCK = 1U << 1,      // streams that do not get on with their work
    POOLS = 1U << 2,      // routing to private pools, one at a time
    NESTED = 1U << 3,     // ... up to three at a time
    CHECKPOINT = 1U << 4, // of pools
    GROWN = 1U << 5,      // restore although the pool's segments have changed
    RELEASE = 1U << 6,    // pools are released, their names used again
    LEND = 1U << 7,       // pools with use_on_oom
    WHOLE = 1U << 8,      // pools with no_split
    EDGES = 1U << 9,      // sizes at the edges of the rules
    STALE = 1U << 10,     // blocks recorded during a capture are also freed outside of one
    FULL = 1U << 11,      // the device is filled, so that it refuses by itself
    ORDERED = 1U << 12,   // settings change in their order, once
    CAPTURE = 1U << 13    // graphs are captured, blocks used on the streams in them
};

struct Scenario {
    const char *name;
    const char *conf;
    int streams;
    double limit; // GiB that may be reserved, 0 = no limit; with FULL what the device has left
    unsigned features;
    std::vector<const char *> changes; // settings to change to
};

// PyTorch breaks when max_split_size falls under what was split before it and memory runs short: it
// frees a part of a segment. So there it only rises.
static const std::vector<const char *> expandable_changes = {"expandable_segments:True",
                                                             "expandable_segments:False"};
static const std::vector<const char *> split_changes = {
    "", "max_split_size_mb:24", "max_split_size_mb:64", "max_split_size_mb:200"};
static const std::vector<const char *> split_rises = {
    "max_split_size_mb:48", "max_split_size_mb:100", "max_split_size_mb:250", ""};
static const std::vector<const char *> roundup_changes = {
    "", "roundup_power2_divisions:4", "roundup_power2_divisions:[64:8,256:4,1024:2,>:1]",
    "roundup_power2_divisions:[1:2,16:1,>:8]"};
static const std::vector<const char *> gc_changes = {
    "max_split_size_mb:100", "max_split_size_mb:100,garbage_collection_threshold:0.5",
    "garbage_collection_threshold:0.8,max_split_size_mb:100",
    "max_split_size_mb:100,garbage_collection_threshold:0.95"};
static const std::vector<const char *> reuse_changes = {"graph_capture_record_stream_reuse:True",
                                                        "graph_capture_record_stream_reuse:True",
                                                        "graph_capture_record_stream_reuse:False"};
static const std::vector<const char *> all_changes = {
    "expandable_segments:True,max_split_size_mb:100",
    "expandable_segments:False,max_split_size_mb:100,large_segment_size_mb:20",
    "expandable_segments:True,large_segment_size_mb:32,max_split_size_mb:100",
    "expandable_segments:False,max_split_size_mb:100,garbage_collection_threshold:0.7",
    "large_segment_size_mb:64,max_split_size_mb:100,max_non_split_rounding_mb:80",
    "large_segment_size_mb:20,roundup_power2_divisions:8,max_split_size_mb:100",
    "max_split_size_mb:100,per_process_memory_fraction:0.01"};

static const std::vector<Scenario> scenarios = {
    {"mixed_again", "", 1, 0, 0, {}},
    {"multistream_again", "", 5, 0, RECORD | BLOCK, {}},

    {"pools_expandable", "expandable_segments:True", 2, 0, POOLS | CHECKPOINT, {}},
    {"pools_nested_expandable", "expandable_segments:True", 4, 0, POOLS | NESTED | CHECKPOINT, {}},
    {"pools_grown_expandable", "expandable_segments:True", 2, 0, POOLS | CHECKPOINT | GROWN, {}},
    {"pools_grown_nested",
     "expandable_segments:True",
     4,
     2,
     POOLS | NESTED | CHECKPOINT | GROWN,
     {}},
    {"pools_grown", "", 2, 0, POOLS | CHECKPOINT | GROWN, {}},

    {"pools_streams", "", 4, 0, POOLS | NESTED | CHECKPOINT | RECORD | BLOCK, {}},
    {"pools_streams_expandable",
     "expandable_segments:True",
     4,
     0,
     POOLS | NESTED | CHECKPOINT | RECORD | BLOCK,
     {}},
    {"pools_streams_stale", "", 4, 0, POOLS | RECORD | BLOCK | STALE, {}},

    {"limit_streams", "", 4, 2, RECORD | BLOCK, {}},
    {"limit_streams_expandable", "expandable_segments:True", 4, 2, RECORD | BLOCK, {}},
    {"limit_streams_gc",
     "max_split_size_mb:64,garbage_collection_threshold:0.6",
     4,
     2,
     RECORD | BLOCK,
     {}},

    {"limit_pools", "", 3, 2, POOLS | NESTED | CHECKPOINT, {}},
    {"limit_pools_expandable", "expandable_segments:True", 3, 2, POOLS | NESTED, {}},
    {"limit_pools_gc",
     "max_split_size_mb:64,garbage_collection_threshold:0.6",
     3,
     2,
     POOLS | NESTED,
     {}},
    {"limit_pools_streams", "max_split_size_mb:100", 4, 2, POOLS | NESTED | RECORD | BLOCK, {}},
    {"limit_pools_streams_expandable",
     "expandable_segments:True",
     4,
     2,
     POOLS | NESTED | RECORD | BLOCK,
     {}},

    {"change_expandable", "", 2, 0, 0, expandable_changes},
    {"change_expandable_limit", "", 2, 2, RECORD, expandable_changes},
    {"change_expandable_pools", "", 3, 0, POOLS | NESTED | CHECKPOINT, expandable_changes},
    {"change_split", "", 2, 0, RECORD, split_changes},
    {"change_split_limit", "max_split_size_mb:32", 2, 2, ORDERED | RECORD, split_rises},
    {"change_roundup", "", 2, 0, 0, roundup_changes},
    {"change_gc", "max_split_size_mb:100", 2, 2, RECORD, gc_changes},
    {"change_all", "max_split_size_mb:100", 3, 3, POOLS | RECORD, all_changes},
    {"fraction_setting",
     "per_process_memory_fraction:0.014,release_lock_on_cudamalloc:True",
     2,
     2,
     EDGES | POOLS,
     {}},

    {"release", "", 3, 0, POOLS | NESTED | CHECKPOINT | RELEASE, {}},
    {"release_limit", "", 3, 2, POOLS | NESTED | RELEASE, {}},
    {"release_expandable", "expandable_segments:True", 3, 0, POOLS | NESTED | RELEASE, {}},
    {"release_limit_expandable", "expandable_segments:True", 3, 2, POOLS | NESTED | RELEASE, {}},
    {"release_streams", "", 4, 0, POOLS | NESTED | RELEASE | RECORD | BLOCK, {}},

    {"split_expandable",
     "expandable_segments:True,max_split_size_mb:64",
     3,
     0,
     POOLS | NESTED | RECORD,
     {}},
    {"split_expandable_limit",
     "expandable_segments:True,max_split_size_mb:48",
     3,
     2,
     POOLS | RECORD | BLOCK,
     {}},
    {"split_expandable_gc",
     "expandable_segments:True,max_split_size_mb:64,garbage_collection_threshold:0.5",
     2,
     2,
     0,
     {}},

    {"large_segment",
     "large_segment_size_mb:32,max_non_split_rounding_mb:40,max_split_size_mb:48",
     2,
     0,
     0,
     {}},
    {"large_segment_limit",
     "large_segment_size_mb:32,max_non_split_rounding_mb:40,max_split_size_mb:48",
     3,
     2,
     POOLS | RECORD,
     {}},
    {"large_segment_expandable",
     "expandable_segments:True,large_segment_size_mb:32,max_non_split_rounding_mb:40,"
     "max_split_size_mb:100",
     2,
     2,
     POOLS,
     {}},

    {"large_segment_odd", "large_segment_size_mb:11", 2, 2, RECORD, {}},

    {"roundup_expandable", "expandable_segments:True,roundup_power2_divisions:4", 2, 0, 0, {}},
    {"roundup_list_expandable",
     "expandable_segments:True,roundup_power2_divisions:[64:8,256:4,1024:2,>:1]",
     3,
     2,
     POOLS | RECORD,
     {}},

    {"lend", "", 2, 2, POOLS | LEND, {}},
    {"lend_expandable", "expandable_segments:True", 2, 2, POOLS | LEND, {}},
    {"lend_whole", "max_split_size_mb:100", 2, 2, POOLS | LEND | WHOLE, {}},
    {"lend_change", "", 2, 2, POOLS | LEND, expandable_changes},
    {"whole", "", 2, 0, POOLS | WHOLE | RECORD, {}},
    {"whole_expandable", "expandable_segments:True", 2, 0, POOLS | WHOLE, {}},

    {"edges", "", 2, 3, EDGES, {}},
    {"edges_expandable", "expandable_segments:True", 2, 3, EDGES, {}},
    {"edges_split", "max_split_size_mb:20,roundup_power2_divisions:2", 2, 3, EDGES | POOLS, {}},

    {"capture", "", 5, 0, CAPTURE, {}},
    {"capture_reuse", "graph_capture_record_stream_reuse:True", 5, 0, CAPTURE, {}},
    {"capture_reuse_expandable",
     "graph_capture_record_stream_reuse:True,expandable_segments:True",
     5,
     0,
     CAPTURE,
     {}},
    {"capture_reuse_split",
     "graph_capture_record_stream_reuse:True,max_split_size_mb:64",
     5,
     0,
     CAPTURE,
     {}},
    {"capture_reuse_change", "", 5, 0, CAPTURE, reuse_changes},

    {"full", "", 2, 4, FULL | RECORD, {}},
    {"full_split", "max_split_size_mb:64", 2, 4, FULL | POOLS, {}},
    {"full_expandable", "expandable_segments:True", 2, 4, FULL | RECORD, {}},
    {"full_expandable_pools", "expandable_segments:True", 2, 4, FULL | POOLS, {}},
};

// ---- the log -----------------------------------------------------------------------------------

static std::string line;   // the call being written
static std::string events; // what the allocator reported during it
static bool hidden;        // such reports are our own looking
static int64_t call_count;
static std::vector<cudaStream_t> streams;
static std::map<uint64_t, PoolId> waiting;       // freed, not completed: address and pool
static std::map<uint64_t, int64_t> allocated_on; // stream of the last allocation at an address

static void put(std::string &text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(std::string &text, const char *format, ...)
{
    char buffer[512];
    va_list args;

    va_start(args, format);
    vsnprintf(buffer, sizeof buffer, format, args);
    va_end(args);
    text += buffer;
}

static void put_text(std::string &text, const std::string &value)
{
    text += '"';
    for (const char c : value) {
        if (c == '"' || c == '\\') {
            text += '\\';
            text += c;
        } else if (c == '\n') {
            text += "\\n";
        } else if (static_cast<unsigned char>(c) >= ' ') {
            text += c;
        }
    }
    text += '"';
}

static int64_t stream_index(const void *stream)
{
    for (size_t i = 0; i < streams.size(); i++) {
        if (streams[i] == stream) {
            return static_cast<int64_t>(i);
        }
    }
    return reinterpret_cast<int64_t>(stream);
}

static const char *action_name(CCA::TraceEntry::Action action)
{
    using Entry = CCA::TraceEntry;

    switch (action) {
    case Entry::ALLOC:
        return "alloc";
    case Entry::FREE_REQUESTED:
        return "free_requested";
    case Entry::FREE_COMPLETED:
        return "free_completed";
    case Entry::SEGMENT_ALLOC:
        return "segment_alloc";
    case Entry::SEGMENT_FREE:
        return "segment_free";
    case Entry::SEGMENT_MAP:
        return "segment_map";
    case Entry::SEGMENT_UNMAP:
        return "segment_unmap";
    case Entry::SNAPSHOT:
        return "snapshot";
    case Entry::OOM:
        return "oom";
    default:
        return "other";
    }
}

static void note_event(const CCA::TraceEntry &entry)
{
    if (hidden) {
        return;
    }
    put(events, "%s[\"%s\",%llu,%llu,%lld]", events.empty() ? "" : ",", action_name(entry.action_),
        static_cast<unsigned long long>(entry.addr_), static_cast<unsigned long long>(entry.size_),
        static_cast<long long>(stream_index(entry.stream_)));
    if (entry.action_ == CCA::TraceEntry::FREE_COMPLETED) {
        waiting.erase(entry.addr_);
    } else if (entry.action_ == CCA::TraceEntry::ALLOC) {
        allocated_on[entry.addr_] = stream_index(entry.stream_);
    }
}

static void line_begin(const char *op)
{
    events.clear();
    line.clear();
    put(line, "{\"n\":%lld,\"op\":\"%s\"", static_cast<long long>(call_count++), op);
}

static void line_end()
{
    const auto s = CCA::getDeviceStats(0);

    line += ",\"events\":[" + events + "]";
    put(line, ",\"brief\":[%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld]}\n",
        (long long)s.allocated_bytes[0].current, (long long)s.reserved_bytes[0].current,
        (long long)s.active_bytes[0].current, (long long)s.requested_bytes[0].current,
        (long long)s.inactive_split[0].current, (long long)s.inactive_split_bytes[0].current,
        (long long)s.segment[0].current, (long long)s.active[0].current,
        (long long)s.num_alloc_retries, (long long)s.num_ooms, (long long)s.num_device_alloc,
        (long long)s.num_device_free, (long long)s.num_sync_all_streams);
    fputs(line.c_str(), stdout);
}

static void put_pool(const PoolId &id)
{
    put(line, ",\"pool\":[%llu,%llu]", id.first, id.second);
}

[[noreturn]] static void stop(const char *why)
{
    fprintf(stderr, "stopped after %lld calls: %s\n", static_cast<long long>(call_count), why);
    fflush(stdout);
    _exit(0); // other threads and CUDA may not be in a state to be torn down
}

// ---- streams that wait -------------------------------------------------------------------------

// Each blocked stream waits for its word to reach its turn. A call of the allocator may itself wait
// for such a stream; a second thread then lets all of them go.
static volatile uint32_t *words;
static std::vector<uint32_t> turns;
static std::vector<char> blocked;
static std::mutex watch_mutex;
static int64_t call_began; // milliseconds, 0 = no call under way; this and the next by watch_mutex
static bool let_go;

static int64_t now_ms()
{
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

static void watch()
{
    for (;;) {
        {
            const std::lock_guard<std::mutex> lock(watch_mutex);

            if (call_began && now_ms() - call_began > 25 && !let_go) {
                for (size_t i = 0; i < turns.size(); i++) {
                    words[i] = turns[i];
                }
                let_go = true;
            }
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
}

static void check_cuda(int status, const char *what)
{
    if (status != 0) {
        fprintf(stderr, "%s failed: %d\n", what, status);
        _exit(1);
    }
}

static void streams_init(int count)
{
    void *memory = nullptr;

    check_cuda(cudaHostAlloc(&memory, 4096, cudaHostAllocMapped), "cudaHostAlloc");
    memset(memory, 0, 4096);
    words = static_cast<volatile uint32_t *>(memory);
    streams.push_back(nullptr);
    for (int i = 1; i < count; i++) {
        cudaStream_t stream;

        check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
        streams.push_back(stream);
    }
    turns.assign(streams.size(), 0);
    blocked.assign(streams.size(), 0);
    std::thread(watch).detach();
}

static void log_unblock(size_t i)
{
    blocked[i] = 0;
    line_begin("unblock_stream");
    put(line, ",\"stream\":%zu", i);
    line_end();
}

static void unblock(size_t i)
{
    words[i] = turns[i];
    check_cuda(cudaStreamSynchronize(streams[i]), "cudaStreamSynchronize");
    log_unblock(i);
}

static void unblock_all()
{
    for (size_t i = 0; i < streams.size(); i++) {
        if (blocked[i]) {
            unblock(i);
        }
    }
}

static void block(size_t i)
{
    CUdeviceptr word;

    check_cuda(cuMemHostGetDevicePointer(&word, const_cast<uint32_t *>(words + i), 0),
               "cuMemHostGetDevicePointer");
    turns[i]++;
    line_begin("block_stream");
    put(line, ",\"stream\":%zu", i);
    check_cuda(cuStreamWaitValue32(streams[i], word, turns[i], CU_STREAM_WAIT_VALUE_GEQ),
               "cuStreamWaitValue32");
    blocked[i] = 1;
    line_end();
}

static void call_is_under_way(bool yes)
{
    const std::lock_guard<std::mutex> lock(watch_mutex);

    call_began = yes ? now_ms() : 0;
}

// Around every call of the allocator that may wait: the watcher may let blocked streams go then.
template <class Call> static void guarded(Call call)
{
    call_is_under_way(true);
    try {
        call();
    } catch (...) {
        call_is_under_way(false);
        throw;
    }
    call_is_under_way(false);
}

// After such a call and its line.
static void note_let_go()
{
    const std::lock_guard<std::mutex> lock(watch_mutex);

    if (let_go) {
        let_go = false;
        unblock_all();
    }
}

// ---- streams in a capture ----------------------------------------------------------------------

// At most one capture is under way. Its graph is thrown away, so that what is captured touches no
// block. Stream 0 cannot be captured.
static std::vector<cudaGraph_t> graphs_kept;
static int capture_origin = -1; // stream that it began on, -1 = none is under way
static unsigned long long capture_id;
static std::vector<char> in_capture; // by stream
static void *scratch;                // what captured work writes to

static void captures_init()
{
    check_cuda(cudaMalloc(&scratch, 512), "cudaMalloc");
    in_capture.assign(streams.size(), 0);
}

static bool is_capturing()
{
    return capture_origin >= 0;
}

// As torch.cuda.graph routes: every stream of the capture.
static bool is_in_this_capture(cudaStream_t stream)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;

    if (cudaStreamGetCaptureInfo(stream, &status, &id) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    return status == cudaStreamCaptureStatusActive && id == capture_id;
}

static void do_capture_begin(size_t stream)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;

    line_begin("capture_begin");
    put(line, ",\"stream\":%zu", stream);
    check_cuda(cudaStreamBeginCapture(streams[stream], cudaStreamCaptureModeRelaxed),
               "cudaStreamBeginCapture");
    check_cuda(cudaStreamGetCaptureInfo(streams[stream], &status, &capture_id),
               "cudaStreamGetCaptureInfo");
    capture_origin = static_cast<int>(stream);
    in_capture[stream] = 1;
    line_end();
}

static void do_work(size_t stream)
{
    line_begin("work");
    put(line, ",\"stream\":%zu", stream);
    check_cuda(cudaMemsetAsync(scratch, 0, 1, streams[stream]), "cudaMemsetAsync");
    line_end();
}

// `stream` waits for what was captured on `after`, which is in the capture: it is then, too.
static void do_join(size_t stream, size_t after)
{
    cudaEvent_t event;

    line_begin("join");
    put(line, ",\"stream\":%zu,\"after\":%zu", stream, after);
    check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
    check_cuda(cudaEventRecord(event, streams[after]), "cudaEventRecord");
    check_cuda(cudaStreamWaitEvent(streams[stream], event, 0), "cudaStreamWaitEvent");
    check_cuda(cudaEventDestroy(event), "cudaEventDestroy");
    in_capture[stream] = 1;
    line_end();
}

static void do_capture_end()
{
    const size_t origin = static_cast<size_t>(capture_origin);
    cudaGraph_t graph = nullptr;

    for (size_t i = 1; i < streams.size(); i++) {
        if (in_capture[i] && i != origin) {
            do_join(origin, i); // CUDA wants every stream joined
        }
    }
    line_begin("capture_end");
    put(line, ",\"stream\":%zu", origin);
    check_cuda(cudaStreamEndCapture(streams[origin], &graph), "cudaStreamEndCapture");
    // Kept: PyTorch takes a node of a later graph at the same address for the one that it noted.
    graphs_kept.push_back(graph);
    capture_origin = -1;
    in_capture.assign(streams.size(), 0);
    line_end();
}

// All work is done but that of blocked streams, so that which events are complete follows. In a
// capture the allocator asks for no events, and there may be no waiting.
static void settle()
{
    if (is_capturing()) {
        return;
    }
    for (size_t i = 0; i < streams.size(); i++) {
        if (!blocked[i]) {
            check_cuda(cudaStreamSynchronize(streams[i]), "cudaStreamSynchronize");
        }
    }
}

// ---- what exists -------------------------------------------------------------------------------

struct Live {
    uint64_t id;
    void *ptr;
    size_t size;
    size_t stream;
    PoolId pool;
    bool used;     // on other streams
    bool captured; // ... while requests were routed
};

struct Pool {
    PoolId id;
    int uses;
    int route; // stream, -1 = none
    bool released;
    bool lends;
    std::shared_ptr<CCA::AllocatorState> checkpoint;
    std::vector<std::pair<uint64_t, uint64_t>> shape; // segments at the checkpoint
    bool captured = false; // the route is that of every stream in the capture
};

static const Scenario *scenario;
static std::mt19937_64 generator;
static std::vector<Live> live;
static std::vector<Pool> pools;
static std::vector<size_t> routes; // indices of pools, oldest first
static uint64_t next_id = 1;
static uint64_t live_bytes;
static bool expandable;
static bool oom_last;

static bool has(unsigned features)
{
    return (scenario->features & features) != 0;
}

static uint64_t below(uint64_t bound)
{
    return generator() % bound;
}

static double unit()
{
    return static_cast<double>(generator() >> 11) / 9007199254740992.0;
}

static bool chance(double probability)
{
    return unit() < probability;
}

static PoolId routed_pool(size_t stream)
{
    for (size_t i = routes.size(); i > 0; i--) {
        const Pool &pool = pools[routes[i - 1]];

        if (pool.captured ? in_capture[stream] != 0 : pool.route == static_cast<int>(stream)) {
            return pool.id;
        }
    }
    return {0, 0};
}

static bool pool_waits(const PoolId &id)
{
    return std::any_of(waiting.begin(), waiting.end(),
                       [&](const auto &entry) { return entry.second == id; });
}

static bool pool_is_used(const PoolId &id)
{
    return std::any_of(live.begin(), live.end(),
                       [&](const Live &l) { return l.pool == id && l.used; });
}

static std::vector<std::pair<uint64_t, uint64_t>> pool_shape(const PoolId &id)
{
    std::vector<std::pair<uint64_t, uint64_t>> shape;

    hidden = true;
    for (const auto &segment : CCA::snapshot().segments) {
        if (PoolId(segment.owner_private_pool_id) == id) {
            shape.emplace_back(segment.address, segment.total_size);
        }
    }
    hidden = false;
    return shape;
}

// ---- calls -------------------------------------------------------------------------------------

static size_t random_size()
{
    static const size_t mib = 1U << 20;
    const double kind = unit();

    if (has(EDGES) && kind < 0.5) {
        static const size_t edges[] = {1,
                                       511,
                                       512,
                                       513,
                                       1024,
                                       mib - 512,
                                       mib - 1,
                                       mib,
                                       mib + 1,
                                       mib + 512,
                                       2 * mib,
                                       2 * mib + 1,
                                       10 * mib - 513,
                                       10 * mib - 512,
                                       10 * mib - 1,
                                       10 * mib,
                                       10 * mib + 1,
                                       20 * mib - 1,
                                       20 * mib,
                                       20 * mib + 1,
                                       40 * mib,
                                       64 * mib,
                                       100 * mib - 1,
                                       128 * mib};
        const size_t count = sizeof edges / sizeof edges[0];

        if (kind < 0.02) {
            static const size_t huge[] = {size_t{3} << 30, (size_t{3} << 30) + 1, size_t{8} << 30,
                                          size_t{1} << 37, size_t{1} << 40,       size_t{1} << 50};

            return huge[below(6)];
        }
        return chance(0.25) ? size_t{1} << below(28) : edges[below(count)];
    }
    if (kind < 0.52) {
        return static_cast<size_t>(exp2(unit() * 20.0));
    }
    if (kind < 0.60) {
        return size_t{1} << (9 + below(17));
    }
    if (kind < 0.77) {
        return mib + below(9 * mib);
    }
    if (kind < 0.97) {
        return static_cast<size_t>(static_cast<double>(10 * mib) * exp2(unit() * 3.32));
    }
    return 100 * mib + below(200 * mib);
}

// One of the streams in the capture.
static size_t captured_stream()
{
    size_t stream = below(streams.size());

    while (!in_capture[stream]) {
        stream = (stream + 1) % streams.size();
    }
    return stream;
}

// PyTorch cannot borrow from a pool that requests are routed to: then only such requests are made.
static size_t choose_stream()
{
    if (!routes.empty() && pools[routes.back()].lends) {
        return static_cast<size_t>(pools[routes.back()].route);
    }
    return is_capturing() && chance(0.8) ? captured_stream() : below(streams.size());
}

static void do_malloc()
{
    const size_t size = random_size();
    const size_t stream = choose_stream();
    const PoolId pool = routed_pool(stream);
    void *ptr = nullptr;
    bool failed = false;

    settle();
    line_begin("malloc");
    try {
        guarded([&] { ptr = CCA::raw_alloc_with_stream(size, streams[stream]); });
    } catch (const c10::OutOfMemoryError &error) {
        put(line, ",\"size\":%zu,\"stream\":%zu,\"error\":\"oom\",\"message\":", size, stream);
        put_text(line, error.what_without_backtrace());
        failed = true;
    } catch (const c10::Error &error) {
        put(line, ",\"size\":%zu,\"stream\":%zu,\"error\":\"other\",\"message\":", size, stream);
        put_text(line, error.what_without_backtrace());
        line_end();
        stop(error.what_without_backtrace());
    }
    oom_last = failed;
    if (!failed) {
        put(line, ",\"id\":%" PRIu64 ",\"size\":%zu,\"stream\":%zu,\"ptr\":%llu", next_id, size,
            stream, static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(ptr)));
        live.push_back({next_id++, ptr, size, stream, pool, false, false});
        live_bytes += size;
    }
    line_end();
    note_let_go();
}

static void do_free(size_t i)
{
    const Live freed = live[i];

    live[i] = live.back();
    live.pop_back();
    live_bytes -= freed.size;
    if (freed.used) {
        waiting[reinterpret_cast<uint64_t>(freed.ptr)] = freed.pool;
    }
    line_begin("free");
    put(line, ",\"id\":%" PRIu64, freed.id);
    guarded([&] { CCA::raw_delete(freed.ptr); });
    line_end();
    note_let_go();
}

static void free_some()
{
    size_t i = below(live.size());

    if (chance(0.25)) {
        i = live.size() - 1;
    }
    for (size_t left = is_capturing() && chance(0.4) ? live.size() : 0; left > 0; left--) {
        if (live[i].used) {
            break;
        }
        i = (i + 1) % live.size();
    }
    if (live[i].captured && routes.empty() && !has(STALE)) {
        return; // PyTorch would keep what it remembers of the block's uses for another block
    }
    do_free(i);
}

// A block to use: in a capture preferably one of a stream in it.
static Live &choose_used()
{
    size_t i = below(live.size());

    for (size_t left = is_capturing() && chance(0.8) ? live.size() : 0; left > 0; left--) {
        if (in_capture[live[i].stream]) {
            break;
        }
        i = (i + 1) % live.size();
    }
    return live[i];
}

static void do_record_stream()
{
    Live &used = choose_used();
    const size_t stream = is_capturing() && chance(0.9) ? captured_stream() : below(streams.size());

    line_begin("record_stream");
    put(line, ",\"id\":%" PRIu64 ",\"stream\":%zu", used.id, stream);
    c10::DataPtr data(used.ptr, used.ptr, CCA::get()->raw_deleter(), c10::Device(c10::kCUDA, 0));

    CCA::recordStream(data, c10::cuda::getStreamFromExternal(streams[stream], 0));
    data.release_context();
    if (stream != used.stream) {
        used.used = true;
        used.captured = used.captured || !routes.empty();
    }
    line_end();
}

static void do_synchronize()
{
    unblock_all();
    line_begin("synchronize");
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    line_end();
}

static void do_empty_cache()
{
    if (chance(0.5)) {
        unblock_all();
    }
    line_begin("empty_cache");
    try {
        guarded([&] { CCA::emptyCache(); });
    } catch (const c10::Error &error) {
        put(line, ",\"error\":\"other\",\"message\":");
        put_text(line, error.what_without_backtrace());
        line_end();
        stop(error.what_without_backtrace());
    }
    line_end();
    note_let_go();
}

template <class Stat> static void put_stat(const Stat &s)
{
    put(line, "[%lld,%lld,%lld,%lld]", (long long)s.current, (long long)s.peak,
        (long long)s.allocated, (long long)s.freed);
}

template <class Stats> static void put_stats(const char *name, const Stats &array)
{
    put(line, "\"%s\":[", name);
    for (size_t i = 0; i < 3; i++) {
        line += i ? "," : "";
        put_stat(array[i]);
    }
    line += "],";
}

static void do_stats()
{
    const auto s = CCA::getDeviceStats(0);

    line_begin("stats");
    line += ",\"stats\":{";
    put_stats("allocation", s.allocation);
    put_stats("segment", s.segment);
    put_stats("active", s.active);
    put_stats("inactive_split", s.inactive_split);
    put_stats("allocated_bytes", s.allocated_bytes);
    put_stats("reserved_bytes", s.reserved_bytes);
    put_stats("active_bytes", s.active_bytes);
    put_stats("inactive_split_bytes", s.inactive_split_bytes);
    put_stats("requested_bytes", s.requested_bytes);
    line += "\"oversize_allocations\":";
    put_stat(s.oversize_allocations);
    line += ",\"oversize_segments\":";
    put_stat(s.oversize_segments);
    put(line,
        ",\"num_alloc_retries\":%lld,\"num_ooms\":%lld,\"num_sync_all_streams\":%lld,"
        "\"num_device_alloc\":%lld,\"num_device_free\":%lld,\"max_split_size\":%lld}",
        (long long)s.num_alloc_retries, (long long)s.num_ooms, (long long)s.num_sync_all_streams,
        (long long)s.num_device_alloc, (long long)s.num_device_free, (long long)s.max_split_size);
    line_end();
}

static void do_snapshot()
{
    line_begin("snapshot");
    const auto info = CCA::snapshot();
    const char *comma = "";

    line += ",\"segments\":[";
    for (const auto &s : info.segments) {
        put(line,
            "%s{\"address\":%zu,\"total_size\":%zu,\"requested_size\":%zu,\"allocated_size\":%zu,"
            "\"active_size\":%zu,\"stream\":%lld,\"is_large\":%d,\"is_expandable\":%d,"
            "\"pool\":[%llu,%llu],\"blocks\":[",
            comma, s.address, s.total_size, s.requested_size, s.allocated_size, s.active_size,
            static_cast<long long>(stream_index(s.stream)), s.is_large, s.is_expandable,
            (unsigned long long)s.owner_private_pool_id.first,
            (unsigned long long)s.owner_private_pool_id.second);
        comma = "";
        for (const auto &b : s.blocks) {
            put(line, "%s[%zu,%zu,%d,%d]", comma, b.size, b.requested_size, b.allocated, b.active);
            comma = ",";
        }
        line += "]}";
        comma = ",";
    }
    line += "]";
    line_end();
}

static void do_plain(const char *op, void (*call)(c10::DeviceIndex))
{
    line_begin(op);
    call(0);
    line_end();
}

static void do_set_config(const char *conf)
{
    line_begin("set_config");
    line += ",\"conf\":";
    put_text(line, conf);
    c10::CachingAllocator::setAllocatorSettings(conf);
    if (strstr(conf, "expandable_segments:")) {
        expandable = strstr(conf, "expandable_segments:True") != nullptr;
    }
    line_end();
}

static void set_limit(double bytes)
{
    cudaDeviceProp properties;

    check_cuda(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
    const double fraction = bytes / static_cast<double>(properties.totalGlobalMem);

    line_begin("set_fraction");
    put(line, ",\"fraction\":%.17g", fraction);
    CCA::setMemoryFraction(fraction, 0);
    line_end();
}

// ---- pools -------------------------------------------------------------------------------------

static void do_lend(Pool &pool, bool lends)
{
    line_begin("set_pool_use_on_oom");
    put_pool(pool.id);
    put(line, ",\"value\":%s", lends ? "true" : "false");
    CCA::setUseOnOOM(0, pool.id, lends);
    pool.lends = lends;
    line_end();
}

static void do_keep_whole(const PoolId &id)
{
    line_begin("set_pool_no_split");
    put_pool(id);
    line += ",\"value\":true";
    CCA::setNoSplit(0, id);
    line_end();
}

// A new pool, an existing one, or (to be refused, or made anew) one that was released.
static size_t choose_pool()
{
    const size_t most = has(RELEASE) ? 1000 : has(GROWN) ? 2 : 6;

    if (!pools.empty() && (pools.size() >= most || chance(0.6))) {
        const size_t index = below(pools.size());

        // PyTorch miscounts the segments of a growing pool and may never let go of its name.
        if (!pools[index].released || !expandable) {
            return index;
        }
    }
    const bool by_user = has(LEND | WHOLE) || chance(0.3);
    const unsigned long long number = pools.size() + 1;

    pools.push_back(
        {by_user ? PoolId(number, 0) : PoolId(0, number), 0, -1, false, false, nullptr, {}});
    return pools.size() - 1;
}

static void do_begin()
{
    const size_t index = choose_pool();
    Pool &pool = pools[index];
    const size_t stream = below(streams.size());
    const cudaStream_t handle = streams[stream];
    bool failed = false;

    if (pool.route >= 0 && (has(RELEASE) || !chance(0.2))) {
        return; // PyTorch counts a use before it refuses a second routing
    }

    line_begin("");
    try {
        CCA::beginAllocateToPool(0, pool.id, [handle](cudaStream_t s) { return s == handle; });
    } catch (const c10::Error &) {
        failed = true;
    }
    line.clear();
    put(line, "{\"n\":%lld,\"op\":\"begin_allocate_to_pool%s\"", (long long)call_count - 1,
        failed ? "_failed" : "");
    put_pool(pool.id);
    put(line, ",\"stream\":%zu", stream);
    line_end();
    if (failed) {
        return;
    }
    pool.uses++;
    const bool fresh = pool.uses == 1;

    if (fresh) {
        pool.checkpoint = nullptr;
    }
    pool.released = false;
    pool.route = static_cast<int>(stream);
    routes.push_back(index);
    if (has(LEND) && chance(fresh ? 0.7 : 0.15)) {
        do_lend(pool, fresh || !pool.lends);
    }
    if (fresh && has(WHOLE) && chance(0.5)) {
        do_keep_whole(pool.id);
    }
}

static void do_end()
{
    const size_t at = below(routes.size());
    Pool &pool = pools[routes[at]];

    if (pool.captured) {
        do_capture_end();
        pool.captured = false;
    }
    line_begin("end_allocate_to_pool");
    put_pool(pool.id);
    CCA::endAllocateToPool(0, pool.id);
    pool.route = -1;
    routes.erase(routes.begin() + static_cast<ptrdiff_t>(at));
    line_end();
}

// A graph is captured as torch.cuda.graph does it: first the routing, then the capture.
static void do_begin_captured()
{
    const size_t index = choose_pool();
    Pool &pool = pools[index];
    const size_t stream = 1 + below(streams.size() - 1);

    capture_id = 0;
    line_begin("begin_allocate_to_pool");
    put_pool(pool.id);
    put(line, ",\"stream\":%zu,\"captured\":true", stream);
    CCA::beginAllocateToPool(0, pool.id, is_in_this_capture);
    pool.uses++;
    pool.route = static_cast<int>(stream);
    pool.captured = true;
    routes.push_back(index);
    line_end();
    do_capture_begin(stream);
}

static void step_capture()
{
    const double roll = unit();

    if (!is_capturing()) {
        do_begin_captured();
    } else if (roll < 0.05) {
        do_end();
    } else if (roll < 0.50) {
        do_work(captured_stream());
    } else {
        const size_t after = captured_stream();
        const size_t stream = chance(0.7) ? captured_stream() : 1 + below(streams.size() - 1);

        if (stream != after) {
            do_join(stream, after);
        }
    }
}

static void do_end_failed()
{
    const PoolId id = {77, 77};
    bool failed = false;

    line_begin("end_allocate_to_pool_failed");
    put_pool(id);
    try {
        CCA::endAllocateToPool(0, id);
    } catch (const c10::Error &) {
        failed = true;
    }
    line_end();
    if (!failed) {
        stop("a pool that is not routed to could be ended");
    }
}

static void do_release()
{
    Pool &pool = pools[below(pools.size())];

    if (pool.route >= 0 || pool.uses == 0) {
        return;
    }
    if (pool.uses == 1 && expandable) {
        // PyTorch miscounts the segments of a growing pool: it must be wholly free.
        if (pool_waits(pool.id) || pool_is_used(pool.id)) {
            return;
        }
        for (size_t i = live.size(); i > 0; i--) {
            if (live[i - 1].pool == pool.id) {
                do_free(i - 1);
            }
        }
    }
    line_begin("release_pool");
    put_pool(pool.id);
    CCA::releasePool(0, pool.id);
    pool.uses--;
    if (pool.uses == 0) {
        pool.released = true;
        pool.checkpoint = nullptr;
    }
    line_end();
}

static void do_get_checkpoint()
{
    Pool &pool = pools[below(pools.size())];
    std::shared_ptr<CCA::AllocatorState> state;
    const std::string before = "{\"n\":" + std::to_string(call_count);

    line_begin("");
    try {
        state = CCA::getCheckpointState(0, pool.id);
    } catch (const c10::Error &) {
    }
    line = before + ",\"op\":\"" + (state ? "get_checkpoint" : "get_checkpoint_failed") + "\"";
    put_pool(pool.id);
    line_end();
    if (state) {
        pool.checkpoint = state;
        pool.shape = pool_shape(pool.id);
    }
}

static void do_set_checkpoint()
{
    Pool &pool = pools[below(pools.size())];
    const std::string before = "{\"n\":" + std::to_string(call_count);

    if (!pool.checkpoint || pool_waits(pool.id) || pool_is_used(pool.id)) {
        return;
    }
    const auto shape = pool_shape(pool.id);
    const bool fits = std::all_of(pool.shape.begin(), pool.shape.end(), [&](const auto &segment) {
        return std::find(shape.begin(), shape.end(), segment) != shape.end();
    });

    if (!fits && !has(GROWN)) {
        return;
    }
    line_begin("");
    try {
        CCA::CheckpointDelta delta = CCA::setCheckpointPoolState(0, pool.checkpoint);

        line = before + ",\"op\":\"set_checkpoint\"";
        put_pool(pool.id);
        line += ",\"freed\":[";
        for (size_t i = 0; i < delta.ptrs_freed.size(); i++) {
            void *ptr = delta.ptrs_freed[i];
            const auto found =
                std::find_if(live.begin(), live.end(), [&](const Live &l) { return l.ptr == ptr; });

            put(line, "%s%llu", i ? "," : "", (unsigned long long)reinterpret_cast<uintptr_t>(ptr));
            if (found != live.end()) {
                live_bytes -= found->size;
                live.erase(found);
            }
        }
        line += "],\"created\":[";
        for (size_t i = 0; i < delta.dataptrs_allocd.size(); i++) {
            void *ptr = delta.dataptrs_allocd[i].get();

            delta.dataptrs_allocd[i].release_context();
            put(line, "%s[%llu,%" PRIu64 "]", i ? "," : "",
                (unsigned long long)reinterpret_cast<uintptr_t>(ptr), next_id);
            live.push_back({next_id++, ptr, 0,
                            static_cast<size_t>(allocated_on[reinterpret_cast<uintptr_t>(ptr)]),
                            pool.id, false, false});
        }
        line += "]";
    } catch (const c10::Error &error) {
        line = before + ",\"op\":\"set_checkpoint_failed\"";
        put_pool(pool.id);
        line += ",\"message\":";
        put_text(line, error.what_without_backtrace());
        if (!pool.released) {
            line_end();
            stop(error.what_without_backtrace());
        }
    }
    line_end();
}

static void step_pools()
{
    const size_t most = has(NESTED) ? 3 : 1;

    if (routes.size() < most && chance(routes.empty() ? 0.5 : 0.2)) {
        do_begin();
    } else if (!routes.empty() && chance(0.5)) {
        do_end();
    } else if (has(RELEASE) && !pools.empty() && chance(0.6)) {
        do_release();
    } else if (has(CHECKPOINT) && !pools.empty()) {
        if (chance(has(GROWN) ? 0.15 : 0.5)) {
            do_get_checkpoint();
        } else {
            do_set_checkpoint();
        }
    } else if (chance(0.02)) {
        do_end_failed();
    }
}

// ---- the run -----------------------------------------------------------------------------------

static void step_streams()
{
    const size_t stream = below(streams.size());

    if (blocked[stream]) {
        unblock(stream);
    } else {
        block(stream);
    }
}

static void step_config()
{
    static size_t next;

    if (!has(ORDERED)) {
        do_set_config(scenario->changes[below(scenario->changes.size())]);
    } else if (next < scenario->changes.size() && chance(0.1)) {
        do_set_config(scenario->changes[next++]);
    }
}

// How many bytes are worth having: more than the limit lets in, so that it is met now and then.
static double wanted_bytes()
{
    return scenario->limit > 0 ? scenario->limit * 1.02e9 : 3.5e9;
}

static void step()
{
    const double roll = unit();

    if (call_count % 251 < 2) {
        if (call_count % 251 == 0) {
            do_stats();
        } else {
            do_snapshot();
        }
    } else if (roll < 0.006) {
        if (!is_capturing()) {
            do_empty_cache();
        }
    } else if (roll < 0.010) {
        if (chance(0.7)) {
            do_plain("reset_peak_stats", CCA::resetPeakStats);
        } else {
            do_plain("reset_accumulated_stats", CCA::resetAccumulatedStats);
        }
    } else if (roll < 0.012) {
        if (!is_capturing()) {
            do_synchronize();
        }
    } else if (roll < 0.024 && !scenario->changes.empty()) {
        step_config();
    } else if (roll < 0.026 && scenario->limit > 0 && !has(FULL)) {
        set_limit(scenario->limit * 1073741824.0 * (0.8 + unit() * 0.4));
    } else if (roll < 0.046 && has(BLOCK)) {
        step_streams();
    } else if (roll < 0.14 && has(RECORD) && !live.empty()) {
        do_record_stream();
    } else if (roll < 0.14 && is_capturing() && !live.empty()) {
        do_record_stream(); // only here: PyTorch does not forget what is used in a capture
    } else if (roll < 0.21 && has(POOLS)) {
        step_pools();
    } else if (roll < (is_capturing() ? 0.40 : 0.07) && has(CAPTURE)) {
        step_capture();
    } else {
        const double full = static_cast<double>(live_bytes) / wanted_bytes();
        const double more = oom_last ? 0.25 : full > 1.0 ? 0.3 : 0.72 - 0.27 * full;

        if (live.empty() || chance(more)) {
            do_malloc();
        } else {
            free_some();
        }
    }
}

static void finish()
{
    while (!routes.empty()) {
        do_end();
    }
    while (!live.empty()) {
        do_free(live.size() - 1);
    }
    do_synchronize();
    do_stats();
    do_snapshot();
    do_empty_cache();
    do_stats();
    do_snapshot();
}

// Takes what the device has but for the bytes to leave.
static void fill_device(double leave)
{
    size_t free_bytes = 0;
    size_t total = 0;
    void *ptr;

    check_cuda(cudaMemGetInfo(&free_bytes, &total), "cudaMemGetInfo");
    const size_t taken = (free_bytes - static_cast<size_t>(leave)) >> 21 << 21;

    check_cuda(cudaMalloc(&ptr, taken), "filling the device");
}

static void write_header(uint64_t seed)
{
    cudaDeviceProp properties;

    check_cuda(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
    put(line, "{\"scenario\":\"%s\",\"seed\":%" PRIu64 ",\"conf\":", scenario->name, seed);
    put_text(line, scenario->conf);
    put(line,
        ",\"torch\":\"2.11.0\",\"settled\":true,\"device_is_full\":%s,\"device_total\":%zu,"
        "\"streams\":[",
        has(FULL) ? "true" : "false", static_cast<size_t>(properties.totalGlobalMem));
    for (size_t i = 0; i < streams.size(); i++) {
        put(line, "%s%llu", i ? "," : "",
            (unsigned long long)reinterpret_cast<uintptr_t>(streams[i]));
    }
    line += "],\"brief\":[\"allocated_bytes\",\"reserved_bytes\",\"active_bytes\","
            "\"requested_bytes\",\"inactive_split\",\"inactive_split_bytes\",\"segment\","
            "\"active\",\"num_alloc_retries\",\"num_ooms\",\"num_device_alloc\","
            "\"num_device_free\",\"num_sync_all_streams\"]}\n";
    fputs(line.c_str(), stdout);
}

static const Scenario *find_scenario(const char *name)
{
    for (const Scenario &s : scenarios) {
        if (strcmp(s.name, name) == 0) {
            return &s;
        }
    }
    return nullptr;
}

int main(int argc, char **argv)
{
    static const char variable[] = "PYTORCH_CUDA_ALLOC_CONF";

    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        for (const Scenario &s : scenarios) {
            puts(s.name);
        }
        return 0;
    }
    scenario = argc == 4 ? find_scenario(argv[1]) : nullptr;
    if (!scenario) {
        fputs("usage: record_decisions SCENARIO SEED CALLS | list\n", stderr);
        return 2;
    }
    // PyTorch reads the settings when its library is loaded: start again with them.
    if (!getenv(variable) || strcmp(getenv(variable), scenario->conf) != 0) {
        setenv(variable, scenario->conf, 1);
        execv("/proc/self/exe", argv);
        return 1;
    }
    const uint64_t seed = strtoull(argv[2], nullptr, 10);
    const int64_t calls = strtoll(argv[3], nullptr, 10);

    generator.seed(seed);
    expandable = strstr(scenario->conf, "expandable_segments:True") != nullptr;
    c10::cuda::set_device(0);
    check_cuda(cudaFree(nullptr), "cudaFree");
    CCA::init(1);
    CCA::get()->attachAllocatorTraceTracker(note_event);
    streams_init(scenario->streams);
    captures_init();
    write_header(seed);
    if (has(FULL)) {
        fill_device(scenario->limit * 1073741824.0);
    } else if (scenario->limit > 0 && !strstr(scenario->conf, "memory_fraction")) {
        set_limit(scenario->limit * 1073741824.0);
    }
    while (call_count < calls) {
        step();
    }
    finish();
    fflush(stdout);
    _exit(0);
}
