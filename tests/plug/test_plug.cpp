// SPDX-License-Identifier: MIT
// The plug behind a stand-in for torch's C++ side: exceptions that arrive, filters that are real
// std::functions, the methods taken over. On simulated devices.
#include "plug/pytorch/plug.h"
#include "plug/copy_walk.h"
#include "plug/standin.h"
#include "tarn/host.h"
#include "tarn/sim.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

int failed_checks = 0;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::printf("%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #condition,                \
                        standin_text());                                                           \
            failed_checks++;                                                                       \
        }                                                                                          \
    } while (false)

constexpr uint64_t MIB = uint64_t(1) << 20;
constexpr uint64_t GIB = uint64_t(1) << 30;

template <typename Function> void *address_of(Function function)
{
    void *address = nullptr;

    std::memcpy(&address, &function, sizeof address);
    return address;
}

tarn_device *open_sim(int ordinal, uint64_t capacity)
{
    tarn_sim_options options = {};
    tarn_device *device = nullptr;
    tarn_error error;

    options.struct_size = sizeof options;
    options.ordinal = ordinal;
    options.capacity = capacity;
    options.base_address = 0x700000000000 + (uint64_t(ordinal) << 40);
    if (tarn_sim_open(&options, &device, &error) ||
        tarn_torch_use_device(ordinal, device, &error)) {
        std::printf("%s\n", error.text);
        std::exit(1);
    }
    return device;
}

// Devices 0 and 1 and a current allocator with everything set.
struct Rig {
    tarn_device *devices[2];
    void *allocator;

    explicit Rig(uint64_t capacity = GIB)
    {
        devices[0] = open_sim(0, capacity);
        devices[1] = open_sim(1, capacity);
        allocator =
            standin_custom_allocator(address_of(tarn_torch_alloc), address_of(tarn_torch_free));
        const struct {
            const char *name;
            void *function;
        } setters[] = {
            {"set_init_fn", address_of(tarn_torch_init)},
            {"set_reset_fn", address_of(tarn_torch_reset)},
            {"set_memory_fraction_fn", address_of(tarn_torch_set_memory_fraction)},
            {"set_base_alloc_fn", address_of(tarn_torch_base_alloc)},
            {"set_record_stream_fn", address_of(tarn_torch_record_stream)},
            {"set_begin_allocate_to_pool", address_of(tarn_torch_begin_pool)},
            {"set_end_allocate_to_pool_fn", address_of(tarn_torch_end_pool)},
            {"set_release_pool", address_of(tarn_torch_release_pool)},
        };

        for (const auto &setter : setters) {
            CHECK(standin_set(allocator, setter.name, setter.function) == STANDIN_OK);
        }
        CHECK(standin_change_current(allocator) == STANDIN_OK);
        CHECK(tarn_torch_take_methods(nullptr) == TARN_OK);
        standin_init(2);
    }

    ~Rig()
    {
        for (int i = 0; i < 2; i++) {
            tarn_torch_close_device(i);
            tarn_device_close(devices[i]);
        }
        standin_forget();
    }
};

void *stream(uint64_t number)
{
    return reinterpret_cast<void *>(number);
}

void *alloc(size_t size, uint64_t on = 0, int device = 0)
{
    void *ptr = nullptr;

    CHECK(standin_alloc(size, device, stream(on), &ptr) == STANDIN_OK);
    CHECK((ptr == nullptr) == (size == 0));
    return ptr;
}

tarn_stats stats(int device = 0)
{
    tarn_stats s = {};

    s.struct_size = sizeof s;
    tarn_allocator_get_stats(tarn_torch_find_allocator(device), &s);
    return s;
}

void memory_goes_round()
{
    Rig rig;
    void *ptr = alloc(5 * MIB);

    CHECK(alloc(0) == nullptr);
    CHECK(standin_free(ptr) == STANDIN_OK);
    CHECK(alloc(5 * MIB) == ptr);
    CHECK(stats().by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL].allocated == 2);
    CHECK(tarn_torch_find_allocator(1) == nullptr);
    (void)alloc(MIB, 0, 1);
    CHECK(tarn_torch_find_allocator(1) != nullptr);
}

