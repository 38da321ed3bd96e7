// SPDX-License-Identifier: MIT
#include "plug/standin.h"

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

struct CUstream_st;
using cudaStream_t = CUstream_st *;
using cudaError_t = int;

namespace c10 {

using DeviceIndex = int8_t;
using CaptureId_t = unsigned long long;
using MempoolId_t = std::pair<CaptureId_t, CaptureId_t>;

struct SourceLocation {
    const char *function;
    const char *file;
    uint32_t line;
};

class Error : public std::exception {
    std::string msg_;
    std::vector<std::string> context_;
    std::shared_ptr<std::string> backtrace_;
    std::string what_;
    const void *caller_ = nullptr;

public:
    Error(SourceLocation where, std::string msg);
    const char *what() const noexcept override
    {
        return what_.c_str();
    }
    virtual const char *what_without_backtrace() const noexcept
    {
        return msg_.c_str();
    }
};

// cppcheck-suppress passedByValue ; as torch has it
Error::Error(SourceLocation where, std::string msg)
    : msg_(std::move(msg)),
      what_(msg_ + " (" + where.function + " at " + where.file + ":" + std::to_string(where.line) +
            ")")
{
}

class OutOfMemoryError : public Error {
    using Error::Error;
};

class Allocator {
public:
    virtual ~Allocator() = default;
};

namespace cuda {
namespace CUDACachingAllocator {

[[noreturn]] static void refuse(const char *what)
{
    throw Error({__func__, __FILE__, __LINE__},
                std::string("CUDAPluggableAllocator does not yet support ") + what + ".");
}

struct ShareableHandle {
    ptrdiff_t offset;
    std::string handle;
};

struct TraceEntry;
enum class RecordContext { NEVER, STATE, ALLOC, ALL };
using CreateContextFn = std::shared_ptr<void> (*)();
using OutOfMemoryObserver = std::function<void(int64_t, size_t, size_t, size_t)>;
using AllocatorTraceTracker = std::function<void(const TraceEntry &)>;

class CUDAAllocator : public Allocator {
public:
    virtual void *raw_alloc_with_stream(size_t size, DeviceIndex device, cudaStream_t stream) = 0;
    virtual void raw_delete(void *ptr) = 0;
    virtual void init(int device_count) = 0;
    virtual bool initialized() = 0;
    virtual double getMemoryFraction(DeviceIndex device) = 0;
    virtual void setMemoryFraction(double fraction, DeviceIndex device) = 0;
    virtual void emptyCache(MempoolId_t id) = 0;
    virtual void cacheInfo(DeviceIndex device, size_t *largest) = 0;
    virtual void *getBaseAllocation(void *ptr, size_t *size) = 0;
    virtual void recordStream(void *ptr, cudaStream_t stream) = 0;
    virtual void resetAccumulatedStats(DeviceIndex device) = 0;
    virtual void resetPeakStats(DeviceIndex device) = 0;
    virtual void beginAllocateToPool(DeviceIndex device, MempoolId_t id,
                                     std::function<bool(cudaStream_t)> filter) = 0;
    virtual void endAllocateToPool(DeviceIndex device, MempoolId_t id) = 0;
    virtual void releasePool(DeviceIndex device, MempoolId_t id) = 0;
    virtual int getPoolUseCount(DeviceIndex, MempoolId_t)
    {
        refuse("getPoolUseCount");
    }
    virtual void createOrIncrefPool(DeviceIndex, MempoolId_t, std::shared_ptr<CUDAAllocator>)
    {
        refuse("createOrIncrefPool");
    }
    virtual void setUseOnOOM(DeviceIndex, MempoolId_t, bool)
    {
        refuse("setUseOnOOM");
    }
    virtual void setNoSplit(DeviceIndex, MempoolId_t)
    {
        refuse("setNoSplit");
    }
    virtual bool checkPoolLiveAllocations(DeviceIndex, MempoolId_t,
                                          const std::unordered_set<void *> &)
    {
        refuse("checkPoolLiveAllocations");
    }
    virtual ShareableHandle shareIpcHandle(void *ptr) = 0;
    virtual std::shared_ptr<void> getIpcDevPtr(std::string handle) = 0;
    virtual bool isHistoryEnabled()
    {
        refuse("recordHistory");
    }
    virtual void recordHistory(bool enabled, CreateContextFn recorder, size_t max_entries,
                               RecordContext when, bool clear,
                               const std::vector<std::string> &skip_actions) = 0;
    virtual void recordAnnotation(const std::vector<std::pair<std::string, std::string>> &)
    {
    }
    virtual void pushCompileContext(std::string &)
    {
    }
    virtual void popCompileContext()
    {
    }
    virtual void setUserMetadata(const std::string &)
    {
    }
    virtual std::string getUserMetadata()
    {
        return "";
    }
    virtual void attachOutOfMemoryObserver(OutOfMemoryObserver observer) = 0;
    virtual void attachAllocatorTraceTracker(AllocatorTraceTracker tracker) = 0;
    virtual void enablePeerAccess(DeviceIndex device, DeviceIndex peer) = 0;
    virtual cudaError_t memcpyAsync(void *to, int to_device, const void *from, int from_device,
                                    size_t count, cudaStream_t stream, bool peer_access) = 0;
};

std::atomic<CUDAAllocator *> allocator{nullptr};

} // namespace CUDACachingAllocator
} // namespace cuda
} // namespace c10

