/* SPDX-License-Identifier: MIT */
/* Simulated devices with the memory of another device, here of a driver without a GPU. */
#include "support/child.h"
#include "support/test.h"

#include "support/cuda.h"

#include <string.h>

#define PAGE (2 * MIB)

struct pair {
    const struct fake_cuda *fake;
    struct tarn_device *gpu;
    struct tarn_device *sim;
};

static struct pair pair_open(void)
{
    struct pair pair = {.fake = fake_open(FAKE_CUDA), .gpu = cuda_open()};

    pair.sim = sim_open_with((struct tarn_sim_options){.capacity = GIB, .memory = pair.gpu});
    return pair;
}

/* Nothing may be left on the GPU. */
static void pair_close(struct pair *pair)
{
    sim_close(pair->sim);
    assert_int_equal(pair->fake->used_bytes(0), 0);
    tarn_device_close(pair->gpu);
    assert_int_equal(pair->fake->alive(0), 0);
}

static void put(const struct pair *pair, tarn_ptr address, const char *text)
{
    const struct tn_copy copy = {.to_device = pair->sim,
                                 .to = address,
                                 .from = (uint64_t)(uintptr_t)text,
                                 .size = strlen(text) + 1};

    assert_int_equal(pair->sim->ops->copy(pair->sim, &copy, 0), TARN_OK);
}

static void holds(const struct pair *pair, tarn_ptr address, const char *text)
{
    char found[64] = "";
    const struct tn_copy copy = {.from_device = pair->sim,
                                 .from = address,
                                 .to = (uint64_t)(uintptr_t)found,
                                 .size = strlen(text) + 1};

    assert_int_equal(pair->sim->ops->copy(pair->sim, &copy, 0), TARN_OK);
    assert_string_equal(found, text);
}

static void allocations_are_the_other_devices(void **state)
{
    struct pair pair = pair_open();
    const struct tn_device_ops *ops = pair.sim->ops;

    (void)state;
    assert_int_equal(tarn_sim_script_alloc(pair.sim, 0x700000000000), TARN_OK);
    const tarn_ptr first = sim_alloc_ok(pair.sim, MIB);
    const tarn_ptr second = sim_alloc_ok(pair.sim, MIB);

    assert_int_equal(first, 0x700000000000); /* addresses stay the simulated device's */
    assert_true(pair.fake->used_bytes(0) >= 2 * MIB);
    put(&pair, first, "first");
    put(&pair, second + 100, "second");
    const struct tn_copy copy = {.to_device = pair.sim,
                                 .from_device = pair.sim,
                                 .to = first + 1000,
                                 .from = second + 100,
                                 .size = 7};
    assert_int_equal(ops->copy(pair.sim, &copy, 0), TARN_OK);
    holds(&pair, first, "first");
    holds(&pair, first + 1000, "second");
    const tarn_ptr there = tarn_sim_memory_address(pair.sim, second, MIB);
    assert_true(there != 0 && there != second);
    assert_int_equal(tarn_sim_memory_address(pair.sim, second + 5, 1), there + 5);
    assert_int_equal(tarn_sim_memory_address(pair.sim, second + 5, MIB), 0);
    assert_int_equal(ops->free(pair.sim, second), TARN_OK);
    assert_int_equal(pair.fake->calls("cuMemFree_v2"), 1);
    assert_int_equal(tarn_sim_memory_address(pair.sim, second, 1), 0);
    pair_close(&pair); /* the first one is given back at the end */
}

static void mappings_are_made_there_too(void **state)
{
    struct pair pair = pair_open();
    const struct tn_device_ops *ops = pair.sim->ops;
    tn_page_handle pages[2];
    tarn_ptr base = 0;

    (void)state;
    assert_int_equal(ops->va_reserve(pair.sim, 4 * PAGE, &base), TARN_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ops->page_create(pair.sim, PAGE, &pages[i]), TARN_OK);
        assert_int_equal(ops->map(pair.sim, base + (uint64_t)i * PAGE, PAGE, pages[i]), TARN_OK);
    }
    assert_int_equal(pair.fake->used_bytes(0), 2 * PAGE);
    put(&pair, base + PAGE - 3, "across"); /* both pages lie side by side there */
    holds(&pair, base + PAGE - 3, "across");
    assert_int_equal(ops->unmap(pair.sim, base + PAGE, PAGE), TARN_OK);
    assert_int_equal(tarn_sim_memory_address(pair.sim, base + PAGE, 1), 0);
    assert_int_equal(ops->map(pair.sim, base + 3 * PAGE, PAGE, pages[1]), TARN_OK);
    holds(&pair, base + 3 * PAGE, "oss"); /* contents are the page's */
    assert_int_equal(ops->unmap(pair.sim, base + 3 * PAGE, PAGE), TARN_OK);
    assert_int_equal(ops->page_release(pair.sim, pages[1]), TARN_OK);
    assert_int_equal(pair.fake->used_bytes(0), PAGE);
    assert_int_equal(pair.fake->calls("cuMemRelease"), 1);
    pair_close(&pair);
}