void running_out_is_torchs_exception()
{
    Rig rig;
    void *ptr = nullptr;
    void *kept = alloc(600 * MIB);
    tarn_error error;

    CHECK(standin_alloc(500 * MIB, 0, nullptr, &ptr) == STANDIN_OUT_OF_MEMORY);
    CHECK(std::string(standin_text()).find("CUDA out of memory. Tried to allocate 500.00 MiB.") ==
          0);
    CHECK(tarn_torch_last_error(&error) && error.status == TARN_ERR_OUT_OF_MEMORY);
    CHECK(standin_free(kept) == STANDIN_OK);
    (void)alloc(500 * MIB); // and the program goes on
}

// Names of the observer's arguments, in order.
struct Told {
    int count, device;
    uint64_t size, total, free;
} told;

void observe(int device, uint64_t size, uint64_t total, uint64_t free)
{
    told = {told.count + 1, device, size, total, free};
}

void the_observer_is_told()
{
    Rig rig;
    void *ptr = nullptr;

    told = {};
    tarn_torch_set_oom_observer(observe);
    CHECK(standin_alloc(2 * GIB, 1, nullptr, &ptr) == STANDIN_OUT_OF_MEMORY);
    CHECK(told.count == 1 && told.device == 1 && told.size == 2 * GIB && told.total == GIB &&
          told.free == GIB);
    CHECK(standin_set_fraction(0.5, 1) == STANDIN_OK);
    CHECK(standin_alloc(600 * MIB, 1, nullptr, &ptr) == STANDIN_OUT_OF_MEMORY);
    CHECK(told.count == 2 && told.total == GIB / 2);
    tarn_torch_set_oom_observer(nullptr);
    CHECK(standin_alloc(2 * GIB, 1, nullptr, &ptr) == STANDIN_OUT_OF_MEMORY);
    CHECK(told.count == 2);
}

void other_failures_are_errors()
{
    Rig rig;
    void *ptr = nullptr;
    int other = 0;

    (void)alloc(MIB);
    tarn_sim_fail_nth(rig.devices[0], TARN_SIM_ALLOC, 1, TARN_ERR_DEVICE);
    CHECK(standin_alloc(100 * MIB, 0, nullptr, &ptr) == STANDIN_ERROR);
    CHECK(standin_text()[0] != 0);
    CHECK(standin_alloc(MIB, TARN_TORCH_DEVICES_MAX, nullptr, &ptr) == STANDIN_ERROR);
    CHECK(std::strstr(standin_text(), "invalid device 64") != nullptr);
    CHECK(standin_set_fraction(1.5, 0) == STANDIN_ERROR);
    CHECK(standin_record_stream(&other, nullptr) == STANDIN_ERROR);
    CHECK(standin_base(&other, &ptr, nullptr) == STANDIN_ERROR);
    CHECK(standin_end_pool(0, 0, 7) == STANDIN_ERROR);
    (void)alloc(100 * MIB);
}

// The N-th device call and the N-th host allocation fail, one after the other, until none does.
void every_failing_call_arrives()
{
    for (int kind = 0; kind < 2; kind++) {
        bool failed = true;

        for (uint64_t n = 1; failed; n++) {
            Rig rig;
            void *ptr = nullptr;

            if (kind == 0) {
                tarn_sim_fail_nth(rig.devices[0], TARN_SIM_ANY, n, TARN_ERR_DEVICE);
            } else {
                tarn_host_fail_nth(n);
            }
            failed = standin_alloc(100 * MIB, 0, nullptr, &ptr) != STANDIN_OK;
            tarn_host_fail_nth(0);
            tarn_sim_fail_nth(rig.devices[0], TARN_SIM_ANY, 0, TARN_OK);
            CHECK(!failed || standin_text()[0] != 0);
            CHECK(n < 1000);
            if (failed) {
                ptr = alloc(100 * MIB);
            }
            CHECK(standin_free(ptr) == STANDIN_OK);
        }
    }
}

void a_failing_free_throws_nothing()
{
    Rig rig;
    void *ptr = alloc(MIB);
    tarn_error error;

    CHECK(standin_record_stream(ptr, stream(5)) == STANDIN_OK);
    tarn_sim_fail_nth(rig.devices[0], TARN_SIM_EVENT_RECORD, 1, TARN_ERR_DEVICE);
    CHECK(standin_free(ptr) == STANDIN_OK);
    CHECK(tarn_torch_last_error(&error) && error.status == TARN_ERR_DEVICE);
    CHECK(stats().by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL].current == 1);
    CHECK(standin_free(ptr) == STANDIN_ERROR); // torch's own record is gone
    tarn_torch_free(ptr, MIB, 0, nullptr);
    CHECK(stats().by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL].current == 0);
}

