/* SPDX-License-Identifier: MIT */
/* Pinned memory of the simulated device: what it gives, and what it refuses. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "support/test.h"

#include "support/sim.h"
#include "support/system_use.h"

#include <string.h>

static void refused(struct tarn_device *device, enum tarn_status status, const char *text)
{
    assert_int_equal(status, TARN_ERR_DEVICE);
    assert_non_null(strstr(device->ops->last_error(device), text));
    assert_int_equal(sim_counters(device).live_host, 0);
}

static void sizes_that_no_host_has(void **state)
{
    static const uint64_t sizes[] = {0, (UINT64_MAX >> 1) + 1, UINT64_MAX};
    struct tarn_device *device = sim_open(GIB);
    unsigned char own[64];

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *memory = own;

        refused(device, device->ops->host_alloc(device, sizes[i], &memory), "pinned memory of");
        assert_ptr_equal(memory, own);
        refused(device, device->ops->host_register(device, own, sizes[i]), "registering");
    }
    refused(device, device->ops->host_register(device, NULL, 64), "registering 64 bytes");
    /* No system has so much, but it is a size. */
    assert_int_equal(device->ops->host_register(device, own, UINT64_MAX >> 1), TARN_OK);
    assert_int_equal(device->ops->host_unregister(device, own), TARN_OK);
    void *none = NULL;

    assert_int_equal(device->ops->host_alloc(device, UINT64_MAX >> 1, &none),
                     TARN_ERR_OUT_OF_MEMORY); /* a size, but more than there are addresses */
    assert_null(none);
    sim_close(device);
}

static void the_callers_memory_and_its_own_are_told_apart(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    unsigned char own[64];
    void *memory = NULL;

    (void)state;
    refused(device, device->ops->host_free(device, NULL), "free of what is not pinned");
    refused(device, device->ops->host_free(device, own), "free of what is not pinned");
    refused(device, device->ops->host_unregister(device, own), "");
    assert_int_equal(device->ops->host_register(device, own, sizeof own), TARN_OK);
    assert_int_equal(device->ops->host_register(device, own, sizeof own), TARN_ERR_DEVICE);
    assert_non_null(strstr(device->ops->last_error(device), "pinned already"));
    assert_int_equal(device->ops->host_free(device, own), TARN_ERR_DEVICE);
    assert_int_equal(device->ops->host_alloc(device, 4096, &memory), TARN_OK);
    memset(memory, 1, 4096);
    assert_int_equal(device->ops->host_unregister(device, memory), TARN_ERR_DEVICE);
    assert_int_equal(sim_counters(device).live_host, 2);
    assert_int_equal(device->ops->host_unregister(device, own), TARN_OK);
    assert_true(is_mapped(memory));
    assert_int_equal(device->ops->host_free(device, memory), TARN_OK);
    assert_false(is_mapped(memory));
    refused(device, device->ops->host_free(device, memory), "free of what is not pinned");
    refused(device, device->ops->host_unregister(device, own), "");
    sim_close(device);
}

/* What the device pinned is unmapped with it, and only that. */
static void closing_releases_its_own_memory(void **state)
{
    enum {
        PAGES = 2 * 4096,
        MANY = 4096
    };
    static void *made[MANY];
    struct tarn_device *device = sim_open(GIB);
    void *own = mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int count = 0;

    (void)state;
    assert_true(own != MAP_FAILED);
    assert_int_equal(device->ops->host_register(device, own, PAGES), TARN_OK);
    while (count < 3 || tn_sim_from(device)->host.pieces.slots[0].key == 0) { /* first and last */
        assert_true(count < MANY);
        assert_int_equal(device->ops->host_alloc(device, PAGES, &made[count++]), TARN_OK);
    }
    sim_close(device);
    for (int i = 0; i < count; i++) {
        assert_false(is_mapped(made[i]));
        assert_false(is_mapped((char *)made[i] + PAGES / 2));
    }
    assert_true(is_mapped(own));
    assert_int_equal(munmap(own, PAGES), 0);
}

static void without_host_memory_nothing_is_pinned(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    unsigned char own[64];
    void *memory = NULL;

    (void)state;
    tarn_host_fail_nth(1);
    assert_int_equal(device->ops->host_alloc(device, 4096, &memory), TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(1);
    assert_int_equal(device->ops->host_register(device, own, sizeof own), TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    assert_null(memory);
    assert_int_equal(sim_counters(device).live_host, 0);
    sim_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_that_no_host_has),
        cmocka_unit_test(the_callers_memory_and_its_own_are_told_apart),
        cmocka_unit_test(closing_releases_its_own_memory),
        cmocka_unit_test(without_host_memory_nothing_is_pinned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
