/* SPDX-License-Identifier: MIT */
/* What the tests of the glue for PyTorch share: checks, simulated devices, a main function. */
#ifndef TESTS_PLUG_HARNESS_H
#define TESTS_PLUG_HARNESS_H

#include "tarn/devices.h"
#include "tarn/sim.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace harness
{

inline int failed_checks;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                    \
            harness::failed_checks++;                                                              \
        }                                                                                          \
    } while (false)

inline tarn_devices *const devices = tarn_devices_shared(); // NOLINT(cert-err58-cpp): it is C

constexpr uint64_t MIB = uint64_t{1} << 20;
constexpr uint64_t GIB = uint64_t{1} << 30;

/* A simulated device for that ordinal, for the rest of the process. */
inline tarn_device *open_sim(int ordinal, uint64_t capacity)
{
    tarn_sim_options options = {};
    tarn_device *device = nullptr;
    tarn_error error;

    options.struct_size = sizeof options;
    options.ordinal = ordinal;
    options.capacity = capacity;
    options.base_address = 0x700000000000 + (static_cast<uint64_t>(ordinal) << 40);
    if (tarn_sim_open(&options, &device, &error) ||
        tarn_devices_use(devices, ordinal, device, &error)) {
        std::printf("%s\n", error.text);
        std::exit(1);
    }
    return device;
}

inline bool has(const std::string &text, const char *part)
{
    return text.find(part) != std::string::npos;
}

struct Case {
    const char *name;
    void (*run)();
};

/* Runs the cases and prints how many passed; the exit status. */
template <size_t count> int run(const Case (&cases)[count])
{
    int failed = 0;

    for (const Case &one : cases) {
        const int before = failed_checks;

        one.run();
        if (failed_checks != before) {
            failed++;
            std::printf("failed: %s\n", one.name);
        }
    }
    std::printf("%d passed, %d failed, 0 skipped\n", static_cast<int>(count) - failed, failed);
    return failed ? 1 : 0;
}

} // namespace harness

#endif
