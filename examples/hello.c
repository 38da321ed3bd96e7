/* SPDX-License-Identifier: MIT */
/*
 * hello [DEVICE]: allocates, copies in and out, frees, and prints statistics. DEVICE is "cuda:0" or
 * "sim:80GiB,backed"; by default the first GPU, or a simulated device if there is none.
 */
#include "example.h"

#include <tarn/allocator.h>
#include <tarn/copy.h>

#include <inttypes.h>
#include <string.h>

int main(int argc, char **argv)
{
    static const char text[] = "hello from the device";
    struct tarn_allocator *allocator;
    struct tarn_error error;
    char back[sizeof text] = "";
    tarn_ptr first;
    tarn_ptr second;

    CHECK(tarn_allocator_create_on(argc > 1 ? argv[1] : NULL, NULL, &allocator, &error));

    CHECK(tarn_allocator_alloc(allocator, 100 << 20, 0, &first, &error));
    CHECK(tarn_copy_from_host(allocator, first, text, sizeof text, 0, &error));
    CHECK(tarn_copy_to_host(allocator, back, first, sizeof back, 0, &error));
    EXPECT(strcmp(back, text) == 0);

    /* Freed memory is cached: the next allocation of this size does not call the driver. */
    CHECK(tarn_allocator_free(allocator, first, &error));
    CHECK(tarn_allocator_alloc(allocator, 100 << 20, 0, &second, &error));
    EXPECT(second == first);

    struct tarn_stats stats = {.struct_size = sizeof stats};

    tarn_allocator_get_stats(allocator, &stats);
    (void)printf(
        "%s\n%" PRId64 " allocations, %" PRId64 " from the driver; %" PRId64 " bytes reserved\n",
        back, stats.by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL].allocated, stats.num_device_alloc,
        stats.by_pool[TARN_STAT_RESERVED_BYTES][TARN_STAT_ALL].current);
    CHECK(tarn_allocator_free(allocator, second, &error));
    tarn_allocator_destroy(allocator);
    return 0;
}