/* Between GPUs the driver wants to know whose memory it is: those that have it. */
static void copies_name_the_devices_that_have_the_memory(void **state)
{
    struct pair pair = pair_open();
    const tarn_ptr a = sim_alloc_ok(pair.sim, MIB);
    const tarn_ptr b = sim_alloc_ok(pair.sim, MIB);
    const struct tn_copy copy = {.to_device = pair.sim,
                                 .from_device = pair.sim,
                                 .to = b,
                                 .from = a,
                                 .size = 16,
                                 .by_peer = true};

    (void)state;
    put(&pair, a, "by peer");
    assert_int_equal(pair.sim->ops->copy(pair.sim, &copy, 0), TARN_OK);
    assert_int_equal(pair.fake->calls("cuMemcpyPeerAsync"), 1);
    holds(&pair, b, "by peer");
    assert_int_equal(pair.sim->ops->free(pair.sim, a), TARN_OK);
    assert_int_equal(pair.sim->ops->free(pair.sim, b), TARN_OK);
    pair_close(&pair);
}

/* What the driver is asked for, and then does itself. */
static struct tn_cuda_driver real;
static uint64_t copied_on;
static uint64_t waited_for;

static int note_copy(uint64_t to, uint64_t from, size_t size, uint64_t stream)
{
    copied_on = stream;
    return real.cuMemcpyAsync(to, from, size, stream);
}

static int note_wait(uint64_t stream)
{
    waited_for = stream;
    return real.cuStreamSynchronize(stream);
}

/* A copy is over when the call returns: it waits for the stream there that it used. */
static void copies_wait_for_their_stream_there(void **state)
{
    struct pair pair = pair_open();
    struct tn_cuda_driver *called = &tn_cuda_from(pair.gpu)->driver;
    const tarn_ptr a = sim_alloc_ok(pair.sim, MIB);

    (void)state;
    real = *called;
    called->cuMemcpyAsync = note_copy;
    called->cuStreamSynchronize = note_wait;
    copied_on = 77;
    waited_for = 78;
    put(&pair, a, "text");
    *called = real;
    assert_int_equal(copied_on, 0);
    assert_int_equal(waited_for, copied_on);
    assert_int_equal(pair.sim->ops->free(pair.sim, a), TARN_OK);
    pair_close(&pair);
}

static void an_empty_range_is_given_back_there(void **state)
{
    struct pair pair = pair_open();
    tarn_ptr base = 0;

    (void)state;
    assert_int_equal(pair.sim->ops->va_reserve(pair.sim, 4 * PAGE, &base), TARN_OK);
    assert_int_equal(pair.sim->ops->va_release(pair.sim, base, 4 * PAGE), TARN_OK);
    assert_int_equal(pair.fake->calls("cuMemAddressFree"), 1);
    pair_close(&pair);
}

/* A chunk of the stream-ordered pool is an allocation there as well, and goes when the pool is
 * trimmed or the device is closed. */
static void chunks_of_the_pool_are_given_back_there(void **state)
{
    static const bool trims[] = {true, false};

    (void)state;
    for (size_t i = 0; i < sizeof trims / sizeof *trims; i++) {
        struct pair pair = pair_open();
        const struct tn_device_ops *ops = pair.sim->ops;
        tarn_ptr ptr = 0;

        assert_int_equal(ops->pool_alloc(pair.sim, MIB, 0, &ptr), TARN_OK);
        put(&pair, ptr, "in a pool");
        holds(&pair, ptr, "in a pool");
        assert_int_equal(pair.fake->calls("cuMemAlloc_v2"), 1);
        if (trims[i]) {
            assert_int_equal(ops->pool_free(pair.sim, ptr, 0), TARN_OK);
            assert_int_equal(ops->pool_trim(pair.sim, 0), TARN_OK);
            assert_int_equal(pair.fake->used_bytes(0), 0);
        }
        pair_close(&pair);
    }
}

