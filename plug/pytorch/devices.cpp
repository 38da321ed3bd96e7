/* SPDX-License-Identifier: MIT */
/*
 * The table of devices. An entry is filled once and then read without the lock; `lock` guards
 * filling it and the settings of the next device. In a forked child libtarn itself refuses every
 * call on an allocator of the parent; the child must not open further ones, because CUDA does not
 * work there either. A child of a parent that had opened none may.
 */
#include "plug/pytorch/devices.h"

#include <pthread.h>

#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <tuple>
#include <utility>

namespace tarn_torch
{

Device devices[TARN_TORCH_DEVICES_MAX];
std::atomic<signed char> hints[1 << 16];
tarn_status (*on_open)(int ordinal, tarn_allocator *allocator, tarn_error *error);
bool announces_captures;

namespace
{

using FilterKey = std::tuple<int, uint64_t, uint64_t>; /* device, pool */
using Guard = std::lock_guard<std::mutex>;

std::mutex lock;
std::atomic<bool> forked;
tarn_config settings; /* of the next device; guarded by lock */
bool settings_known;

std::mutex note_lock; /* guards what follows */
tarn_error noted;     /* TARN_OK = nothing failed yet */

std::mutex filter_lock; /* guards the filters */

/* Another thread of the parent may have held a lock. */
void child_began()
{
    new (&lock) std::mutex;
    new (&note_lock) std::mutex;
    new (&filter_lock) std::mutex;
    (void)!each_open([](int /*ordinal*/, tarn_allocator * /*allocator*/) {
        forked.store(true);
        return TARN_OK;
    });
}

[[maybe_unused]] const int watching_forks = pthread_atfork(nullptr, nullptr, child_began);

tarn_status check_call(int ordinal, tarn_error *error)
{
    if (forked.load(std::memory_order_relaxed)) {
        return fail(error, TARN_ERR_STATE,
                    "tarn cannot be used in a process that was forked after CUDA started: start "
                    "it with multiprocessing's 'spawn' method");
    }
    if (ordinal >= 0 && ordinal < TARN_TORCH_DEVICES_MAX) {
        return TARN_OK;
    }
    const std::string text = "invalid device " + std::to_string(ordinal) +
                             ": device numbers are 0 to " +
                             std::to_string(TARN_TORCH_DEVICES_MAX - 1);

    return fail(error, TARN_ERR_INVALID_ARGUMENT, text.c_str());
}

/* The lock is held. */
tarn_status know_settings(tarn_error *error)
{
    tarn_config config;
    const tarn_status status = settings_known ? TARN_OK : tarn_config_from_env(&config, error);

    if (!settings_known && status == TARN_OK) {
        settings = config;
        settings_known = true;
    }
    return status;
}

/* The lock is held. If a later step fails, the device stays open and the next call continues from
 * there. */
tarn_status create(Device &device, int ordinal, tarn_error *error)
{
    tarn_allocator *allocator = nullptr;
    tarn_device *opened = nullptr;
    tarn_status status = know_settings(error);

    if (status == TARN_OK && !device.device) {
        status = tarn_device_open(("cuda:" + std::to_string(ordinal)).c_str(), &opened, error);
        device.device = status == TARN_OK ? opened : nullptr;
    }
    if (status == TARN_OK) {
        status = tarn_allocator_create(device.device, &settings, &allocator, error);
    }
    if (status == TARN_OK && on_open) {
        status = on_open(ordinal, allocator, error);
        if (status) {
            tarn_allocator_destroy(allocator);
        }
    }
    if (status == TARN_OK) {
        device.allocator.store(allocator, std::memory_order_release);
    }
    return status;
}

tarn_status configure_one(tarn_allocator *allocator, const char *text, tarn_error *error)
{
    tarn_config config = {};

    config.struct_size = sizeof config;
    tarn_allocator_get_config(allocator, &config);
    const tarn_status status = tarn_config_update(text, &config, error);

    return status == TARN_OK ? tarn_allocator_set_config(allocator, &config, error) : status;
}

/* Never destroyed: a capture may end after main. */
auto &filters()
{
    static auto *const kept = new std::map<FilterKey, std::unique_ptr<Filter>>;

    return *kept;
}

/* Under the allocator's lock. */
bool accepts(void *context, tarn_stream stream)
{
    return (*static_cast<Filter *>(context))(pointer_of(stream));
}

} // namespace

tarn_status fail(tarn_error *error, tarn_status status, const char *text)
{
    if (error) {
        error->status = status;
        error->offset = -1;
        (void)std::snprintf(error->text, sizeof error->text, "%s", text);
    }
    return status;
}

void note(tarn_status status, const tarn_error &error)
{
    if (status) {
        const Guard guard(note_lock);

        noted = error;
    }
}

tarn_status begin_pool(int ordinal, tarn_pool_id id, Filter filter, tarn_error *error)
{
    auto kept = std::make_unique<Filter>(std::move(filter));
    const tarn_status status =
        tarn_allocator_begin_pool(find_allocator(ordinal), id, accepts, kept.get(), error);

    if (status == TARN_OK) {
        const Guard guard(filter_lock);

        filters()[FilterKey(ordinal, id.first, id.second)] = std::move(kept);
        if (!announces_captures) {
            (void)!tarn_allocator_begin_capture(find_allocator(ordinal), nullptr);
        }
    }
    return status;
}

tarn_status end_pool(int ordinal, tarn_pool_id id, tarn_error *error)
{
    const tarn_status status = tarn_allocator_end_pool(find_allocator(ordinal), id, error);

    if (status == TARN_OK) {
        const Guard guard(filter_lock);

        filters().erase(FilterKey(ordinal, id.first, id.second));
        if (!announces_captures) {
            (void)!tarn_allocator_end_capture(find_allocator(ordinal), nullptr);
        }
    }
    return status;
}

} // namespace tarn_torch

