/* SPDX-License-Identifier: MIT */
/* Allocations seen by another process; messages that are none; what stays open and what fails. */
#include "support/test.h"

#include "support/child.h"
#include "support/rig.h"
#include "tarn/copy.h"
#include "tarn/ipc.h"
#include "tarn/peer.h"

#include <dirent.h>
#include <stdlib.h>

#define BLOCK (3 * MIB)

struct sent {
    unsigned char message[4096];
    size_t length;
};

static void rig_open_backed(struct rig *rig, const char *conf)
{
    rig_open_with(rig, (struct tarn_sim_options){.capacity = GIB, .backed = true}, conf);
}

static void export_ok(struct rig *rig, tarn_ptr ptr, struct sent *sent)
{
    if (tarn_ipc_export(rig->allocator, ptr, sent->message, sizeof sent->message, &sent->length,
                        &rig->error) != TARN_OK) {
        fail_msg("%s", rig->error.text);
    }
}

/* An allocator of the child's own. */
static struct tarn_allocator *child_open(struct tarn_device **device_out)
{
    const struct tarn_sim_options options = {
        .struct_size = sizeof options, .capacity = GIB, .backed = true};
    struct tarn_allocator *allocator = NULL;

    CHILD_REQUIRE(tarn_sim_open(&options, device_out, NULL) == TARN_OK);
    CHILD_REQUIRE(tarn_allocator_create(*device_out, NULL, &allocator, NULL) == TARN_OK);
    return allocator;
}

static void child_close(struct tarn_allocator *allocator, struct tarn_device *device)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    CHILD_REQUIRE(tarn_allocator_check(allocator, &findings) == 0);
    tarn_allocator_destroy(allocator);
    const struct tarn_sim_counters left = sim_counters(device);

    CHILD_REQUIRE(left.live_opened == 0 && left.live_pages == 0 && left.live_reservations == 0);
    tarn_device_close(device);
}

/* Two blocks of the owner's, of which the second begins where the first ends. */
struct pair {
    struct sent first;
    struct sent second;
    bool grows;
};

static void read_and_write(void *context)
{
    const struct pair *pair = context;
    struct tarn_device *device;
    struct tarn_allocator *allocator = child_open(&device);
    tarn_ptr a = 0;
    tarn_ptr b = 0;
    tarn_ptr again = 0;
    uint64_t size = 0;
    unsigned char bytes[2] = {0};

    CHILD_REQUIRE(tarn_ipc_open(allocator, pair->first.message, pair->first.length, &a, &size,
                                NULL) == TARN_OK);
    CHILD_REQUIRE(size == BLOCK);
    CHILD_REQUIRE(tarn_ipc_open(allocator, pair->second.message, pair->second.length, &b, NULL,
                                NULL) == TARN_OK);
    CHILD_REQUIRE(tarn_ipc_open(allocator, pair->first.message, pair->first.length, &again, NULL,
                                NULL) == TARN_OK);
    CHILD_REQUIRE(again == a);
    if (!pair->grows) { /* one segment, opened once */
        CHILD_REQUIRE(b == a + BLOCK);
        CHILD_REQUIRE(sim_counters(device).live_opened == 1);
    }
    CHILD_REQUIRE(tarn_copy_to_host(allocator, bytes, a + BLOCK - 1, 1, 0, NULL) == TARN_OK);
    CHILD_REQUIRE(tarn_copy_to_host(allocator, bytes + 1, b + 7, 1, 0, NULL) == TARN_OK);
    CHILD_REQUIRE(bytes[0] == 10 && bytes[1] == 20);
    bytes[0] = 30;
    CHILD_REQUIRE(tarn_copy_from_host(allocator, b + 8, bytes, 1, 0, NULL) == TARN_OK);

    CHILD_REQUIRE(tarn_allocator_free(allocator, a, NULL) == TARN_ERR_INVALID_POINTER);
    CHILD_REQUIRE(tarn_ipc_close(allocator, a, NULL) == TARN_OK);
    CHILD_REQUIRE(tarn_ipc_close(allocator, a, NULL) == TARN_OK);
    CHILD_REQUIRE(tarn_copy_to_host(allocator, bytes, b + 8, 1, 0, NULL) == TARN_OK);
    CHILD_REQUIRE(tarn_ipc_close(allocator, b, NULL) == TARN_OK);
    CHILD_REQUIRE(tarn_ipc_close(allocator, b, NULL) == TARN_ERR_INVALID_POINTER);
    CHILD_REQUIRE(sim_counters(device).live_opened == 0);
    CHILD_REQUIRE(sim_counters(device).live_pages == 0);
    CHILD_REQUIRE(tarn_ipc_open(allocator, pair->second.message, pair->second.length, &b, NULL,
                                NULL) == TARN_OK); /* closed by the allocator's end */
    child_close(allocator, device);
}

