/* SPDX-License-Identifier: MIT */
/* Sharing memory of simulated devices between processes, and copying between devices. */
#define _GNU_SOURCE 1  /* memfd_create, RTLD_NEXT */
#undef _FORTIFY_SOURCE /* whose functions are inline */
#include "support/failing.h"
#include "support/test.h"

#include "support/child.h"
#include "support/sim.h"
#include "support/system_use.h"
#include "support/temp.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define PAGE (2 * MIB)
#define BIG  (256 * MIB)

FAILING(int, -1, memfd_create, (const char *name, unsigned flags), (name, flags))
FAILING(int, -1, fstat, (int file, struct stat *out), (file, out))
FAILING(void *, MAP_FAILED, mmap, (void *at, size_t size, int may, int flags, int file, off_t from),
        (at, size, may, flags, file, from))

static struct tarn_device *backed_open(uint64_t base)
{
    return sim_open_with(
        (struct tarn_sim_options){.capacity = GIB, .backed = true, .base_address = base});
}

struct shared {
    struct tarn_device *device; /* of the process that exports */
    struct tn_ipc_handle handle;
    pid_t process;
    int descriptor;
    unsigned char *bytes; /* what the exporting process sees */
    bool backed;
};

/* A device of the child's own. */
static struct tarn_device *child_open(const struct shared *shared)
{
    const struct tarn_sim_options options = {
        .struct_size = sizeof options, .capacity = GIB, .backed = shared->backed};
    struct tarn_device *device = NULL;

    CHILD_REQUIRE(tarn_sim_open(&options, &device, NULL) == TARN_OK);
    return device;
}

static void open_and_write(void *context)
{
    struct shared *shared = context;
    struct tarn_device *device = child_open(shared);
    tarn_ptr first = 0;
    uint64_t size = 0;
    tarn_ptr again = 0;

    CHILD_REQUIRE(device->ops->ipc_open(device, &shared->handle, &first, &size) == TARN_OK);
    CHILD_REQUIRE(device->ops->ipc_open(device, &shared->handle, &again, &size) == TARN_ERR_DEVICE);
    CHILD_REQUIRE(strcmp(device->ops->last_error(device), "open of what is open already") == 0);
    unsigned char *bytes = tarn_sim_host_memory(device, first, 3 * MIB);

    CHILD_REQUIRE(bytes && bytes[5] == 55);
    bytes[6] = 66;
    CHILD_REQUIRE(sim_counters(device).used_bytes == 0); /* it is not this device's memory */
    CHILD_REQUIRE(sim_counters(device).live_opened == 1);
    CHILD_REQUIRE(device->ops->free(device, first) == TARN_ERR_DEVICE);
    CHILD_REQUIRE(device->ops->ipc_close(device, first) == TARN_OK);
    CHILD_REQUIRE(device->ops->ipc_close(device, first) == TARN_ERR_DEVICE);
    CHILD_REQUIRE(tarn_sim_host_memory(device, first, 1) == NULL);
    CHILD_REQUIRE(device->ops->ipc_open(device, &shared->handle, &again, &size) == TARN_OK);
    tarn_device_close(device); /* with something open */
}

static void an_allocation_is_seen_by_another_process(void **state)
{
    struct shared shared = {.device = backed_open(0), .backed = true};
    const struct tn_device_ops *ops = shared.device->ops;
    tarn_ptr ptr = sim_alloc_ok(shared.device, 3 * MIB);
    tarn_ptr out = 7;
    uint64_t size = 0;

    (void)state;
    shared.bytes = tarn_sim_host_memory(shared.device, ptr, 3 * MIB);
    shared.bytes[5] = 55;
    assert_int_equal(ops->ipc_export(shared.device, ptr + 512, &shared.handle), TARN_ERR_DEVICE);
    assert_int_equal(ops->ipc_export(shared.device, ptr, &shared.handle), TARN_OK);
    assert_int_equal(ops->ipc_open(shared.device, &shared.handle, &out, &size), TARN_ERR_DEVICE);
    assert_string_equal(ops->last_error(shared.device), "open of an allocation of this process");
    assert_int_equal(out, 7);
    child_run(open_and_write, &shared);
    assert_int_equal(shared.bytes[6], 66);
    sim_close(shared.device);
}

