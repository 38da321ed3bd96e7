/* SPDX-License-Identifier: MIT */
/*
 * Messages of another process, made wrong in all kinds of ways: bits, bytes and words that mean
 * something, and wrong lengths. What opens nevertheless lies in one piece of memory, and what does
 * not leaves nothing open: no descriptor, no host memory, no address. The same messages every time.
 */
#include "support/child.h"

#include "tarn/allocator.h"
#include "tarn/host.h"
#include "tarn/ipc.h"
#include "tarn/sim.h"

#include <dirent.h>
#include <string.h>

enum {
    GENUINE = 8,
    MESSAGES = 40000,
    ROOM = 512
};

struct message {
    size_t length;
    unsigned char bytes[ROOM];
};

struct analysis {
    struct message genuine[GENUINE];
    pid_t owner;
    struct tarn_device *device;
    struct tarn_allocator *allocator;
    uint32_t random;
};

static struct tarn_allocator *open_backed(const char *settings)
{
    struct tarn_allocator *allocator = NULL;
    struct tarn_error error;

    if (tarn_allocator_create_on("sim:1GiB,backed", settings, &allocator, &error)) {
        (void)fprintf(stderr, "%s\n", error.text);
    }
    return allocator;
}

/* The process whose memory it is: sends its messages, then waits until it may end. */
static void own(int out, int in)
{
    struct tarn_allocator *of[2] = {open_backed(""), open_backed("expandable_segments:True")};
    char end;

    for (uint64_t i = 0; i < GENUINE; i++) {
        struct message message = {0};
        tarn_ptr ptr = 0;

        CHILD_REQUIRE(tarn_allocator_alloc(of[i % 2], (i + 1) * 700000, 0, &ptr, NULL) == TARN_OK);
        CHILD_REQUIRE(tarn_ipc_export(of[i % 2], ptr, message.bytes, sizeof message.bytes,
                                      &message.length, NULL) == TARN_OK);
        CHILD_REQUIRE(write(out, &message, sizeof message) == (ssize_t)sizeof message);
    }
    CHILD_REQUIRE(read(in, &end, 1) >= 0);
    tarn_allocator_destroy(of[0]);
    tarn_allocator_destroy(of[1]);
}

static uint64_t descriptors_count(void)
{
    DIR *folder = opendir("/proc/self/fd");
    uint64_t count = 0;

    assert_non_null(folder);
    while (readdir(folder)) {
        count++;
    }
    assert_int_equal(closedir(folder), 0);
    return count;
}

static uint32_t draw(struct analysis *analysis, uint32_t below)
{
    analysis->random = analysis->random * 1664525u + 1013904223u;
    return (analysis->random >> 8) % below;
}

/* A number that may pass for a size, an offset, a process or a descriptor. */
static uint64_t draw_word(struct analysis *analysis)
{
    const uint64_t words[] = {0,
                              1,
                              3,
                              4096,
                              2 << 20,
                              20 << 20,
                              (uint64_t)1 << 56,
                              (uint64_t)1 << 57,
                              UINT64_MAX,
                              (uint64_t)getpid(),
                              (uint64_t)getppid(),
                              (uint64_t)analysis->owner};

    return words[draw(analysis, sizeof words / sizeof *words)];
}

static void spoil(struct analysis *analysis, struct message *message)
{
    const uint32_t at = draw(analysis, (uint32_t)message->length);
    uint64_t word;

    switch (draw(analysis, 8)) {
    case 0:
        message->length = 1 + draw(analysis, ROOM);
        break;
    case 1:
    case 2:
        message->bytes[at] ^= (unsigned char)(1 << draw(analysis, 8));
        break;
    case 3:
    case 4:
        message->bytes[at] = (unsigned char)draw(analysis, 256);
        break;
    default: /* a whole field */
        word = draw_word(analysis);
        memcpy(&message->bytes[at & ~(uint32_t)7], &word, sizeof word);
        break;
    }
}

/* Whether it was opened. */
static bool try_message(struct analysis *analysis, const struct message *message)
{
    tarn_ptr ptr = 0;
    uint64_t size = 0;

    if (tarn_ipc_open(analysis->allocator, message->bytes, message->length, &ptr, &size, NULL)) {
        assert_true(ptr == 0 && size == 0);
        return false;
    }
    if (!tarn_sim_host_memory(analysis->device, ptr, size)) {
        fail_msg("%#llx + %llu is not one piece of memory", (unsigned long long)ptr,
                 (unsigned long long)size);
    }
    assert_int_equal(tarn_ipc_close(analysis->allocator, ptr, NULL), TARN_OK);
    return true;
}

static void expect_nothing_open(const struct analysis *analysis)
{
    struct tarn_sim_counters counters = {.struct_size = sizeof counters};
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    tarn_sim_get_counters(analysis->device, &counters);
    assert_int_equal(counters.live_opened, 0);
    assert_int_equal(counters.live_pages, 0);
    assert_int_equal(counters.live_mappings, 0);
    assert_int_equal(counters.live_reservations, 0);
    assert_int_equal(tarn_allocator_check(analysis->allocator, &findings), 0);
}

static void try_all(struct analysis *analysis)
{
    uint64_t opened = 0;

    for (int i = 0; i < GENUINE; i++) {
        assert_true(try_message(analysis, &analysis->genuine[i]));
    }
    const uint64_t descriptors = descriptors_count();
    const uint64_t bytes = tarn_host_get_usage().live_bytes;

    for (int i = 0; i < MESSAGES; i++) {
        struct message message = analysis->genuine[draw(analysis, GENUINE)];

        for (uint32_t left = 1 + draw(analysis, 4); left > 0; left--) {
            spoil(analysis, &message);
        }
        opened += try_message(analysis, &message);
    }
    expect_nothing_open(analysis);
    assert_int_equal(descriptors_count(), descriptors);
    assert_int_equal(tarn_host_get_usage().live_bytes, bytes);
    assert_true(opened > 0 && opened < MESSAGES / 2);
}

static void forged_messages_open_nothing_else(void **state)
{
    struct analysis analysis = {.random = 1};
    int from_owner[2];
    int to_owner[2];
    int status = -1;

    (void)state;
    assert_int_equal(pipe(from_owner), 0);
    assert_int_equal(pipe(to_owner), 0);
    (void)fflush(NULL);
    analysis.owner = fork();
    assert_true(analysis.owner >= 0);
    if (analysis.owner == 0) {
        (void)close(to_owner[1]); /* so that it ends with this process in any case */
        own(from_owner[1], to_owner[0]);
        child_exit(0);
    }
    for (int i = 0; i < GENUINE; i++) {
        assert_int_equal(read(from_owner[0], &analysis.genuine[i], sizeof analysis.genuine[i]),
                         sizeof analysis.genuine[i]);
    }
    analysis.allocator = open_backed("");
    assert_non_null(analysis.allocator);
    analysis.device = tarn_allocator_get_device(analysis.allocator);
    try_all(&analysis);
    tarn_allocator_destroy(analysis.allocator);
    assert_int_equal(write(to_owner[1], "x", 1), 1);
    assert_int_equal(waitpid(analysis.owner, &status, 0), analysis.owner);
    assert_int_equal(status, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(close(from_owner[i]), 0);
        assert_int_equal(close(to_owner[i]), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forged_messages_open_nothing_else)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