namespace torch {
namespace cuda {
namespace CUDAPluggableAllocator {

using c10::DeviceIndex;
using c10::MempoolId_t;
using c10::cuda::CUDACachingAllocator::AllocatorTraceTracker;
using c10::cuda::CUDACachingAllocator::CreateContextFn;
using c10::cuda::CUDACachingAllocator::CUDAAllocator;
using c10::cuda::CUDACachingAllocator::OutOfMemoryObserver;
using c10::cuda::CUDACachingAllocator::RecordContext;
using c10::cuda::CUDACachingAllocator::refuse;
using c10::cuda::CUDACachingAllocator::ShareableHandle;

struct CUDAPluggableAllocator : public CUDAAllocator {
    void *raw_alloc_with_stream(size_t size, DeviceIndex device, cudaStream_t stream) override;
    void raw_delete(void *ptr) override;
    void init(int device_count) override;
    bool initialized() override;
    double getMemoryFraction(DeviceIndex device) override;
    void setMemoryFraction(double fraction, DeviceIndex device) override;
    void emptyCache(MempoolId_t id) override;
    void cacheInfo(DeviceIndex device, size_t *largest) override;
    void *getBaseAllocation(void *ptr, size_t *size) override;
    void recordStream(void *ptr, cudaStream_t stream) override;
    void resetAccumulatedStats(DeviceIndex device) override;
    void resetPeakStats(DeviceIndex device) override;
    void beginAllocateToPool(DeviceIndex device, MempoolId_t id,
                             std::function<bool(cudaStream_t)> filter) override;
    void endAllocateToPool(DeviceIndex device, MempoolId_t id) override;
    void releasePool(DeviceIndex device, MempoolId_t id) override;
    ShareableHandle shareIpcHandle(void *ptr) override;
    std::shared_ptr<void> getIpcDevPtr(std::string handle) override;
    void recordHistory(bool enabled, CreateContextFn recorder, size_t max_entries,
                       RecordContext when, bool clear,
                       const std::vector<std::string> &skip_actions) override;
    void attachOutOfMemoryObserver(OutOfMemoryObserver observer) override;
    void attachAllocatorTraceTracker(AllocatorTraceTracker tracker) override;
    void enablePeerAccess(DeviceIndex device, DeviceIndex peer) override;
    cudaError_t memcpyAsync(void *to, int to_device, const void *from, int from_device,
                            size_t count, cudaStream_t stream, bool peer_access) override;

    struct Record {
        size_t size;
        DeviceIndex device;
        cudaStream_t stream;
    };

