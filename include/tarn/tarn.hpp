// SPDX-License-Identifier: MIT
//
// The allocator in C++17: owners that free what they own, a memory resource of the standard library
// over pinned memory, and adaptors with the shape of RMM's and CCCL's memory resources. Header-only;
// link libtarn. Objects are moved, not copied. As in C, any thread may use them except while they
// are destroyed, and what made an object must outlive it.
//
// With exceptions, constructors and functions without `noexcept` throw tarn::out_of_memory (a
// std::bad_alloc) or tarn::failure. Without them (-fno-exceptions) these do not exist; everything
// can be done through the functions that return a status, which exist always: open, make, alloc,
// try_alloc.
#ifndef TARN_TARN_HPP
#define TARN_TARN_HPP

#include "allocator.h"
#include "block.h"
#include "cuda_stream.h"
#include "pinned.h"
#include "pool.h"
#include "pressure.h"
#include "request.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <new>
#include <type_traits>
#include <utility>

#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
#define TARN_EXCEPTIONS 1
#include <stdexcept>
#include <string>
#else
#define TARN_EXCEPTIONS 0
#include <cstdlib>
#endif

namespace tarn
{

// ---- errors ----

#if TARN_EXCEPTIONS

// A call failed; what() has the reason.
class failure : public std::runtime_error
{
  public:
    explicit failure(const tarn_error &error)
        : std::runtime_error(error.text), status_(error.status)
    {
    }
    tarn_status status() const noexcept
    {
        return status_;
    }

  private:
    tarn_status status_;
};

// Device memory ran out. The text is shared between copies, as the standard asks of exceptions.
class out_of_memory : public std::bad_alloc
{
  public:
    explicit out_of_memory(const tarn_error &error) : text_(error.text)
    {
    }
    const char *what() const noexcept override
    {
        return text_.what();
    }

  private:
    std::runtime_error text_;
};

namespace detail
{

[[noreturn]] inline void raise(const tarn_error &error)
{
    if (error.status == TARN_ERR_OUT_OF_MEMORY) {
        throw out_of_memory(error);
    }
    throw failure(error);
}

// Calls with a struct tarn_error, which is on the stack only while the call runs.
template <class Call> void check(Call &&call)
{
    tarn_error error; // written only on failure: clearing its text would cost as much as the call

    error.text[0] = '\0';
    error.status = std::forward<Call>(call)(&error);
    if (error.status != TARN_OK) {
        raise(error);
    }
}

} // namespace detail

#endif

// ---- streams ----

// A stream of any of its types: a number, cudaStream_t or CUstream, or an object with value() (RMM)
// or get() (CCCL) that gives one of these.
class stream_ref
{
  public:
    constexpr stream_ref() noexcept = default; // the default stream
    template <class Number, std::enable_if_t<std::is_integral_v<Number>, int> = 0>
    constexpr stream_ref(Number stream) noexcept : value_(static_cast<tarn_stream>(stream))
    {
    }
    stream_ref(CUstream_st *stream) noexcept : value_(tarn_stream_from_cuda(stream))
    {
    }
    stream_ref(std::nullptr_t) noexcept
    {
    }
    template <class Stream, class = decltype(std::declval<const Stream &>().value())>
    stream_ref(const Stream &stream) : stream_ref(stream.value())
    {
    }
    template <class Stream, class = decltype(std::declval<const Stream &>().get()), class = void>
    stream_ref(const Stream &stream) : stream_ref(stream.get())
    {
    }

    constexpr tarn_stream number() const noexcept
    {
        return value_;
    }
    friend constexpr bool operator==(stream_ref a, stream_ref b) noexcept
    {
        return a.value_ == b.value_;
    }
    friend constexpr bool operator!=(stream_ref a, stream_ref b) noexcept
    {
        return a.value_ != b.value_;
    }

  private:
    tarn_stream value_ = 0;
};

// ---- owners ----

namespace detail
{

// Owns a handle of the C interface.
template <class Handle, void (*destroy)(Handle *)> class owner
{
  public:
    owner() noexcept = default;
    explicit owner(Handle *handle) noexcept : handle_(handle)
    {
    }
    owner(owner &&other) noexcept : handle_(other.release())
    {
    }
    owner &operator=(owner &&other) noexcept
    {
        if (this != &other) {
            reset(other.release());
        }
        return *this;
    }
    owner(const owner &) = delete;
    owner &operator=(const owner &) = delete;
    ~owner()
    {
        reset();
    }

    Handle *get() const noexcept
    {
        return handle_;
    }
    Handle *release() noexcept
    {
        return std::exchange(handle_, nullptr);
    }
    void reset(Handle *handle = nullptr) noexcept
    {
        destroy(std::exchange(handle_, handle));
    }
    explicit operator bool() const noexcept
    {
        return handle_ != nullptr;
    }

  private:
    Handle *handle_ = nullptr;
};

} // namespace detail

// An allocator and its device.
class allocator : public detail::owner<tarn_allocator, tarn_allocator_destroy>
{
  public:
    using owner::owner;
    allocator() noexcept = default;

