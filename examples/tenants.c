/* SPDX-License-Identifier: MIT */
/*
 * tenants [DEVICE]: a pool for each tenant. One that takes too much meets its own limit, not its
 * neighbours' memory; when the device runs short, cached memory goes back in the order of the
 * pools' priorities; and each tenant's bill is what its pool has reserved.
 */
#include "example.h"

#include <tarn/allocator.h>
#include <tarn/pool.h>
#include <tarn/pressure.h>

#include <inttypes.h>

#define MIB ((uint64_t)1 << 20)

enum {
    TENANTS = 3,
    BLOCKS = 12,
    BLOCK_MIB = 20,
    LIMIT_MIB = 160,    /* of each tenant */
    ALL_MIB = 480 + 64, /* of all of them and the program itself */
    SHARED_MIB = 128    /* what the program itself needs in the end */
};

struct tenant {
    const char *name;
    int priority; /* the batch job's cache goes first */
    struct tarn_pool *pool;
    tarn_ptr blocks[BLOCKS];
    int count;
};

static struct tarn_pool_stats stats_of(const struct tenant *tenant)
{
    struct tarn_pool_stats stats = {.struct_size = sizeof stats};

    EXPECT(tarn_pool_get_stats(tenant->pool, &stats) == TARN_OK);
    return stats;
}

static void open_tenant(struct tarn_allocator *allocator, struct tenant *tenant)
{
    const struct tarn_pool_options options = {.struct_size = sizeof options,
                                              .name = tenant->name,
                                              .priority = tenant->priority,
                                              .limit = LIMIT_MIB * MIB};
    struct tarn_error error;

    CHECK(tarn_pool_create(allocator, &options, &tenant->pool, &error));
}

/* Takes as many blocks as it is allowed to have. */
static void fill(struct tenant *tenant, tarn_stream stream)
{
    enum tarn_status status = TARN_OK;
    struct tarn_error error;

    while (tenant->count < BLOCKS && status == TARN_OK) {
        status = tarn_pool_alloc(tenant->pool, BLOCK_MIB * MIB, stream,
                                 &tenant->blocks[tenant->count], &error);
        tenant->count += status == TARN_OK;
    }
    EXPECT(status == TARN_ERR_OUT_OF_MEMORY);
    (void)printf("%s: %d blocks, then its limit\n", tenant->name, tenant->count);
}

static void drop(struct tarn_allocator *allocator, struct tenant *tenant)
{
    struct tarn_error error;

    while (tenant->count > 0) {
        CHECK(tarn_allocator_free(allocator, tenant->blocks[--tenant->count], &error));
    }
}

static void print_bill(const struct tenant *tenant)
{
    const struct tarn_pool_stats stats = stats_of(tenant);

    (void)printf(
        "%-8s %3" PRIu64 " MiB reserved, %3" PRIu64 " MiB allocated, peak %3" PRIu64 " MiB\n",
        tenant->name, stats.reserved / MIB, stats.allocated / MIB, stats.reserved_peak / MIB);
}

int main(int argc, char **argv)
{
    struct tenant tenants[TENANTS] = {{.name = "chat", .priority = 2},
                                      {.name = "search", .priority = 2},
                                      {.name = "batch", .priority = -1}};
    struct tarn_allocator *allocator;
    struct tarn_error error;
    tarn_ptr shared;

    CHECK(tarn_allocator_create_on(argc > 1 ? argv[1] : NULL, NULL, &allocator, &error));
    CHECK(tarn_allocator_set_limit(allocator, ALL_MIB * MIB, &error));
    for (int i = 0; i < TENANTS; i++) {
        open_tenant(allocator, &tenants[i]);
        fill(&tenants[i], 0);
    }
    drop(allocator, &tenants[1]);
    drop(allocator, &tenants[2]);

    /* Nothing that the tenants still use is touched, and the batch job's cache goes first. */
    CHECK(tarn_allocator_alloc(allocator, SHARED_MIB * MIB, 0, &shared, &error));
    for (int i = 0; i < TENANTS; i++) {
        print_bill(&tenants[i]);
    }
    EXPECT(stats_of(&tenants[0]).reserved == LIMIT_MIB * MIB);
    EXPECT(stats_of(&tenants[1]).reserved == LIMIT_MIB * MIB);
    EXPECT(stats_of(&tenants[2]).reserved < LIMIT_MIB * MIB);

    CHECK(tarn_allocator_free(allocator, shared, &error));
    drop(allocator, &tenants[0]);
    for (int i = 0; i < TENANTS; i++) {
        tarn_pool_destroy(tenants[i].pool);
    }
    tarn_allocator_destroy(allocator);
    return 0;
}
