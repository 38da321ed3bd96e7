/* SPDX-License-Identifier: MIT */
/* torch's allocator as its versions have it, for tests that run with all of them. */
#ifndef TESTS_PLUG_TORCH_VERSIONS_H
#define TESTS_PLUG_TORCH_VERSIONS_H

#include "plug/pytorch/torch_interface.h"

namespace torch_versions
{

namespace cca = tarn_torch::cca;
using tarn_torch::MempoolId_t;

/* Runs what the object's type can do: `action` is a lambda whose return type says what it needs, as
 * in [](auto &it) -> decltype(void(it.method())) { it.method(); }. Whether it ran. */
template <class Object, class Action> bool on(Object &object, Action action)
{
    if constexpr (std::is_invocable_v<Action, Object &>) {
        action(object);
        return true;
    }
    return false;
}

template <class Action> bool on_allocator(Action action)
{
    return on(*cca::get(), std::move(action));
}

inline void empty_cache(MempoolId_t id = {0, 0})
{
    on_allocator([&](auto &it) -> decltype(void(it.emptyCache(id))) { it.emptyCache(id); }) ||
        on_allocator([](auto &it) -> decltype(void(it.emptyCache())) { it.emptyCache(); });
}

/* Whether this torch has pools with an allocator of their own. Up to 2.10 torch keeps that. */
inline bool create_pool_from(MempoolId_t id, std::shared_ptr<cca::CUDAAllocator> own)
{
    cca::CUDAAllocator *const kept = own.get();

    return on_allocator([&](auto &it) -> decltype(void(it.createOrIncrefPool(0, id, kept))) {
               it.createOrIncrefPool(0, id, kept);
           }) ||
           on_allocator([&](auto &it) -> decltype(void(it.createOrIncrefPool(0, id, own))) {
               it.createOrIncrefPool(0, id, own);
           });
}

inline void create_pool(MempoolId_t id)
{
    create_pool_from(id, nullptr) ||
        on_allocator([&](auto &it) -> decltype(void(it.ensureExistsAndIncrefPool(0, id))) {
            it.ensureExistsAndIncrefPool(0, id);
        });
}

/* Without traces, where that can be said. */
inline cca::SnapshotInfo snapshot_of(MempoolId_t id)
{
    cca::SnapshotInfo taken;

    on_allocator([&](auto &it) -> decltype(void(it.snapshot(id, false))) {
        taken = it.snapshot(id, false);
    }) ||
        on_allocator([&](auto &it) -> decltype(void(it.snapshot(id))) { taken = it.snapshot(id); });
    return taken;
}

/* Starts a history with stacks of that level that ignores these actions, or stops it. Whether this
 * torch can ignore any. */
inline bool record(cca::CreateContextFn recorder, const std::vector<std::string> &skipped,
                   cca::RecordContext wanted = cca::RecordContext::ALL)
{
    const bool on = recorder != nullptr;
    const auto level = on ? wanted : cca::RecordContext::NEVER;
    const auto with_all =
        [&](auto &it) -> decltype(void(it.recordHistory(on, recorder, 100, level, true, skipped))) {
        it.recordHistory(on, recorder, 100, level, true, skipped);
    };
    const auto with_clear =
        [&](auto &it) -> decltype(void(it.recordHistory(on, recorder, 100, level, true))) {
        it.recordHistory(on, recorder, 100, level, true);
    };
    const auto plain = [&](auto &it) -> decltype(void(it.recordHistory(on, recorder, 100, level))) {
        it.recordHistory(on, recorder, 100, level);
    };

    return on_allocator(with_all) ||
           (!on_allocator(with_clear) && !on_allocator(plain)); /* never both */
}

} // namespace torch_versions

#endif