using namespace tarn_torch;

tarn_status tarn_torch_open_allocator(int ordinal, tarn_allocator **allocator_out,
                                      tarn_error *error)
{
    tarn_status status = check_call(ordinal, error);

    *allocator_out = nullptr;
    if (status == TARN_OK) {
        const Guard guard(lock);
        Device &device = devices[ordinal];

        status = device.allocator.load() ? TARN_OK : create(device, ordinal, error);
        *allocator_out = device.allocator.load();
    }
    return status;
}

tarn_allocator *tarn_torch_find_allocator(int device)
{
    return find_allocator(device);
}

tarn_history *tarn_torch_find_history(int device)
{
    return find_allocator(device) ? devices[device].history.load() : nullptr;
}

tarn_status tarn_torch_use_device(int ordinal, tarn_device *device, tarn_error *error)
{
    const tarn_status status = check_call(ordinal, error);

    if (status) {
        return status;
    }
    const Guard guard(lock);

    if (devices[ordinal].device) {
        return fail(error, TARN_ERR_STATE,
                    "the device is in use already: choose another before its first use");
    }
    devices[ordinal].device = device;
    return TARN_OK;
}

/* All allocators have the same settings and reject the same text, so a rejection comes from the
 * first one, before any change. */
tarn_status tarn_torch_configure(const char *text, tarn_error *error)
{
    tarn_config changed;
    tarn_status status = tarn_torch_get_config(&changed, error);

    if (status == TARN_OK) {
        const Guard guard(lock);

        changed = settings;
        status = tarn_config_update(text, &changed, error);
        if (status == TARN_OK) {
            status = each_open([&](int /*ordinal*/, tarn_allocator *allocator) {
                return configure_one(allocator, text, error);
            });
        }
        settings = status == TARN_OK ? changed : settings;
    }
    return status;
}

tarn_status tarn_torch_get_config(tarn_config *config_out, tarn_error *error)
{
    tarn_status status = check_call(0, error);

    if (status == TARN_OK) {
        const Guard guard(lock);

        status = know_settings(error);
        if (status == TARN_OK) {
            *config_out = settings;
        }
    }
    return status;
}

bool tarn_torch_last_error(tarn_error *error_out)
{
    const Guard guard(note_lock);

    if (noted.status != TARN_OK) {
        *error_out = noted;
    }
    return noted.status != TARN_OK;
}
