/* SPDX-License-Identifier: MIT */
/* Free memory of a GPU is that of now where the reader has NVML, and the allocator's word else. */
#include "support/test.h"

#include "support/cuda.h"

#include "tarn/allocator.h"
#include "tarn/watch.h"
#include "tarn/watch_read.h"
#include "watch/watch_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char runtime_folder[64];

static int begin(void **state)
{
    (void)state;
    (void)snprintf(runtime_folder, sizeof runtime_folder, "/tmp/tarn-watch-XXXXXX");
    tn_watch_device_set_library(FAKE_CUDA);
    return mkdtemp(runtime_folder) ? 0 : 1;
}

static int end(void **state)
{
    char folder[80];

    (void)state;
    (void)snprintf(folder, sizeof folder, "%s/tarn", runtime_folder);
    (void)rmdir(folder);
    return rmdir(runtime_folder);
}

struct scene {
    const struct fake_cuda *fake;
    struct tarn_device *device;
    struct tarn_allocator *allocator;
    struct tarn_watch *watch;
};

static struct scene scene_open(void)
{
    struct scene scene = {.fake = fake_open(FAKE_CUDA)};
    const struct tarn_watch_options options = {.struct_size = sizeof options,
                                               .runtime_folder = runtime_folder};

    scene.device = cuda_open();
    assert_int_equal(tarn_allocator_create(scene.device, NULL, &scene.allocator, NULL), TARN_OK);
    assert_int_equal(tarn_watch_start(scene.allocator, &options, NULL), TARN_OK);
    assert_int_equal(tarn_watch_open(runtime_folder, getpid(), &scene.watch, NULL), TARN_OK);
    return scene;
}

static void scene_close(struct scene *scene)
{
    tarn_watch_close(scene->watch);
    tarn_allocator_destroy(scene->allocator);
    tarn_device_close(scene->device);
}

static struct tarn_watch_record record_read(const struct scene *scene)
{
    struct tarn_watch_record record = {.struct_size = sizeof record};

    assert_int_equal(tarn_watch_read(scene->watch, 0, &record, NULL), TARN_OK);
    return record;
}

static void memory_is_set(const struct scene *scene, uint64_t unused, uint64_t total, int result)
{
    const struct tn_nvml_memory memory = {.total = total, .free = unused, .used = total - unused};

    scene->fake->set_nvml_memory(&memory, result);
}

/* The process does nothing meanwhile. */
static void free_memory_is_that_of_now(void **state)
{
    struct scene scene = scene_open();
    const uint64_t total = scene.device->total_memory;

    (void)state;
    memory_is_set(&scene, 0, 0, 3); /* no permission */
    const struct tarn_watch_record made = record_read(&scene);

    assert_int_equal(made.device_total, total);
    memory_is_set(&scene, 77 * MIB, total + total / 50, 0);
    const struct tarn_watch_record first = record_read(&scene);

    assert_int_equal(first.device_free, 77 * MIB);
    assert_int_equal(first.device_total, total);
    assert_true(first.device_time_ns > made.device_time_ns);
    memory_is_set(&scene, 5 * MIB, total + total / 50, 0);
    const struct tarn_watch_record second = record_read(&scene);

    assert_int_equal(second.device_free, 5 * MIB);
    assert_true(second.device_time_ns >= first.device_time_ns);
    memory_is_set(&scene, total + MIB, total + total / 50, 0); /* some of it is the driver's */
    assert_int_equal(record_read(&scene).device_free, total);
    scene_close(&scene);
}

static void else_it_is_the_allocators_word(void **state)
{
    struct scene scene = scene_open();
    const uint64_t total = scene.device->total_memory;

    (void)state;
    memory_is_set(&scene, 0, 0, 3);
    const struct tarn_watch_record made = record_read(&scene);

    memory_is_set(&scene, MIB, total * 7, 0); /* the device is a part of it */
    assert_int_equal(record_read(&scene).device_free, made.device_free);
    memory_is_set(&scene, MIB, total / 2, 0); /* it is another one */
    assert_int_equal(record_read(&scene).device_free, made.device_free);
    scene.fake->set_nvml_results(0, 6, 0); /* it knows no such address */
    memory_is_set(&scene, MIB, total, 0);
    assert_int_equal(record_read(&scene).device_free, made.device_free);
    assert_int_equal(record_read(&scene).device_time_ns, made.device_time_ns);
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_memory_is_that_of_now),
        cmocka_unit_test(else_it_is_the_allocators_word),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