static void share_two_blocks(struct rig *rig, bool grows)
{
    struct pair pair = {.grows = grows};
    unsigned char byte = 10;
    const tarn_ptr a = rig_alloc(rig, BLOCK, 0);
    const tarn_ptr b = rig_alloc(rig, BLOCK, 0);

    assert_int_equal(b, a + BLOCK);
    assert_int_equal(tarn_copy_from_host(rig->allocator, a + BLOCK - 1, &byte, 1, 0, NULL),
                     TARN_OK);
    byte = 20;
    assert_int_equal(tarn_copy_from_host(rig->allocator, b + 7, &byte, 1, 0, NULL), TARN_OK);
    export_ok(rig, a, &pair.first);
    export_ok(rig, b, &pair.second);
    child_run(read_and_write, &pair);
    assert_int_equal(tarn_copy_to_host(rig->allocator, &byte, b + 8, 1, 0, NULL), TARN_OK);
    assert_int_equal(byte, 30);
    rig_free(rig, a);
    rig_free(rig, b);
}

static void share_a_pair(const char *conf, bool grows)
{
    struct rig rig;

    rig_open_backed(&rig, conf);
    share_two_blocks(&rig, grows);
    rig_close(&rig);
}

static void a_plain_segment_is_shared_whole(void **state)
{
    (void)state;
    share_a_pair("", false);
}

static void pages_of_a_growing_segment_are_shared(void **state)
{
    (void)state;
    share_a_pair("expandable_segments:True", true);
}

static void pages_that_moved_are_shared(void **state)
{
    struct rig rig;

    (void)state;
    rig_open_backed(&rig, "policy:compact");
    const tarn_ptr hole = rig_alloc(&rig, 30 * MIB, 0);

    (void)rig_alloc(&rig, 2 * MIB, 0);
    rig_free(&rig, hole);
    rig_free(&rig, rig_alloc(&rig, 40 * MIB, 0));
    assert_int_equal(rig_engine(rig.allocator)->compact.pages_moved, 15);
    share_two_blocks(&rig, true);
    rig_close(&rig);
}

static uint64_t open_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    uint64_t count = 0;

    assert_non_null(folder);
    while (readdir(folder)) {
        count++;
    }
    closedir(folder);
    return count;
}

/* A page is shared as one descriptor until it is unmapped. Another one that is mapped there then is
 * shared anew, also when the segment has grown in between. */
static void a_page_is_shared_once_while_it_is_mapped(void **state)
{
    const uint64_t descriptors = open_descriptors();
    struct sent sent;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "expandable_segments:True");
    const tarn_ptr first = rig_alloc(&rig, 20 * MIB, 0);
    const tarn_ptr second = rig_alloc(&rig, 20 * MIB, 0);

    export_ok(&rig, first, &sent);
    export_ok(&rig, second, &sent);
    export_ok(&rig, first, &sent);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_PAGE_EXPORT], 2);
    assert_int_equal(open_descriptors(), descriptors + 2);
    const tarn_ptr more = rig_alloc(&rig, 100 * MIB, 0);

    export_ok(&rig, more, &sent);
    export_ok(&rig, first, &sent);
    export_ok(&rig, second, &sent);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_PAGE_EXPORT], 7);
    rig_free(&rig, first);
    rig_free(&rig, more);
    rig_empty_cache(&rig);
    rig_check(&rig);
    assert_int_equal(open_descriptors(), descriptors + 1);
    assert_int_equal(rig_alloc(&rig, 20 * MIB, 0), first);
    export_ok(&rig, first, &sent);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_PAGE_EXPORT], 8);
    assert_int_equal(open_descriptors(), descriptors + 2);
    rig_free(&rig, first);
    rig_free(&rig, second);
    rig_close(&rig);
    assert_int_equal(open_descriptors(), descriptors);
}

/* Pages that moved are still mapped at their old address, and the rest of the segment goes, because
 * it was shared: the range stays until the old address is given up. */
static void a_range_with_old_addresses_stays(void **state)
{
    struct sent sent;
    struct rig rig;

    (void)state;
    rig_open_manual(&rig, 60 * MIB, "policy:compact,rules:2.14");
    const tarn_ptr shared = rig_alloc(&rig, 10 * MIB, 0);
    const tarn_ptr moved = rig_alloc(&rig, 40 * MIB, 0);

    export_ok(&rig, shared, &sent);
    rig_free(&rig, shared);
    rig_free(&rig, moved);
    const tarn_ptr ptr = rig_alloc(&rig, 56 * MIB, 7);

    assert_int_equal(rig_engine(rig.allocator)->compact.pages_moved, 20);
    assert_int_equal(sim_counters(rig.device).live_reservations, 2);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 56 * MIB);
    rig_check(&rig);
    rig_free(&rig, ptr);
    rig_empty_cache(&rig);
    assert_int_equal(sim_counters(rig.device).live_mappings, 0);
    assert_int_equal(rig_alloc(&rig, 10 * MIB, 0), shared); /* there is room again */
    rig_close(&rig);
}