    std::function<void *(size_t, int, cudaStream_t)> alloc_fn;
    std::function<void(void *, size_t, int, cudaStream_t)> free_fn;
    std::function<void(int)> init_fn;
    std::function<void()> reset_fn;
    std::function<void(double, int)> memory_fraction_fn;
    std::function<void *(void *, size_t *)> base_alloc_fn;
    std::function<void(void *, cudaStream_t)> record_stream_fn;
    std::function<void(int, MempoolId_t, std::function<bool(cudaStream_t)>)> begin_fn;
    std::function<void(int, MempoolId_t)> end_fn;
    std::function<void(int, MempoolId_t)> release_fn;
    std::mutex mutex;
    std::unordered_map<void *, Record> records;
    bool is_initialized = false;
};

void *CUDAPluggableAllocator::raw_alloc_with_stream(size_t size, DeviceIndex device,
                                                    cudaStream_t stream)
{
    void *ptr = alloc_fn(size, device, stream);
    const std::lock_guard<std::mutex> lock(mutex);

    records.emplace(ptr, Record{size, device, stream});
    return ptr;
}

void CUDAPluggableAllocator::raw_delete(void *ptr)
{
    Record record{};
    {
        const std::lock_guard<std::mutex> lock(mutex);
        const auto found = records.find(ptr);

        if (found == records.end()) {
            throw c10::Error({__func__, __FILE__, __LINE__},
                             "Trying to free a pointer not allocated here");
        }
        record = found->second;
        records.erase(found);
    }
    free_fn(ptr, record.size, record.device, record.stream);
}

void CUDAPluggableAllocator::init(int device_count)
{
    if (init_fn) {
        init_fn(device_count);
    }
    is_initialized = true;
}

bool CUDAPluggableAllocator::initialized()
{
    return is_initialized;
}

double CUDAPluggableAllocator::getMemoryFraction(DeviceIndex)
{
    refuse("getMemoryFraction");
}

void CUDAPluggableAllocator::setMemoryFraction(double fraction, DeviceIndex device)
{
    if (memory_fraction_fn) {
        memory_fraction_fn(fraction, device);
    }
}

void CUDAPluggableAllocator::emptyCache(MempoolId_t)
{
    if (reset_fn) {
        reset_fn();
    }
}

void CUDAPluggableAllocator::cacheInfo(DeviceIndex, size_t *)
{
    refuse("cacheInfo");
}

void *CUDAPluggableAllocator::getBaseAllocation(void *ptr, size_t *size)
{
    return base_alloc_fn ? base_alloc_fn(ptr, size) : ptr;
}

void CUDAPluggableAllocator::recordStream(void *ptr, cudaStream_t stream)
{
    if (record_stream_fn) {
        record_stream_fn(ptr, stream);
    }
}

void CUDAPluggableAllocator::resetAccumulatedStats(DeviceIndex)
{
    refuse("resetAccumulatedStats");
}

void CUDAPluggableAllocator::resetPeakStats(DeviceIndex)
{
    refuse("resetPeakStats");
}

void CUDAPluggableAllocator::beginAllocateToPool(DeviceIndex device, MempoolId_t id,
                                                 std::function<bool(cudaStream_t)> filter)
{
    if (begin_fn) {
        begin_fn(device, id, std::move(filter));
    }
}

void CUDAPluggableAllocator::endAllocateToPool(DeviceIndex device, MempoolId_t id)
{
    if (end_fn) {
        end_fn(device, id);
    }
}

void CUDAPluggableAllocator::releasePool(DeviceIndex device, MempoolId_t id)
{
    if (release_fn) {
        release_fn(device, id);
    }
}

ShareableHandle CUDAPluggableAllocator::shareIpcHandle(void *)
{
    refuse("shareIpcHandle");
}

std::shared_ptr<void> CUDAPluggableAllocator::getIpcDevPtr(std::string)
{
    refuse("getIpcDevPtr");
}

void CUDAPluggableAllocator::recordHistory(bool, CreateContextFn, size_t, RecordContext, bool,
                                           const std::vector<std::string> &)
{
    refuse("recordHistory");
}

void CUDAPluggableAllocator::attachOutOfMemoryObserver(OutOfMemoryObserver)
{
    refuse("attachOutOfMemoryObserver");
}

void CUDAPluggableAllocator::attachAllocatorTraceTracker(AllocatorTraceTracker)
{
    refuse("attachAllocatorTraceTracker");
}

void CUDAPluggableAllocator::enablePeerAccess(DeviceIndex, DeviceIndex) {}

// 1 says that the copy was a plain one, as cudaMemcpyPeerAsync below says 2.
cudaError_t CUDAPluggableAllocator::memcpyAsync(void *, int, const void *, int, size_t,
                                                cudaStream_t, bool)
{
    return 1;
}

} // namespace CUDAPluggableAllocator
} // namespace cuda
} // namespace torch

