/* SPDX-License-Identifier: MIT */
/*
 * Arguments that every engine refuses, or that may be left out: caching under each policy, the
 * driver's pools, no cache. A call that is refused changes nothing.
 */
#include "support/test.h"

#include "support/child.h"
#include "support/rig.h"
#include "tarn/block.h"
#include "tarn/copy.h"
#include "tarn/graph_pool.h"
#include "tarn/ipc.h"
#include "tarn/pages.h"
#include "tarn/pool.h"
#include "tarn/pressure.h"
#include "tarn/request.h"
#include "tarn/sleep.h"

#include <math.h>

static const struct engine {
    const char *conf;
    bool no_caching;
} engines[] = {{"", false},
               {"expandable_segments:True", false},
               {"policy:compact", false},
               {"backend:cudaMallocAsync", false},
               {"", true}};

#define ENGINES (sizeof engines / sizeof *engines)

static void engine_open(struct rig *rig, const struct engine *engine)
{
    struct tarn_config config;

    *rig = (struct rig){.host_bytes = tarn_host_get_usage().live_bytes};
    rig->device = sim_open(GIB);
    assert_int_equal(tarn_config_parse(engine->conf, &config, &rig->error), TARN_OK);
    config.no_caching = engine->no_caching;
    assert_int_equal(tarn_allocator_create(rig->device, &config, &rig->allocator, &rig->error),
                     TARN_OK);
}

/* Runs the check for an allocator of each engine in which one block lives. */
static void for_each_engine(void (*check)(struct rig *rig, tarn_ptr ptr))
{
    for (size_t i = 0; i < ENGINES; i++) {
        struct rig rig;

        engine_open(&rig, &engines[i]);
        const tarn_ptr ptr = rig_alloc(&rig, 3 * MIB, 0);

        check(&rig, ptr);
        rig_check(&rig);
        rig_free(&rig, ptr);
        rig_empty_cache(&rig);
        rig_close(&rig);
    }
}

static void check_fraction(struct rig *rig, tarn_ptr ptr)
{
    static const double wrong[] = {-0.001, 1.001, -HUGE_VAL, (double)NAN};

    (void)ptr;
    rig_limit(rig, 0.5);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(tarn_allocator_set_memory_fraction(rig->allocator, wrong[i], &rig->error),
                         TARN_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(rig->error.text, "nvalid fraction"));
        assert_int_equal(tarn_allocator_get_limit(rig->allocator), GIB / 2);
    }
    rig_limit(rig, 0.0);
    assert_int_equal(tarn_allocator_get_limit(rig->allocator), 0);
    rig_limit(rig, 1.0);
    rig_free(rig, rig_alloc(rig, 500 * MIB, 0));
}

static void a_fraction_is_between_0_and_1(void **state)
{
    (void)state;
    for_each_engine(check_fraction);
}