static void open_both(void *context)
{
    const struct pair *pair = context;
    struct tarn_device *device;
    struct tarn_allocator *allocator = child_open(&device);
    tarn_ptr first = 0;
    tarn_ptr second = 0;

    CHILD_REQUIRE(tarn_ipc_open(allocator, pair->first.message, pair->first.length, &first, NULL,
                                NULL) == TARN_OK);
    CHILD_REQUIRE(tarn_ipc_open(allocator, pair->second.message, pair->second.length, &second, NULL,
                                NULL) == TARN_OK);
    CHILD_REQUIRE(first != second);
    CHILD_REQUIRE(tarn_ipc_close(allocator, first, NULL) == TARN_OK);
    CHILD_REQUIRE(tarn_ipc_close(allocator, second, NULL) == TARN_OK);
    child_close(allocator, device);
}

/* Both kinds may be open at once. */
static void a_segment_and_pages_are_shared(void **state)
{
    struct pair pair = {.grows = true};
    struct rig rig;

    (void)state;
    rig_open_backed(&rig, "");
    const tarn_ptr plain = rig_alloc(&rig, BLOCK, 0);

    rig_configure(&rig, "expandable_segments:True");
    const tarn_ptr grown = rig_alloc(&rig, 30 * MIB, 0);

    export_ok(&rig, plain, &pair.first);
    export_ok(&rig, grown, &pair.second);
    child_run(open_both, &pair);
    rig_free(&rig, plain);
    rig_free(&rig, grown);
    rig_close(&rig);
}

static void read_one(void *context)
{
    const struct sent *sent = context;
    struct tarn_device *device;
    struct tarn_allocator *allocator = child_open(&device);
    tarn_ptr ptr = 0;

    CHILD_REQUIRE(tarn_ipc_open(allocator, sent->message, sent->length, &ptr, NULL, NULL) ==
                  TARN_OK);
    CHILD_REQUIRE(ptr % 512 == 0);
    child_close(allocator, device);
}

static void memory_past_the_cache_is_shared_too(void **state)
{
    const char *const confs[] = {"", "backend:native"};
    struct sent sent;

    (void)state;
    for (int uncached = 0; uncached < 2; uncached++) {
        struct rig rig;

        rig_open_backed(&rig, confs[uncached]);
        if (uncached) {
            struct tarn_config config;

            tarn_allocator_destroy(rig.allocator);
            tarn_config_init(&config);
            config.no_caching = true;
            assert_int_equal(tarn_allocator_create(rig.device, &config, &rig.allocator, &rig.error),
                             TARN_OK);
        } else {
            assert_int_equal(tarn_allocator_set_enabled(rig.allocator, false, NULL), TARN_OK);
        }
        const tarn_ptr ptr = rig_alloc(&rig, 5000, 0);

        export_ok(&rig, ptr, &sent);
        child_run(read_one, &sent);
        assert_int_equal(tarn_ipc_export(rig.allocator, ptr + 512, sent.message,
                                         sizeof sent.message, &sent.length, &rig.error),
                         TARN_ERR_INVALID_POINTER);
        rig_free(&rig, ptr);
        rig_close(&rig);
    }
}

/* A buffer of just the message's length takes all of it; of one that is shorter nothing is
 * touched. */
static void expect_export_in(struct rig *rig, tarn_ptr ptr, const struct sent *sent, size_t length)
{
    unsigned char *exact = malloc(length);
    unsigned char *before = malloc(length);
    size_t out = 0;

    assert_true(exact && before);
    memset(exact, 0xA5, length);
    memset(before, 0xA5, length);
    assert_int_equal(tarn_ipc_export(rig->allocator, ptr, exact, length - 1, &out, &rig->error),
                     TARN_ERR_LIMIT);
    assert_int_equal(out, length);
    assert_memory_equal(exact, before, length);
    assert_int_equal(tarn_ipc_export(rig->allocator, ptr, exact, length, &out, &rig->error),
                     TARN_OK);
    assert_int_equal(out, length);
    assert_memory_equal(exact, sent->message, length);
    free(exact);
    free(before);
}

