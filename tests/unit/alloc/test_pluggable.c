/* SPDX-License-Identifier: MIT */
/* Allocators from a shared object, and which allocator is the current one. */
#include "support/test.h"

#include "alloc/engine/allocator.h"
#include "base/dl.h"
#include "base/lock.h"
#include "support/pluggable_library.h"
#include "support/rig.h"
#include "tarn/graph_pool.h"
#include "tarn/ipc.h"
#include "tarn/pluggable.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    THREADS = 4,
    ROUNDS = 2000
};

static struct pluggable_log *library; /* of the shared object */
static struct tarn_pluggable *opened;
static struct tarn_device *device;
static struct tarn_allocator *allocator;
static struct tarn_error error;
static uint64_t host_bytes;

static int open_all(void **state)
{
    struct pluggable_log *(*log)(void) = NULL;
    char why[256];

    (void)state;
    host_bytes = tarn_host_get_usage().live_bytes;
    void *handle = tn_dl_open(PLUGGABLE_LIBRARY, why, sizeof why);

    assert_non_null(handle);
    assert_true(tn_dl_find(handle, "library_log", &log));
    library = log();
    memset(library, 0, sizeof *library);
    if (tarn_pluggable_open(PLUGGABLE_LIBRARY, "library_alloc", "library_free", &opened, &error)) {
        fail_msg("%s", error.text);
    }
    device = sim_open_with((struct tarn_sim_options){.capacity = GIB, .ordinal = 3});
    assert_int_equal(tarn_pluggable_create_allocator(opened, device, &allocator, &error), TARN_OK);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    tarn_allocator_destroy(allocator);
    sim_close(device);
    tarn_pluggable_close(opened);
    assert_int_equal(tarn_host_get_usage().live_bytes, host_bytes);
    return 0;
}

static tarn_ptr take(uint64_t size, tarn_stream stream)
{
    tarn_ptr ptr = 0;

    if (tarn_allocator_alloc(allocator, size, stream, &ptr, &error)) {
        fail_msg("%s", error.text);
    }
    return ptr;
}

static void expect_error(enum tarn_status got, enum tarn_status wanted, const char *text)
{
    assert_int_equal(got, wanted);
    assert_string_equal(error.text, text);
}

static void expect_sound(void)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    if (tarn_allocator_check(allocator, &findings) != 0) {
        fail_msg("%s", findings.text[0]);
    }
}

static struct tarn_stats stats_of(void)
{
    struct tarn_stats stats = {.struct_size = sizeof stats};

    tarn_allocator_get_stats(allocator, &stats);
    return stats;
}

/* test_cuda_pluggable_allocator: the library is asked, with what PyTorch hands it. */
static void calls_are_passed_on(void **state)
{
    (void)state;
    const tarn_ptr a = take(1000, 0x77);

    assert_int_equal(a, (uintptr_t)library->last);
    assert_int_equal(library->size, 1000);
    assert_int_equal(library->device, 3);
    assert_ptr_equal(library->stream, (void *)0x77);
    (void)take(50, 0);
    assert_int_equal(take(0, 0), 0); /* nobody is asked */
    assert_int_equal(library->allocs, 2);
    struct tarn_stats stats = stats_of();

    assert_int_equal(stats.by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL].current, 2);
    assert_int_equal(stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL].current, 1050);
    assert_int_equal(stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL].allocated, 1050);
    assert_int_equal(stats.by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL].allocated, 2);
    expect_sound();
    assert_int_equal(stats.by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL].peak, 2);
    assert_int_equal(stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL].peak, 1050);
    assert_int_equal(stats.by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL].freed, 0);
    assert_int_equal(tarn_allocator_free(allocator, a, &error), TARN_OK);
    stats = stats_of();
    assert_int_equal(stats.by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL].freed, 1);
    assert_int_equal(stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL].freed, 1000);
    assert_int_equal(stats.by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL].peak, 2);
    assert_int_equal(library->frees, 1);
    assert_int_equal(library->size, 1000);
    assert_int_equal(library->device, 3);
    assert_ptr_equal(library->stream, (void *)0x77);
    expect_sound();
    tarn_allocator_reset_peak_stats(allocator);
    tarn_allocator_reset_accumulated_stats(allocator);
    stats = stats_of();
    assert_int_equal(stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL].peak, 50);
    assert_int_equal(stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL].allocated, 0);
    assert_int_equal(stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL].freed, 0);
    assert_int_equal(stats.by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL].peak, 1);
    assert_int_equal(stats.by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL].allocated, 0);
    assert_int_equal(stats.by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL].freed, 0);
    assert_string_equal(tarn_allocator_get_backend(allocator), "pluggable");
    /* what is left is freed with the allocator */
}

