/* SPDX-License-Identifier: MIT */
/* The functions for torch's pluggable allocator, and the table of devices that both libraries have,
 * on simulated devices and without torch. */
#include "plug/harness.h"
#include "tarn/host.h"

#include <atomic>
#include <functional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

using namespace harness;

using PoolId = std::pair<unsigned long long, unsigned long long>;

extern "C" {
void *tarn_torch_alloc(size_t size, int device, void *stream);
void tarn_torch_free(void *ptr, size_t size, int device, void *stream);
tarn_devices *tarn_torch_pool_devices(void);
void *tarn_torch_pool_alloc(size_t size, int device, void *stream);
void tarn_torch_pool_free(void *ptr, size_t size, int device, void *stream);
void tarn_torch_reset(void);
void tarn_torch_set_memory_fraction(double fraction, int device);
void *tarn_torch_base_alloc(void *ptr, size_t *size_out);
void tarn_torch_record_stream(void *ptr, void *stream);
void tarn_torch_begin_pool(int device, PoolId id, std::function<bool(void *)> filter);
void tarn_torch_end_pool(int device, PoolId id);
void tarn_torch_release_pool(int device, PoolId id);
}

namespace
{

/* Text of the exception; fails the case when there is none. */
template <class Action> std::string failure(Action action)
{
    try {
        action();
    } catch (const std::runtime_error &error) {
        return error.what();
    }
    CHECK(!"an exception");
    return "";
}

tarn_stats stats_of(int device)
{
    tarn_stats stats{};

    stats.struct_size = sizeof stats;
    tarn_allocator_get_stats(tarn_devices_find(devices, device), &stats);
    return stats;
}

uint64_t bytes(int device, tarn_stat_kind kind)
{
    return static_cast<uint64_t>(stats_of(device).by_pool[kind][TARN_STAT_ALL].current);
}

void *stream(uintptr_t number)
{
    return reinterpret_cast<void *>(number);
}

void memory_is_allocated_and_freed()
{
    (void)open_sim(0, GIB);
    CHECK(!tarn_devices_find(devices, 0));
    void *const ptr = tarn_torch_alloc(3 * MIB, 0, nullptr);
    size_t size = 0;

    CHECK(bytes(0, TARN_STAT_ALLOCATED_BYTES) == 3 * MIB);
    CHECK(tarn_torch_base_alloc(ptr, &size) == ptr && size == 20 * MIB);
    CHECK(tarn_torch_base_alloc(ptr, nullptr) == ptr);
    CHECK(!tarn_torch_alloc(0, 0, nullptr));
    tarn_torch_record_stream(ptr, stream(7));
    tarn_torch_record_stream(nullptr, stream(7));
    tarn_torch_free(ptr, 3 * MIB, 0, nullptr);
    tarn_torch_free(nullptr, 0, 0, nullptr);
    CHECK(bytes(0, TARN_STAT_ALLOCATED_BYTES) == 0);
    tarn_torch_reset();
    CHECK(bytes(0, TARN_STAT_RESERVED_BYTES) == 0);
}

void failures_are_exceptions()
{
    tarn_error error;

    (void)open_sim(1, 64 * MIB);
    CHECK(has(failure([] { tarn_torch_alloc(100 * MIB, 1, nullptr); }),
              "CUDA out of memory. Tried to allocate 100.00 MiB. GPU 1"));
    CHECK(has(failure([] { tarn_torch_alloc(1, -1, nullptr); }),
              "invalid device -1: device numbers are 0 to 63"));
    CHECK(has(failure([] { tarn_torch_free(stream(0x1234), 0, 1, nullptr); }), "0x1234"));
    CHECK(has(failure([] { tarn_torch_base_alloc(stream(0x1234), nullptr); }), "0x1234"));
    CHECK(has(failure([] { tarn_torch_record_stream(stream(0x1234), nullptr); }), "0x1234"));
    CHECK(has(failure([] { tarn_torch_set_memory_fraction(2, 1); }), "invalid fraction"));
    tarn_torch_set_memory_fraction(0.5, 1);
    CHECK(has(failure([] { tarn_torch_alloc(40 * MIB, 1, nullptr); }), "32.00 MiB allowed"));
    /* A GPU that this machine does not have: the device says so, and a later call may work. */
    tarn_allocator *allocator = nullptr;

    CHECK(tarn_devices_open(devices, 63, &allocator, &error) != TARN_OK && error.text[0]);
    (void)open_sim(63, MIB);
    CHECK(tarn_devices_open(devices, 63, &allocator, &error) == TARN_OK);
}

void a_device_is_chosen_once()
{
    tarn_device *const device = open_sim(2, GIB);
    tarn_allocator *first = nullptr;
    tarn_allocator *second = nullptr;
    tarn_error error;

    CHECK(tarn_devices_open(devices, 2, &first, &error) == TARN_OK);
    CHECK(tarn_devices_open(devices, 2, &second, &error) == TARN_OK);
    CHECK(first && first == second && tarn_devices_find(devices, 2) == first);
    CHECK(tarn_devices_use(devices, 2, device, &error) == TARN_ERR_STATE);
    CHECK(has(error.text, "in use already"));
    CHECK(tarn_devices_use(devices, 64, device, &error) == TARN_ERR_INVALID_ARGUMENT);
    CHECK(!tarn_devices_find(devices, 64) && !tarn_devices_find(devices, -1));
    CHECK(!tarn_devices_find_history(devices, 2) && !tarn_devices_find_history(devices, 64));
}

void settings_reach_all_devices()
{
    tarn_config config = {};
    tarn_error error;

    (void)open_sim(3, GIB);
    (void)tarn_torch_alloc(MIB, 3, nullptr);
    config.struct_size = sizeof config;
    CHECK(tarn_devices_configure(devices, "max_split_size_mb:30", &error) == TARN_OK);
    tarn_allocator_get_config(tarn_devices_find(devices, 3), &config);
    CHECK(config.max_split_size == 30 * MIB);
    CHECK(tarn_devices_configure(devices, "max_split_size_mb:x", &error) == TARN_ERR_CONFIG);
    CHECK(tarn_devices_configure(devices, "backend:cudaMallocAsync", &error) == TARN_ERR_CONFIG);
    CHECK(tarn_devices_get_config(devices, &config, &error) == TARN_OK);
    CHECK(config.max_split_size == 30 * MIB && config.backend == TARN_BACKEND_NATIVE);
    (void)open_sim(4, GIB); /* opened later */
    (void)tarn_torch_alloc(MIB, 4, nullptr);
    tarn_allocator_get_config(tarn_devices_find(devices, 4), &config);
    CHECK(config.max_split_size == 30 * MIB);
    CHECK(tarn_devices_configure(devices, "", &error) == TARN_OK); /* back to the defaults */
}

void opening_fails_and_works_again()
{
    tarn_allocator *allocator = nullptr;
    tarn_status status = TARN_ERR_HOST_MEMORY;
    tarn_error error;

    (void)open_sim(5, GIB);
    for (uint64_t n = 1; status != TARN_OK; n++) {
        tarn_host_fail_nth(n);
        status = tarn_devices_open(devices, 5, &allocator, &error);
        CHECK(status == TARN_OK || status == TARN_ERR_HOST_MEMORY);
        CHECK((status == TARN_OK) == (tarn_devices_find(devices, 5) != nullptr));
    }
    tarn_host_fail_nth(0);
}

void a_block_is_found_on_any_device()
{
    std::vector<void *> blocks;

    for (int device = 10; device < 13; device++) {
        (void)open_sim(device, GIB);
        for (int i = 0; i < 8; i++) {
            blocks.push_back(tarn_torch_alloc(30 * MIB, device, nullptr));
        }
    }
    for (void *const ptr : blocks) {
        size_t size = 0;

        CHECK(tarn_torch_base_alloc(ptr, &size) == ptr && size >= 30 * MIB);
    }
    CHECK(has(failure([&] {
                  tarn_torch_base_alloc(static_cast<char *>(blocks[0]) + (GIB << 9), nullptr);
              }),
              "is not allocated here"));
}

void captures_have_a_pool()
{
    const PoolId id(0, 1);
    int asked = 0;

    (void)open_sim(14, GIB);
    tarn_torch_begin_pool(14, id, [&asked](void *asking) {
        asked++;
        return asking == stream(7);
    });
    CHECK(has(failure([&] { tarn_torch_begin_pool(14, id, [](void *) { return true; }); }),
              "already routed"));
    void *const inside = tarn_torch_alloc(MIB, 14, stream(7));
    void *const outside = tarn_torch_alloc(MIB, 14, stream(8));

    CHECK(asked >= 2);
    tarn_torch_end_pool(14, id);
    CHECK(has(failure([&] { tarn_torch_end_pool(14, id); }), "pool"));
    CHECK(tarn_allocator_pool_use_count(tarn_devices_find(devices, 14), {0, 1}) == 1);
    tarn_torch_free(outside, MIB, 14, nullptr);
    tarn_torch_reset();
    CHECK(bytes(14, TARN_STAT_RESERVED_BYTES) == 2 * MIB); /* of the pool */
    tarn_torch_free(inside, MIB, 14, nullptr);
    tarn_torch_release_pool(14, id);
    tarn_torch_release_pool(14, id); /* a destructor: no exception */
    tarn_torch_reset();
    CHECK(bytes(14, TARN_STAT_RESERVED_BYTES) == 0);
    /* libtarn is C: the exception of a filter passes around it, and nothing stays allocated. */
    tarn_torch_begin_pool(14, id, [](void *) -> bool { throw std::runtime_error("filter"); });
    CHECK(failure([] { tarn_torch_alloc(MIB, 14, nullptr); }) == "filter");
    CHECK(bytes(14, TARN_STAT_ALLOCATED_BYTES) == 0);
    tarn_torch_end_pool(14, id);
}

void a_mempool_gets_null()
{
    tarn_device *const device = open_sim(6, 64 * MIB);
    tarn_sim_counters counters = {};
    tarn_error error;

    CHECK(!tarn_devices_use(tarn_torch_pool_devices(), 6, device, &error));
    void *const ptr = tarn_torch_pool_alloc(20 * MIB, 6, nullptr);

    CHECK(!tarn_devices_find(devices, 6)); /* apart from the process's */

    CHECK(ptr);
    CHECK(!tarn_torch_pool_alloc(0, 6, nullptr));
    CHECK(!tarn_torch_pool_alloc(60 * MIB, 6, nullptr));
    CHECK(tarn_devices_last_error(devices, &error) && error.status == TARN_ERR_OUT_OF_MEMORY);
    tarn_torch_pool_free(nullptr, 0, 6, nullptr);
    tarn_torch_pool_free(ptr, 20 * MIB, 6, nullptr);
    counters.struct_size = sizeof counters;
    tarn_sim_get_counters(device, &counters);
    CHECK(counters.used_bytes == 0); /* nothing is kept from torch */
    tarn_torch_pool_free(ptr, 20 * MIB, 6, nullptr);
    CHECK(tarn_devices_last_error(devices, &error) && error.status == TARN_ERR_INVALID_POINTER);
}

/* In a forked child; whether tarn refused all of it. */
bool is_refused(void *ptr)
{
    tarn_allocator *allocator = nullptr;
    tarn_config config;
    tarn_error error;
    bool refused = tarn_devices_open(devices, 9, &allocator, &error) == TARN_ERR_STATE &&
                   has(error.text, "'spawn'") && !allocator;

    (void)alarm(60); /* ends a child that hangs */
    refused &=
        tarn_devices_configure(devices, "", &error) == TARN_ERR_STATE && has(error.text, "'spawn'");
    refused &= tarn_devices_get_config(devices, &config, &error) == TARN_ERR_STATE;
    tarn_torch_free(ptr, MIB, 8, nullptr);
    tarn_torch_pool_free(ptr, MIB, 8, nullptr);
    tarn_torch_release_pool(8, {0, 1});
    return refused && !tarn_torch_pool_alloc(MIB, 8, nullptr);
}

/* Other threads hold the locks whenever a child begins. */
void forked_children_are_refused()
{
    std::atomic<bool> over{false};

    (void)open_sim(8, GIB);
    void *const ptr = tarn_torch_alloc(MIB, 8, nullptr);
    std::thread busy([&] {
        tarn_error error;
        tarn_config config;

        while (!over.load()) {
            (void)tarn_devices_last_error(devices, &error);
            (void)!tarn_devices_get_config(devices, &config, &error);
        }
    });

    for (int i = 0; i < 40; i++) {
        int status = -1;
        const pid_t child = fork();

        if (child == 0) {
            _exit(is_refused(ptr) ? 0 : 1);
        }
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    over.store(true);
    busy.join();
    tarn_torch_free(ptr, MIB, 8, nullptr); /* the parent goes on */
    CHECK(tarn_torch_alloc(MIB, 8, nullptr) == ptr);
}

} // namespace

int main()
{
    return run({
        {"memory is allocated and freed", memory_is_allocated_and_freed},
        {"failures are exceptions", failures_are_exceptions},
        {"a device is chosen once", a_device_is_chosen_once},
        {"settings reach all devices", settings_reach_all_devices},
        {"opening fails and works again", opening_fails_and_works_again},
        {"a block is found on any device", a_block_is_found_on_any_device},
        {"captures have a pool", captures_have_a_pool},
        {"a MemPool gets null", a_mempool_gets_null},
        {"forked children are refused", forked_children_are_refused},
    });
}