static void wrong_calls_are_refused(void **state)
{
    struct rig rig;
    struct sent sent = {.length = 77};
    tarn_ptr out = 5;

    (void)state;
    rig_open_backed(&rig, "");
    const tarn_ptr ptr = rig_alloc(&rig, MIB, 0);

    assert_int_equal(tarn_ipc_export(rig.allocator, ptr + 512, sent.message, sizeof sent.message,
                                     &sent.length, &rig.error),
                     TARN_ERR_INVALID_POINTER);
    assert_int_equal(sent.length, 77);
    assert_int_equal(
        tarn_ipc_export(rig.allocator, ptr, sent.message, 16, &sent.length, &rig.error),
        TARN_ERR_LIMIT);
    assert_true(sent.length > 16 && sent.length <= TARN_IPC_MESSAGE_SIZE);
    const size_t length = sent.length;
    char text[100];

    assert_int_equal(tarn_ipc_export(rig.allocator, ptr, NULL, 4096, &sent.length, &rig.error),
                     TARN_ERR_LIMIT);
    (void)snprintf(text, sizeof text, "the message has %zu bytes, and there is room for 0", length);
    assert_string_equal(rig.error.text, text);
    export_ok(&rig, ptr, &sent);
    assert_int_equal(sent.length, length);
    expect_export_in(&rig, ptr, &sent, length);
    assert_int_equal(
        tarn_ipc_open(rig.allocator, sent.message, sent.length, &out, NULL, &rig.error),
        TARN_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(rig.error.text, "from this process"));
    assert_int_equal(tarn_ipc_close(rig.allocator, ptr, &rig.error), TARN_ERR_INVALID_POINTER);
    assert_int_equal(out, 5);
    rig_free(&rig, ptr);
    assert_int_equal(tarn_ipc_export(rig.allocator, ptr, sent.message, sizeof sent.message,
                                     &sent.length, &rig.error),
                     TARN_ERR_INVALID_POINTER);
    rig_close(&rig);

    rig_open(&rig, GIB, "backend:cudaMallocAsync");
    assert_int_equal(tarn_ipc_export(rig.allocator, 512, sent.message, sizeof sent.message,
                                     &sent.length, &rig.error),
                     TARN_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(rig.error.text, "shareIpcHandle"));
    rig_close(&rig);
}

/* What a message holds, so that a test can make it wrong. */
static struct tn_ipc_head *head_of(struct sent *sent)
{
    return (struct tn_ipc_head *)(void *)sent->message;
}

static void expect_no_message(struct rig *rig, const struct sent *sent, size_t length,
                              const char *why)
{
    tarn_ptr out = 5;

    /* Exactly as long as it says, so that reading past the end is seen. */
    unsigned char *copy = malloc(length ? length : 1);

    assert_non_null(copy);
    memcpy(copy, sent->message, length);
    assert_int_equal(tarn_ipc_open(rig->allocator, copy, length, &out, NULL, &rig->error),
                     TARN_ERR_FORMAT);
    free(copy);
    if (!strstr(rig->error.text, why)) {
        fail_msg("\"%s\" does not contain \"%s\"", rig->error.text, why);
    }
    assert_int_equal(out, 5);
}

/* A message with nothing wrong about it, from this process. */
static void expect_own_message(struct rig *rig, const struct sent *sent)
{
    tarn_ptr out = 5;

    assert_int_equal(
        tarn_ipc_open(rig->allocator, sent->message, sent->length, &out, NULL, &rig->error),
        TARN_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(rig->error.text, "from this process"));
    assert_int_equal(out, 5);
}

static void what_is_no_message_is_refused(void **state)
{
    struct rig rig;
    struct sent good;

    (void)state;
    for (int grows = 0; grows < 2; grows++) {
        rig_open_backed(&rig, grows ? "expandable_segments:True" : "");
        const tarn_ptr ptr = rig_alloc(&rig, 50 * MIB, 0);
        struct sent bad;

        export_ok(&rig, ptr, &good);
        for (size_t cut = 0; cut < good.length; cut++) {
            expect_no_message(&rig, &good, cut,
                              cut <= sizeof(struct tn_ipc_head) ? "too short" : "wrong length");
        }
        expect_no_message(&rig, &good, good.length + 1, "wrong length");
        expect_no_message(&rig, &good, good.length + 4, "wrong length");
        bad = good;
        bad.message[0] = 'x';
        expect_no_message(&rig, &bad, bad.length, "begin");
        bad = good;
        head_of(&bad)->kind = 3;
        expect_no_message(&rig, &bad, bad.length, "unknown kind");
        bad = good;
        head_of(&bad)->offset = UINT64_MAX;
        expect_no_message(&rig, &bad, bad.length, "outside");
        bad = good;
        head_of(&bad)->size = UINT64_MAX;
        expect_no_message(&rig, &bad, bad.length, "outside");
        bad = good;
        head_of(&bad)->extent = 0;
        expect_no_message(&rig, &bad, bad.length, "outside");
        bad = good; /* no more than 2^57 bytes are shared */
        head_of(&bad)->extent = ((uint64_t)1 << 57) + head_of(&bad)->page_size + 512;
        expect_no_message(&rig, &bad, bad.length, "outside");
        if (!grows) {
            assert_int_equal(head_of(&good)->page_size, 0);
            head_of(&bad)->extent = (uint64_t)1 << 57;
            expect_own_message(&rig, &bad);
        }
        if (grows) {
            bad = good;
            head_of(&bad)->page_size -= 1;
            expect_no_message(&rig, &bad, bad.length, "impossible size");
            bad = good;
            head_of(&bad)->page_size = 0;
            expect_no_message(&rig, &bad, bad.length, "impossible size");
            bad = good;
            head_of(&bad)->extent += head_of(&bad)->page_size;
            expect_no_message(&rig, &bad, bad.length, "wrong length");
        }
        bad = good;
        head_of(&bad)->process++;
        head_of(&bad)->ordinal = 3;
        tarn_ptr out;

        assert_int_equal(
            tarn_ipc_open(rig.allocator, bad.message, bad.length, &out, NULL, &rig.error),
            TARN_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(rig.error.text, "device 3"));
        rig_free(&rig, ptr);
        rig_close(&rig);
    }
}

