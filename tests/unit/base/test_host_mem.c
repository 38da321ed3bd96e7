/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"
#include "tarn/host.h"

static bool aligned(const void *memory, uintptr_t alignment)
{
    return memory != NULL && (uintptr_t)memory % alignment == 0;
}

static void counters_follow_what_is_handed_out(void **state)
{
    const struct tarn_host_usage before = tarn_host_get_usage();
    void *a = tn_host_alloc(100);
    void *b = tn_host_alloc(1);
    struct tarn_host_usage now = tarn_host_get_usage();

    (void)state;
    assert_int_equal(now.live_bytes, before.live_bytes + 101);
    assert_int_equal(now.live_count, before.live_count + 2);
    assert_int_equal(now.alloc_calls, before.alloc_calls + 2);
    tn_host_free(a, 100);
    tn_host_free(b, 1);
    tn_host_free(NULL, 5);
    now = tarn_host_get_usage();
    assert_int_equal(now.live_bytes, before.live_bytes);
    assert_int_equal(now.live_count, before.live_count);
    assert_int_equal(now.alloc_calls, before.alloc_calls + 2);
}

static void memory_is_aligned(void **state)
{
    (void)state;
    for (size_t size = 1; size <= 4096; size = size * 3 / 2 + 1) {
        void *memory = tn_host_alloc(size);

        assert_true(aligned(memory, size >= TN_CACHE_LINE ? TN_CACHE_LINE : _Alignof(max_align_t)));
        memset(memory, 0xff, size);
        tn_host_free(memory, size);
    }
    for (size_t alignment = 8; alignment <= (size_t)1 << 20; alignment *= 2) {
        void *memory = tn_host_alloc_aligned(24, alignment);

        assert_true(aligned(memory, alignment));
        tn_host_free(memory, 24);
    }
}

static bool system_refuses;

/* The names are the linker's (--wrap). */
int __real_posix_memalign(void **memory, size_t alignment, size_t size);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t size);

int __wrap_posix_memalign(void **memory, size_t alignment, size_t size)
{
    return system_refuses ? ENOMEM : __real_posix_memalign(memory, alignment, size);
}

static void what_the_system_refuses_is_not_counted(void **state)
{
    const struct tarn_host_usage before = tarn_host_get_usage();

    (void)state;
    system_refuses = true;
    void *memory = tn_host_alloc_aligned(100, 4096);

    system_refuses = false;
    assert_null(memory);
    assert_int_equal(tarn_host_get_usage().live_bytes, before.live_bytes);
    assert_int_equal(tarn_host_get_usage().live_count, before.live_count);
    memory = tn_host_alloc_aligned(100, 4096);
    assert_true(aligned(memory, 4096));
    tn_host_free(memory, 100);
}

static void zeroed_memory_is_zero(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) { /* the second may get what the first gave back */
        uint8_t *memory = tn_host_alloc_zero(1000);

        assert_non_null(memory);
        for (int i = 0; i < 1000; i++) {
            assert_int_equal(memory[i], 0);
        }
        memset(memory, 0xff, 1000);
        tn_host_free(memory, 1000);
    }
}

static void size_zero_is_null_and_no_call(void **state)
{
    const struct tarn_host_usage before = tarn_host_get_usage();

    (void)state;
    assert_null(tn_host_alloc(0));
    assert_null(tn_host_alloc_zero(0));
    assert_null(tn_host_alloc_aligned(0, 64));
    assert_int_equal(tarn_host_get_usage().alloc_calls, before.alloc_calls);
}

static void resizing_keeps_the_contents(void **state)
{
    const uint64_t live = tarn_host_get_usage().live_bytes;
    char *memory = tn_host_resize(NULL, 0, 10);

    (void)state;
    assert_non_null(memory);
    memcpy(memory, "123456789", 10);
    memory = tn_host_resize(memory, 10, 1000);
    assert_non_null(memory);
    assert_string_equal(memory, "123456789");
    assert_int_equal(tarn_host_get_usage().live_bytes, live + 1000);
    memory = tn_host_resize(memory, 1000, 4);
    assert_non_null(memory);
    assert_memory_equal(memory, "1234", 4);
    tarn_host_fail_nth(1);
    assert_null(tn_host_resize(memory, 4, 8));
    assert_memory_equal(memory, "1234", 4);
    assert_int_equal(tarn_host_get_usage().live_bytes, live + 4);
    tn_host_free(memory, 4);
}

