/* SPDX-License-Identifier: MIT */
/*
 * torch's pluggable allocator as the Python tests need it, with a C interface for ctypes: two
 * functions, the setters by their names, and the text of a std::exception that comes out of one.
 * 0 is success.
 */
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace
{

using PoolId = std::pair<unsigned long long, unsigned long long>;

struct Pluggable {
    void *(*alloc)(size_t, int, void *);
    void (*free)(void *, size_t, int, void *);
    std::map<std::string, void *> setters;
    std::map<void *, std::pair<size_t, int>> blocks; /* size and device */
};

Pluggable *current;
bool initialized;
std::string text;

template <class Action> int caught(Action action)
{
    try {
        action();
        return 0;
    } catch (const std::exception &error) {
        text = error.what();
        return 1;
    }
}

template <class Function> Function *setter(const char *name)
{
    return reinterpret_cast<Function *>(current->setters.at(name));
}

} // namespace

extern "C" {

const char *pluggable_text()
{
    return text.c_str();
}

void *pluggable_create(void *alloc, void *free)
{
    return new Pluggable{reinterpret_cast<decltype(Pluggable::alloc)>(alloc),
                         reinterpret_cast<decltype(Pluggable::free)>(free),
                         {},
                         {}};
}

void pluggable_set(void *object, const char *name, void *function)
{
    static_cast<Pluggable *>(object)->setters[name] = function;
}

int pluggable_change_current(void *object)
{
    if (current && initialized) {
        text = "Can't swap an already initialized allocator";
        return 1;
    }
    current = static_cast<Pluggable *>(object);
    return 0;
}

void pluggable_init()
{
    initialized = true;
}

int pluggable_alloc(size_t size, int device, void *stream, void **ptr_out)
{
    return caught([&] {
        *ptr_out = current->alloc(size, device, stream);
        current->blocks[*ptr_out] = {size, device};
    });
}

int pluggable_free(void *ptr)
{
    return caught([&] {
        const auto [size, device] = current->blocks.at(ptr);

        current->blocks.erase(ptr);
        current->free(ptr, size, device, nullptr);
    });
}

int pluggable_record_stream(void *ptr, void *stream)
{
    return caught([&] { setter<void(void *, void *)>("set_record_stream_fn")(ptr, stream); });
}

int pluggable_begin_pool(int device, unsigned long long first, unsigned long long second)
{
    return caught([&] {
        setter<void(int, PoolId, std::function<bool(void *)>)>("set_begin_allocate_to_pool")(
            device, {first, second}, [](void *) { return true; });
    });
}

int pluggable_end_pool(int device, unsigned long long first, unsigned long long second)
{
    return caught([&] {
        setter<void(int, PoolId)>("set_end_allocate_to_pool_fn")(device, {first, second});
    });
}

int pluggable_release_pool(int device, unsigned long long first, unsigned long long second)
{
    return caught([&] { setter<void(int, PoolId)>("set_release_pool")(device, {first, second}); });
}

int pluggable_empty_cache()
{
    return caught([] { setter<void()>("set_reset_fn")(); });
}

int pluggable_set_fraction(double fraction, int device)
{
    return caught([&] { setter<void(double, int)>("set_memory_fraction_fn")(fraction, device); });
}
}
