/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for libc10, libc10_cuda and the CUDA runtime: what the class needs of them when it is
 * compiled against torch's headers, with one current device and stream. Declarations are torch's;
 * what they do here is the least that the tests look at.
 */
#include "plug/torch_stub.h"

#include "plug/pytorch/torch_interface.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/GPUTrace.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <c10/util/Type.h>

#include <array>
#include <cstring>
#include <ostream>
#include <utility>

namespace torch_stub
{
signed char device;
signed char target = -1;
thread_local uintptr_t stream;
int plain_copies;
int peer_copies;
Profiler profiler = Profiler::none;
int reports;
int oom_reports;
int64_t reported_size;
size_t reported_total;
} // namespace torch_stub

namespace c10
{

static std::array<Allocator *, 64> allocators;

void SetAllocator(DeviceType type, Allocator *allocator, uint8_t /*priority*/)
{
    allocators[static_cast<size_t>(type)] = allocator;
}

Allocator *GetAllocator(const DeviceType &type)
{
    return allocators[static_cast<size_t>(type)];
}

bool Allocator::is_simple_data_ptr(const DataPtr &data) const
{
    return data.get() == data.get_context();
}

void Allocator::default_copy_data(void *to, const void *from, std::size_t count) const
{
    std::memcpy(to, from, count);
}

#if TORCH_VERSION_MINOR >= 9
DeviceAllocator::DeviceAllocator() = default;
DeviceAllocator::~DeviceAllocator() = default;
#endif

#if TORCH_VERSION_MINOR >= 13 /* no longer an enumeration */
namespace
{
constexpr std::string_view profiler_name = "profiler";
}
const DebugInfoKind DebugInfoKind::PROFILER_STATE(&profiler_name);
#endif

DebugInfoBase *ThreadLocalDebugInfo::get(DebugInfoKind kind)
{
    static DebugInfoBase state;
    const bool has = torch_stub::profiler != torch_stub::Profiler::none;

    return has && kind == DebugInfoKind::PROFILER_STATE ? &state : nullptr;
}

bool memoryProfilingEnabled()
{
    return torch_stub::profiler == torch_stub::Profiler::of_memory;
}

void reportMemoryUsageToProfiler(void * /*ptr*/, int64_t size, size_t total, size_t /*reserved*/,
                                 Device /*device*/)
{
    torch_stub::reports++;
    torch_stub::reported_size = size;
    torch_stub::reported_total = total;
}

void reportOutOfMemoryToProfiler(int64_t, size_t, size_t, Device)
{
    torch_stub::oom_reports++;
}

Error::Error(SourceLocation, std::string text) : Error(std::move(text), nullptr)
{
}

Error::Error(std::string text, Backtrace backtrace, const void * /*caller*/)
    : msg_(std::move(text)), backtrace_(std::move(backtrace))
{
}

const char *Error::what() const noexcept
{
    return msg_.c_str();
}

#if TORCH_VERSION_MINOR >= 12 /* inherited before */
OutOfMemoryError::OutOfMemoryError(SourceLocation where, std::string text)
    : Error(where, std::move(text))
{
}

NotImplementedError::NotImplementedError(SourceLocation where, std::string text)
    : Error(where, std::move(text))
{
}
#endif

namespace detail
{
void torchCheckFail(const char *, const char *, uint32_t, const std::string &text)
{
    throw Error(SourceLocation{}, text);
}

void torchCheckFail(const char *, const char *, uint32_t, const char *text)
{
    throw Error(SourceLocation{}, text);
}

void torchInternalAssertFail(const char *, const char *, uint32_t, const char *,
                             const std::string &text)
{
    throw Error(SourceLocation{}, text);
}

void torchInternalAssertFail(const char *, const char *, uint32_t, const char *, const char *text)
{
    throw Error(SourceLocation{}, text);
}

void deleteNothing(void *)
{
}
} // namespace detail

void warn(const Warning &)
{
}

Warning::Warning(std::variant<UserWarning, DeprecationWarning>, const SourceLocation &, std::string,
                 bool)
    : type_(UserWarning()), verbatim_(false)
{
}

#if TORCH_VERSION_MINOR >= 14
Warning::Warning(std::variant<UserWarning, DeprecationWarning>, SourceLocation, const char *, bool)
    : type_(UserWarning()), verbatim_(false)
{
}
#endif

bool WarningUtils::get_warnAlways() noexcept
{
    return false;
}

std::string GetExceptionString(const std::exception &error)
{
    return error.what();
}

std::string demangle(const char *name)
{
    return name;
}

std::ostream &operator<<(std::ostream &out, const Device &)
{
    return out;
}

std::ostream &operator<<(std::ostream &out, DeviceType)
{
    return out;
}

namespace impl
{
std::atomic<const PyInterpreter *> GPUTrace::gpuTraceState;
bool GPUTrace::haveState;
std::array<std::atomic<const DeviceGuardImplInterface *>,
           static_cast<size_t>(DeviceType::COMPILE_TIME_MAX_DEVICE_TYPES)>
    device_guard_impl_registry;
} // namespace impl

C10_DEFINE_REGISTRY(FreeCudaMemoryCallbacksRegistry, FreeMemoryCallback)

namespace cuda
{

static DeviceIndex ordinal(DeviceIndex asked)
{
    return asked < 0 ? static_cast<DeviceIndex>(torch_stub::device) : asked;
}

static CUDAStream stream_of(DeviceIndex device, uintptr_t number)
{
    return CUDAStream(CUDAStream::UNCHECKED, Stream(Stream::UNSAFE, Device(kCUDA, ordinal(device)),
                                                    static_cast<StreamId>(number)));
}

DeviceIndex device_count() noexcept
{
    return 2;
}

DeviceIndex current_device()
{
    return ordinal(-1);
}

void SetTargetDevice()
{
    if (torch_stub::target >= 0) {
        torch_stub::device = std::exchange(torch_stub::target, static_cast<signed char>(-1));
    }
}

cudaError_t GetDevice(DeviceIndex *device)
{
    *device = ordinal(-1);
    return cudaSuccess;
}

cudaError_t SetDevice(DeviceIndex device, bool /*force*/)
{
    torch_stub::device = device;
    return cudaSuccess;
}

cudaError_t SetDevice(DeviceIndex device) /* 2.6 */
{
    return SetDevice(device, false);
}

cudaError_t MaybeSetDevice(DeviceIndex device)
{
    return SetDevice(device, false);
}

DeviceIndex ExchangeDevice(DeviceIndex device)
{
    const DeviceIndex before = ordinal(-1);

    torch_stub::device = device;
    return before;
}

/* Of this function each header declares one. */
void c10_cuda_check_implementation(int32_t error, const char *, const char *, int, bool)
{
    TORCH_CHECK(error == cudaSuccess, "CUDA error");
}

void c10_cuda_check_implementation(int32_t error, const char *, const char *, uint32_t, bool)
{
    TORCH_CHECK(error == cudaSuccess, "CUDA error");
}

#if TORCH_VERSION_MINOR >= 14
CUDAErrorLogCapture::CUDAErrorLogCapture() noexcept = default;

void c10_cuda_check_implementation(int32_t error, const char *, const char *, uint32_t, bool,
                                   CUDAErrorLogCapture *)
{
    TORCH_CHECK(error == cudaSuccess, "CUDA error");
}
#endif

void warn_or_error_on_sync()
{
}

CUDAStream getCurrentCUDAStream(DeviceIndex device)
{
    return stream_of(device, torch_stub::stream);
}

CUDAStream getDefaultCUDAStream(DeviceIndex device)
{
    return stream_of(device, 0);
}

CUDAStream getStreamFromPool(bool, DeviceIndex device)
{
    return stream_of(device, 100);
}

CUDAStream getStreamFromPool(int, DeviceIndex device)
{
    return stream_of(device, 100);
}

void setCurrentCUDAStream(CUDAStream stream)
{
    torch_stub::stream = static_cast<uintptr_t>(stream.id());
}

cudaStream_t CUDAStream::stream() const
{
    return reinterpret_cast<cudaStream_t>(stream_.id());
}

#if TORCH_VERSION_MINOR >= 12 /* inline before */
bool CUDAStream::query() const
{
    return true;
}

void CUDAStream::synchronize() const
{
}
#endif

#if TORCH_VERSION_MINOR < 8
namespace
{
MemPool *active_pool;
}

MemPool::MemPool(CUDACachingAllocator::CUDAAllocator *source, bool is_user_created)
    : allocator_(source), is_user_created_(is_user_created), id_{0, 77}, device_(0)
{
    CUDACachingAllocator::ensureExistsAndIncrefPool(device_, id_);
}

MemPool::~MemPool()
{
    CUDACachingAllocator::releasePool(device_, id_);
    const MemPoolContext context(this);

    CUDACachingAllocator::emptyCache();
}

MempoolId_t MemPool::id()
{
    return id_;
}

CUDACachingAllocator::CUDAAllocator *MemPool::allocator()
{
    return allocator_;
}

MemPoolContext::MemPoolContext(MemPool *pool) : prev_mempool_(std::exchange(active_pool, pool))
{
}

MemPoolContext::~MemPoolContext()
{
    active_pool = prev_mempool_;
}

MemPool *MemPoolContext::getActiveMemPool()
{
    return active_pool;
}
#endif

namespace CUDACachingAllocator
{
std::atomic<CUDAAllocator *> allocator;
}
} // namespace cuda
} // namespace c10