static void open_with_forged_sizes(void *context)
{
    struct sent *sent = context;
    struct sent forged = *sent;
    struct tarn_device *device;
    struct tarn_allocator *allocator = child_open(&device);
    struct tarn_error error;
    tarn_ptr first = 0;
    tarn_ptr out = 0;
    uint64_t size = 0;

    head_of(&forged)->extent = (uint64_t)1 << 50;
    head_of(&forged)->size = (uint64_t)1 << 49;
    for (int open = 0; open < 2; open++) { /* also while the segment is open */
        CHILD_REQUIRE(tarn_ipc_open(allocator, forged.message, forged.length, &out, &size,
                                    &error) == TARN_ERR_FORMAT);
        CHILD_REQUIRE(strstr(error.text, "are shared"));
        CHILD_REQUIRE(out == 0 && size == 0);
        CHILD_REQUIRE(sim_counters(device).live_opened == (uint64_t)open);
        CHILD_REQUIRE(open || tarn_ipc_open(allocator, sent->message, sent->length, &first, NULL,
                                            NULL) == TARN_OK);
    }
    forged = *sent; /* fields that a plain segment's name does not have */
    head_of(&forged)->process++;
    head_of(&forged)->page_size = 7;
    CHILD_REQUIRE(tarn_ipc_open(allocator, forged.message, forged.length, &out, NULL, NULL) ==
                  TARN_OK);
    CHILD_REQUIRE(out == first && sim_counters(device).live_opened == 1);
    child_close(allocator, device);
}

/* Runs it in a child, which gets the name of a block of a plain segment. */
static void run_with_block(void (*open)(void *context))
{
    struct rig rig;
    struct sent sent;

    rig_open_backed(&rig, "");
    const tarn_ptr ptr = rig_alloc(&rig, 50 * MIB, 0);

    export_ok(&rig, ptr, &sent);
    child_run(open, &sent);
    rig_free(&rig, ptr);
    rig_close(&rig);
}

static void sizes_are_the_device_s(void **state)
{
    (void)state;
    run_with_block(open_with_forged_sizes);
}

/* ---- a driver that opens memory again through another handle of it ---- */

static struct {
    const struct tn_device_ops *inner;
    tarn_ptr address;
    uint64_t size;
    unsigned opens; /* not yet closed */
} driver;

static enum tarn_status driver_open(struct tarn_device *device, const struct tn_ipc_handle *handle,
                                    tarn_ptr *address_out, uint64_t *size_out)
{
    struct tn_ipc_handle plain = *handle;
    enum tarn_status st = TARN_OK;

    plain.bytes[sizeof plain.bytes - 1] = 0;
    if (driver.opens == 0) {
        st = driver.inner->ipc_open(device, &plain, &driver.address, &driver.size);
    }
    driver.opens += st == TARN_OK;
    *address_out = driver.address;
    *size_out = driver.size;
    return st;
}

static enum tarn_status driver_close(struct tarn_device *device, tarn_ptr address)
{
    driver.opens--;
    return driver.opens == 0 ? driver.inner->ipc_close(device, address) : TARN_OK;
}

static void open_by_two_names(void *context)
{
    const struct sent *sent = context;
    struct sent renamed = *sent;
    struct tarn_device *device;
    struct tarn_allocator *allocator = child_open(&device);
    struct tn_device_ops ops = *device->ops;
    tarn_ptr first = 0;
    tarn_ptr second = 0;

    driver.inner = device->ops;
    ops.ipc_open = driver_open;
    ops.ipc_close = driver_close;
    device->ops = &ops;
    renamed.message[renamed.length - 1] = 1;
    for (int round = 0; round < 2; round++) {
        CHILD_REQUIRE(tarn_ipc_open(allocator, sent->message, sent->length, &first, NULL, NULL) ==
                      TARN_OK);
        CHILD_REQUIRE(tarn_ipc_open(allocator, renamed.message, renamed.length, &second, NULL,
                                    NULL) == TARN_OK);
        CHILD_REQUIRE(second == first);
        CHILD_REQUIRE(driver.opens == 1); /* what it opened again is closed again */
        CHILD_REQUIRE(tarn_ipc_close(allocator, first, NULL) == TARN_OK);
        CHILD_REQUIRE(driver.opens == 1);
        CHILD_REQUIRE(tarn_ipc_close(allocator, second, NULL) == TARN_OK);
        CHILD_REQUIRE(driver.opens == 0);
        CHILD_REQUIRE(tarn_ipc_close(allocator, first, NULL) == TARN_ERR_INVALID_POINTER);
    }
    device->ops = driver.inner;
    child_close(allocator, device);
}

