/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "support/failing.h"
#include "support/test.h"

#include "support/sim.h"
#include "support/system_use.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define PAGE (2 * MIB)

FAILING(void *, MAP_FAILED, mmap, (void *at, size_t size, int may, int flags, int file, off_t from),
        (at, size, may, flags, file, from))

static tarn_ptr reserve(struct tarn_device *device, uint64_t size)
{
    tarn_ptr address = 0;

    assert_int_equal(device->ops->va_reserve(device, size, &address), TARN_OK);
    return address;
}

static tn_page_handle page_create(struct tarn_device *device, uint64_t size)
{
    tn_page_handle page = 0;

    assert_int_equal(device->ops->page_create(device, size, &page), TARN_OK);
    return page;
}

static void expect_refused(struct tarn_device *device, enum tarn_status st, const char *text)
{
    assert_int_equal(st, TARN_ERR_DEVICE);
    if (!strstr(device->ops->last_error(device), text)) {
        fail_msg("\"%s\" does not contain \"%s\"", device->ops->last_error(device), text);
    }
}

static void memory_appears_and_goes(void **state)
{
    struct tarn_device *device = sim_open(16 * MIB);
    const struct tn_device_ops *ops = device->ops;

    (void)state;
    const tarn_ptr base = reserve(device, GIB); /* more than the memory: addresses cost nothing */
    const tn_page_handle a = page_create(device, PAGE);
    const tn_page_handle b = page_create(device, 3 * PAGE);
    assert_int_equal(ops->map(device, base, PAGE, a), TARN_OK);
    assert_int_equal(ops->map(device, base + PAGE, 3 * PAGE, b), TARN_OK);
    assert_int_equal(ops->va_grant(device, base, 4 * PAGE, 1), TARN_OK);
    assert_int_equal(sim_counters(device).used_bytes, 4 * PAGE);
    assert_int_equal(sim_counters(device).live_mappings, 2);
    assert_int_equal(sim_counters(device).live_pages, 2);
    assert_int_equal(sim_counters(device).live_reservations, 1);
    assert_int_equal(ops->unmap(device, base, 4 * PAGE), TARN_OK);
    assert_int_equal(ops->page_release(device, a), TARN_OK);
    assert_int_equal(ops->page_release(device, b), TARN_OK);
    assert_int_equal(ops->va_release(device, base, GIB), TARN_OK);
    assert_int_equal(sim_counters(device).used_bytes, 0);
    assert_int_equal(sim_counters(device).live_mappings, 0);
    assert_int_equal(sim_counters(device).live_reservations, 0);
    sim_close(device);
}