static void open_what_is_gone(void *context)
{
    const struct shared *shared = context;
    struct tarn_device *device = child_open(shared);
    struct tn_ipc_handle nonsense = {{0}};
    tarn_ptr out = 7;
    uint64_t size = 0;

    CHILD_REQUIRE(device->ops->ipc_open(device, &shared->handle, &out, &size) == TARN_ERR_DEVICE);
    CHILD_REQUIRE(strstr(device->ops->last_error(device), "which has it no longer"));
    CHILD_REQUIRE(device->ops->ipc_open(device, &nonsense, &out, &size) == TARN_ERR_DEVICE);
    CHILD_REQUIRE(out == 7 && sim_counters(device).live_opened == 0);
    tarn_device_close(device);
}

static void what_was_freed_cannot_be_opened(void **state)
{
    struct shared shared = {.device = backed_open(0), .backed = true};
    const struct tn_device_ops *ops = shared.device->ops;
    const tarn_ptr ptr = sim_alloc_ok(shared.device, MIB);

    (void)state;
    assert_int_equal(ops->ipc_export(shared.device, ptr, &shared.handle), TARN_OK);
    assert_int_equal(ops->free(shared.device, ptr), TARN_OK);
    (void)sim_alloc_ok(shared.device, MIB); /* another object, likely with the same number */
    child_run(open_what_is_gone, &shared);
    sim_close(shared.device);
}

static void open_without_memory(void *context)
{
    struct shared *shared = context;
    struct tarn_device *device = child_open(shared);
    tarn_ptr out = 0;
    uint64_t size = 0;

    CHILD_REQUIRE(device->ops->ipc_open(device, &shared->handle, &out, &size) == TARN_OK);
    CHILD_REQUIRE(out != 0 && tarn_sim_host_memory(device, out, 1) == NULL);
    tarn_device_close(device);
    shared->backed = true;
    device = child_open(shared);
    CHILD_REQUIRE(device->ops->ipc_open(device, &shared->handle, &out, &size) == TARN_ERR_DEVICE);
    CHILD_REQUIRE(strstr(device->ops->last_error(device), "not backed"));
    tarn_device_close(device);
}

static void devices_without_memory_share_addresses(void **state)
{
    struct shared shared = {.device = sim_open(GIB)};
    const tarn_ptr ptr = sim_alloc_ok(shared.device, MIB);

    (void)state;
    assert_int_equal(shared.device->ops->ipc_export(shared.device, ptr, &shared.handle), TARN_OK);
    child_run(open_without_memory, &shared);
    sim_close(shared.device);
}

/* Both allocations of the other process, which are alike but for their addresses. */
struct alike {
    struct shared first;
    struct tn_ipc_handle second;
};

static void open_both(void *context)
{
    const struct alike *alike = context;
    struct tarn_device *device = child_open(&alike->first);
    const struct tn_ipc_handle *const handles[] = {&alike->first.handle, &alike->second};
    tarn_ptr out[2] = {0, 0};

    for (size_t i = 0; i < 2; i++) {
        uint64_t size = 0;

        CHILD_REQUIRE(device->ops->ipc_open(device, handles[i], &out[i], &size) == TARN_OK);
        CHILD_REQUIRE(size == MIB);
    }
    CHILD_REQUIRE(out[0] != out[1] && sim_counters(device).live_opened == 2);
    tarn_device_close(device);
}

static void allocations_are_opened_one_by_one(void **state)
{
    (void)state;
    for (int backed = 0; backed < 2; backed++) {
        struct tarn_device *device =
            sim_open_with((struct tarn_sim_options){.capacity = GIB, .backed = backed == 1});
        struct alike alike = {.first = {.backed = backed == 1}};

        assert_int_equal(
            device->ops->ipc_export(device, sim_alloc_ok(device, MIB), &alike.first.handle),
            TARN_OK);
        assert_int_equal(device->ops->ipc_export(device, sim_alloc_ok(device, MIB), &alike.second),
                         TARN_OK);
        child_run(open_both, &alike);
        sim_close(device);
    }
}

static void open_one(void *context)
{
    const struct shared *shared = context;
    struct tarn_device *device = child_open(shared);
    tarn_ptr out = 0;
    uint64_t size = 0;

    CHILD_REQUIRE(device->ops->ipc_open(device, &shared->handle, &out, &size) == TARN_OK);
    CHILD_REQUIRE(tarn_sim_host_memory(device, out, MIB));
    tarn_device_close(device);
}

