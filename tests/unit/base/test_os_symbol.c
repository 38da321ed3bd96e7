/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/os_symbol.h"

/* A whole module is opened and searched; static because it is large. */
static struct tn_os_symbol symbol;

static uintptr_t address_in(void *library, const char *name)
{
    void *found = dlsym(library, name);

    assert_non_null(found);
    return (uintptr_t)found + 1;
}

static void *open_module(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    assert_non_null(library);
    return library;
}

/* Both kinds of hash table, by which the linker counts symbols. */
static void exported_functions_have_names(void **state)
{
    static const char *const modules[] = {EXPORTER, EXPORTER_SYSV};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        void *library = open_module(modules[i]);

        assert_true(tn_os_symbol_find(address_in(library, "exporter_plain"), &symbol));
        assert_string_equal(symbol.name, "exporter_plain");
        assert_string_equal(symbol.module, modules[i]);
        assert_true(tn_os_symbol_find(address_in(library, "_ZN8exporter4randEi"), &symbol));
        assert_string_equal(symbol.name, "_ZN8exporter4randEi");
        assert_int_equal(dlclose(library), 0);
    }
}

/* Several symbols cover an address: the one that begins last, and of those a global function,
 * wherever the table has it. */
static void one_of_several_names_is_chosen(void **state)
{
    static const char *const modules[] = {EXPORTER, EXPORTER_SYSV};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        void *library = open_module(modules[i]);

        assert_true(tn_os_symbol_find(address_in(library, "exporter_global"), &symbol));
        assert_string_equal(symbol.name, "exporter_global");
        assert_true(tn_os_symbol_find(address_in(library, "exporter_outer") - 1, &symbol));
        assert_string_equal(symbol.name, "exporter_outer");
        assert_int_equal(dlclose(library), 0);
    }
}

static void other_functions_have_only_a_module(void **state)
{
    void *library = open_module(EXPORTER);
    uintptr_t (*hidden_address)(void) = NULL;
    void *found = dlsym(library, "exporter_hidden_address");

    (void)state;
    memcpy(&hidden_address, &found, sizeof found);
    assert_true(tn_os_symbol_find(hidden_address() + 1, &symbol));
    assert_string_equal(symbol.name, "");
    assert_string_equal(symbol.module, EXPORTER);
    assert_int_equal(dlclose(library), 0);
}

static void the_program_has_a_path(void **state)
{
    (void)state;
    assert_true(tn_os_symbol_find((uintptr_t)&the_program_has_a_path + 1, &symbol));
    assert_non_null(strstr(symbol.module, "/test_os_symbol"));
}

static void system_functions_have_names(void **state)
{
    (void)state;
    assert_true(tn_os_symbol_find((uintptr_t)dlsym(RTLD_DEFAULT, "qsort") + 1, &symbol));
    assert_non_null(strstr(symbol.name, "qsort"));
}

static void nothing_is_found_outside_of_code(void **state)
{
    static const int constant = 7;
    int local = 0;
    const uintptr_t addresses[] = {
        0, 1, UINTPTR_MAX, (uintptr_t)&local, (uintptr_t)&constant, (uintptr_t)&symbol,
    };

    (void)state;
    memcpy(symbol.name, "kept", 5);
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        assert_false(tn_os_symbol_find(addresses[i], &symbol));
        assert_string_equal(symbol.name, "kept");
    }
}

static void a_closed_module_is_not_found(void **state)
{
    void *library = open_module(EXPORTER);
    const uintptr_t address = address_in(library, "exporter_plain");

    (void)state;
    assert_int_equal(dlclose(library), 0);
    if (dlopen(EXPORTER, RTLD_LAZY | RTLD_NOLOAD)) {
        (void)printf("skip: this system keeps closed modules\n");
        skip();
    }
    assert_false(tn_os_symbol_find(address, &symbol) && strcmp(symbol.module, EXPORTER) == 0);
}

static atomic_bool stop;

static void *open_and_close(void *argument)
{
    (void)argument;
    while (!atomic_load(&stop)) {
        (void)dlclose(open_module(EXPORTER));
    }
    return NULL;
}

/* Another thread opens and closes the module that is searched: it is found whole or not at all. */
static void modules_may_close_meanwhile(void **state)
{
    void *library = open_module(EXPORTER);
    const uintptr_t address = address_in(library, "exporter_plain");
    pthread_t thread;

    (void)state;
    assert_int_equal(dlclose(library), 0);
    assert_int_equal(pthread_create(&thread, NULL, open_and_close, NULL), 0);
    for (int i = 0; i < 20000; i++) {
        if (tn_os_symbol_find(address, &symbol) && strcmp(symbol.module, EXPORTER) == 0 &&
            symbol.name[0] != '\0') {
            assert_memory_equal(symbol.name, "exporter_", 9);
        }
    }
    atomic_store(&stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exported_functions_have_names),
        cmocka_unit_test(one_of_several_names_is_chosen),
        cmocka_unit_test(other_functions_have_only_a_module),
        cmocka_unit_test(the_program_has_a_path),
        cmocka_unit_test(system_functions_have_names),
        cmocka_unit_test(nothing_is_found_outside_of_code),
        cmocka_unit_test(a_closed_module_is_not_found),
        cmocka_unit_test(modules_may_close_meanwhile),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