static void pages_stop_at_the_capacity(void **state)
{
    struct tarn_device *device = sim_open(8 * MIB);
    tn_page_handle page = 77;

    (void)state;
    (void)page_create(device, 6 * MIB);
    assert_int_equal(device->ops->page_create(device, 4 * MIB, &page), TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(page, 77);
    assert_non_null(strstr(device->ops->last_error(device), "out of memory"));
    tarn_sim_set_foreign_memory(device, 1);
    assert_int_equal(device->ops->page_create(device, 2 * MIB, &page), TARN_ERR_OUT_OF_MEMORY);
    sim_close(device);
}

static void sizes_must_be_granular(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    const struct tn_device_ops *ops = device->ops;
    uint64_t out = 0;

    (void)state;
    expect_refused(device, ops->va_reserve(device, 0, &out), "multiple of 2 MiB");
    expect_refused(device, ops->va_reserve(device, PAGE + 1, &out), "multiple of 2 MiB");
    expect_refused(device, ops->page_create(device, 4096, &out), "multiple of 2 MiB");
    expect_refused(device, ops->unmap(device, SIM_BASE, 512), "multiple of 2 MiB");
    expect_refused(device, ops->unmap(device, SIM_BASE, 0), "multiple of 2 MiB");
    expect_refused(device, ops->va_grant(device, SIM_BASE, 512, 0), "multiple of 2 MiB");
    assert_int_equal(ops->va_reserve(device, (uint64_t)1 << 60, &out), TARN_ERR_OUT_OF_MEMORY);
    assert_string_equal(ops->last_error(device),
                        "no address range of 1152921504606846976 bytes is free");
    assert_int_equal(out, 0);
    sim_close(device);
}

static void wrong_maps_are_refused(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    const struct tn_device_ops *ops = device->ops;

    (void)state;
    const tarn_ptr base = reserve(device, 4 * PAGE);
    const tn_page_handle page = page_create(device, 2 * PAGE);
    const tarn_ptr plain = sim_alloc_ok(device, 2 * PAGE);
    expect_refused(device, ops->map(device, base, PAGE, page), "of a page of");
    expect_refused(device, ops->map(device, base, PAGE, 99), "does not exist");
    expect_refused(device, ops->map(device, base + 3 * PAGE, 2 * PAGE, page), "outside");
    expect_refused(device, ops->map(device, plain, 2 * PAGE, page), "outside");
    expect_refused(device, ops->map(device, base + 512, 2 * PAGE, page), "not a multiple");
    assert_int_equal(ops->map(device, base + PAGE, 2 * PAGE, page), TARN_OK);
    expect_refused(device, ops->map(device, base, 2 * PAGE, page), "over the mapping");
    expect_refused(device, ops->map(device, base + 2 * PAGE, 2 * PAGE, page), "over the mapping");
    assert_int_equal(sim_counters(device).live_mappings, 1);
    sim_close(device);
}

static void wrong_unmaps_and_grants_are_refused(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    const struct tn_device_ops *ops = device->ops;

    (void)state;
    const tarn_ptr base = reserve(device, 4 * PAGE);
    const tarn_ptr next = reserve(device, PAGE);
    const tn_page_handle big = page_create(device, 2 * PAGE);
    const tn_page_handle small = page_create(device, PAGE);
    assert_int_equal(next, base + 4 * PAGE);
    assert_int_equal(ops->map(device, base + 2 * PAGE, 2 * PAGE, big), TARN_OK);
    assert_int_equal(ops->map(device, next, PAGE, small), TARN_OK);
    expect_refused(device, ops->unmap(device, base, PAGE), "not whole mappings");
    expect_refused(device, ops->unmap(device, base + 2 * PAGE, PAGE), "not whole mappings");
    expect_refused(device, ops->unmap(device, base + 3 * PAGE, PAGE), "not whole mappings");
    /* adjacent mappings, two reservations */
    expect_refused(device, ops->unmap(device, base + 2 * PAGE, 3 * PAGE), "not whole mappings");
    expect_refused(device, ops->va_grant(device, base, 4 * PAGE, 1), "not whole mappings");
    expect_refused(device, ops->va_grant(device, next, PAGE, -1), "no device");
    expect_refused(device, ops->va_grant(device, next, PAGE, 64), "no device");
    assert_int_equal(ops->unmap(device, next, PAGE), TARN_OK);
    expect_refused(device, ops->unmap(device, next, PAGE), "not whole mappings");
    assert_int_equal(ops->map(device, base + PAGE, PAGE, small), TARN_OK);
    expect_refused(device, ops->unmap(device, base, PAGE), "not whole mappings"); /* before it */
    assert_int_equal(sim_counters(device).live_mappings, 2);
    assert_int_equal(ops->unmap(device, base + PAGE, 3 * PAGE), TARN_OK);
    sim_close(device);
}

static void releasing_what_is_mapped_is_refused(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    const struct tn_device_ops *ops = device->ops;

    (void)state;
    const tarn_ptr base = reserve(device, 4 * PAGE);
    const tn_page_handle page = page_create(device, PAGE);
    assert_int_equal(ops->map(device, base + 3 * PAGE, PAGE, page), TARN_OK);
    expect_refused(device, ops->page_release(device, page), "is mapped 1 times");
    expect_refused(device, ops->va_release(device, base, 4 * PAGE), "with a mapping");
    assert_int_equal(ops->unmap(device, base + 3 * PAGE, PAGE), TARN_OK);
    expect_refused(device, ops->va_release(device, base, PAGE), "no reservation");
    expect_refused(device, ops->va_release(device, base + PAGE, PAGE), "no reservation");
    assert_int_equal(ops->va_release(device, base, 4 * PAGE), TARN_OK);
    expect_refused(device, ops->va_release(device, base, 4 * PAGE), "no reservation");
    assert_int_equal(ops->page_release(device, page), TARN_OK);
    expect_refused(device, ops->page_release(device, page), "no page");
    expect_refused(device, ops->free(device, base), "not allocated");
    sim_close(device);
}

static void a_page_shows_the_same_contents_everywhere(void **state)
{
    struct tarn_device *device = sim_open_with((struct tarn_sim_options){.backed = true});
    const struct tn_device_ops *ops = device->ops;

    (void)state;
    const tarn_ptr base = reserve(device, 4 * PAGE);
    const tn_page_handle page = page_create(device, PAGE);
    assert_null(tarn_sim_host_memory(device, base, 1));
    assert_int_equal(ops->map(device, base, PAGE, page), TARN_OK);
    assert_int_equal(ops->map(device, base + PAGE, PAGE, page), TARN_OK);
    char *first = tarn_sim_host_memory(device, base, PAGE);
    char *second = tarn_sim_host_memory(device, base + PAGE + 100, 10);
    assert_non_null(first);
    assert_non_null(second);
    first[100] = 42;
    assert_int_equal(second[0], 42);
    assert_ptr_equal(tarn_sim_host_memory(device, base, 2 * PAGE), first); /* two adjacent */
    assert_null(tarn_sim_host_memory(device, base, 2 * PAGE + 1));
    assert_int_equal(ops->unmap(device, base, 2 * PAGE), TARN_OK);
    assert_null(tarn_sim_host_memory(device, base, 1));
    assert_int_equal(ops->map(device, base, PAGE, page), TARN_OK);
    assert_int_equal(ops->map(device, base + 3 * PAGE, PAGE, page), TARN_OK);
    assert_null(tarn_sim_host_memory(device, base, 4 * PAGE)); /* a hole is in it */
    assert_null(tarn_sim_host_memory(device, base + PAGE, 3 * PAGE));
    const char *third = tarn_sim_host_memory(device, base + 3 * PAGE, PAGE);
    assert_non_null(third);
    assert_int_equal(third[100], 42); /* contents are the page's */
    sim_close(device);
}

static void the_system_may_not_map(void **state)
{
    const uint64_t host_bytes = tarn_host_get_usage().live_bytes;
    struct tarn_device *device =
        sim_open_with((struct tarn_sim_options){.capacity = GIB, .backed = true});
    const tarn_ptr base = reserve(device, PAGE);
    const tn_page_handle page = page_create(device, PAGE);

    (void)state;
    fail_calls("mmap", 0, 1, ENOMEM);
    assert_int_equal(device->ops->map(device, base, PAGE, page), TARN_ERR_HOST_MEMORY);
    assert_true(fail_none());
    assert_null(tarn_sim_host_memory(device, base, PAGE));
    assert_int_equal(device->ops->map(device, base, PAGE, page), TARN_OK);
    *(char *)tarn_sim_host_memory(device, base, PAGE) = 5;
    fail_calls("mmap", 0, 1, ENOMEM);
    assert_int_equal(device->ops->unmap(device, base, PAGE), TARN_ERR_HOST_MEMORY);
    assert_true(fail_none());
    assert_int_equal(*(char *)tarn_sim_host_memory(device, base, PAGE), 5);
    assert_int_equal(device->ops->unmap(device, base, PAGE), TARN_OK);
    assert_int_equal(device->ops->page_release(device, page), TARN_OK);
    sim_close(device);
    assert_int_equal(tarn_host_get_usage().live_bytes, host_bytes);
}

/* Addresses of the host are the device's only while they are reserved. */
static void reservations_leave_no_addresses(void **state)
{
    const uint64_t big = 256 * MIB;
    struct tarn_device *device =
        sim_open_with((struct tarn_sim_options){.capacity = GIB, .backed = true});
    const uint64_t mapped = mapped_bytes();
    tarn_ptr base = 7;

    (void)state;
    fail_calls("mmap", 0, 1, ENOMEM);
    assert_int_equal(device->ops->va_reserve(device, big, &base), TARN_ERR_HOST_MEMORY);
    assert_true(fail_none());
    tarn_host_fail_nth(1);
    assert_int_equal(device->ops->va_reserve(device, big, &base), TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    assert_string_equal(device->ops->last_error(device), "host out of memory");
    assert_int_equal(base, 7);
    assert_true(mapped_bytes() < mapped + big / 2);
    base = reserve(device, big);
    const tn_page_handle page = page_create(device, PAGE);

    assert_int_equal(device->ops->map(device, base, PAGE, page), TARN_OK);
    void *memory = tarn_sim_host_memory(device, base, PAGE);

    assert_int_equal(device->ops->unmap(device, base, PAGE), TARN_OK);
    assert_true(is_mapped(memory));
    assert_int_equal(device->ops->va_release(device, base, big), TARN_OK);
    assert_false(is_mapped(memory));
    base = reserve(device, big);
    assert_int_equal(device->ops->map(device, base, PAGE, page), TARN_OK);
    memory = tarn_sim_host_memory(device, base, PAGE);
    assert_true(is_mapped(memory));
    sim_close(device);
    assert_false(is_mapped(memory));
}

/* Each page is a file in memory. */
static void pages_need_descriptors(void **state)
{
    struct tarn_device *device =
        sim_open_with((struct tarn_sim_options){.capacity = GIB, .backed = true});
    const uint64_t host_bytes = tarn_host_get_usage().live_bytes;
    struct rlimit limit;
    tn_page_handle page = 7;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = limit.rlim_max};

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const enum tarn_status st = device->ops->page_create(device, PAGE, &page);

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(st, TARN_ERR_HOST_MEMORY);
    assert_int_equal(page, 7);
    assert_int_equal(sim_counters(device).used_bytes, 0);
    assert_int_equal(sim_counters(device).live_pages, 0);
    assert_int_equal(tarn_host_get_usage().live_bytes, host_bytes);
    page = page_create(device, PAGE);
    assert_int_equal(device->ops->page_release(device, page), TARN_OK);
    sim_close(device);
}

static void scripted_reservation(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    assert_int_equal(tarn_sim_script_reserve(device, 0x700000000000), TARN_OK);
    assert_int_equal(tarn_sim_script_reserve(device, 0x700000000200), TARN_ERR_INVALID_ARGUMENT);
    (void)sim_alloc_ok(device, 1); /* does not take it */
    assert_int_equal(reserve(device, PAGE), 0x700000000000);
    assert_int_equal(reserve(device, PAGE), SIM_BASE + PAGE);
    sim_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_appears_and_goes),
        cmocka_unit_test(pages_stop_at_the_capacity),
        cmocka_unit_test(sizes_must_be_granular),
        cmocka_unit_test(wrong_maps_are_refused),
        cmocka_unit_test(wrong_unmaps_and_grants_are_refused),
        cmocka_unit_test(releasing_what_is_mapped_is_refused),
        cmocka_unit_test(a_page_shows_the_same_contents_everywhere),
        cmocka_unit_test(reservations_leave_no_addresses),
        cmocka_unit_test(pages_need_descriptors),
        cmocka_unit_test(the_system_may_not_map),
        cmocka_unit_test(scripted_reservation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