static void check_base(struct rig *rig, tarn_ptr ptr)
{
    struct tarn_allocator *a = rig->allocator;
    tarn_ptr base = 1;
    tarn_ptr base_alone = 1;
    uint64_t size = 0;
    uint64_t size_alone = 0;

    assert_int_equal(tarn_allocator_base_allocation(a, ptr, &base, &size, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_base_allocation(a, ptr, &base_alone, NULL, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_base_allocation(a, ptr, NULL, &size_alone, NULL), TARN_OK);
    assert_true(base <= ptr && size >= 3 * MIB);
    assert_int_equal(base_alone, base);
    assert_int_equal(size_alone, size);
    assert_int_equal(tarn_allocator_base_allocation(a, 0x1000, &base, &size, NULL),
                     TARN_ERR_INVALID_POINTER);
    assert_int_equal(base, base_alone);
    assert_int_equal(size, size_alone);
}

static void each_result_of_a_base_may_be_left_out(void **state)
{
    (void)state;
    for_each_engine(check_base);
}

static void check_structs(struct rig *rig, tarn_ptr ptr)
{
    struct tarn_page_stats pages = {.struct_size = sizeof pages};
    union {
        struct tarn_sleep_stats stats;
        unsigned char bytes[sizeof(struct tarn_sleep_stats)];
    } part;
    uint64_t reserved = 0;

    (void)ptr;
    tarn_allocator_get_page_stats(rig->allocator, &pages);
    assert_int_equal(pages.moved, 0);
    memset(part.bytes, 0xee, sizeof part);
    part.stats.struct_size = 16;
    tarn_allocator_get_sleep_stats(rig->allocator, &part.stats);
    assert_int_equal(part.stats.struct_size, 16);
    for (size_t i = 16; i < sizeof part; i++) { /* an older program's struct ends here */
        assert_int_equal(part.bytes[i], 0xee);
    }
    assert_int_equal(tarn_allocator_trim(rig->allocator, 0, &reserved, &rig->error), TARN_OK);
    assert_int_equal(reserved, rig_now(rig, TARN_STAT_RESERVED_BYTES));
    assert_int_equal(tarn_allocator_trim(rig->allocator, 0, NULL, &rig->error), TARN_OK);
}

static void counters_fit_into_an_older_struct(void **state)
{
    (void)state;
    for_each_engine(check_structs);
}

static void settings_that_cannot_change(void **state)
{
    struct tarn_config config;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact");
    tarn_allocator_get_config(rig.allocator, &config);
    config.policy = TARN_POLICY_EXACT;
    assert_int_equal(tarn_allocator_set_config(rig.allocator, &config, &rig.error),
                     TARN_ERR_CONFIG);
    assert_non_null(strstr(rig.error.text, "cannot become exact"));
    rig_close(&rig);
    rig_open(&rig, GIB, "policy:exact");
    tarn_allocator_get_config(rig.allocator, &config);
    assert_int_equal(config.policy, TARN_POLICY_EXACT);
    config.policy = TARN_POLICY_COMPACT;
    assert_int_equal(tarn_allocator_set_config(rig.allocator, &config, &rig.error),
                     TARN_ERR_CONFIG);
    assert_non_null(strstr(rig.error.text, "cannot become compact"));
    rig_close(&rig);
}

/* ---- pools ---- */

static tarn_ptr source_alloc(void *context, uint64_t size, tarn_stream stream)
{
    (void)context;
    (void)size;
    (void)stream;
    return 0;
}

static void source_free(void *context, tarn_ptr ptr)
{
    (void)context;
    (void)ptr;
}

static void a_source_has_both_functions(void **state)
{
    static const struct tarn_pool_source sources[] = {
        {.struct_size = sizeof sources[0], .alloc = source_alloc},
        {.struct_size = sizeof sources[0], .free = source_free},
        {.struct_size = 2, .alloc = source_alloc, .free = source_free},
    };
    const struct tarn_pool_id id = {0, 9};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        const struct tarn_pool_options options = {.struct_size = sizeof options,
                                                  .source = &sources[i]};
        struct tarn_pool *pool = NULL;

        assert_int_equal(
            tarn_allocator_create_pool_from(rig.allocator, id, &sources[i], &rig.error),
            TARN_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(rig.error.text, "functions to allocate and to free"));
        assert_int_equal(tarn_pool_create(rig.allocator, &options, &pool, &rig.error),
                         TARN_ERR_INVALID_ARGUMENT);
        assert_null(pool);
        assert_int_equal(tarn_allocator_release_pool(rig.allocator, id, NULL), TARN_ERR_NOT_FOUND);
    }
    rig_close(&rig);
}

/* A handle's number may be taken: then it gets the next. */
static void a_pool_gets_a_number_of_its_own(void **state)
{
    const struct tarn_pool_options options = {.struct_size = sizeof options};
    struct tarn_pool *first = NULL;
    struct tarn_pool *second = NULL;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_pool_create(rig.allocator, &options, &first, NULL), TARN_OK);
    const struct tarn_pool_id id = tarn_pool_get_id(first);
    const struct tarn_pool_id next = {id.first, id.second + 1};

    assert_int_equal(tarn_allocator_acquire_pool(rig.allocator, next, NULL), TARN_OK);
    assert_int_equal(tarn_pool_create(rig.allocator, &options, &second, NULL), TARN_OK);
    assert_int_equal(tarn_pool_get_id(second).second, id.second + 2);
    tarn_pool_destroy(second);
    tarn_pool_destroy(first);
    assert_int_equal(tarn_allocator_release_pool(rig.allocator, next, NULL), TARN_OK);
    rig_close(&rig);
}