/* A process without standard input: its memory gets that number. */
static void share_descriptor_0(void *context)
{
    struct shared *shared = context;
    struct tarn_device *device = child_open(shared);
    tarn_ptr ptr = 0;
    int status = -1;

    CHILD_REQUIRE(close(0) == 0);
    CHILD_REQUIRE(device->ops->alloc(device, MIB, &ptr) == TARN_OK);
    CHILD_REQUIRE(fcntl(0, F_GETFD) >= 0);
    CHILD_REQUIRE(device->ops->ipc_export(device, ptr, &shared->handle) == TARN_OK);
    const pid_t child = fork();

    if (child == 0) {
        open_one(shared);
        child_exit(0);
    }
    CHILD_REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    tarn_device_close(device);
}

static void export_descriptor_0(void *context)
{
    struct tarn_device *device = child_open(context);
    const struct tn_device_ops *ops = device->ops;
    tn_page_handle pages[2] = {0, 0};
    tarn_ptr base = 0;
    int descriptor = -1;

    CHILD_REQUIRE(close(0) == 0);
    CHILD_REQUIRE(ops->page_create(device, PAGE, &pages[0]) == TARN_OK);
    CHILD_REQUIRE(fcntl(0, F_GETFD) >= 0);
    CHILD_REQUIRE(ops->page_export(device, pages[0], &descriptor) == TARN_OK);
    CHILD_REQUIRE(ops->page_import(device, getpid(), descriptor, PAGE, &pages[1]) == TARN_OK);
    CHILD_REQUIRE(ops->va_reserve(device, 2 * PAGE, &base) == TARN_OK);
    CHILD_REQUIRE(ops->map(device, base, PAGE, pages[0]) == TARN_OK);
    CHILD_REQUIRE(ops->map(device, base + PAGE, PAGE, pages[1]) == TARN_OK);
    unsigned char *bytes = tarn_sim_host_memory(device, base, 2 * PAGE);

    CHILD_REQUIRE(bytes);
    bytes[5] = 55;
    CHILD_REQUIRE(bytes[PAGE + 5] == 55); /* the same page */
    tarn_device_close(device);
}

static void descriptor_0_is_shared_like_any(void **state)
{
    struct shared shared = {.backed = true};

    (void)state;
    child_run(share_descriptor_0, &shared);
    child_run(export_descriptor_0, &shared);
}

