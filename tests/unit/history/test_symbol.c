/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "history/symbol.h"
#include "tarn/host.h"

static void unknown_addresses_have_a_frame(void **state)
{
    static const uint64_t addresses[] = {1, 4096, 0x7fffffffffff, UINT64_MAX};
    struct tn_symbols *symbols = tn_symbols_create();

    (void)state;
    assert_non_null(symbols);
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        size_t count = 0;
        const struct tarn_stack_frame *frame = tn_symbols_find(symbols, addresses[i], &count);

        assert_non_null(frame);
        assert_int_equal(count, 1);
        assert_string_equal(frame->name, "??");
        assert_string_equal(frame->filename, "??");
        assert_int_equal(frame->line, 0);
    }
    tn_symbols_destroy(symbols);
    tn_symbols_destroy(NULL);
}

/* A module without debug information: its own name, maybe the function's; and the same answer when
 * it is asked again. */
static void other_modules_are_named(void **state)
{
    /* Behind the function's first byte, as a return address would be. */
    const uint64_t address = (uint64_t)(uintptr_t)&_cmocka_run_group_tests + 1;
    struct tn_symbols *symbols = tn_symbols_create();
    size_t count = 0;
    const struct tarn_stack_frame *frame = tn_symbols_find(symbols, address, &count);

    (void)state;
    assert_non_null(frame);
    assert_int_equal(count, 1);
    assert_non_null(strstr(frame->filename, "cmocka"));
    tn_symbols_expect_modules(symbols);
    assert_ptr_equal(tn_symbols_find(symbols, address, &count), frame);
    tn_symbols_destroy(symbols);
}

/* A function as a C++ compiler names it. */
int cxx_function(int x) __asm__("_ZN4tarn4test8functionEi");

__attribute__((noinline)) int cxx_function(int x)
{
    return x + 1;
}

static void cxx_functions_have_their_names(void **state)
{
    const uint64_t address = (uint64_t)(uintptr_t)&cxx_function + 1;
    struct tn_symbols *symbols = tn_symbols_create();
    size_t count = 0;

    (void)state;
    if (!dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL)) {
        (void)printf("skip: there is no libstdc++ here\n");
        skip();
    }
    assert_int_equal(cxx_function(1), 2);
    const struct tarn_stack_frame *frame = tn_symbols_find(symbols, address, &count);

    assert_non_null(frame);
    assert_int_equal(count, 1);
#ifdef HAS_LIBDW
    assert_string_equal(frame->name, "tarn::test::function(int)");
    assert_non_null(strstr(frame->filename, "test_symbol.c"));
#else /* the program exports nothing */
    assert_string_equal(frame->name, "??");
    assert_non_null(strstr(frame->filename, "/test_symbol"));
#endif
    tn_symbols_destroy(symbols);
}

#ifdef HAS_LIBDW
static void modules_need_no_table_of_addresses(void **state)
{
    void *module = dlopen(EXPORTER_NO_ARANGES, RTLD_NOW | RTLD_LOCAL);
    struct tn_symbols *symbols = tn_symbols_create();
    size_t count = 0;

    (void)state;
    assert_non_null(module);
    const uint64_t address = (uint64_t)(uintptr_t)dlsym(module, "exporter_plain") + 1;
    const struct tarn_stack_frame *frame = tn_symbols_find(symbols, address, &count);

    assert_non_null(frame);
    assert_int_equal(count, 1);
    assert_string_equal(frame->name, "exporter_plain");
    assert_non_null(strstr(frame->filename, "support/exporter.c"));
    assert_in_range(frame->line, 12, 16); /* where the function is */
    tn_symbols_destroy(symbols);
    assert_int_equal(dlclose(module), 0);
}
#endif

static void without_memory_for_a_name_there_is_no_answer(void **state)
{
    const uint64_t address = (uint64_t)(uintptr_t)&cxx_function + 1;
    const uint64_t before = tarn_host_get_usage().live_bytes;
    uint64_t n = 0;
    size_t count = 0;
    const struct tarn_stack_frame *frame = NULL;

    (void)state;
    while (!frame) {
        struct tn_symbols *symbols = tn_symbols_create();

        assert_non_null(symbols);
        tarn_host_fail_nth(++n);
        frame = tn_symbols_find(symbols, address, &count);
        tarn_host_fail_nth(0);
        assert_true(n < 20);
        tn_symbols_destroy(symbols);
        assert_int_equal(tarn_host_get_usage().live_bytes, before);
    }
    assert_true(n > 3);
}

static void host_memory_may_be_missing(void **state)
{
    const uint64_t before = tarn_host_get_usage().live_bytes;
    struct tn_symbols *symbols;
    size_t count;

    (void)state;
    tarn_host_fail_nth(1);
    assert_null(tn_symbols_create());
    symbols = tn_symbols_create();
    assert_non_null(symbols);
    for (uint64_t n = 1; n <= 3; n++) {         /* frames, arena, map */
        tarn_host_fail_nth(n == 1 ? 1 : n - 1); /* the frames' memory stays once it is there */
        assert_null(tn_symbols_find(symbols, 4096, &count));
    }
    assert_non_null(tn_symbols_find(symbols, 4096, &count));
    tn_symbols_destroy(symbols);
    tarn_host_fail_nth(0);
    assert_int_equal(tarn_host_get_usage().live_bytes, before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_addresses_have_a_frame),
        cmocka_unit_test(other_modules_are_named),
        cmocka_unit_test(cxx_functions_have_their_names),
#ifdef HAS_LIBDW
        cmocka_unit_test(modules_need_no_table_of_addresses),
#endif
        cmocka_unit_test(without_memory_for_a_name_there_is_no_answer),
        cmocka_unit_test(host_memory_may_be_missing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