static void what_is_left_is_freed_at_the_end(void **state)
{
    struct tarn_allocator *second = NULL;
    tarn_ptr ptr;

    (void)state;
    tarn_host_fail_nth(1);
    assert_int_equal(tarn_pluggable_create_allocator(opened, device, &second, &error),
                     TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    assert_int_equal(tarn_pluggable_create_allocator(opened, device, &second, &error), TARN_OK);
    assert_int_equal(tarn_allocator_alloc(second, 5, 0, &ptr, &error), TARN_OK);
    assert_int_equal(tarn_allocator_alloc(second, 6, 0, &ptr, &error), TARN_OK);
    tarn_allocator_destroy(second);
    assert_int_equal(library->frees, 2);
}

static void wrong_pointers_are_refused(void **state)
{
    const char *const text = "invalid device pointer: 0x1234 is not allocated here (never "
                             "allocated, freed already, or inside a block)";

    (void)state;
    expect_error(tarn_allocator_free(allocator, 0x1234, &error), TARN_ERR_INVALID_POINTER, text);
    expect_error(tarn_allocator_record_stream(allocator, 0x1234, 0, &error),
                 TARN_ERR_INVALID_POINTER, text);
    expect_error(tarn_allocator_base_allocation(allocator, 0x1234, NULL, NULL, &error),
                 TARN_ERR_INVALID_POINTER, text);
    assert_int_equal(library->frees, 0);
}

static void a_library_without_memory_is_out_of_memory(void **state)
{
    tarn_ptr ptr = 9;

    (void)state;
    library->full = true;
    expect_error(tarn_allocator_alloc(allocator, 100, 0, &ptr, &error), TARN_ERR_OUT_OF_MEMORY,
                 "the pluggable allocator's library has no 100 bytes for device 3");
    assert_int_equal(ptr, 9);
    expect_sound();
    library->full = false;
    (void)take(100, 0);
}

/* PyTorch keeps the old record then, and never notices. */
static void an_address_given_twice_is_an_error(void **state)
{
    char text[128];
    const tarn_ptr first = take(100, 0);
    tarn_ptr ptr = 9;

    (void)state;
    library->repeat = true;
    (void)snprintf(text, sizeof text,
                   "the pluggable allocator's library gave 0x%llx, which is allocated already",
                   (unsigned long long)first);
    expect_error(tarn_allocator_alloc(allocator, 100, 0, &ptr, &error), TARN_ERR_STATE, text);
    assert_int_equal(ptr, 9);
    expect_sound();
    assert_int_equal(library->frees, 0);
}

static void hooks_are_called(void **state)
{
    tarn_ptr base;
    uint64_t size;

    (void)state;
    const tarn_ptr ptr = take(500, 0);

    /* without: nothing, the block itself, and no support */
    assert_int_equal(tarn_allocator_empty_cache(allocator, &error), TARN_OK);
    assert_int_equal(tarn_allocator_base_allocation(allocator, ptr, &base, &size, &error), TARN_OK);
    assert_int_equal(base, ptr);
    assert_int_equal(size, 500);
    expect_error(tarn_allocator_set_memory_fraction(allocator, 0.5, &error), TARN_ERR_NOT_SUPPORTED,
                 "a pluggable allocator does not support setMemoryFraction: its library has no "
                 "function for it");
    expect_error(tarn_allocator_record_stream(allocator, ptr, 0, &error), TARN_ERR_NOT_SUPPORTED,
                 "a pluggable allocator does not support recordStream: its library has no "
                 "function for it");
    assert_int_equal(tarn_pluggable_set_hook(opened, TARN_PLUGGABLE_RESET, "library_reset", &error),
                     TARN_OK);
    assert_int_equal(
        tarn_pluggable_set_hook(opened, TARN_PLUGGABLE_MEMORY_FRACTION, "library_fraction", &error),
        TARN_OK);
    assert_int_equal(
        tarn_pluggable_set_hook(opened, TARN_PLUGGABLE_BASE_ALLOC, "library_base", &error),
        TARN_OK);
    assert_int_equal(
        tarn_pluggable_set_hook(opened, TARN_PLUGGABLE_RECORD_STREAM, "library_record", &error),
        TARN_OK);
    assert_int_equal(tarn_allocator_empty_cache(allocator, &error), TARN_OK);
    assert_int_equal(library->resets, 1);
    assert_int_equal(tarn_allocator_base_allocation(allocator, ptr, &base, &size, &error), TARN_OK);
    assert_int_equal(base, ptr - 100);
    assert_int_equal(size, 600);
    assert_int_equal(tarn_allocator_set_memory_fraction(allocator, 0.0, &error), TARN_OK);
    assert_true(library->fraction == 0.0);
    assert_int_equal(tarn_allocator_set_memory_fraction(allocator, 1.0, &error), TARN_OK);
    assert_true(library->fraction == 1.0);
    assert_int_equal(tarn_allocator_set_memory_fraction(allocator, 0.5, &error), TARN_OK);
    assert_true(library->fraction == 0.5);
    assert_int_equal(tarn_allocator_base_allocation(allocator, ptr, NULL, NULL, &error), TARN_OK);
    expect_error(tarn_allocator_set_memory_fraction(allocator, -1.0, &error),
                 TARN_ERR_INVALID_ARGUMENT, "invalid fraction:-1. Please set within [0, 1].");
    expect_error(tarn_allocator_set_memory_fraction(allocator, 2.0, &error),
                 TARN_ERR_INVALID_ARGUMENT, "invalid fraction:2. Please set within [0, 1].");
    assert_int_equal(tarn_allocator_record_stream(allocator, ptr, 0, &error), TARN_OK);
    assert_int_equal((uintptr_t)library->recorded, ptr);
}

static void what_cannot_be_loaded_is_named(void **state)
{
    struct tarn_pluggable *none = NULL;

    (void)state;
    assert_int_equal(tarn_pluggable_open("/no/such.so", "a", "b", &none, &error),
                     TARN_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "pluggable allocator: the library cannot be loaded: "
                                       "/no/such.so: "));
    expect_error(tarn_pluggable_open(PLUGGABLE_LIBRARY, "no_alloc", "library_free", &none, &error),
                 TARN_ERR_NOT_FOUND,
                 "pluggable allocator: the library has no function \"no_alloc\"");
    expect_error(tarn_pluggable_open(PLUGGABLE_LIBRARY, "library_alloc", "no_free", &none, &error),
                 TARN_ERR_NOT_FOUND,
                 "pluggable allocator: the library has no function \"no_free\"");
    expect_error(tarn_pluggable_set_hook(opened, TARN_PLUGGABLE_RESET, "no_reset", &error),
                 TARN_ERR_NOT_FOUND,
                 "pluggable allocator: the library has no function \"no_reset\"");
    expect_error(tarn_pluggable_set_hook(opened, TARN_PLUGGABLE_HOOKS, "library_reset", &error),
                 TARN_ERR_INVALID_ARGUMENT, "pluggable allocator: there is no hook number 4");
    expect_error(
        tarn_pluggable_set_hook(opened, (enum tarn_pluggable_hook)99, "library_reset", &error),
        TARN_ERR_INVALID_ARGUMENT, "pluggable allocator: there is no hook number 99");
    assert_null(none);
}

