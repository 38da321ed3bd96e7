/* SPDX-License-Identifier: MIT */
/* What the device table promises, asked of every backend, with a checker around it. */
#include "support/test.h"

#include "support/cuda.h"
#include "support/device_check.h"

#include <string.h>

#define PAGE (2 * MIB)

static struct tarn_findings findings;

static struct tarn_device *checked(struct tarn_device *inner)
{
    struct tarn_device *device = NULL;

    findings = (struct tarn_findings)TARN_FINDINGS_INIT;
    assert_int_equal(tn_device_check_create(inner, &findings, &device), TARN_OK);
    return device;
}

static void plain_memory(struct tarn_device *device)
{
    tarn_ptr a = 0;
    tarn_ptr b = 0;
    tarn_ptr out = 5;
    uint64_t before = 0;
    uint64_t after = 0;
    uint64_t total = 0;

    assert_int_equal(device->ops->memory_info(device, &before, &total), TARN_OK);
    assert_int_equal(device->ops->alloc(device, 600 * MIB, &a), TARN_OK);
    assert_int_equal(device->ops->alloc(device, 600 * MIB, &out), TARN_ERR_OUT_OF_MEMORY);
    assert_non_null(strstr(device->ops->last_error(device), "out of memory"));
    assert_int_equal(device->ops->alloc(device, 0, &out), TARN_ERR_DEVICE);
    assert_int_equal(out, 5);
    assert_int_equal(device->ops->alloc(device, MIB, &b), TARN_OK);
    assert_int_equal(device->ops->memory_info(device, &after, &total), TARN_OK);
    assert_int_equal(before - after, 601 * MIB);
    assert_int_equal(a % 512, 0);
    assert_int_equal(device->ops->free(device, a), TARN_OK);
    assert_int_equal(device->ops->free(device, b), TARN_OK);
    assert_int_equal(findings.count, 0);
}

static void virtual_memory(struct tarn_device *device)
{
    const struct tn_device_ops *ops = device->ops;
    tn_page_handle pages[3];
    tarn_ptr range = 0;
    tarn_ptr out = 5;
    tn_page_handle none = 5;

    assert_int_equal(ops->va_reserve(device, 16 * GIB, &range), TARN_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ops->page_create(device, PAGE, &pages[i]), TARN_OK);
        assert_int_equal(ops->map(device, range + (uint64_t)i * PAGE, PAGE, pages[i]), TARN_OK);
    }
    assert_int_equal(ops->page_create(device, 2 * GIB, &none), TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(ops->page_create(device, PAGE + 512, &none), TARN_ERR_DEVICE);
    assert_int_equal(ops->va_reserve(device, 0, &out), TARN_ERR_DEVICE);
    assert_int_equal(none, 5);
    assert_int_equal(out, 5);
    assert_int_equal(ops->va_grant(device, range, 3 * PAGE, 1), TARN_OK);
    assert_int_equal(ops->unmap(device, range, 2 * PAGE), TARN_OK);
    assert_int_equal(ops->unmap(device, range + 2 * PAGE, PAGE), TARN_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ops->page_release(device, pages[i]), TARN_OK);
    }
    assert_int_equal(ops->va_release(device, range, 16 * GIB), TARN_OK);
    assert_int_equal(findings.count, 0);
}

/* `block` and `unblock` hold a stream's work back. */
static void events(struct tarn_device *device, bool (*block)(uint64_t stream),
                   bool (*unblock)(uint64_t stream))
{
    const struct tn_device_ops *ops = device->ops;
    tarn_stream streams[2];
    tn_event_handle event = 0;
    tn_event_handle second = 0;

    assert_int_equal(ops->stream_create(device, &streams[0]), TARN_OK);
    assert_int_equal(ops->stream_create(device, &streams[1]), TARN_OK);
    assert_int_equal(ops->event_create(device, &event), TARN_OK);
    assert_int_equal(ops->event_create(device, &second), TARN_OK);
    assert_int_equal(ops->event_query(device, event), TARN_OK); /* never recorded */
    assert_true(block(streams[0]));
    assert_int_equal(ops->event_record(device, event, streams[0]), TARN_OK);
    assert_int_equal(ops->event_query(device, event), TARN_ERR_NOT_READY);
    assert_int_equal(ops->stream_wait_event(device, streams[1], event), TARN_OK);
    assert_int_equal(ops->event_record(device, second, streams[1]), TARN_OK);
    assert_int_equal(ops->event_query(device, second), TARN_ERR_NOT_READY);
    assert_true(unblock(streams[0]));
    assert_int_equal(ops->event_query(device, event), TARN_OK);
    assert_int_equal(ops->event_query(device, second), TARN_OK);
    assert_int_equal(ops->event_wait(device, second), TARN_OK);
    assert_int_equal(ops->stream_wait(device, streams[1]), TARN_OK);
    assert_int_equal(ops->device_wait(device), TARN_OK);
    assert_int_equal(ops->event_destroy(device, event), TARN_OK);
    assert_int_equal(ops->event_destroy(device, second), TARN_OK);
    assert_int_equal(ops->stream_destroy(device, streams[0]), TARN_OK);
    assert_int_equal(ops->stream_destroy(device, streams[1]), TARN_OK);
    assert_int_equal(findings.count, 0);
}