/* For tests of the Python package; 0 is success, 2 that memory has run out. */

static std::string text;

template <class Action> static int caught(Action action)
{
    try {
        action();
        return 0;
    } catch (const c10::OutOfMemoryError &error) {
        text = error.what();
        return 2;
    } catch (const std::exception &error) {
        text = error.what();
        return 1;
    }
}

extern "C" {

cudaError_t cudaMemcpy(void *to, const void *from, size_t count, cudaMemcpyKind)
{
    std::memcpy(to, from, count);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *, const void *, size_t, cudaMemcpyKind, cudaStream_t)
{
    torch_stub::plain_copies++;
    return cudaSuccess;
}

cudaError_t cudaMemcpyPeerAsync(void *, int, const void *, int, size_t, cudaStream_t)
{
    torch_stub::peer_copies++;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
    *free = *total = 1;
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t)
{
    return "error";
}

#define TORCH_STUB_SUCCEEDS(name, ...)                                                             \
    cudaError_t name(__VA_ARGS__)                                                                  \
    {                                                                                              \
        return cudaSuccess;                                                                        \
    }

TORCH_STUB_SUCCEEDS(cudaGetLastError, void)
TORCH_STUB_SUCCEEDS(cudaDeviceSynchronize, void)
TORCH_STUB_SUCCEEDS(cudaEventCreateWithFlags, cudaEvent_t *, unsigned)
TORCH_STUB_SUCCEEDS(cudaEventDestroy, cudaEvent_t)
TORCH_STUB_SUCCEEDS(cudaEventElapsedTime, float *, cudaEvent_t, cudaEvent_t)
TORCH_STUB_SUCCEEDS(cudaEventQuery, cudaEvent_t)
TORCH_STUB_SUCCEEDS(cudaEventRecord, cudaEvent_t, cudaStream_t)
TORCH_STUB_SUCCEEDS(cudaEventSynchronize, cudaEvent_t)
TORCH_STUB_SUCCEEDS(cudaSetDevice, int)
TORCH_STUB_SUCCEEDS(cudaStreamIsCapturing, cudaStream_t, cudaStreamCaptureStatus *)
TORCH_STUB_SUCCEEDS(cudaStreamQuery, cudaStream_t)
TORCH_STUB_SUCCEEDS(cudaStreamSynchronize, cudaStream_t)
TORCH_STUB_SUCCEEDS(cudaStreamWaitEvent, cudaStream_t, cudaEvent_t, unsigned)
const char *torch_stub_text()
{
    return text.c_str();
}

void torch_stub_init(int device_count)
{
    c10::cuda::CUDACachingAllocator::init(device_count);
}

int torch_stub_alloc(size_t size, cudaStream_t stream, void **ptr_out)
{
    return caught(
        [&] { *ptr_out = c10::cuda::CUDACachingAllocator::raw_alloc_with_stream(size, stream); });
}

int torch_stub_free(void *ptr)
{
    return caught([&] { c10::cuda::CUDACachingAllocator::raw_delete(ptr); });
}

int64_t torch_stub_allocated(int device)
{
    return c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(device))
        .allocated_bytes[0]
        .current;
}

void torch_stub_attach_observer(void (*observer)(int64_t, size_t, size_t, size_t))
{
    c10::cuda::CUDACachingAllocator::attachOutOfMemoryObserver(observer);
}
}