static void two_names_are_one_segment(void **state)
{
    (void)state;
    run_with_block(open_by_two_names);
}

/* ---- failures ---- */

static bool names_pages(const struct sent *sent)
{
    struct sent copy = *sent;

    return head_of(&copy)->kind == TN_IPC_PAGES;
}

static void open_under_failures(void *context)
{
    const struct sent *sent = context;
    struct tarn_device *device;
    struct tarn_allocator *allocator = child_open(&device);
    struct tarn_error error;
    tarn_ptr ptr = 0;
    unsigned failed = 0;

    /* The simulated device keeps what it needs for this many mappings. */
    CHILD_REQUIRE(tarn_ipc_open(allocator, sent->message, sent->length, &ptr, NULL, NULL) ==
                      TARN_OK &&
                  tarn_ipc_close(allocator, ptr, NULL) == TARN_OK);
    const uint64_t before = tarn_host_get_usage().live_bytes;

    ptr = 0;
    for (uint64_t n = 1;; n++) { /* each device call of it */
        tarn_sim_fail_nth(device, TARN_SIM_ANY, n, TARN_ERR_DEVICE);
        const enum tarn_status st =
            tarn_ipc_open(allocator, sent->message, sent->length, &ptr, NULL, &error);

        tarn_sim_fail_nth(device, TARN_SIM_ANY, 0, TARN_OK);
        if (st == TARN_OK) {
            break;
        }
        failed++;
        CHILD_REQUIRE(strstr(error.text, n == 1 && names_pages(sent)
                                             ? "reserving addresses for shared memory on device 0"
                                             : "opening shared memory on device 0 failed"));
        CHILD_REQUIRE(st == TARN_ERR_DEVICE && ptr == 0);
        CHILD_REQUIRE(sim_counters(device).live_pages == 0);
        CHILD_REQUIRE(sim_counters(device).live_reservations == 0);
        CHILD_REQUIRE(tarn_host_get_usage().live_bytes == before);
    }
    CHILD_REQUIRE(failed >= 1);
    for (uint64_t n = 1;; n++) {
        tarn_sim_fail_nth(device, TARN_SIM_ANY, n, TARN_ERR_DEVICE);
        const enum tarn_status st = tarn_ipc_close(allocator, ptr, &error);

        tarn_sim_fail_nth(device, TARN_SIM_ANY, 0, TARN_OK);
        if (st == TARN_OK) {
            CHILD_REQUIRE(n > 1); /* no call that fails is made up for by another */
            break;
        }
        CHILD_REQUIRE(st == TARN_ERR_DEVICE);
        CHILD_REQUIRE(strstr(error.text, "closing shared memory on device 0 failed"));
    }
    CHILD_REQUIRE(tarn_host_get_usage().live_bytes == before);
    ptr = 0;
    for (uint64_t n = 1;; n++) { /* each host allocation of it */
        tarn_host_fail_nth(n);
        const enum tarn_status st =
            tarn_ipc_open(allocator, sent->message, sent->length, &ptr, NULL, NULL);

        tarn_host_fail_nth(0);
        if (st == TARN_OK) {
            break;
        }
        CHILD_REQUIRE(st == TARN_ERR_HOST_MEMORY && ptr == 0);
        CHILD_REQUIRE(tarn_host_get_usage().live_bytes == before);
    }
    CHILD_REQUIRE(ptr != 0);
    child_close(allocator, device);
}

static void nothing_stays_open_after_a_failure(void **state)
{
    (void)state;
    for (int grows = 0; grows < 2; grows++) {
        struct rig rig;
        struct sent sent;

        rig_open_backed(&rig, grows ? "expandable_segments:True" : "");
        const tarn_ptr ptr = rig_alloc(&rig, 50 * MIB, 0);

        for (uint64_t n = 1;; n++) {
            tarn_sim_fail_nth(rig.device, TARN_SIM_ANY, n, TARN_ERR_DEVICE);
            const enum tarn_status st = tarn_ipc_export(rig.allocator, ptr, sent.message,
                                                        sizeof sent.message, &sent.length, NULL);

            tarn_sim_fail_nth(rig.device, TARN_SIM_ANY, 0, TARN_OK);
            rig_check(&rig);
            if (st == TARN_OK) {
                break;
            }
            assert_int_equal(st, TARN_ERR_DEVICE);
        }
        child_run(open_under_failures, &sent);
        rig_free(&rig, ptr);
        rig_close(&rig); /* descriptors of pages are gone with them */
    }
}

/* ---- the checker, and its lock ---- */