void blocks_are_found_on_any_device()
{
    Rig rig;
    void *first = alloc(3 * MIB, 0, 0);
    void *second = alloc(3 * MIB, 0, 1);
    void *base = nullptr;
    size_t size = 0;

    (void)first;
    CHECK(standin_base(second, &base, &size) == STANDIN_OK);
    CHECK(base == second && size == 20 * MIB);
    CHECK(standin_record_stream(second, stream(9)) == STANDIN_OK);
    CHECK(standin_record_stream(nullptr, stream(9)) == STANDIN_OK);
    CHECK(tarn_sim_block_stream(rig.devices[1], 9) == TARN_OK);
    CHECK(standin_free(second) == STANDIN_OK);
    CHECK(stats(1).by_pool[TARN_STAT_ACTIVE][TARN_STAT_ALL].current == 1);
    CHECK(tarn_sim_unblock_stream(rig.devices[1], 9) == TARN_OK);
    (void)alloc(3 * MIB, 0, 1);
    CHECK(stats(1).by_pool[TARN_STAT_ACTIVE][TARN_STAT_ALL].current == 1);
}

void filters_are_real_functions()
{
    Rig rig;
    const int kinds[] = {STANDIN_ONE_STREAM, STANDIN_LARGE_FILTER};

    for (const int kind : kinds) {
        const uint64_t pool = uint64_t(kind) + 1;
        const tarn_pool_id id = {0, pool};
        walk_row rows[8];
        size_t count = 0;

        CHECK(standin_begin_pool(0, 0, pool, kind, stream(7)) == STANDIN_OK);
        CHECK(standin_live_filters() == (kind == STANDIN_LARGE_FILTER ? 1 : 0));
        void *mine = alloc(3 * MIB, 7);
        void *other = alloc(3 * MIB, 8);

        CHECK(copy_walk(tarn_torch_find_allocator(0), &id, rows, 8, &count) == TARN_OK);
        CHECK(count == 3 && rows[0].is_segment && rows[1].as.block.allocated);
        CHECK(rows[1].as.block.address == reinterpret_cast<uint64_t>(mine));
        CHECK(standin_begin_pool(0, 0, pool, kind, stream(7)) == STANDIN_ERROR); // already
        CHECK(standin_end_pool(0, 0, pool) == STANDIN_OK);
        CHECK(standin_live_filters() == 0);
        CHECK(standin_free(mine) == STANDIN_OK);
        CHECK(standin_free(other) == STANDIN_OK);
        CHECK(standin_release_pool(0, 0, pool) == STANDIN_OK);
        CHECK(standin_empty_cache(0, 0) == STANDIN_OK);
    }
    CHECK(stats().by_pool[TARN_STAT_RESERVED_BYTES][TARN_STAT_ALL].current == 0);
}

void routes_run_out()
{
    Rig rig;

    for (uint64_t i = 1; i <= TARN_TORCH_ROUTES_MAX; i++) {
        CHECK(standin_begin_pool(0, i, 0, STANDIN_LARGE_FILTER, nullptr) == STANDIN_OK);
    }
    CHECK(standin_begin_pool(0, 1000, 0, STANDIN_LARGE_FILTER, nullptr) == STANDIN_ERROR);
    CHECK(std::strstr(standin_text(), "already routed to 64 pools") != nullptr);
    for (uint64_t i = 1; i <= TARN_TORCH_ROUTES_MAX; i++) {
        CHECK(standin_end_pool(0, i, 0) == STANDIN_OK);
    }
    CHECK(standin_live_filters() == 0);
    CHECK(standin_begin_pool(0, 1000, 0, STANDIN_LARGE_FILTER, nullptr) == STANDIN_OK);
    CHECK(standin_end_pool(0, 1000, 0) == STANDIN_OK);
}

} // namespace

// The driver's question, for filters that cannot be read.
extern "C" int cuStreamIsCapturing(void *asked, int *state_out)
{
    *state_out = asked == stream(7) ? 1 : 0;
    return 0;
}