static void child_uses_pool(void *context)
{
    struct tarn_pool *pool = context;
    struct tarn_pool_stats stats = {.struct_size = sizeof stats};
    tarn_ptr ptr = 7;
    uint64_t reserved = 7;

    CHILD_REQUIRE(tarn_pool_alloc(pool, MIB, 0, &ptr, NULL) == TARN_ERR_STATE && ptr == 7);
    CHILD_REQUIRE(tarn_pool_trim(pool, 0, &reserved, NULL) == TARN_ERR_STATE && reserved == 7);
    CHILD_REQUIRE(tarn_pool_set_limit(pool, MIB, NULL) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_pool_get_stats(pool, &stats) == TARN_ERR_STATE);
    tarn_pool_destroy(pool);
}

static void a_forked_child_has_no_pools(void **state)
{
    const struct tarn_pool_options options = {.struct_size = sizeof options};
    struct tarn_pool *pool = NULL;
    struct rig rig;
    tarn_ptr ptr = 0;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_pool_create(rig.allocator, &options, &pool, NULL), TARN_OK);
    child_run(child_uses_pool, pool);
    assert_int_equal(tarn_pool_alloc(pool, MIB, 0, &ptr, NULL), TARN_OK);
    rig_free(&rig, ptr);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* ---- copies ---- */

static void copies_to_and_from_the_host(void **state)
{
    unsigned char bytes[4] = {1, 2, 3, 4};
    struct rig rig;

    (void)state;
    rig_open_with(&rig, (struct tarn_sim_options){.capacity = GIB, .backed = true}, "");
    const tarn_ptr ptr = rig_alloc(&rig, MIB, 0);

    assert_int_equal(tarn_copy_from_host(rig.allocator, ptr, bytes, 0, 0, &rig.error), TARN_OK);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_COPY], 0); /* nothing to do */
    tarn_sim_fail_nth(rig.device, TARN_SIM_STREAM_WAIT, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_copy_from_host(rig.allocator, ptr, bytes, 4, 0, &rig.error),
                     TARN_ERR_DEVICE);
    assert_non_null(strstr(rig.error.text, "waiting for a copy"));
    tarn_sim_fail_nth(rig.device, TARN_SIM_COPY, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_copy_from_host(rig.allocator, ptr, bytes, 4, 0, &rig.error),
                     TARN_ERR_DEVICE);
    assert_int_equal(tarn_copy_from_host(rig.allocator, ptr, bytes, 4, 0, &rig.error), TARN_OK);
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(tarn_copy_to_host(rig.allocator, bytes, ptr, 0, 0, &rig.error), TARN_OK);
    assert_int_equal(bytes[0], 0);
    assert_int_equal(tarn_copy_to_host(rig.allocator, bytes, ptr, 4, 0, &rig.error), TARN_OK);
    assert_int_equal(bytes[3], 4);
    rig_free(&rig, ptr);
    rig_close(&rig);
}

/* ---- what the device refuses ---- */

static void check_device_fails(struct rig *rig, tarn_ptr ptr)
{
    uint64_t largest = 0;
    uint64_t known = 0;

    (void)ptr;
    tarn_sim_fail_nth(rig->device, TARN_SIM_MEMORY_INFO, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_cache_info(rig->allocator, &largest, &rig->error),
                     TARN_ERR_DEVICE);
    assert_int_equal(largest, 0);
    assert_true(rig->error.text[0] != '\0');
    assert_int_equal(tarn_allocator_cache_info(rig->allocator, &known, &rig->error), TARN_OK);
    assert_true(known > 900 * MIB && known <= GIB);
}

static void free_memory_may_be_unknown(void **state)
{
    (void)state;
    for_each_engine(check_device_fails);
}

/* The driver's pool refuses what the device says is free: it is asked for half of it. */
static void the_drivers_pool_is_probed(void **state)
{
    uint64_t largest = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "backend:cudaMallocAsync");
    tarn_sim_fail_nth(rig.device, TARN_SIM_POOL_ALLOC, 1, TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(tarn_allocator_cache_info(rig.allocator, &largest, &rig.error), TARN_OK);
    assert_int_equal(largest, GIB / 2);
    largest = 0;
    tarn_sim_fail_nth(rig.device, TARN_SIM_POOL_ALLOC, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_cache_info(rig.allocator, &largest, &rig.error),
                     TARN_ERR_DEVICE);
    assert_int_equal(largest, 0);
    const tarn_ptr ptr = rig_alloc(&rig, 600 * MIB, 0);

    rig_limit(&rig, 0.5); /* less than is in use */
    assert_int_equal(tarn_allocator_cache_info(rig.allocator, &largest, &rig.error), TARN_OK);
    assert_int_equal(largest, 0);
    tarn_sim_fail_nth(rig.device, TARN_SIM_POOL_TRIM, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_trim(rig.allocator, 0, NULL, &rig.error), TARN_ERR_DEVICE);
    assert_non_null(strstr(rig.error.text, "releasing cached memory"));
    rig_free(&rig, ptr);
    rig_close(&rig);
}