static void expect_findings(struct rig *rig, uint64_t count, const char *texts[2])
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    assert_int_equal(tn_ipc_cache_check(&rig->allocator->opened, &findings), count);
    assert_int_equal(findings.count, count);
    assert_int_equal(tarn_allocator_check(rig->allocator, NULL), count);
    for (uint64_t i = 0; i < count; i++) {
        if (!strstr(findings.text[i], texts[i])) {
            fail_msg("\"%s\" does not contain \"%s\"", findings.text[i], texts[i]);
        }
    }
}

static void the_checker_counts_what_is_open(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    struct tn_ipc_cache *opened = &rig.allocator->opened;

    opened->by_name.count++;
    expect_findings(&rig, 2, (const char *[]){"tree", "by name and by address"});
    opened->by_address.count++;
    expect_findings(&rig, 2, (const char *[]){"tree", "tree"});
    opened->by_name.count--;
    expect_findings(&rig, 2, (const char *[]){"tree", "by name and by address"});
    opened->by_address.count--;
    expect_findings(&rig, 0, NULL);

    struct tarn_findings of_others = TARN_FINDINGS_INIT;

    of_others.count = 3;
    assert_int_equal(tn_ipc_cache_check(opened, &of_others), 0);
    rig_close(&rig);
}

/* A lock of a table of allocators may be held around every call. */
static void its_lock_is_behind_those_of_tables(void **state)
{
    struct tn_lock table;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    tn_lock_init(&table, TN_LOCK_DEVICES);
    tn_lock_acquire(&table);
    assert_int_equal(tarn_ipc_close(rig.allocator, 512, &rig.error), TARN_ERR_INVALID_POINTER);
    tn_lock_release(&table);
    tn_lock_fini(&table);
    rig_close(&rig);
}

/* ---- peers of the device that opens ---- */

enum {
    FIRST_PEER = 3,
    SECOND_PEER = 5
};

static uint64_t grants(struct tarn_device *device)
{
    return sim_counters(device).calls[TARN_SIM_VA_GRANT];
}

/* Two of pages, one of memory in one piece, which peers see without being let in. */
enum {
    SENT = 3
};

static void let_peers_in(void *context)
{
    const struct sent *sent = context;
    struct tarn_device *device;
    struct tarn_allocator *allocator = child_open(&device);
    tarn_ptr others[SENT - 1];
    tarn_ptr ptr = 0;

    CHILD_REQUIRE(tarn_allocator_add_peer(allocator, FIRST_PEER, NULL) == TARN_OK);
    CHILD_REQUIRE(grants(device) == 0);
    tarn_sim_fail_nth(device, TARN_SIM_VA_GRANT, 2, TARN_ERR_DEVICE);
    CHILD_REQUIRE(tarn_ipc_open(allocator, sent->message, sent->length, &ptr, NULL, NULL) ==
                  TARN_ERR_DEVICE);
    CHILD_REQUIRE(sim_counters(device).live_pages == 0);
    tarn_sim_fail_nth(device, TARN_SIM_VA_GRANT, 0, TARN_OK);
    const uint64_t before = grants(device);

    CHILD_REQUIRE(tarn_ipc_open(allocator, sent->message, sent->length, &ptr, NULL, NULL) ==
                  TARN_OK);
    const uint64_t opening = grants(device) - before;

    CHILD_REQUIRE(opening == sim_counters(device).live_pages); /* each, for the first */
    for (int i = 1; i < SENT; i++) {
        CHILD_REQUIRE(tarn_ipc_open(allocator, sent[i].message, sent[i].length, &others[i - 1],
                                    NULL, NULL) == TARN_OK);
    }
    tarn_sim_fail_nth(device, TARN_SIM_VA_GRANT, 1, TARN_ERR_DEVICE);
    CHILD_REQUIRE(tarn_allocator_add_peer(allocator, SECOND_PEER, NULL) == TARN_ERR_DEVICE);
    tarn_sim_fail_nth(device, TARN_SIM_VA_GRANT, 0, TARN_OK);
    const uint64_t failed = grants(device);

    for (int i = 0; i < 2; i++) {
        CHILD_REQUIRE(tarn_allocator_add_peer(allocator, SECOND_PEER, NULL) == TARN_OK);
        CHILD_REQUIRE(tarn_allocator_add_peer(allocator, FIRST_PEER, NULL) == TARN_OK);
    }
    CHILD_REQUIRE(grants(device) == failed + 2); /* all pages of a range at once, once */
    CHILD_REQUIRE(tarn_ipc_close(allocator, ptr, NULL) == TARN_OK);
    for (int i = 1; i < SENT; i++) {
        CHILD_REQUIRE(tarn_ipc_close(allocator, others[i - 1], NULL) == TARN_OK);
    }
    /* A page that the first of two peers cannot see is not opened. */
    tarn_sim_fail_nth(device, TARN_SIM_VA_GRANT, 1, TARN_ERR_DEVICE);
    CHILD_REQUIRE(tarn_ipc_open(allocator, sent->message, sent->length, &ptr, NULL, NULL) ==
                  TARN_ERR_DEVICE);
    CHILD_REQUIRE(sim_counters(device).live_pages == 0);
    child_close(allocator, device);
}