    // As tarn_allocator_create_on.
    [[nodiscard]] static tarn_status open(const char *device, const char *settings, allocator &out,
                                          tarn_error *error = nullptr) noexcept
    {
        tarn_allocator *made = nullptr;
        const tarn_status status = tarn_allocator_create_on(device, settings, &made, error);

        if (status == TARN_OK) {
            out.reset(made);
        }
        return status;
    }

    [[nodiscard]] tarn_status alloc(std::uint64_t bytes, stream_ref stream, tarn_ptr &out,
                                    tarn_error *error = nullptr) const noexcept
    {
        return tarn_allocator_alloc(get(), bytes, stream.number(), &out, error);
    }

    // 0 when it cannot be had cheaply; `flags` of tarn_alloc_flags.
    [[nodiscard]] tarn_ptr try_alloc(std::uint64_t bytes, stream_ref stream = {},
                                     unsigned flags = 0) const noexcept
    {
        tarn_ptr ptr = 0;

        return tarn_alloc_try(get(), bytes, stream.number(), flags, &ptr) == TARN_OK ? ptr : 0;
    }

    // False for a pointer that is not allocated here.
    bool deallocate(tarn_ptr ptr) const noexcept
    {
        return tarn_allocator_free(get(), ptr, nullptr) == TARN_OK;
    }

#if TARN_EXCEPTIONS
    explicit allocator(const char *device, const char *settings = "")
    {
        detail::check([&](tarn_error *error) { return open(device, settings, *this, error); });
    }

    [[nodiscard]] tarn_ptr allocate(std::uint64_t bytes, stream_ref stream = {}) const
    {
        tarn_ptr ptr = 0;

        detail::check([&](tarn_error *error) { return alloc(bytes, stream, ptr, error); });
        return ptr;
    }

    void record_stream(tarn_ptr ptr, stream_ref stream) const
    {
        detail::check([&](tarn_error *error) {
            return tarn_allocator_record_stream(get(), ptr, stream.number(), error);
        });
    }

    void empty_cache() const
    {
        detail::check([&](tarn_error *error) { return tarn_allocator_empty_cache(get(), error); });
    }
#endif

    tarn_stats stats() const noexcept
    {
        tarn_stats found{};

        found.struct_size = sizeof found;
        tarn_allocator_get_stats(get(), &found);
        return found;
    }
};

// A pool of an allocator, which must outlive it.
class pool : public detail::owner<tarn_pool, tarn_pool_destroy>
{
  public:
    using owner::owner;
    pool() noexcept = default;

    // `options.struct_size` is set here.
    [[nodiscard]] static tarn_status make(const allocator &from, tarn_pool_options options,
                                          pool &out, tarn_error *error = nullptr) noexcept
    {
        tarn_pool *made = nullptr;

        options.struct_size = sizeof options;
        const tarn_status status = tarn_pool_create(from.get(), &options, &made, error);

        if (status == TARN_OK) {
            out.reset(made);
        }
        return status;
    }

    [[nodiscard]] tarn_status alloc(std::uint64_t bytes, stream_ref stream, tarn_ptr &out,
                                    tarn_error *error = nullptr) const noexcept
    {
        return tarn_pool_alloc(get(), bytes, stream.number(), &out, error);
    }

    [[nodiscard]] tarn_ptr try_alloc(std::uint64_t bytes, stream_ref stream = {},
                                     unsigned flags = 0) const noexcept
    {
        tarn_ptr ptr = 0;

        return tarn_pool_alloc_try(get(), bytes, stream.number(), flags, &ptr) == TARN_OK ? ptr : 0;
    }

    bool deallocate(tarn_ptr ptr) const noexcept
    {
        return tarn_allocator_free(tarn_pool_get_allocator(get()), ptr, nullptr) == TARN_OK;
    }

#if TARN_EXCEPTIONS
    explicit pool(const allocator &from, const tarn_pool_options &options = {})
    {
        detail::check([&](tarn_error *error) { return make(from, options, *this, error); });
    }