static void strings_are_copied(void **state)
{
    const uint64_t live = tarn_host_get_usage().live_bytes;
    char *copy = tn_host_strdup("text");

    (void)state;
    assert_string_equal(copy, "text");
    assert_int_equal(tarn_host_get_usage().live_bytes, live + 5);
    tn_host_strfree(copy);
    tn_host_strfree(NULL);
    tarn_host_fail_nth(1);
    assert_null(tn_host_strdup("text"));
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
}

static void the_nth_call_fails_once(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 5; n++) {
        tarn_host_fail_nth(n);
        for (uint64_t call = 1; call <= 8; call++) {
            void *memory = tn_host_alloc(16);

            assert_int_equal(memory == NULL, call == n);
            tn_host_free(memory, 16);
        }
    }
    tarn_host_fail_nth(1);
    tarn_host_fail_nth(0);
    void *memory = tn_host_alloc(16);

    assert_non_null(memory);
    tn_host_free(memory, 16);
}

struct hook_log {
    uint64_t allocs;
    uint64_t releases;
    size_t last_size;
    size_t last_alignment;
    size_t last_released;
    bool refuse;
};

static void *log_alloc(void *context, size_t size, size_t alignment)
{
    struct hook_log *log = context;
    void *memory = NULL;

    log->allocs++;
    log->last_size = size;
    log->last_alignment = alignment;
    if (log->refuse || posix_memalign(&memory, alignment < 8 ? 8 : alignment, size) != 0) {
        return NULL;
    }
    return memory;
}

static void log_release(void *context, void *memory, size_t size)
{
    struct hook_log *log = context;

    log->releases++;
    log->last_released = size;
    free(memory);
}

static void hooks_get_every_call(void **state)
{
    struct hook_log log = {0};
    const struct tarn_host_hooks hooks = {
        .struct_size = sizeof hooks, .alloc = log_alloc, .release = log_release, .context = &log};

    (void)state;
    assert_int_equal(tarn_host_get_usage().live_count, 0);
    assert_int_equal(tarn_host_set_hooks(&hooks), TARN_OK);
    void *memory = tn_host_alloc_aligned(300, 4096);

    assert_true(aligned(memory, 4096));
    assert_int_equal(log.last_size, 300);
    assert_int_equal(log.last_alignment, 4096);
    /* Not while memory is in use. */
    assert_int_equal(tarn_host_set_hooks(NULL), TARN_ERR_STATE);
    tn_host_free(memory, 300);
    assert_int_equal(log.last_released, 300);
    log.refuse = true;
    const uint64_t live = tarn_host_get_usage().live_bytes;

    assert_null(tn_host_alloc(8));
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
    assert_int_equal(tarn_host_set_hooks(NULL), TARN_OK);
    memory = tn_host_alloc(8);
    assert_non_null(memory);
    tn_host_free(memory, 8);
    assert_int_equal(log.allocs, 2);
    assert_int_equal(log.releases, 1);
}

static void incomplete_hooks_are_refused(void **state)
{
    const struct tarn_host_hooks no_release = {.struct_size = sizeof no_release,
                                               .alloc = log_alloc};
    const struct tarn_host_hooks no_alloc = {.struct_size = sizeof no_alloc,
                                             .release = log_release};
    const struct tarn_host_hooks no_size = {.alloc = log_alloc, .release = log_release};

    (void)state;
    assert_int_equal(tarn_host_set_hooks(&no_release), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_host_set_hooks(&no_alloc), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_host_set_hooks(&no_size), TARN_ERR_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_follow_what_is_handed_out),
        cmocka_unit_test(memory_is_aligned),
        cmocka_unit_test(what_the_system_refuses_is_not_counted),
        cmocka_unit_test(zeroed_memory_is_zero),
        cmocka_unit_test(size_zero_is_null_and_no_call),
        cmocka_unit_test(resizing_keeps_the_contents),
        cmocka_unit_test(strings_are_copied),
        cmocka_unit_test(the_nth_call_fails_once),
        cmocka_unit_test(hooks_get_every_call),
        cmocka_unit_test(incomplete_hooks_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