extern "C" cudaError_t cudaMemcpyPeerAsync(void *, int, const void *, int, size_t, cudaStream_t)
{
    return 2;
}

static thread_local int current_device = 0;

extern "C" cudaError_t cudaGetDevice(int *device_out)
{
    *device_out = current_device;
    return 0;
}

namespace {

namespace caching = c10::cuda::CUDACachingAllocator;
using torch::cuda::CUDAPluggableAllocator::CUDAPluggableAllocator;

thread_local std::string text;
std::vector<std::shared_ptr<void>> opened;
std::vector<std::unique_ptr<CUDAPluggableAllocator>> allocators;
std::atomic<int> live_filters{0};

// A stored functor that counts its copies; PAD words more than a stream.
template <size_t PAD> struct StreamFilter {
    cudaStream_t wanted;
    uint64_t pad[PAD];

    explicit StreamFilter(cudaStream_t stream) : wanted(stream), pad{}
    {
        live_filters++;
    }
    StreamFilter(const StreamFilter &other) : wanted(other.wanted), pad{}
    {
        live_filters++;
    }
    ~StreamFilter()
    {
        live_filters--;
    }
    bool operator()(cudaStream_t stream) const
    {
        return stream == wanted;
    }
};

template <typename Call> int run(Call call)
{
    text.clear();
    try {
        call();
        return STANDIN_OK;
    } catch (const c10::OutOfMemoryError &e) {
        text = e.what_without_backtrace();
        return STANDIN_OUT_OF_MEMORY;
    } catch (const c10::Error &e) {
        text = e.what_without_backtrace();
        return STANDIN_ERROR;
    } catch (const std::exception &e) {
        text = e.what();
        return STANDIN_OTHER;
    }
}

caching::CUDAAllocator *current()
{
    caching::CUDAAllocator *allocator = caching::allocator.load();

    if (!allocator) {
        throw std::runtime_error("there is no current allocator");
    }
    return allocator;
}

[[noreturn]] void refuse_swap()
{
    throw c10::Error({__func__, __FILE__, __LINE__}, "Can't swap an already initialized allocator");
}

cudaStream_t stream_of(void *stream)
{
    return static_cast<cudaStream_t>(stream);
}

template <typename Function> Function function_of(void *address)
{
    Function function = nullptr;

    std::memcpy(&function, &address, sizeof function);
    return function;
}

std::function<bool(cudaStream_t)> make_filter(int kind, void *stream)
{
    switch (kind) {
    case STANDIN_ANY_STREAM:
        return [](cudaStream_t) { return true; };
    case STANDIN_ONE_STREAM: {
        cudaStream_t wanted = stream_of(stream);

        return [wanted](cudaStream_t given) { return given == wanted; };
    }
    case STANDIN_LARGE_FILTER:
        return StreamFilter<8>(stream_of(stream));
    default:
        return {};
    }
}

} // namespace

