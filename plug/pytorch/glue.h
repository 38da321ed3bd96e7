/* SPDX-License-Identifier: MIT */
/* What the class and the fallback share: the table of devices, values of both sides, routings. */
#ifndef PLUG_PYTORCH_GLUE_H
#define PLUG_PYTORCH_GLUE_H

#include "tarn/devices.h"
#include "tarn/text.h"

#include <atomic>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

namespace tarn_torch
{

/* The process's, for good: tensors may outlive the interpreter. */
inline tarn_devices *const devices = tarn_devices_shared(); // NOLINT(cert-err58-cpp): it is C

inline tarn_ptr ptr_of(const void *ptr)
{
    return reinterpret_cast<tarn_ptr>(ptr);
}

inline void *pointer_of(tarn_ptr ptr)
{
    return reinterpret_cast<void *>(ptr);
}

/* An exception that could not pass through libtarn, for the method to throw. */
inline std::atomic<int> pending_count; /* of all threads: almost always 0 */
inline thread_local std::exception_ptr pending;

inline bool is_pending()
{
    return pending_count.load(std::memory_order_relaxed) != 0 && pending;
}

inline void throw_pending()
{
    if (is_pending()) {
        pending_count.fetch_sub(1, std::memory_order_relaxed);
        std::rethrow_exception(std::exchange(pending, nullptr));
    }
}

/* Runs C++ inside a call of libtarn; false or 0 after an exception. */
template <class Action> auto contained(Action action) -> decltype(action())
{
    try {
        return action();
    } catch (...) {
        if (!pending) {
            pending = std::current_exception();
            pending_count.fetch_add(1, std::memory_order_relaxed);
        }
        return decltype(action())();
    }
}

/* Throws what failed. Each of the two libraries has its own. */
void conclude(tarn_status status, const tarn_error &error);

/* Calls a function of libtarn whose last parameter is the error, and throws what a callback threw
 * in it or, if none did, what failed. */
template <class Function, class... Arguments> void call(Function function, Arguments... arguments)
{
    tarn_error error;
    const tarn_status status = function(arguments..., &error);

    throw_pending();
    conclude(status, error);
}

/* The same for one that has a result: what it puts out before the error. */
template <class Result, class Function, class... Arguments>
Result get(Function function, Arguments... arguments)
{
    Result result{};

    call(function, arguments..., &result);
    return result;
}

/* The device's allocator, opened on demand. */
inline tarn_allocator *allocator_of(int device)
{
    return get<tarn_allocator *>(tarn_devices_open, devices, device);
}

inline tarn_allocator *owner_of(const void *ptr)
{
    return get<tarn_allocator *>(tarn_devices_find_owner, devices, ptr_of(ptr));
}

/* Keeps a failure, if it is one, for those who ask for the latest that could not be thrown. */
inline void note(tarn_status status, const tarn_error &error)
{
    if (status) {
        tarn_devices_keep_error(devices, &error);
    }
}

/* The same for what a callback threw, which no later call is to throw. */
inline void note_pending()
{
    if (!is_pending()) {
        return;
    }
    tarn_error error = {TARN_ERR_STATE, -1, "an exception that says nothing"};

    try {
        throw_pending();
    } catch (const std::exception &thrown) {
        (void)tarn_text_escape(thrown.what(), std::strlen(thrown.what()), TARN_TEXT_PLAIN,
                               error.text, sizeof error.text);
    } catch (...) {
    }
    note(error.status, error);
}

/* Of an allocation: nothing is allocated if a callback threw in it. */
inline void *conclude_alloc(tarn_status status, tarn_ptr ptr, const tarn_error &error)
{
    if (is_pending()) {
        (void)!(status ? status : tarn_devices_free(devices, ptr, nullptr));
        throw_pending();
    }
    if (status) {
        conclude(status, error);
    }
    return pointer_of(ptr);
}

/* Of a free, which destructors call: only a wrong pointer is thrown. */
inline void conclude_free(tarn_status status, const tarn_error &error)
{
    note_pending();
    if (status == TARN_ERR_INVALID_POINTER) {
        conclude(status, error);
    }
    note(status, error);
}

/* Calls one where nothing may be thrown, as in a destructor. */
template <class Function, class... Arguments>
void attempt(Function function, Arguments... arguments)
{
    tarn_error error;

    note(function(arguments..., &error), error);
    note_pending();
}

/* A capture or a torch.cuda.use_mem_pool begins. */
using Filter = std::function<bool(void *)>;

inline tarn_status begin_pool(int device, tarn_pool_id id, bool is_capture, Filter filter,
                              tarn_error *error)
{
    auto kept = std::make_unique<Filter>(std::move(filter));
    const tarn_pool_route route = {
        sizeof route, is_capture, kept.get(),
        [](void *context, tarn_stream stream) {
            return contained([&] { return (*static_cast<Filter *>(context))(pointer_of(stream)); });
        },
        [](void *context) { delete static_cast<Filter *>(context); }};
    const tarn_status status = tarn_devices_begin_pool(devices, device, id, &route, error);

    if (status == TARN_OK) {
        (void)kept.release();
    }
    return status;
}

} // namespace tarn_torch

#endif