namespace {

void unknown_filters_ask_the_driver()
{
    Rig rig;
    const tarn_pool_id id = {3, 0};
    uint64_t foreign[6] = {1, 2, 3, 4, 5, 6}; // nothing in it is an address of code
    const void *const objects[] = {foreign, nullptr};

    for (const void *object : objects) {
        walk_row rows[8];
        size_t count = 0;

        CHECK(standin_begin_pool_raw(address_of(tarn_torch_begin_pool), 0, 3, 0, object) ==
              STANDIN_OK);
        (void)alloc(3 * MIB, 8);
        CHECK(copy_walk(tarn_torch_find_allocator(0), &id, rows, 8, &count) == TARN_OK);
        CHECK(count == 0 || object == nullptr); // the second time the first block is there
        void *captured = alloc(3 * MIB, 7);

        CHECK(copy_walk(tarn_torch_find_allocator(0), &id, rows, 8, &count) == TARN_OK);
        CHECK(count == (object ? 3 : 4));
        (void)captured;
        CHECK(standin_end_pool(0, 3, 0) == STANDIN_OK);
    }
    CHECK(standin_begin_pool(0, 4, 0, STANDIN_EMPTY_FILTER, nullptr) == STANDIN_OK);
    CHECK(standin_end_pool(0, 4, 0) == STANDIN_OK);
}

void refused_methods_are_taken_over()
{
    Rig rig;
    size_t largest = 0;
    double fraction = 0;
    const char *const names[] = {"cacheInfo",          "getMemoryFraction", "resetPeakStats",
                                 "emptyCache",         "enablePeerAccess",  "memcpyAsync",
                                 "getPoolUseCount",    "setUseOnOOM",       "setNoSplit",
                                 "createOrIncrefPool", "resetAccumulatedStats",
                                 "shareIpcHandle",     "getIpcDevPtr",      "isHistoryEnabled",
                                 "recordHistory",      "recordAnnotation",  "pushCompileContext",
                                 "popCompileContext",  "setUserMetadata"};

    for (const char *name : names) {
        CHECK(tarn_torch_has_method(name));
    }
    CHECK(!tarn_torch_has_method("checkPoolLiveAllocations"));
    CHECK(standin_refused() == STANDIN_ERROR); // torch still says so itself
    CHECK(std::strstr(standin_text(), "does not yet support checkPoolLiveAllocations") != nullptr);

    CHECK(standin_get_fraction(0, &fraction) == STANDIN_OK && fraction == 1.0);
    CHECK(standin_set_fraction(0.25, 0) == STANDIN_OK);
    CHECK(standin_get_fraction(0, &fraction) == STANDIN_OK && fraction == 0.25);
    CHECK(standin_set_fraction(1.0, 0) == STANDIN_OK);

    void *ptr = alloc(100 * MIB);

    CHECK(standin_free(ptr) == STANDIN_OK);
    CHECK(standin_cache_info(0, &largest) == STANDIN_OK && largest == GIB - 100 * MIB);
    largest = 1;
    CHECK(standin_cache_info(0, &largest) == STANDIN_OK && largest == 100 * MIB);
    tarn_sim_fail_nth(rig.devices[0], TARN_SIM_MEMORY_INFO, 1, TARN_ERR_DEVICE);
    largest = 0;
    CHECK(standin_cache_info(0, &largest) == STANDIN_ERROR);

    CHECK(standin_reset_peak(0) == STANDIN_OK);
    CHECK(stats().by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL].peak == 0);
    CHECK(standin_reset_accumulated(0) == STANDIN_OK);
    CHECK(stats().by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL].allocated == 0);
}

void torch_says_what_it_does()
{
    Rig rig;
    tarn_torch_recording recording = {};
    tarn_history_usage usage = {};
    int enabled = 1;

    CHECK(standin_is_history_enabled(&enabled) == STANDIN_OK && enabled == 0);
    CHECK(standin_record_history(1) == STANDIN_OK); // does nothing
    CHECK(!tarn_torch_is_recording());
    CHECK(standin_annotate("before", "START", nullptr) == STANDIN_OK);
    recording.struct_size = sizeof recording;
    recording.enabled = true;
    recording.max_entries = 10;
    CHECK(tarn_torch_record_history(&recording, nullptr) == TARN_OK);
    CHECK(standin_annotate("without a device", "START", nullptr) == STANDIN_OK);
    CHECK(standin_is_history_enabled(&enabled) == STANDIN_OK && enabled == 1);
    (void)alloc(MIB);
    CHECK(standin_annotate("here", "START", "a longer text than fits in a string") == STANDIN_OK);
    CHECK(standin_annotate("here", "END", nullptr) == STANDIN_OK);
    usage.struct_size = sizeof usage;
    tarn_history_get_usage(tarn_torch_find_history(0), &usage);
    CHECK(usage.annotations == 2 && usage.entries == 2);
    CHECK(standin_push_compile_context("region") == STANDIN_OK);
    CHECK(std::strcmp(tarn_compile_context(), "region") == 0);
    CHECK(standin_pop_compile_context() == STANDIN_OK);
    CHECK(standin_pop_compile_context() == STANDIN_OK); // outside of all
    CHECK(std::strcmp(tarn_compile_context(), "N/A") == 0);
    CHECK(standin_set_user_metadata("step") == STANDIN_OK);
    CHECK(std::strcmp(tarn_user_metadata(), "step") == 0);
    CHECK(standin_set_user_metadata("") == STANDIN_OK);
    recording.enabled = false;
    CHECK(tarn_torch_record_history(&recording, nullptr) == TARN_OK);
}