/* A text may be left out, and what only an allocator with a cache has. */
static void check_names(struct rig *rig, tarn_ptr ptr)
{
    struct tarn_allocator *a = rig->allocator;
    const bool caches = tn_allocator_is_native(a);
    const enum tarn_status st = tarn_allocator_annotate(a, ptr, NULL, NULL);

    assert_true(st == TARN_OK || st == TARN_ERR_NOT_SUPPORTED);
    assert_null(tn_allocator_stack_keeper(a));
    tn_allocator_yield_sink(a, rig);
    assert_int_equal(tarn_allocator_set_oom_writer(a, NULL, NULL) == TARN_OK, caches);
    assert_int_equal(tarn_allocator_remove_pressure_callback(a, NULL, rig),
                     caches ? TARN_ERR_NOT_FOUND : TARN_ERR_NOT_SUPPORTED);
}

static void what_is_not_there_is_left_out(void **state)
{
    (void)state;
    for_each_engine(check_names);
}

/* Memory that comes straight from the device, while the cache is off. */
static void what_the_cache_does_not_have_is_known(void **state)
{
    struct tarn_alloc_options options = {.struct_size = sizeof options};
    unsigned char message[4096];
    uint64_t size = 0;
    size_t length = 0;
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_allocator_set_enabled(rig.allocator, false, &rig.error), TARN_OK);
    assert_int_equal(tarn_alloc_with(rig.allocator, 3 * MIB, 0, &options, &ptr, &rig.error),
                     TARN_OK);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 0);
    assert_int_equal(tarn_allocator_block_size(rig.allocator, ptr, &size, &rig.error), TARN_OK);
    assert_int_equal(size, 3 * MIB);
    size = 0;
    assert_int_equal(tarn_allocator_base_allocation(rig.allocator, ptr, NULL, &size, &rig.error),
                     TARN_OK);
    assert_int_equal(size, 3 * MIB);
    assert_int_equal(tarn_allocator_annotate(rig.allocator, ptr, "text", &rig.error), TARN_OK);
    tarn_sim_fail_nth(rig.device, TARN_SIM_IPC_EXPORT, 1, TARN_ERR_DEVICE);
    assert_int_equal(
        tarn_ipc_export(rig.allocator, ptr, message, sizeof message, &length, &rig.error),
        TARN_ERR_DEVICE);
    assert_non_null(strstr(rig.error.text, "sharing memory"));
    assert_int_equal(
        tarn_ipc_export(rig.allocator, ptr, message, sizeof message, &length, &rig.error), TARN_OK);
    rig_free(&rig, ptr);
    rig_close(&rig);
}

static void an_allocator_needs_a_device_and_a_place(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    struct tarn_allocator *allocator = NULL;

    (void)state;
    assert_int_equal(tarn_allocator_create(device, NULL, NULL, NULL), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_allocator_create(NULL, NULL, &allocator, NULL),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_null(allocator);
    sim_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fraction_is_between_0_and_1),
        cmocka_unit_test(each_result_of_a_base_may_be_left_out),
        cmocka_unit_test(counters_fit_into_an_older_struct),
        cmocka_unit_test(settings_that_cannot_change),
        cmocka_unit_test(a_source_has_both_functions),
        cmocka_unit_test(a_pool_gets_a_number_of_its_own),
        cmocka_unit_test(a_forked_child_has_no_pools),
        cmocka_unit_test(copies_to_and_from_the_host),
        cmocka_unit_test(free_memory_may_be_unknown),
        cmocka_unit_test(the_drivers_pool_is_probed),
        cmocka_unit_test(what_is_not_there_is_left_out),
        cmocka_unit_test(what_the_cache_does_not_have_is_known),
        cmocka_unit_test(an_allocator_needs_a_device_and_a_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