    [[nodiscard]] tarn_ptr allocate(std::uint64_t bytes, stream_ref stream = {}) const
    {
        tarn_ptr ptr = 0;

        detail::check([&](tarn_error *error) { return alloc(bytes, stream, ptr, error); });
        return ptr;
    }
#endif

    tarn_pool_stats stats() const noexcept
    {
        tarn_pool_stats found{};

        found.struct_size = sizeof found;
        (void)!tarn_pool_get_stats(get(), &found);
        return found;
    }
};

// Device memory on a stream, freed with its owner.
class buffer
{
  public:
    buffer() noexcept = default;
    buffer(buffer &&other) noexcept
        : allocator_(other.allocator_), ptr_(std::exchange(other.ptr_, 0)),
          size_(std::exchange(other.size_, 0)), stream_(other.stream_)
    {
    }
    buffer &operator=(buffer &&other) noexcept
    {
        if (this != &other) {
            reset();
            allocator_ = other.allocator_;
            ptr_ = std::exchange(other.ptr_, 0);
            size_ = std::exchange(other.size_, 0);
            stream_ = other.stream_;
        }
        return *this;
    }
    buffer(const buffer &) = delete;
    buffer &operator=(const buffer &) = delete;
    ~buffer()
    {
        reset();
    }

    [[nodiscard]] static tarn_status make(const allocator &from, std::size_t bytes,
                                          stream_ref stream, buffer &out,
                                          tarn_error *error = nullptr) noexcept
    {
        return fill(from, from.get(), bytes, stream, out, error);
    }
    [[nodiscard]] static tarn_status make(const pool &from, std::size_t bytes, stream_ref stream,
                                          buffer &out, tarn_error *error = nullptr) noexcept
    {
        return fill(from, tarn_pool_get_allocator(from.get()), bytes, stream, out, error);
    }

#if TARN_EXCEPTIONS
    template <class Source> buffer(const Source &from, std::size_t bytes, stream_ref stream = {})
    {
        detail::check([&](tarn_error *error) { return make(from, bytes, stream, *this, error); });
    }
#endif

    void *data() const noexcept
    {
        return reinterpret_cast<void *>(static_cast<std::uintptr_t>(ptr_));
    }
    tarn_ptr address() const noexcept
    {
        return ptr_;
    }
    std::size_t size() const noexcept
    {
        return size_;
    }
    stream_ref stream() const noexcept
    {
        return stream_;
    }

    // Another stream uses it too; false where that cannot be noted.
    bool used_on(stream_ref other) const noexcept
    {
        return tarn_allocator_record_stream(allocator_, ptr_, other.number(), nullptr) == TARN_OK;
    }

    // Gives the memory up: the caller frees it.
    [[nodiscard]] tarn_ptr release() noexcept
    {
        size_ = 0;
        return std::exchange(ptr_, 0);
    }
    void reset() noexcept
    {
        const tarn_ptr ptr = release();

        if (ptr) {
            (void)!tarn_allocator_free(allocator_, ptr, nullptr);
        }
    }

  private:
    template <class Source>
    static tarn_status fill(const Source &from, tarn_allocator *owner, std::size_t bytes,
                            stream_ref stream, buffer &out, tarn_error *error) noexcept
    {
        tarn_ptr ptr = 0;
        const tarn_status status = from.alloc(bytes, stream, ptr, error);

        if (status == TARN_OK) {
            out.reset();
            out.allocator_ = owner;
            out.ptr_ = ptr;
            out.size_ = bytes;
            out.stream_ = stream;
        }
        return status;
    }

    tarn_allocator *allocator_ = nullptr;
    tarn_ptr ptr_ = 0;
    std::size_t size_ = 0;
    stream_ref stream_;
};

// ---- pinned host memory ----

// An allocator of pinned memory through the device of an allocator, which must outlive it.
class pinned : public detail::owner<tarn_pinned, tarn_pinned_destroy>
{
  public:
    using owner::owner;
    pinned() noexcept = default;

    [[nodiscard]] static tarn_status make(const allocator &from, pinned &out,
                                          tarn_error *error = nullptr) noexcept
    {
        tarn_pinned *made = nullptr;
        const tarn_status status =
            tarn_pinned_create(tarn_allocator_get_device(from.get()), nullptr, &made, error);

        if (status == TARN_OK) {
            out.reset(made);
        }
        return status;
    }

#if TARN_EXCEPTIONS
    explicit pinned(const allocator &from)
    {
        detail::check([&](tarn_error *error) { return make(from, *this, error); });
    }
#endif
};

// For containers of std::pmr in pinned memory. Blocks are aligned to their rounded size, up to a
// page. Failures throw; without exceptions they end the program, because the standard has no other
// way to report them.
class pinned_resource : public std::pmr::memory_resource
{
  public:
    explicit pinned_resource(const pinned &from) noexcept : pinned_(from.get())
    {
    }