static bool see_segment(void *context, const struct tarn_segment_info *segment)
{
    (void)context;
    (void)segment;
    fail_msg("there is no segment");
    return false;
}

static void observe(void *context, const struct tarn_oom *oom)
{
    (void)context;
    (void)oom;
}

static bool memory_callback(void *context, struct tarn_allocator *of, uint64_t size,
                            tarn_stream stream)
{
    (void)context;
    (void)of;
    (void)size;
    (void)stream;
    return false;
}

/* What PyTorch's pluggable allocator refuses, this one refuses too. */
static void the_rest_is_refused(void **state)
{
    const struct tarn_walker walker = {.segment = see_segment};
    const struct tn_look look = {0};
    const struct tarn_sink sink = {.context = &error};
    const struct tarn_pool_id id = {0, 1};
    struct tarn_config config;
    uint64_t largest = 0;

    (void)state;
    assert_int_equal(tarn_allocator_walk(allocator, &walker), TARN_ERR_NOT_SUPPORTED);
    expect_error(tn_allocator_look(allocator, NULL, &look, &error), TARN_ERR_NOT_SUPPORTED,
                 "a pluggable allocator does not support snapshot: its library has no function "
                 "for it");
    expect_error(tarn_allocator_cache_info(allocator, &largest, &error), TARN_ERR_NOT_SUPPORTED,
                 "a pluggable allocator does not support cacheInfo: its library has no function "
                 "for it");
    assert_int_equal(tarn_allocator_add_sink(allocator, &sink, &error), TARN_ERR_NOT_SUPPORTED);
    assert_int_equal(tarn_allocator_switch_sink(allocator, &error, true, TARN_CONTEXT_ALL, &error),
                     TARN_ERR_NOT_SUPPORTED);
    assert_int_equal(tarn_allocator_remove_sink(allocator, &error, &error), TARN_ERR_NOT_SUPPORTED);
    assert_int_equal(tarn_allocator_annotate(allocator, 1, "x", &error), TARN_ERR_NOT_SUPPORTED);
    assert_int_equal(tarn_allocator_add_oom_observer(allocator, observe, NULL),
                     TARN_ERR_NOT_SUPPORTED);
    assert_int_equal(tarn_allocator_add_memory_callback(allocator, memory_callback, NULL),
                     TARN_ERR_NOT_SUPPORTED);
    assert_int_equal(tarn_allocator_set_enabled(allocator, true, &error), TARN_ERR_NOT_SUPPORTED);
    assert_int_equal(tarn_allocator_set_enabled(allocator, false, &error), TARN_OK);
    assert_false(tarn_allocator_is_enabled(allocator));
    assert_int_equal(tarn_allocator_end_pool(allocator, id, &error), TARN_ERR_NOT_SUPPORTED);
    assert_int_equal(tarn_allocator_get_limit(allocator), TARN_SIZE_UNLIMITED);
    tarn_allocator_get_config(allocator, &config);
    assert_int_equal(config.struct_size, sizeof config);
    assert_true(config.max_split_size == TARN_SIZE_UNLIMITED); /* the default */
    config.max_split_size = 77 * MIB;
    assert_int_equal(tarn_allocator_set_config(allocator, &config, &error), TARN_OK);
    tarn_allocator_get_config(allocator, &config);
    assert_int_equal(config.max_split_size, 77 * MIB);
}