static void an_import_without_host_memory_keeps_nothing(void **state)
{
    struct tarn_device *device = backed_open(0);
    tn_page_handle page = 0;
    tn_page_handle imported = 7;
    int descriptor = -1;

    (void)state;
    assert_int_equal(device->ops->page_create(device, PAGE, &page), TARN_OK);
    assert_int_equal(device->ops->page_export(device, page, &descriptor), TARN_OK);
    const int descriptors = open_descriptors();

    tarn_host_fail_nth(1);
    assert_int_equal(device->ops->page_import(device, getpid(), descriptor, PAGE, &imported),
                     TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    assert_int_equal(imported, 7);
    assert_int_equal(open_descriptors(), descriptors);
    assert_int_equal(close(descriptor), 0);
    sim_close(device);
}

static void import_and_write(void *context)
{
    const struct shared *shared = context;
    struct tarn_device *device = child_open(shared);
    const struct tn_device_ops *ops = device->ops;
    tn_page_handle page = 0;
    tarn_ptr range = 0;

    CHILD_REQUIRE(ops->page_import(device, shared->process, shared->descriptor, 2 * PAGE, &page) ==
                  TARN_ERR_DEVICE);
    CHILD_REQUIRE(ops->page_import(device, shared->process, 9999, PAGE, &page) == TARN_ERR_DEVICE);
    CHILD_REQUIRE(ops->page_import(device, shared->process, shared->descriptor, PAGE, &page) ==
                  TARN_OK);
    CHILD_REQUIRE(ops->va_reserve(device, PAGE, &range) == TARN_OK);
    CHILD_REQUIRE(ops->map(device, range, PAGE, page) == TARN_OK);
    if (shared->backed) {
        unsigned char *bytes = tarn_sim_host_memory(device, range, PAGE);

        CHILD_REQUIRE(bytes && bytes[5] == 55);
        bytes[6] = 66;
    }
    CHILD_REQUIRE(sim_counters(device).used_bytes == 0);
    CHILD_REQUIRE(ops->unmap(device, range, PAGE) == TARN_OK);
    CHILD_REQUIRE(ops->page_release(device, page) == TARN_OK);
    CHILD_REQUIRE(ops->va_release(device, range, PAGE) == TARN_OK);
    CHILD_REQUIRE(sim_counters(device).live_pages == 0);
    tarn_device_close(device);
}

static void pages_are_seen_by_another_process(void **state)
{
    for (int backed = 0; backed < 2; backed++) {
        struct shared shared = {.process = getpid(), .backed = backed == 1};
        tn_page_handle page = 0;
        tarn_ptr range = 0;

        (void)state;
        shared.device =
            sim_open_with((struct tarn_sim_options){.capacity = GIB, .backed = backed == 1});
        const struct tn_device_ops *ops = shared.device->ops;

        assert_int_equal(ops->page_export(shared.device, 5, &shared.descriptor), TARN_ERR_DEVICE);
        assert_int_equal(ops->page_create(shared.device, PAGE, &page), TARN_OK);
        assert_int_equal(ops->va_reserve(shared.device, PAGE, &range), TARN_OK);
        assert_int_equal(ops->map(shared.device, range, PAGE, page), TARN_OK);
        if (shared.backed) {
            shared.bytes = tarn_sim_host_memory(shared.device, range, PAGE);
            shared.bytes[5] = 55;
        }
        assert_int_equal(ops->page_export(shared.device, page, &shared.descriptor), TARN_OK);
        child_run(import_and_write, &shared);
        assert_true(!shared.backed || shared.bytes[6] == 66);
        assert_int_equal(close(shared.descriptor), 0);
        sim_close(shared.device);
    }
}

static void open_on_another_kind(void *context)
{
    struct shared *shared = context;
    struct tarn_device *device = NULL;
    tarn_ptr out = 7;
    uint64_t size = 0;

    shared->backed = false;
    device = child_open(shared);
    CHILD_REQUIRE(device->ops->ipc_open(device, &shared->handle, &out, &size) == TARN_ERR_DEVICE);
    CHILD_REQUIRE(strcmp(device->ops->last_error(device),
                         "open of memory of a device that is backed, on one that is not") == 0);
    tarn_device_close(device);
    shared->backed = true;
    device = child_open(shared);
    const uint64_t mapped = mapped_bytes();
    const int descriptors = open_descriptors();

    for (int skip = 0; skip < 2; skip++) { /* that of the range, and that of the memory */
        fail_calls("mmap", skip, 1, ENOMEM);
        CHILD_REQUIRE(device->ops->ipc_open(device, &shared->handle, &out, &size) != TARN_OK);
        CHILD_REQUIRE(fail_none());
    }
    fail_calls("fstat", 1, 1, EIO); /* behind that of opening it */
    CHILD_REQUIRE(device->ops->ipc_open(device, &shared->handle, &out, &size) != TARN_OK);
    CHILD_REQUIRE(fail_none());
    CHILD_REQUIRE(out == 7 && sim_counters(device).live_opened == 0);
    CHILD_REQUIRE(mapped_bytes() < mapped + BIG / 2 && open_descriptors() == descriptors);
    CHILD_REQUIRE(device->ops->ipc_open(device, &shared->handle, &out, &size) == TARN_OK);
    tarn_device_close(device);
}

static void sharing_may_fail_on_either_side(void **state)
{
    struct shared shared = {.device = backed_open(0), .backed = true};
    const struct tn_device_ops *ops = shared.device->ops;
    const tarn_ptr ptr = sim_alloc_ok(shared.device, BIG);

    (void)state;
    fail_calls("fstat", 0, 1, EIO);
    assert_int_equal(ops->ipc_export(shared.device, ptr, &shared.handle), TARN_ERR_HOST_MEMORY);
    assert_true(fail_none());
    assert_int_equal(ops->ipc_export(shared.device, ptr, &shared.handle), TARN_OK);
    child_run(open_on_another_kind, &shared);
    sim_close(shared.device);
}

static void a_page_may_get_no_descriptor(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    tn_page_handle page = 0;
    int descriptor = 7;

    (void)state;
    assert_int_equal(device->ops->page_create(device, PAGE, &page), TARN_OK);
    fail_calls("memfd_create", 0, 1, EMFILE);
    assert_int_equal(device->ops->page_export(device, page, &descriptor), TARN_ERR_DEVICE);
    assert_true(fail_none());
    assert_int_equal(descriptor, 7);
    assert_int_equal(device->ops->page_release(device, page), TARN_OK);
    sim_close(device);
}

/* No copy is made where one side has no memory. */
static void copies_need_memory_on_both_sides(void **state)
{
    struct tarn_device *device = backed_open(0);
    const tarn_ptr there = sim_alloc_ok(device, MIB);
    const struct tn_copy copies[] = {
        {.to_device = device, .to = there + MIB, .from_device = device, .from = there, .size = 1},
        {.to_device = device, .to = there, .from_device = device, .from = there + MIB, .size = 1},
    };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char text[128];

        (void)snprintf(text, sizeof text, "copy %s %#llx + 1, where the device has no memory",
                       i == 0 ? "to" : "from", (unsigned long long)there + MIB);
        assert_int_equal(device->ops->copy(device, &copies[i], 0), TARN_ERR_DEVICE);
        assert_string_equal(device->ops->last_error(device), text);
        tarn_sim_fail_nth(device, TARN_SIM_COPY, 1, TARN_ERR_OUT_OF_MEMORY);
        assert_int_equal(device->ops->copy(device, &copies[i], 0), TARN_ERR_OUT_OF_MEMORY);
    }
    sim_close(device);
}