extern "C" {

const char *standin_text(void)
{
    return text.c_str();
}

void *standin_custom_allocator(void *alloc, void *free)
{
    auto made = std::make_unique<CUDAPluggableAllocator>();

    made->alloc_fn = function_of<void *(*)(size_t, int, cudaStream_t)>(alloc);
    made->free_fn = function_of<void (*)(void *, size_t, int, cudaStream_t)>(free);
    made->init(0);
    made->is_initialized = false;
    allocators.push_back(std::move(made));
    return allocators.back().get();
}

int standin_set(void *allocator, const char *setter, void *function)
{
    auto *a = static_cast<CUDAPluggableAllocator *>(allocator);
    const std::string name = setter;

    return run([&] {
        using c10::MempoolId_t;
        if (name == "set_init_fn") {
            a->init_fn = function_of<void (*)(int)>(function);
        } else if (name == "set_reset_fn") {
            a->reset_fn = function_of<void (*)()>(function);
        } else if (name == "set_memory_fraction_fn") {
            a->memory_fraction_fn = function_of<void (*)(double, int)>(function);
        } else if (name == "set_base_alloc_fn") {
            a->base_alloc_fn = function_of<void *(*)(void *, size_t *)>(function);
        } else if (name == "set_record_stream_fn") {
            a->record_stream_fn = function_of<void (*)(void *, cudaStream_t)>(function);
        } else if (name == "set_begin_allocate_to_pool") {
            a->begin_fn =
                function_of<void (*)(int, MempoolId_t, std::function<bool(cudaStream_t)>)>(
                    function);
        } else if (name == "set_end_allocate_to_pool_fn") {
            a->end_fn = function_of<void (*)(int, MempoolId_t)>(function);
        } else if (name == "set_release_pool") {
            a->release_fn = function_of<void (*)(int, MempoolId_t)>(function);
        } else {
            throw std::invalid_argument("no such setter: " + name);
        }
    });
}

int standin_change_current(void *allocator)
{
    return run([&] {
        if (standin_is_initialized()) {
            refuse_swap();
        }
        caching::allocator.store(static_cast<CUDAPluggableAllocator *>(allocator));
    });
}

void standin_init(int device_count)
{
    if (caching::allocator.load()) {
        current()->init(device_count);
    }
}

int standin_is_initialized(void)
{
    return caching::allocator.load() && current()->initialized();
}

void standin_forget(void)
{
    caching::allocator.store(nullptr);
}

int standin_alloc(size_t size, int device, void *stream, void **ptr_out)
{
    return run([&] {
        *ptr_out = current()->raw_alloc_with_stream(size, static_cast<int8_t>(device),
                                                    stream_of(stream));
    });
}

int standin_free(void *ptr)
{
    return run([&] { current()->raw_delete(ptr); });
}

int standin_empty_cache(uint64_t first, uint64_t second)
{
    return run([&] { current()->emptyCache({first, second}); });
}

int standin_record_stream(void *ptr, void *stream)
{
    return run([&] { current()->recordStream(ptr, stream_of(stream)); });
}

int standin_base(void *ptr, void **base_out, size_t *size_out)
{
    return run([&] { *base_out = current()->getBaseAllocation(ptr, size_out); });
}

int standin_set_fraction(double fraction, int device)
{
    return run([&] { current()->setMemoryFraction(fraction, static_cast<int8_t>(device)); });
}

int standin_get_fraction(int device, double *fraction_out)
{
    return run([&] { *fraction_out = current()->getMemoryFraction(static_cast<int8_t>(device)); });
}

int standin_cache_info(int device, size_t *largest_in_out)
{
    return run([&] { current()->cacheInfo(static_cast<int8_t>(device), largest_in_out); });
}

int standin_reset_peak(int device)
{
    return run([&] { current()->resetPeakStats(static_cast<int8_t>(device)); });
}

int standin_reset_accumulated(int device)
{
    return run([&] { current()->resetAccumulatedStats(static_cast<int8_t>(device)); });
}

int standin_alloc_elsewhere(size_t size, void **ptr_out)
{
    int result = STANDIN_OTHER;
    std::thread thread([&] { result = standin_alloc(size, 0, nullptr, ptr_out); });

    thread.join();
    return result;
}

int standin_free_elsewhere(void *ptr)
{
    int result = STANDIN_OTHER;
    std::thread thread([&] { result = standin_free(ptr); });

    thread.join();
    return result;
}

int standin_begin_pool(int device, uint64_t first, uint64_t second, int filter, void *stream)
{
    return run([&] {
        current()->beginAllocateToPool(static_cast<int8_t>(device), {first, second},
                                       make_filter(filter, stream));
    });
}

int standin_end_pool(int device, uint64_t first, uint64_t second)
{
    return run([&] {
        current()->endAllocateToPool(static_cast<int8_t>(device), {first, second});
    });
}

int standin_release_pool(int device, uint64_t first, uint64_t second)
{
    return run([&] { current()->releasePool(static_cast<int8_t>(device), {first, second}); });
}

int standin_acquire_pool(int device, uint64_t first, uint64_t second, void *source)
{
    return run([&] {
        // Not owned: the pointer alone is what counts.
        std::shared_ptr<caching::CUDAAllocator> shared(
            std::shared_ptr<void>(), static_cast<CUDAPluggableAllocator *>(source));

        current()->createOrIncrefPool(static_cast<int8_t>(device), {first, second}, shared);
    });
}

int standin_pool_use_count(int device, uint64_t first, uint64_t second, int *count_out)
{
    return run([&] {
        *count_out = current()->getPoolUseCount(static_cast<int8_t>(device), {first, second});
    });
}

int standin_pool_use_on_oom(int device, uint64_t first, uint64_t second, int use)
{
    return run([&] {
        current()->setUseOnOOM(static_cast<int8_t>(device), {first, second}, use != 0);
    });
}

int standin_pool_no_split(int device, uint64_t first, uint64_t second)
{
    return run([&] { current()->setNoSplit(static_cast<int8_t>(device), {first, second}); });
}

int standin_enable_peer(int device, int peer)
{
    return run([&] {
        current()->enablePeerAccess(static_cast<int8_t>(device), static_cast<int8_t>(peer));
    });
}

int standin_copy(int to_device, int from_device, int peer_access, int *kind_out)
{
    return run([&] {
        *kind_out = current()->memcpyAsync(nullptr, to_device, nullptr, from_device, 1, nullptr,
                                           peer_access != 0);
    });
}

int standin_share(void *ptr, char *handle_out, size_t capacity, size_t *length_out,
                  ptrdiff_t *offset_out)
{
    return run([&] {
        const caching::ShareableHandle shared = current()->shareIpcHandle(ptr);

        if (shared.handle.size() > capacity) {
            throw std::length_error("the handle is longer than the room for it");
        }
        shared.handle.copy(handle_out, capacity);
        *length_out = shared.handle.size();
        *offset_out = shared.offset;
    });
}

int standin_open_shared(int device, const char *handle, size_t length, void **ptr_out)
{
    return run([&] {
        current_device = device;
        opened.push_back(current()->getIpcDevPtr(std::string(handle, length)));
        opened.push_back(opened.back()); // a second owner of the same
        *ptr_out = opened.back().get();
    });
}

void standin_close_shared(void)
{
    opened.clear();
}

int standin_record_history(int enabled)
{
    return run([&] {
        current()->recordHistory(enabled != 0, nullptr, 1, caching::RecordContext::NEVER, false,
                                 {});
    });
}

int standin_is_history_enabled(int *enabled_out)
{
    return run([&] { *enabled_out = current()->isHistoryEnabled(); });
}

int standin_annotate(const char *name, const char *stage, const char *more)
{
    return run([&] {
        std::vector<std::pair<std::string, std::string>> pairs = {{"name", name},
                                                                  {"stage", stage}};

        if (more) {
            pairs.emplace_back("more", more);
        }
        current()->recordAnnotation(pairs);
    });
}

int standin_push_compile_context(const char *text)
{
    return run([&] {
        std::string name = text;

        current()->pushCompileContext(name);
    });
}

int standin_pop_compile_context(void)
{
    return run([&] { current()->popCompileContext(); });
}

int standin_set_user_metadata(const char *text)
{
    return run([&] { current()->setUserMetadata(text); });
}

int standin_refused(void)
{
    return run([&] { (void)current()->checkPoolLiveAllocations(0, {0, 1}, {}); });
}

int standin_live_filters(void)
{
    return live_filters;
}

int standin_begin_pool_raw(void *begin, int device, uint64_t first, uint64_t second,
                           const void *object)
{
    // A C declaration of the same function: the object travels as its address.
    struct Id {
        uint64_t first, second;
    };
    const auto call = function_of<void (*)(int, Id, const void *)>(begin);

    return run([&] { call(device, Id{first, second}, object); });
}

} // extern "C"

// Somebody must throw it, so that its type and table are in this library, as in torch's.
void standin_throw_out_of_memory();
void standin_throw_out_of_memory()
{
    throw c10::OutOfMemoryError({__func__, __FILE__, __LINE__}, "stand-in");
}
