/* SPDX-License-Identifier: MIT */
/* Somebody else's C++ program: allocates on the simulated device through tarn/tarn.hpp. */
#include <tarn/tarn.hpp>

#include <cstdio>
#include <exception>

int main()
{
    try {
        const tarn::allocator allocator("sim:1GiB");
        const tarn::buffer buffer(allocator, 1 << 20);

        if (buffer.address() == 0) {
            return 1;
        }
    } catch (const std::exception &error) {
        std::printf("%s\n", error.what());
        return 1;
    }
    std::printf("tarn %s\n", tarn_version());
    return 0;
}