/* One of everything; stops at the first failure, which it returns. */
static enum tarn_status use_everything(const struct pair *pair)
{
    const struct tn_device_ops *ops = pair->sim->ops;
    char text[4] = "abc";
    tn_page_handle page = 0;
    tarn_ptr plain = 0;
    tarn_ptr base = 0;
    enum tarn_status st = ops->alloc(pair->sim, MIB, &plain);

    const struct tn_copy copy = {.to_device = pair->sim,
                                 .to = plain,
                                 .from = (uint64_t)(uintptr_t)text,
                                 .size = sizeof text};
    st = st ? st : ops->copy(pair->sim, &copy, 0);
    st = st ? st : ops->va_reserve(pair->sim, PAGE, &base);
    st = st ? st : ops->page_create(pair->sim, PAGE, &page);
    st = st ? st : ops->map(pair->sim, base, PAGE, page);
    st = st ? st : ops->unmap(pair->sim, base, PAGE);
    st = st ? st : ops->page_release(pair->sim, page);
    st = st ? st : ops->va_release(pair->sim, base, PAGE);
    return st ? st : ops->free(pair->sim, plain);
}

static void what_fails_there_fails_here(void **state)
{
    static const char *const calls[] = {
        "cuMemAlloc_v2",    "cuMemcpyAsync",  "cuMemAddressReserve", "cuMemCreate",
        "cuMemMap",         "cuMemSetAccess", "cuMemUnmap",          "cuMemRelease",
        "cuMemAddressFree", "cuMemFree_v2",   "cuStreamSynchronize"};

    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const uint64_t host_bytes = tarn_host_get_usage().live_bytes;
        struct pair pair = pair_open();

        pair.fake->fail_nth(calls[i], 1, 700); /* an illegal address */
        assert_int_equal(use_everything(&pair), TARN_ERR_DEVICE);
        if (!strstr(pair.sim->ops->last_error(pair.sim), "CUDA_ERROR_ILLEGAL_ADDRESS")) {
            fail_msg("%s: \"%s\"", calls[i], pair.sim->ops->last_error(pair.sim));
        }
        pair.fake->fail_nth(NULL, 0, 0);
        assert_int_equal(use_everything(&pair), TARN_OK); /* nothing is half done */
        pair_close(&pair);
        assert_int_equal(tarn_host_get_usage().live_bytes, host_bytes);
    }
}

static void missing_host_memory_gives_back_there(void **state)
{
    struct pair pair = pair_open();
    enum tarn_status st = TARN_ERR_HOST_MEMORY;
    uint64_t failures = 0;

    (void)state;
    for (uint64_t n = 1; st != TARN_OK; n++) {
        tarn_host_fail_nth(n);
        st = use_everything(&pair);
        tarn_host_fail_nth(0);
        failures += st != TARN_OK;
        assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
    }
    assert_true(failures >= 3);
    pair_close(&pair);
}

