/* SPDX-License-Identifier: MIT */
/* Names as a build without libdw finds them: linked with debug_info_none.c in every build, and once
 * more with a libdw that lacks functions. */
#include "support/test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "history/symbol.h"
#include "tarn/host.h"

static void *open_module(void)
{
    void *library = dlopen(EXPORTER, RTLD_NOW | RTLD_LOCAL);

    assert_non_null(library);
    return library;
}

static uint64_t address_in(void *library, const char *name)
{
    void *found = dlsym(library, name);

    assert_non_null(found);
    return (uint64_t)(uintptr_t)found + 1;
}

static void exported_functions_have_names(void **state)
{
    void *library = open_module();
    struct tn_symbols *symbols = tn_symbols_create();
    size_t count = 0;

    (void)state;
    const struct tarn_stack_frame *frame =
        tn_symbols_find(symbols, address_in(library, "exporter_plain"), &count);

    assert_non_null(frame);
    assert_int_equal(count, 1);
    assert_string_equal(frame->name, "exporter_plain");
    assert_string_equal(frame->filename, EXPORTER);
    assert_int_equal(frame->line, 0);
    tn_symbols_destroy(symbols);
    assert_int_equal(dlclose(library), 0);
}

static void cxx_functions_are_demangled(void **state)
{
    void *library = open_module();
    struct tn_symbols *symbols = tn_symbols_create();
    size_t count = 0;

    (void)state;
    if (!dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL)) {
        (void)printf("skip: there is no libstdc++ here\n");
        skip();
    }
    const struct tarn_stack_frame *frame =
        tn_symbols_find(symbols, address_in(library, "_ZN8exporter4randEi"), &count);

    assert_non_null(frame);
    assert_string_equal(frame->name, "exporter::rand(int)");
    tn_symbols_destroy(symbols);
    assert_int_equal(dlclose(library), 0);
}

/* What was resolved stays after the module is closed. */
static void names_outlive_their_module(void **state)
{
    void *library = open_module();
    const uint64_t address = address_in(library, "exporter_plain");
    struct tn_symbols *symbols = tn_symbols_create();
    size_t count = 0;

    (void)state;
    const struct tarn_stack_frame *frame = tn_symbols_find(symbols, address, &count);

    assert_int_equal(dlclose(library), 0);
    assert_string_equal(frame->name, "exporter_plain");
    assert_string_equal(frame->filename, EXPORTER);
    assert_ptr_equal(tn_symbols_find(symbols, address, &count), frame);
    tn_symbols_destroy(symbols);
}

static void unknown_addresses_have_a_frame(void **state)
{
    struct tn_symbols *symbols = tn_symbols_create();
    size_t count = 0;

    (void)state;
    const struct tarn_stack_frame *frame = tn_symbols_find(symbols, 4096, &count);

    assert_non_null(frame);
    assert_int_equal(count, 1);
    assert_string_equal(frame->name, "??");
    assert_string_equal(frame->filename, "??");
    tn_symbols_destroy(symbols);
}

static void host_memory_may_be_missing(void **state)
{
    void *library = open_module();
    const uint64_t address = address_in(library, "exporter_plain");
    const uint64_t before = tarn_host_get_usage().live_bytes;
    const struct tarn_stack_frame *frame = NULL;
    uint64_t n = 0;

    (void)state;
    while (!frame) {
        struct tn_symbols *symbols = tn_symbols_create();
        size_t count = 0;

        assert_non_null(symbols);
        tarn_host_fail_nth(++n);
        frame = tn_symbols_find(symbols, address, &count);
        tarn_host_fail_nth(0);
        assert_true(n < 20);
        tn_symbols_destroy(symbols);
        assert_int_equal(tarn_host_get_usage().live_bytes, before);
    }
    assert_true(n > 3); /* names, frames, map */
    assert_int_equal(dlclose(library), 0);
}

int main(void)
{
#ifdef LIBDW_INCOMPLETE
    if (!dlopen(LIBDW_INCOMPLETE, RTLD_NOW | RTLD_LOCAL)) {
        return 1;
    }
#endif

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exported_functions_have_names),
        cmocka_unit_test(cxx_functions_are_demangled),
        cmocka_unit_test(names_outlive_their_module),
        cmocka_unit_test(unknown_addresses_have_a_frame),
        cmocka_unit_test(host_memory_may_be_missing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
