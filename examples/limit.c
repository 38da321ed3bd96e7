/* SPDX-License-Identifier: MIT */
/*
 * limit [DEVICE]: a memory limit, an observer of failures, and continuing after one.
 */
#include "example.h"

#include <tarn/allocator.h>

#include <inttypes.h>

enum {
    BLOCKS_MAX = 1 << 16,
    BLOCK = 64 << 20
};

/* Called before an allocation fails, after all other steps; it may use the allocator. */
static void observe(void *context, const struct tarn_oom *oom)
{
    unsigned *failures = context;

    (*failures)++;
    (void)printf("asked for %" PRIu64 " bytes with %" PRIu64 " of %" PRIu64 " reserved\n",
                 oom->requested, oom->reserved, oom->limit);
}

int main(int argc, char **argv)
{
    static tarn_ptr blocks[BLOCKS_MAX];
    struct tarn_allocator *allocator;
    struct tarn_error error;
    enum tarn_status status = TARN_OK;
    unsigned failures = 0;
    size_t count = 0;

    CHECK(tarn_allocator_create_on(argc > 1 ? argv[1] : NULL, NULL, &allocator, &error));
    CHECK(tarn_allocator_set_memory_fraction(allocator, 0.5, &error));
    if (tarn_allocator_add_oom_observer(allocator, observe, &failures) != TARN_OK) {
        return 1;
    }

    while (count < BLOCKS_MAX && status == TARN_OK) {
        status = tarn_allocator_alloc(allocator, BLOCK, 0, &blocks[count], &error);
        count += status == TARN_OK;
    }
    EXPECT(status == TARN_ERR_OUT_OF_MEMORY && failures == 1);
    (void)printf("%zu blocks, then: %s\n", count, error.text);

    /* A failure changes nothing: once memory is freed, the same request succeeds. */
    if (count > 0) {
        CHECK(tarn_allocator_free(allocator, blocks[--count], &error));
        CHECK(tarn_allocator_alloc(allocator, BLOCK, 0, &blocks[count], &error));
        count++;
    }
    while (count > 0) {
        CHECK(tarn_allocator_free(allocator, blocks[--count], &error));
    }
    tarn_allocator_destroy(allocator);
    return 0;
}