static void other_memory_is_refused(void **state)
{
    struct pair pair = pair_open();
    struct tarn_sim_options options = {
        .struct_size = sizeof options, .backed = true, .memory = pair.gpu};
    struct tarn_device *device = NULL;
    struct tarn_error error;

    (void)state;
    assert_int_equal(tarn_sim_open(&options, &device, &error), TARN_ERR_INVALID_ARGUMENT);
    options = (struct tarn_sim_options){.struct_size = sizeof options, .memory = pair.sim};
    assert_int_equal(tarn_sim_open(&options, &device, &error), TARN_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "another simulated device"));
    assert_int_equal(tarn_sim_memory_address(pair.gpu, 1 << 20, 1), 0);

    char text[2] = "x";
    const struct tn_copy copy = {
        .to_device = pair.sim, .to = SIM_BASE, .from = (uint64_t)(uintptr_t)text, .size = 1};
    assert_int_equal(pair.sim->ops->copy(pair.sim, &copy, 0), TARN_ERR_DEVICE);
    assert_non_null(strstr(pair.sim->ops->last_error(pair.sim), "where the device has no memory"));
    char *const own = text;
    const struct tn_copy back = {.to_device = NULL,
                                 .to = (uint64_t)(uintptr_t)own,
                                 .from_device = pair.sim,
                                 .from = SIM_BASE,
                                 .size = 1};
    const struct tn_copy from_gpu = {.to_device = NULL,
                                     .to = (uint64_t)(uintptr_t)own,
                                     .from_device = pair.gpu,
                                     .from = SIM_BASE,
                                     .size = 1};

    const struct tn_copy *const without[] = {&back, &from_gpu};

    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pair.sim->ops->copy(pair.sim, without[i], 0), TARN_ERR_DEVICE);
        assert_string_equal(pair.sim->ops->last_error(pair.sim),
                            "copy of 1 bytes, where the device has no memory");
    }
    assert_int_equal(pair.fake->calls("cuMemcpyAsync"), 0);
    assert_string_equal(text, "x");
    tarn_sim_fail_nth(pair.sim, TARN_SIM_COPY, 1, TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(pair.sim->ops->copy(pair.sim, &back, 0), TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(pair.sim->ops->peer_enable(pair.sim, pair.gpu), TARN_ERR_DEVICE);
    assert_string_equal(pair.sim->ops->last_error(pair.sim), "a peer of another kind");
    pair_close(&pair);
    struct tarn_device *plain = sim_open(GIB);

    assert_int_equal(tarn_sim_memory_address(plain, sim_alloc_ok(plain, 1), 1), 0);
    sim_close(plain);
}

/* What other processes share is theirs. */
struct shared {
    struct tn_ipc_handle handle;
    pid_t process;
    int descriptor;
};

static void use_shared(void *context)
{
    const struct shared *shared = context;
    struct pair pair = pair_open();
    const struct tn_device_ops *ops = pair.sim->ops;
    tarn_ptr address = 0;
    uint64_t size = 0;
    tarn_ptr base = 0;
    tn_page_handle page = 0;

    CHILD_REQUIRE(ops->ipc_open(pair.sim, &shared->handle, &address, &size) == TARN_OK);
    CHILD_REQUIRE(size == MIB);
    CHILD_REQUIRE(tarn_sim_memory_address(pair.sim, address, 1) == 0);
    CHILD_REQUIRE(tarn_sim_memory_address(pair.sim, address + 512, 1) == 0);
    CHILD_REQUIRE(ops->ipc_close(pair.sim, address) == TARN_OK);
    CHILD_REQUIRE(ops->va_reserve(pair.sim, PAGE, &base) == TARN_OK);
    CHILD_REQUIRE(ops->page_import(pair.sim, shared->process, shared->descriptor, PAGE, &page) ==
                  TARN_OK);
    CHILD_REQUIRE(ops->map(pair.sim, base, PAGE, page) == TARN_ERR_NOT_SUPPORTED);
    CHILD_REQUIRE(strstr(ops->last_error(pair.sim), "a page of another process"));
    CHILD_REQUIRE(tarn_sim_memory_address(pair.sim, base, 1) == 0);
    CHILD_REQUIRE(ops->page_release(pair.sim, page) == TARN_OK);
    CHILD_REQUIRE(ops->va_release(pair.sim, base, PAGE) == TARN_OK);
    pair_close(&pair);
}

static void memory_of_other_processes_is_not_there(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    struct shared shared = {.process = getpid()};
    tn_page_handle page = 0;

    (void)state;
    assert_int_equal(device->ops->ipc_export(device, sim_alloc_ok(device, MIB), &shared.handle),
                     TARN_OK);
    assert_int_equal(device->ops->page_create(device, PAGE, &page), TARN_OK);
    assert_int_equal(device->ops->page_export(device, page, &shared.descriptor), TARN_OK);
    child_run(use_shared, &shared);
    assert_int_equal(close(shared.descriptor), 0);
    sim_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_are_the_other_devices),
        cmocka_unit_test(mappings_are_made_there_too),
        cmocka_unit_test(copies_name_the_devices_that_have_the_memory),
        cmocka_unit_test(copies_wait_for_their_stream_there),
        cmocka_unit_test(an_empty_range_is_given_back_there),
        cmocka_unit_test(chunks_of_the_pool_are_given_back_there),
        cmocka_unit_test(what_fails_there_fails_here),
        cmocka_unit_test(missing_host_memory_gives_back_there),
        cmocka_unit_test(other_memory_is_refused),
        cmocka_unit_test(memory_of_other_processes_is_not_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