void pools_of_ones_own()
{
    Rig rig;
    int count = 0;
    int other = 0;

    CHECK(standin_acquire_pool(0, 0, 9, nullptr) == STANDIN_OK);
    CHECK(standin_pool_use_count(0, 0, 9, &count) == STANDIN_OK && count == 1);
    CHECK(standin_pool_use_on_oom(0, 0, 9, 1) == STANDIN_OK);
    CHECK(standin_pool_no_split(0, 0, 9) == STANDIN_OK);
    CHECK(standin_pool_no_split(0, 0, 10) == STANDIN_ERROR);
    CHECK(standin_begin_pool(0, 0, 9, STANDIN_ANY_STREAM, nullptr) == STANDIN_OK);
    CHECK(standin_pool_use_count(0, 0, 9, &count) == STANDIN_OK && count == 2);
    void *in_pool = alloc(3 * MIB);

    CHECK(standin_end_pool(0, 0, 9) == STANDIN_OK);
    CHECK(standin_release_pool(0, 0, 9) == STANDIN_OK);
    void *outside = alloc(3 * MIB);

    CHECK(standin_free(outside) == STANDIN_OK);
    CHECK(standin_free(in_pool) == STANDIN_OK);
    CHECK(standin_release_pool(0, 0, 9) == STANDIN_OK);
    CHECK(standin_empty_cache(0, 9) == STANDIN_OK); // that pool alone
    CHECK(stats().by_pool[TARN_STAT_SEGMENT][TARN_STAT_ALL].current == 1);
    CHECK(standin_empty_cache(0, 9) == STANDIN_OK); // gone by now
    CHECK(standin_empty_cache(0, 0) == STANDIN_OK);
    CHECK(stats().by_pool[TARN_STAT_SEGMENT][TARN_STAT_ALL].current == 0);
    CHECK(standin_release_pool(0, 0, 9) == STANDIN_OK); // noted, not thrown
    CHECK(standin_acquire_pool(0, 0, 11, &other) == STANDIN_ERROR);
    CHECK(std::strstr(standin_text(), "create it without one") != nullptr);
}

// Shared with another process, which is this program once more: a forked child may use nothing.
constexpr size_t MESSAGE_MAX = 4096;

struct Message {
    char bytes[MESSAGE_MAX];
    size_t length;
};

