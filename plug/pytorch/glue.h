/* SPDX-License-Identifier: MIT */
/* What the class and the fallback share: the table of devices, values of both sides, routings. */
#ifndef PLUG_PYTORCH_GLUE_H
#define PLUG_PYTORCH_GLUE_H

#include "tarn/devices.h"
#include "tarn/text.h"

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

/* Throws what a callback has thrown in this call of libtarn; if none did, what failed. Each of the
 * two libraries has its own. */
void conclude(tarn_status status, const tarn_error &error);

/* Calls a function of libtarn whose last parameter is the error, and throws what failed. */
template <class Function, class... Arguments> void call(Function function, Arguments... arguments)
{
    tarn_error error;

    conclude(function(arguments..., &error), error);
}

/* The device's allocator, opened on demand. */
inline tarn_allocator *allocator_of(int device)
{
    tarn_allocator *allocator = nullptr;

    call(tarn_devices_open, devices, device, &allocator);
    return allocator;
}

inline tarn_allocator *owner_of(const void *ptr)
{
    tarn_allocator *owner = nullptr;

    call(tarn_devices_find_owner, devices, ptr_of(ptr), &owner);
    return owner;
}

inline int ordinal_of(tarn_allocator *allocator)
{
    tarn_device_info info = {};

    info.struct_size = sizeof info;
    tarn_device_get_info(tarn_allocator_get_device(allocator), &info);
    return info.ordinal;
}

/* Keeps a failure, if it is one, for those who ask for the latest that could not be thrown. */
inline void note(tarn_status status, const tarn_error &error)
{
    if (status) {
        tarn_devices_keep_error(devices, &error);
    }
}

/* Of a free, which destructors call: only a wrong pointer is thrown. */
inline void conclude_free(tarn_status status, const tarn_error &error)
{
    if (status == TARN_ERR_INVALID_POINTER) {
        conclude(status, error);
    }
    note(status, error);
}

/* Keeps for them what a callback has thrown, which no later call is to throw. */
inline void note_thrown()
{
    tarn_error error = {TARN_ERR_STATE, -1, "an exception that says nothing"};

    try {
        conclude(TARN_OK, error);
        return;
    } catch (const std::exception &thrown) {
        (void)tarn_text_escape(thrown.what(), std::strlen(thrown.what()), TARN_TEXT_PLAIN,
                               error.text, sizeof error.text);
    } catch (...) {
    }
    note(error.status, error);
}

/* Calls one where nothing may be thrown, as in a destructor. */
template <class Function, class... Arguments>
void attempt(Function function, Arguments... arguments)
{
    tarn_error error;

    note(function(arguments..., &error), error);
    note_thrown();
}

/* A capture or a torch.cuda.use_mem_pool begins. The filter must not throw. */
using Filter = std::function<bool(void *)>;

inline tarn_status begin_pool(int device, tarn_pool_id id, bool is_capture, Filter filter,
                              tarn_error *error)
{
    auto kept = std::make_unique<Filter>(std::move(filter));
    const tarn_pool_route route = {sizeof route, is_capture, kept.get(),
                                   [](void *context, tarn_stream stream) {
                                       return (*static_cast<Filter *>(context))(pointer_of(stream));
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