static void pools(struct tarn_device *device)
{
    const struct tn_device_ops *ops = device->ops;
    tarn_ptr ptr = 0;
    tarn_ptr out = 5;
    uint64_t reserved = 0;
    uint64_t used = 0;

    assert_int_equal(ops->pool_alloc(device, 40 * MIB, 0, &ptr), TARN_OK);
    assert_int_equal(ops->pool_alloc(device, 2 * GIB, 0, &out), TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(out, 5);
    assert_int_equal(ops->pool_info(device, &reserved, &used), TARN_OK);
    assert_true(reserved >= 40 * MIB && used >= 40 * MIB);
    assert_int_equal(ops->pool_free(device, ptr, 0), TARN_OK);
    assert_int_equal(ops->pool_info(device, &reserved, &used), TARN_OK);
    assert_true(reserved >= 40 * MIB); /* kept */
    assert_int_equal(used, 0);
    assert_int_equal(ops->pool_trim(device, 0), TARN_OK);
    assert_int_equal(ops->pool_peaks(device, &reserved, &used), TARN_OK);
    assert_true(reserved >= 40 * MIB && used >= 40 * MIB);
    assert_int_equal(ops->pool_reset_peaks(device), TARN_OK);
    assert_int_equal(ops->pool_peaks(device, &reserved, &used), TARN_OK);
    assert_int_equal(reserved, 0);
    assert_int_equal(used, 0);
    assert_int_equal(findings.count, 0);
}

/* Misuse that the backend itself sees: the checker would not pass it on. */
static void misuse(struct tarn_device *device)
{
    const struct tn_device_ops *ops = device->ops;

    assert_int_equal(ops->free(device, 0), TARN_ERR_DEVICE);
    assert_int_equal(ops->free(device, 0x1234), TARN_ERR_DEVICE);
    assert_int_equal(ops->event_query(device, 0), TARN_ERR_DEVICE);
    assert_int_equal(ops->event_destroy(device, 99), TARN_ERR_DEVICE);
    assert_int_equal(ops->page_release(device, 99), TARN_ERR_DEVICE);
    assert_int_equal(ops->va_release(device, 0x7f0000000000, PAGE), TARN_ERR_DEVICE);
    assert_int_equal(ops->unmap(device, 0x7f0000000000, PAGE), TARN_ERR_DEVICE);
    assert_int_equal(ops->pool_free(device, 0x1234, 0), TARN_ERR_DEVICE);
    assert_int_not_equal(strlen(ops->last_error(device)), 0);
}

static struct tarn_device *sim_inner;
static const struct fake_cuda *fake;

static bool sim_block(uint64_t stream)
{
    return tarn_sim_block_stream(sim_inner, stream) == TARN_OK;
}

static bool sim_unblock(uint64_t stream)
{
    return tarn_sim_unblock_stream(sim_inner, stream) == TARN_OK;
}

static bool cuda_block(uint64_t stream)
{
    return fake->block(0, stream);
}

static bool cuda_unblock(uint64_t stream)
{
    return fake->unblock(0, stream);
}

static void everything(struct tarn_device *inner, bool (*block)(uint64_t stream),
                       bool (*unblock)(uint64_t stream))
{
    struct tarn_device *device = checked(inner);

    plain_memory(device);
    virtual_memory(device);
    events(device, block, unblock);
    pools(device);
    misuse(inner);
    tarn_device_close(device);
    assert_int_equal(findings.count, 0);
}

static void the_simulated_device_keeps_the_contract(void **state)
{
    (void)state;
    sim_inner = sim_open(GIB);
    everything(sim_inner, sim_block, sim_unblock);
}

static void gpus_keep_the_contract(void **state)
{
    static const char *const paths[] = {FAKE_CUDA, FAKE_CUDA_11, FAKE_CUDA_10};

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        fake = fake_open(paths[i]);
        fake->set_devices(2, GIB);
        everything(cuda_open_at(paths[i], 0), cuda_block, cuda_unblock);
        assert_int_equal(fake->alive(0), 0);
        assert_int_equal(fake->retained(0), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_simulated_device_keeps_the_contract),
        cmocka_unit_test(gpus_keep_the_contract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