  private:
    void *do_allocate(std::size_t bytes, std::size_t alignment) override
    {
        void *memory = nullptr;
        tarn_error error{};
        const std::size_t size = bytes > alignment ? bytes : alignment;

        if (tarn_pinned_alloc(pinned_, size ? size : 1, &memory, &error) == TARN_OK) {
            if (reinterpret_cast<std::uintptr_t>(memory) % alignment == 0) {
                return memory;
            }
            (void)!tarn_pinned_free(pinned_, memory, nullptr);
            static constexpr char reason[] = "pinned memory has no block of that alignment";

            error.status = TARN_ERR_OUT_OF_MEMORY;
            std::memcpy(error.text, reason, sizeof reason);
        }
#if TARN_EXCEPTIONS
        detail::raise(error);
#else
        std::abort();
#endif
    }
    void do_deallocate(void *memory, std::size_t, std::size_t) noexcept override
    {
        (void)!tarn_pinned_free(pinned_, memory, nullptr);
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
        const auto *same = dynamic_cast_or_null(other);

        return same && same->pinned_ == pinned_;
    }
    // Without RTTI only the same object is equal.
    const pinned_resource *dynamic_cast_or_null(const std::pmr::memory_resource &other) const
    {
#if defined(__cpp_rtti) || defined(__GXX_RTTI)
        return dynamic_cast<const pinned_resource *>(&other);
#else
        return &other == this ? this : nullptr;
#endif
    }

    tarn_pinned *pinned_;
};

// ---- adaptors ----

namespace detail
{

template <class Type, class... Types>
inline constexpr bool is_one_of = (std::is_same_v<Type, Types> || ...);

// Where an adaptor takes memory from: an allocator or a pool. Memory that is given back on another
// stream than it was allocated on is not reused before that stream is done with it.
class stream_source
{
  public:
    explicit stream_source(const allocator &from) noexcept : allocator_(from.get())
    {
    }
    explicit stream_source(const pool &from) noexcept
        : allocator_(tarn_pool_get_allocator(from.get())), pool_(from.get())
    {
    }
    stream_source(const stream_source &other) noexcept
        : allocator_(other.allocator_), pool_(other.pool_), several_(true)
    {
    }
    stream_source &operator=(const stream_source &) = delete;

    [[nodiscard]] tarn_status alloc(std::size_t bytes, std::size_t alignment, stream_ref stream,
                                    tarn_ptr &out, tarn_error *error) noexcept
    {
        note(stream);
        if (alignment <= 512) {
            return pool_ ? tarn_pool_alloc(pool_, bytes, stream.number(), &out, error)
                         : tarn_allocator_alloc(allocator_, bytes, stream.number(), &out, error);
        }
        tarn_alloc_options options{};

        options.struct_size = sizeof options;
        options.pool = pool_;
        options.alignment = alignment;
        return tarn_alloc_with(allocator_, bytes, stream.number(), &options, &out, error);
    }

    void free(void *memory, stream_ref stream) noexcept
    {
        const auto ptr = static_cast<tarn_ptr>(reinterpret_cast<std::uintptr_t>(memory));

        if (several_.load(std::memory_order_relaxed) ||
            only_.load(std::memory_order_relaxed) != stream.number()) {
            (void)!tarn_allocator_record_stream(allocator_, ptr, stream.number(), nullptr);
        }
        (void)!tarn_allocator_free(allocator_, ptr, nullptr);
    }

    bool equals(const stream_source &other) const noexcept
    {
        return allocator_ == other.allocator_ && pool_ == other.pool_;
    }

  private:
    // As long as there is one stream only, nothing has to be recorded.
    void note(stream_ref stream) noexcept
    {
        tarn_stream none = NO_STREAM;

        if (several_.load(std::memory_order_relaxed) ||
            only_.load(std::memory_order_relaxed) == stream.number()) {
            return;
        }
        if (!only_.compare_exchange_strong(none, stream.number()) && none != stream.number()) {
            several_.store(true);
        }
    }