void memory_is_shared(const char *program)
{
    Rig rig;
    Message message = {};
    ptrdiff_t offset = -1;
    void *kept = alloc(3 * MIB, 0, 1);
    void *ptr = alloc(3 * MIB, 0, 1);
    int ends[2];
    int status = -1;

    CHECK(standin_share(ptr, message.bytes, MESSAGE_MAX, &message.length, &offset) == STANDIN_OK);
    CHECK(offset == 0 && message.length > 16);
    CHECK(standin_open_shared(1, message.bytes, message.length, &ptr) == STANDIN_ERROR);
    CHECK(standin_share(&status, message.bytes, MESSAGE_MAX, &message.length, &offset) ==
          STANDIN_ERROR);
    tarn_sim_fail_nth(rig.devices[1], TARN_SIM_IPC_EXPORT, 1, TARN_ERR_DEVICE);
    CHECK(standin_share(kept, message.bytes, MESSAGE_MAX, &message.length, &offset) ==
          STANDIN_ERROR);
    CHECK(pipe(ends) == 0);
    const pid_t child = fork();

    if (child == 0) {
        (void)dup2(ends[0], STDIN_FILENO);
        (void)close(ends[1]);
        (void)execl(program, program, "receive", nullptr);
        _exit(127);
    }
    (void)close(ends[0]);
    CHECK(write(ends[1], &message, sizeof message) == ssize_t(sizeof message));
    (void)close(ends[1]);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

uint64_t opened_on(tarn_device *device)
{
    tarn_sim_counters counters = {};

    counters.struct_size = sizeof counters;
    tarn_sim_get_counters(device, &counters);
    return counters.live_opened;
}

void receive()
{
    Rig rig;
    Message message = {};
    void *ptr = nullptr;
    void *again = nullptr;

    CHECK(read(STDIN_FILENO, &message, sizeof message) == ssize_t(sizeof message));
    CHECK(standin_open_shared(1, "nonsense", 8, &ptr) == STANDIN_ERROR);
    CHECK(opened_on(rig.devices[1]) == 0);
    CHECK(standin_open_shared(1, message.bytes, message.length, &ptr) == STANDIN_OK);
    CHECK(standin_open_shared(1, message.bytes, message.length, &again) == STANDIN_OK);
    CHECK(ptr != nullptr && ptr == again);
    CHECK(opened_on(rig.devices[1]) == 1);
    standin_close_shared();
    CHECK(opened_on(rig.devices[1]) == 0);
    tarn_sim_fail_nth(rig.devices[1], TARN_SIM_IPC_OPEN, 1, TARN_ERR_DEVICE);
    CHECK(standin_open_shared(1, message.bytes, message.length, &ptr) == STANDIN_ERROR);
}

void copies_between_devices()
{
    Rig rig;
    int kind = 0;
    tarn_error error;

    (void)alloc(3 * MIB, 0, 0);
    (void)alloc(3 * MIB, 0, 1);
    CHECK(standin_copy(0, 1, 0, &kind) == STANDIN_OK && kind == 1);
    CHECK(tarn_torch_configure("expandable_segments:True", &error) == TARN_OK);
    (void)alloc(30 * MIB, 0, 1);
    CHECK(standin_copy(0, 1, 0, &kind) == STANDIN_OK && kind == 2);
    CHECK(standin_copy(0, 1, 1, &kind) == STANDIN_OK && kind == 1);
    CHECK(standin_copy(1, 1, 0, &kind) == STANDIN_OK && kind == 1);
    CHECK(standin_enable_peer(0, 1) == STANDIN_OK);
    tarn_sim_fail_nth(rig.devices[1], TARN_SIM_VA_GRANT, 1, TARN_ERR_DEVICE);
    CHECK(standin_enable_peer(5, 1) == STANDIN_ERROR);
    CHECK(tarn_torch_configure("expandable_segments:False", &error) == TARN_OK);
}

void other_allocators_are_left_alone()
{
    tarn_error error;

    standin_forget();
    CHECK(tarn_torch_take_methods(&error) == TARN_ERR_NOT_SUPPORTED);
    CHECK(std::strstr(error.text, "not a pluggable one") != nullptr);
}

} // namespace

const char *program;

void shared_with_another_process()
{
    memory_is_shared(program);
}

int main(int argc, char **argv)
{
    program = argv[0];
    if (argc > 1) {
        receive();
        return failed_checks ? 1 : 0;
    }
    const struct {
        const char *name;
        void (*run)();
    } tests[] = {
        {"memory goes round", memory_goes_round},
        {"running out is torch's exception", running_out_is_torchs_exception},
        {"the observer is told", the_observer_is_told},
        {"other failures are errors", other_failures_are_errors},
        {"every failing call arrives", every_failing_call_arrives},
        {"a failing free throws nothing", a_failing_free_throws_nothing},
        {"blocks are found on any device", blocks_are_found_on_any_device},
        {"filters are real functions", filters_are_real_functions},
        {"routes run out", routes_run_out},
        {"unknown filters ask the driver", unknown_filters_ask_the_driver},
        {"refused methods are taken over", refused_methods_are_taken_over},
        {"torch says what it does", torch_says_what_it_does},
        {"pools of one's own", pools_of_ones_own},
        {"copies between devices", copies_between_devices},
        {"shared with another process", shared_with_another_process},
        {"other allocators are left alone", other_allocators_are_left_alone},
    };
    int passed = 0;
    int failed = 0;

    for (const auto &test : tests) {
        const int before = failed_checks;

        test.run();
        if (failed_checks == before) {
            passed++;
        } else {
            failed++;
            std::printf("failed: %s\n", test.name);
        }
    }
    std::printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed ? 1 : 0;
}