/* ---- the current one ---- */

static struct tarn_allocator *make(void)
{
    struct tarn_allocator *made = NULL;

    if (tarn_allocator_create(device, NULL, &made, &error)) {
        fail_msg("%s", error.text);
    }
    return made;
}

static void expect_backend(const char *name)
{
    struct tarn_allocator *made = make();

    assert_string_equal(tarn_allocator_get_backend(made), name);
    tarn_allocator_destroy(made);
    assert_int_equal(tarn_allocator_create_on("sim:1GiB", "", &made, &error), TARN_OK);
    assert_string_equal(tarn_allocator_get_backend(made), name);
    tarn_allocator_destroy(made);
}

/* Settings that libtarn's own could not have are the library's business. */
static void settings_of_a_library_are_not_checked(void **state)
{
    struct tarn_allocator *made = NULL;
    struct tarn_config config;

    (void)state;
    assert_int_equal(tarn_config_parse("backend:cudaMallocAsync,policy:compact", &config, &error),
                     TARN_OK);
    assert_int_equal(tarn_allocator_create(device, &config, &made, &error), TARN_ERR_CONFIG);
    assert_int_equal(tarn_pluggable_set_current(opened, &error), TARN_OK);
    assert_int_equal(tarn_allocator_create(device, &config, &made, &error), TARN_OK);
    tarn_allocator_destroy(made);
    assert_int_equal(tarn_pluggable_set_current(NULL, &error), TARN_OK);
}

/* test_cuda_pluggable_allocator: only before the first allocator */
static void the_current_one_changes_while_there_is_none(void **state)
{
    const char *const text = "Can't swap an already initialized allocator: destroy every allocator "
                             "first, or change before the first is made";

    (void)state;
    expect_backend("native");
    assert_int_equal(tarn_pluggable_set_current(opened, &error), TARN_OK);
    expect_backend("pluggable");
    struct tarn_allocator *made = make();

    expect_error(tarn_pluggable_set_current(NULL, &error), TARN_ERR_STATE, text);
    tarn_allocator_destroy(made);
    assert_int_equal(tarn_pluggable_set_current(NULL, &error), TARN_OK);
    made = make();
    expect_error(tarn_pluggable_set_current(opened, &error), TARN_ERR_STATE, text);
    assert_string_equal(tarn_allocator_get_backend(made), "native");
    tarn_allocator_destroy(made);
    expect_backend("native");
}

static void closing_the_current_one_leaves_libtarns_own(void **state)
{
    struct tarn_pluggable *second = NULL;

    (void)state;
    assert_int_equal(
        tarn_pluggable_open(PLUGGABLE_LIBRARY, "library_alloc", "library_free", &second, &error),
        TARN_OK);
    assert_int_equal(tarn_pluggable_set_current(second, &error), TARN_OK);
    tarn_pluggable_close(second);
    expect_backend("native");
    tarn_pluggable_close(NULL);
}

/* ---- failures and threads ---- */