/* Descriptors of the parent's that are no pages, each of a page's size. */
struct strangers {
    pid_t process;
    int descriptors[3];
};

static void import_strangers(void *context)
{
    const struct strangers *strangers = context;
    const struct shared shared = {.backed = true};
    struct tarn_device *device = child_open(&shared);
    tn_page_handle page = 0;

    for (size_t i = 0; i < 3; i++) {
        CHILD_REQUIRE(device->ops->page_import(device, strangers->process,
                                               strangers->descriptors[i], PAGE,
                                               &page) == TARN_ERR_DEVICE);
        CHILD_REQUIRE(strstr(device->ops->last_error(device), "which is no page"));
    }
    CHILD_REQUIRE(page == 0 && sim_counters(device).live_pages == 0);
    tarn_device_close(device);
}

static void only_memory_of_devices_is_opened(void **state)
{
    struct strangers strangers = {.process = getpid()};
    struct temp_file file = temp_write("", 0);
    int ends[2];

    (void)state;
    strangers.descriptors[0] = open(file.path, O_RDWR);
    strangers.descriptors[1] = memfd_create("tarn-0123456789abcdef", 0); /* not sealed */
    assert_int_equal(pipe(ends), 0); /* opening it would not come back */
    strangers.descriptors[2] = ends[1];
    for (size_t i = 0; i < 2; i++) {
        assert_true(strangers.descriptors[i] >= 0);
        assert_int_equal(ftruncate(strangers.descriptors[i], PAGE), 0);
    }
    child_run(import_strangers, &strangers);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(close(strangers.descriptors[i]), 0);
    }
    assert_int_equal(close(ends[0]), 0);
    temp_remove(&file);
}

static void open_forged(void *context)
{
    struct shared *shared = context;
    struct tarn_device *device = child_open(shared);
    tarn_ptr out = 0;
    uint64_t size = 0;

    for (size_t i = 0; i < 56; i++) { /* the address and the device say nothing about the memory */
        if (i < 16 || i >= 32) {
            shared->handle.bytes[i] ^= 1;
            CHILD_REQUIRE(device->ops->ipc_open(device, &shared->handle, &out, &size) ==
                          TARN_ERR_DEVICE);
            shared->handle.bytes[i] ^= 1;
        }
    }
    CHILD_REQUIRE(out == 0 && size == 0);
    CHILD_REQUIRE(device->ops->ipc_open(device, &shared->handle, &out, &size) == TARN_OK);
    CHILD_REQUIRE(size == 3 * MIB);
    tarn_device_close(device);
}

static void forged_handles_are_refused(void **state)
{
    struct shared shared = {.device = backed_open(0), .backed = true};
    const tarn_ptr ptr = sim_alloc_ok(shared.device, 3 * MIB);

    (void)state;
    assert_int_equal(shared.device->ops->ipc_export(shared.device, ptr, &shared.handle), TARN_OK);
    child_run(open_forged, &shared);
    sim_close(shared.device);
}