static void peers_see_pages_of_other_processes(void **state)
{
    struct rig rig;
    struct sent sent[SENT];
    tarn_ptr ptrs[SENT];

    (void)state;
    rig_open_backed(&rig, "");
    ptrs[2] = rig_alloc(&rig, 30 * MIB, 0);
    rig_configure(&rig, "expandable_segments:True");
    ptrs[0] = rig_alloc(&rig, 50 * MIB, 0);
    ptrs[1] = rig_alloc(&rig, 20 * MIB, 1);
    for (int i = 0; i < SENT; i++) {
        export_ok(&rig, ptrs[i], &sent[i]);
    }
    child_run(let_peers_in, sent);
    for (int i = 0; i < SENT; i++) {
        rig_free(&rig, ptrs[i]);
    }
    rig_close(&rig);
}

static void copies_choose_their_kind(void **state)
{
    struct rig a;
    struct rig b;
    unsigned char byte = 41;
    bool reaches = false;

    (void)state;
    rig_open_with(&a, (struct tarn_sim_options){.capacity = GIB, .backed = true}, "");
    rig_open_with(&b,
                  (struct tarn_sim_options){.capacity = GIB,
                                            .backed = true,
                                            .ordinal = 1,
                                            .base_address = (uint64_t)0x600000000000},
                  "expandable_segments:True");
    const tarn_ptr in_a = rig_alloc(&a, MIB, 0);
    const tarn_ptr in_b = rig_alloc(&b, MIB, 0);

    assert_int_equal(tarn_copy_from_host(a.allocator, in_a, &byte, 1, 0, NULL), TARN_OK);
    assert_int_equal(tarn_copy(b.allocator, in_b, a.allocator, in_a, 1, 0, NULL), TARN_OK);
    assert_int_equal(tarn_copy(b.allocator, in_b, a.allocator, in_a, 0, 0, NULL), TARN_OK);
    byte = 0;
    assert_int_equal(tarn_copy_to_host(b.allocator, &byte, in_b, 1, 0, NULL), TARN_OK);
    assert_int_equal(byte, 41);
    /* Asked once; the expandable segments of b let device 0 in, those to come included. */
    assert_int_equal(sim_counters(a.device).calls[TARN_SIM_PEER_REACHES], 1);
    assert_int_equal(sim_counters(a.device).calls[TARN_SIM_PEER_ENABLE], 1);
    assert_true(sim_counters(b.device).calls[TARN_SIM_VA_GRANT] > 0);
    assert_int_equal(tarn_allocator_reach_peer(a.allocator, b.allocator, &reaches, NULL), TARN_OK);
    assert_true(reaches);
    assert_int_equal(sim_counters(a.device).calls[TARN_SIM_PEER_REACHES], 1);
    tarn_sim_fail_nth(b.device, TARN_SIM_PEER_REACHES, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_copy(a.allocator, in_a, b.allocator, in_b, 1, 0, &a.error),
                     TARN_ERR_DEVICE);
    assert_int_equal(tarn_copy(a.allocator, in_a, b.allocator, in_b, 1, 0, &a.error), TARN_OK);
    rig_free(&a, in_a);
    rig_free(&b, in_b);
    assert_int_equal(tarn_copy_to_host(b.allocator, &byte, (uint64_t)0x1000, 1, 0, &b.error),
                     TARN_ERR_DEVICE);
    rig_check(&a);
    rig_check(&b);
    tarn_allocator_destroy(a.allocator);
    tarn_allocator_destroy(b.allocator);
    sim_close(a.device);
    sim_close(b.device);
    assert_int_equal(tarn_host_get_usage().live_bytes, a.host_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_segment_is_shared_whole),
        cmocka_unit_test(pages_of_a_growing_segment_are_shared),
        cmocka_unit_test(pages_that_moved_are_shared),
        cmocka_unit_test(a_range_with_old_addresses_stays),
        cmocka_unit_test(a_page_is_shared_once_while_it_is_mapped),
        cmocka_unit_test(a_segment_and_pages_are_shared),
        cmocka_unit_test(memory_past_the_cache_is_shared_too),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(what_is_no_message_is_refused),
        cmocka_unit_test(sizes_are_the_device_s),
        cmocka_unit_test(two_names_are_one_segment),
        cmocka_unit_test(nothing_stays_open_after_a_failure),
        cmocka_unit_test(the_checker_counts_what_is_open),
        cmocka_unit_test(its_lock_is_behind_those_of_tables),
        cmocka_unit_test(peers_see_pages_of_other_processes),
        cmocka_unit_test(copies_choose_their_kind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