    static constexpr tarn_stream NO_STREAM = UINT64_MAX;
    tarn_allocator *allocator_;
    tarn_pool *pool_ = nullptr;
    std::atomic<tarn_stream> only_{NO_STREAM};
    std::atomic<bool> several_{false};
};

} // namespace detail

#if TARN_EXCEPTIONS

// RMM up to 26.04: device_memory_resource<rmm::mr::device_memory_resource, rmm::cuda_stream_view> is
// a memory resource of RMM. Newer ones have no such class and take CCCL's, below.
template <class Base, class StreamView> class device_memory_resource final : public Base
{
  public:
    template <class Source>
    explicit device_memory_resource(const Source &from) noexcept : source_(from)
    {
    }

  private:
    void *do_allocate(std::size_t bytes, StreamView stream) override
    {
        tarn_ptr ptr = 0;

        detail::check([&](tarn_error *error) {
            return source_.alloc(bytes, 1, stream_ref(stream), ptr, error);
        });
        return reinterpret_cast<void *>(static_cast<std::uintptr_t>(ptr));
    }
    void do_deallocate(void *memory, std::size_t, StreamView stream) noexcept override
    {
        source_.free(memory, stream_ref(stream));
    }
    bool do_is_equal(const Base &other) const noexcept override
    {
        const auto *same = dynamic_cast<const device_memory_resource *>(&other);

        return same && same->source_.equals(source_);
    }

    detail::stream_source source_;
};

// CCCL: resource<cuda::mr::device_accessible> satisfies cuda::mr's resource concepts, those with
// allocate_async and those with allocate(stream, ...). Copies share the allocator or pool.
template <class... Properties> class resource
{
  public:
    template <class Source, class = std::enable_if_t<std::is_same_v<Source, allocator> ||
                                                     std::is_same_v<Source, pool>>>
    explicit resource(const Source &from) noexcept : source_(from)
    {
    }

    void *allocate_sync(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t))
    {
        return take(bytes, alignment, stream_ref());
    }
    void deallocate_sync(void *memory, std::size_t,
                         std::size_t = alignof(std::max_align_t)) noexcept
    {
        source_.free(memory, stream_ref());
    }
    void *allocate(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t))
    {
        return allocate_sync(bytes, alignment);
    }
    void deallocate(void *memory, std::size_t bytes,
                    std::size_t alignment = alignof(std::max_align_t)) noexcept
    {
        deallocate_sync(memory, bytes, alignment);
    }

    template <class Stream, class = std::enable_if_t<!std::is_integral_v<Stream>>>
    void *allocate(Stream stream, std::size_t bytes,
                   std::size_t alignment = alignof(std::max_align_t))
    {
        return take(bytes, alignment, stream_ref(stream));
    }
    template <class Stream, class = std::enable_if_t<!std::is_same_v<Stream, void *>>>
    void deallocate(Stream stream, void *memory, std::size_t,
                    std::size_t = alignof(std::max_align_t)) noexcept
    {
        source_.free(memory, stream_ref(stream));
    }
    template <class Stream>
    void *allocate_async(std::size_t bytes, std::size_t alignment, Stream stream)
    {
        return take(bytes, alignment, stream_ref(stream));
    }
    template <class Stream, class = std::enable_if_t<!std::is_integral_v<Stream>>>
    void *allocate_async(std::size_t bytes, Stream stream)
    {
        return take(bytes, alignof(std::max_align_t), stream_ref(stream));
    }
    template <class Stream>
    void deallocate_async(void *memory, std::size_t, std::size_t, Stream stream) noexcept
    {
        source_.free(memory, stream_ref(stream));
    }
    template <class Stream, class = std::enable_if_t<!std::is_integral_v<Stream>>>
    void deallocate_async(void *memory, std::size_t, Stream stream) noexcept
    {
        source_.free(memory, stream_ref(stream));
    }

    friend bool operator==(const resource &a, const resource &b) noexcept
    {
        return a.source_.equals(b.source_);
    }
    friend bool operator!=(const resource &a, const resource &b) noexcept
    {
        return !(a == b);
    }
    // That the memory has these properties.
    template <class Property, class = std::enable_if_t<detail::is_one_of<Property, Properties...>>>
    friend constexpr void get_property(const resource &, Property) noexcept
    {
    }

  private:
    void *take(std::size_t bytes, std::size_t alignment, stream_ref stream)
    {
        tarn_ptr ptr = 0;

        detail::check(
            [&](tarn_error *error) { return source_.alloc(bytes, alignment, stream, ptr, error); });
        return reinterpret_cast<void *>(static_cast<std::uintptr_t>(ptr));
    }

    detail::stream_source source_;
};

#endif

} // namespace tarn

#endif