static void copies_go_between_devices_and_the_host(void **state)
{
    struct tarn_device *a = backed_open(0);
    struct tarn_device *b = backed_open((uint64_t)0x500000000000);
    const tarn_ptr in_a = sim_alloc_ok(a, MIB);
    const tarn_ptr in_b = sim_alloc_ok(b, MIB);
    unsigned char host[4] = {1, 2, 3, 4};
    bool reaches = false;

    (void)state;
    assert_int_equal(a->ops->peer_reaches(a, b, &reaches), TARN_OK);
    assert_true(reaches);
    assert_int_equal(a->ops->peer_enable(a, b), TARN_OK);
    struct tn_copy copy = {
        .to_device = a, .to = in_a + 512, .from = (uint64_t)(uintptr_t)host, .size = 4};
    assert_int_equal(a->ops->copy(a, &copy, 0), TARN_OK);
    copy = (struct tn_copy){.to_device = b,
                            .to = in_b,
                            .from_device = a,
                            .from = in_a + 513,
                            .size = 3,
                            .by_peer = true};
    assert_int_equal(a->ops->copy(a, &copy, 0), TARN_OK);
    memset(host, 0, sizeof host);
    copy = (struct tn_copy){
        .to = (uint64_t)(uintptr_t)host, .from_device = b, .from = in_b, .size = 3};
    assert_int_equal(b->ops->copy(b, &copy, 0), TARN_OK);
    assert_memory_equal(host, "\2\3\4\0", 4);
    copy.size = 2 * MIB;
    assert_int_equal(b->ops->copy(b, &copy, 0), TARN_ERR_DEVICE);
    assert_non_null(strstr(b->ops->last_error(b), "where the device has no memory"));
    sim_close(a);
    sim_close(b);
}

static void planned_failures_change_nothing(void **state)
{
    struct tarn_device *device = backed_open(0);
    const struct tn_device_ops *ops = device->ops;
    const tarn_ptr ptr = sim_alloc_ok(device, MIB);
    struct tn_ipc_handle handle;
    tn_page_handle page = 0;
    tarn_ptr out = 0;
    uint64_t size = 0;
    int descriptor = -5;
    unsigned char byte = 9;
    bool reaches = false;

    (void)state;
    assert_int_equal(ops->page_create(device, PAGE, &page), TARN_OK);
    tn_page_handle imported = page;
    const struct tn_copy copy = {
        .to_device = device, .to = ptr, .from = (uint64_t)(uintptr_t)&byte, .size = 1};

    for (int call = TARN_SIM_IPC_EXPORT; call <= TARN_SIM_COPY; call++) {
        tarn_sim_fail_nth(device, (enum tarn_sim_call)call, 1, TARN_ERR_DEVICE);
    }
    assert_int_equal(ops->ipc_export(device, ptr, &handle), TARN_ERR_DEVICE);
    assert_int_equal(ops->ipc_open(device, &handle, &out, &size), TARN_ERR_DEVICE);
    assert_int_equal(ops->ipc_close(device, ptr), TARN_ERR_DEVICE);
    assert_int_equal(ops->page_export(device, page, &descriptor), TARN_ERR_DEVICE);
    assert_int_equal(ops->page_import(device, getpid(), 0, PAGE, &imported), TARN_ERR_DEVICE);
    assert_int_equal(ops->peer_reaches(device, device, &reaches), TARN_ERR_DEVICE);
    assert_int_equal(ops->peer_enable(device, device), TARN_ERR_DEVICE);
    assert_int_equal(ops->copy(device, &copy, 0), TARN_ERR_DEVICE);
    assert_true(out == 0 && descriptor == -5 && imported == page && !reaches);
    assert_int_equal(*(unsigned char *)tarn_sim_host_memory(device, ptr, 1), 0);
    assert_int_equal(ops->copy(device, &copy, 0), TARN_OK);
    assert_int_equal(*(unsigned char *)tarn_sim_host_memory(device, ptr, 1), 9);
    sim_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_allocation_is_seen_by_another_process),
        cmocka_unit_test(what_was_freed_cannot_be_opened),
        cmocka_unit_test(devices_without_memory_share_addresses),
        cmocka_unit_test(allocations_are_opened_one_by_one),
        cmocka_unit_test(descriptor_0_is_shared_like_any),
        cmocka_unit_test(an_import_without_host_memory_keeps_nothing),
        cmocka_unit_test(only_memory_of_devices_is_opened),
        cmocka_unit_test(forged_handles_are_refused),
        cmocka_unit_test(pages_are_seen_by_another_process),
        cmocka_unit_test(sharing_may_fail_on_either_side),
        cmocka_unit_test(a_page_may_get_no_descriptor),
        cmocka_unit_test(copies_need_memory_on_both_sides),
        cmocka_unit_test(copies_go_between_devices_and_the_host),
        cmocka_unit_test(planned_failures_change_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