static enum tarn_status all_of_it(void)
{
    struct tarn_pluggable *second = NULL;
    struct tarn_allocator *made = NULL;
    enum tarn_status st =
        tarn_pluggable_open(PLUGGABLE_LIBRARY, "library_alloc", "library_free", &second, &error);
    tarn_ptr ptr;

    if (st) {
        return st;
    }
    assert_int_equal(tarn_pluggable_set_current(second, &error), TARN_OK);
    st = tarn_allocator_create(device, NULL, &made, &error);
    for (int i = 0; st == TARN_OK && i < 20; i++) {
        st = tarn_allocator_alloc(made, 10, 0, &ptr, &error);
    }
    tarn_allocator_destroy(made);
    assert_int_equal(tarn_pluggable_set_current(NULL, &error), TARN_OK); /* none is left */
    tarn_pluggable_close(second);
    return st;
}

static void every_want_of_host_memory_leaves_it_whole(void **state)
{
    enum tarn_status st = TARN_ERR_HOST_MEMORY;
    uint64_t n = 0;

    (void)state;
    while (st != TARN_OK) {
        const uint64_t before = tarn_host_get_usage().live_bytes;

        tarn_host_fail_nth(++n);
        st = all_of_it();
        tarn_host_fail_nth(0);
        assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
        assert_int_equal(tarn_host_get_usage().live_bytes, before);
    }
    assert_true(n > 20);
    assert_int_equal(library->allocs, library->frees);
}

static void *work(void *context)
{
    for (int i = 0; i < ROUNDS; i++) {
        tarn_ptr ptr = 0;

        if (tarn_allocator_alloc(allocator, (uint64_t)i + 1, 0, &ptr, NULL) ||
            tarn_allocator_free(allocator, ptr, NULL)) {
            return context;
        }
    }
    return NULL;
}

static void threads_share_it(void **state)
{
    pthread_t threads[THREADS];

    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, work, state), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *failed = NULL;

        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    expect_sound();
    assert_int_equal(library->allocs, THREADS * ROUNDS);
    assert_int_equal(library->frees, THREADS * ROUNDS);
}

/* In every place of the table. */
static void many_blocks_are_counted(void **state)
{
    enum {
        MANY = 300
    };
    tarn_ptr blocks[MANY];

    (void)state;
    for (int i = 0; i < MANY; i++) {
        blocks[i] = take(64, 0);
        expect_sound();
    }
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(tarn_allocator_free(allocator, blocks[i], &error), TARN_OK);
        expect_sound();
    }
}

/* What is freed leaves nothing behind, however often. */
static void calls_do_not_add_up(void **state)
{
    (void)state;
    assert_int_equal(tarn_allocator_free(allocator, take(64, 0), &error), TARN_OK);
    const uint64_t live = tarn_host_get_usage().live_bytes;

    for (int i = 0; i < 2000; i++) {
        assert_int_equal(tarn_allocator_free(allocator, take(64, 0), &error), TARN_OK);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
}

/* A lock of a table of allocators may be held around every call. */
static void its_lock_is_behind_those_of_tables(void **state)
{
    struct tn_lock table;

    (void)state;
    tn_lock_init(&table, TN_LOCK_DEVICES);
    tn_lock_acquire(&table);
    assert_int_equal(tarn_allocator_free(allocator, take(64, 0), &error), TARN_OK);
    tn_lock_release(&table);
    tn_lock_fini(&table);
}

/* Findings of others are not its own. */
static void the_checker_counts_what_it_finds(void **state)
{
    struct tarn_findings of_others = TARN_FINDINGS_INIT;

    (void)state;
    of_others.count = 3;
    assert_int_equal(tarn_allocator_check(allocator, &of_others), 0);
    assert_int_equal(of_others.count, 3);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(calls_are_passed_on),
        CASE(what_is_left_is_freed_at_the_end),
        CASE(wrong_pointers_are_refused),
        CASE(a_library_without_memory_is_out_of_memory),
        CASE(an_address_given_twice_is_an_error),
        CASE(hooks_are_called),
        CASE(what_cannot_be_loaded_is_named),
        CASE(the_rest_is_refused),
        CASE(settings_of_a_library_are_not_checked),
        CASE(the_current_one_changes_while_there_is_none),
        CASE(closing_the_current_one_leaves_libtarns_own),
        CASE(every_want_of_host_memory_leaves_it_whole),
        CASE(many_blocks_are_counted),
        CASE(calls_do_not_add_up),
        CASE(its_lock_is_behind_those_of_tables),
        CASE(the_checker_counts_what_it_finds),
        CASE(threads_share_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
