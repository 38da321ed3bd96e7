/* SPDX-License-Identifier: MIT */
/* Debug information of all kinds, from a libdw that says what the test wants. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "support/child.h"
#include "support/test.h"

#include "history/debug_info.h"
#include "history/symbol.h"
#include "support/libdw_scripted.h"
#include "tarn/host.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <stdio.h>
#include <string.h>

enum {
    ADDRESS = 0x1234,
    DEEP = 70 /* more functions in each other than are followed */
};

static struct scripted_libdw *script;
static bool has_no_library;

/* The library of that name is the scripted one, or none. */
void *dlopen(const char *path, int flags)
{
    const bool is_libdw = path && strcmp(path, "libdw.so.1") == 0;
    __typeof__(&dlopen) real;
    void *const found = dlsym(RTLD_NEXT, "dlopen");

    memcpy(&real, &found, sizeof real);
    return is_libdw && has_no_library ? NULL : real(is_libdw ? LIBDW_SCRIPTED : path, flags);
}

/* What was visited: "name@file:line" and a blank each. */
struct visited {
    char text[4096];
    int left; /* visits until the visitor stops; -1 = never */
};

static bool note(void *context, const char *name, const char *file, uint64_t line)
{
    struct visited *visited = context;
    const size_t used = strlen(visited->text);

    (void)snprintf(visited->text + used, sizeof visited->text - used, "%s@%s:%llu ",
                   name ? name : "-", file ? file : "-", (unsigned long long)line);
    return visited->left < 0 || --visited->left > 0;
}

static void begin(struct scripted_entry *unit)
{
    *script = (struct scripted_libdw){.begin = 0x1000, .end = 0x2000, .file = "a.c", .unit = unit};
}

static void expect(const char *text)
{
    struct visited visited = {.left = -1};
    struct tn_debug_info *info;

    assert_true(tn_debug_info_open(&info));
    assert_non_null(info);
    assert_true(tn_debug_info_visit(info, ADDRESS, note, &visited));
    tn_debug_info_expect_modules(info);
    tn_debug_info_close(info);
    assert_int_equal(script->sessions, 0);
    assert_string_equal(visited.text, text);
}

static void functions_are_found_in_every_scope(void **state)
{
    static const int tags[] = {DW_TAG_namespace,  DW_TAG_structure_type, DW_TAG_class_type,
                               DW_TAG_module,     DW_TAG_lexical_block,  DW_TAG_try_block,
                               DW_TAG_catch_block};
    struct scripted_entry function = {
        .tag = DW_TAG_subprogram, .name = "function", .has_address = true};

    (void)state;
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        struct scripted_entry scope = {.tag = tags[i], .has_address = true, .child = &function};
        struct scripted_entry before = {.tag = DW_TAG_subprogram, .name = "other", .next = &scope};
        struct scripted_entry unit = {.tag = DW_TAG_compile_unit, .child = &before};

        begin(&unit);
        expect("function@a.c:7 ");
    }
    /* Types hold none. */
    struct scripted_entry type = {
        .tag = DW_TAG_enumeration_type, .has_address = true, .child = &function};
    struct scripted_entry unit = {.tag = DW_TAG_compile_unit, .child = &type};

    begin(&unit);
    expect("-@a.c:7 ");
}

static void names_are_those_of_the_linker_for_cxx(void **state)
{
    struct scripted_entry function = {.tag = DW_TAG_subprogram,
                                      .name = "short",
                                      .linkage_name = "_ZN1a5shortEv",
                                      .has_address = true};
    struct scripted_entry unit = {.tag = DW_TAG_compile_unit, .child = &function};

    (void)state;
    begin(&unit);
    expect("_ZN1a5shortEv@a.c:7 ");
    function.linkage_name = "long_name_of_another_language";
    expect("short@a.c:7 ");
    function.linkage_name = NULL;
    expect("short@a.c:7 ");
}

/* Where an inlined function was called is known, or half, or not. */
static void calls_of_inlined_functions_have_places(void **state)
{
    struct scripted_entry inner = {.tag = DW_TAG_inlined_subroutine,
                                   .name = "inner",
                                   .has_address = true,
                                   .call_line = 30,
                                   .call_in = "b.c"};
    struct scripted_entry outer = {
        .tag = DW_TAG_subprogram, .name = "outer", .has_address = true, .child = &inner};
    struct scripted_entry unit = {.tag = DW_TAG_compile_unit, .child = &outer};
    struct visited visited = {.left = 1};
    struct tn_debug_info *info;

    (void)state;
    begin(&unit);
    expect("inner@a.c:7 outer@b.c:30 ");
    script->has_no_files = true;
    expect("inner@a.c:7 outer@-:0 ");
    script->has_no_files = false;
    script->file = NULL;
    expect("inner@-:0 outer@b.c:30 ");
    inner.call_in = NULL;
    expect("inner@-:0 outer@-:0 ");
    inner.call_line = 0;
    inner.call_in = "b.c";
    expect("inner@-:0 outer@-:0 ");
    assert_true(tn_debug_info_open(&info));
    assert_false(tn_debug_info_visit(info, ADDRESS, note, &visited)); /* it stops */
    assert_string_equal(visited.text, "inner@-:0 ");
    tn_debug_info_close(info);
}

/* The outermost are kept. */
static void functions_in_functions_are_bounded(void **state)
{
    static struct scripted_entry functions[DEEP];
    static char names[DEEP][16];
    struct scripted_entry unit = {.tag = DW_TAG_compile_unit, .child = &functions[0]};
    struct visited visited = {.left = -1};
    struct tn_debug_info *info;

    (void)state;
    for (int i = 0; i < DEEP; i++) {
        (void)snprintf(names[i], sizeof names[i], "f%d", i);
        functions[i] = (struct scripted_entry){.tag = DW_TAG_inlined_subroutine,
                                               .name = names[i],
                                               .has_address = true,
                                               .call_line = 1,
                                               .call_in = "c.c",
                                               .child = i + 1 < DEEP ? &functions[i + 1] : NULL};
    }
    begin(&unit);
    assert_true(tn_debug_info_open(&info));
    assert_true(tn_debug_info_visit(info, ADDRESS, note, &visited));
    tn_debug_info_close(info);
    assert_memory_equal(visited.text, "f63@a.c:7 f62@c.c:1 ", 20);
    assert_non_null(strstr(visited.text, " f0@c.c:1 "));
}

static void a_module_ends_where_it_says(void **state)
{
    (void)state;
    begin(NULL);
    script->exported = "exported";
    expect("exported@module:0 ");
    script->begin = ADDRESS + 1;
    expect("");
    script->begin = ADDRESS;
    script->end = ADDRESS;
    expect("");
}

static void without_memory_there_is_none(void **state)
{
    struct visited visited = {.left = -1};
    struct tn_debug_info *info;

    (void)state;
    begin(NULL);
    script->has_no_memory = true;
    assert_true(tn_debug_info_open(&info)); /* libdw's own */
    assert_null(info);
    assert_true(tn_debug_info_visit(info, ADDRESS, note, &visited));
    tn_debug_info_expect_modules(info);
    tn_debug_info_close(info);
    assert_string_equal(visited.text, "");
    script->has_no_memory = false;
    tarn_host_fail_nth(1);
    assert_false(tn_debug_info_open(&info));
    tarn_host_fail_nth(0);
    assert_null(info);
    assert_int_equal(script->sessions, 0);
}

/* Frames without a file or a name of their own have those of the module, or none. */
static void symbols_have_what_is_known(void **state)
{
    void *library = dlopen(EXPORTER, RTLD_NOW | RTLD_LOCAL);
    struct scripted_entry inner = {
        .tag = DW_TAG_inlined_subroutine, .name = "inner", .has_address = true};
    struct scripted_entry outer = {.tag = DW_TAG_subprogram, .has_address = true};
    struct scripted_entry unit = {.tag = DW_TAG_compile_unit, .child = &outer};
    struct tn_symbols *symbols = tn_symbols_create();
    size_t count = 0;

    (void)state;
    assert_non_null(library);
    begin(&unit);
    script->begin = 0;
    script->end = UINT64_MAX;
    const uint64_t address = (uint64_t)(uintptr_t)dlsym(library, "exporter_plain") + 1;
    const struct tarn_stack_frame *frames = tn_symbols_find(symbols, address, &count);

    assert_non_null(frames);
    assert_int_equal(count, 1);
    assert_string_equal(frames[0].name, "exporter_plain");
    assert_string_equal(frames[0].filename, "a.c");
    outer.name = "outer";
    outer.child = &inner;
    frames = tn_symbols_find(symbols, address + 1, &count);
    assert_non_null(frames);
    assert_int_equal(count, 2);
    assert_string_equal(frames[0].name, "inner");
    assert_string_equal(frames[1].name, "outer");
    assert_string_equal(frames[1].filename, "??");
    tn_symbols_destroy(symbols);
    assert_int_equal(dlclose(library), 0);
}

/* Makes each allocation of the symbol of an address fail once. Returns how many there are. */
static uint64_t symbol_allocations_fail(void)
{
    const uint64_t before = tarn_host_get_usage().live_bytes;
    const struct tarn_stack_frame *frames = NULL;
    uint64_t n = 0;

    while (!frames) {
        struct tn_symbols *symbols = tn_symbols_create();
        size_t count = 0;

        assert_non_null(symbols);
        tarn_host_fail_nth(++n);
        frames = tn_symbols_find(symbols, ADDRESS, &count);
        tarn_host_fail_nth(0);
        assert_int_equal(count, frames ? 64 : 0);
        tn_symbols_destroy(symbols);
        assert_int_equal(tarn_host_get_usage().live_bytes, before);
    }
    return n - 1;
}

/* Of as many frames as are kept, whose names leave more or less room for what comes after them. */
static void every_allocation_of_a_symbol_may_fail(void **state)
{
    static struct scripted_entry functions[DEEP];
    static char names[DEEP][256];
    struct scripted_entry unit = {.tag = DW_TAG_compile_unit, .child = &functions[0]};

    (void)state;
    begin(&unit);
    for (size_t length = 8; length < sizeof names[0]; length += 8) {
        for (int i = 0; i < DEEP; i++) {
            memset(names[i], 'a' + i % 26, length);
            functions[i] =
                (struct scripted_entry){.tag = DW_TAG_subprogram,
                                        .name = names[i],
                                        .has_address = true,
                                        .child = i + 1 < DEEP ? &functions[i + 1] : NULL};
        }
        assert_true(symbol_allocations_fail() >= 3);
    }
}

static void open_without_library(void *context)
{
    struct tn_debug_info *info = context;

    has_no_library = true;
    CHILD_REQUIRE(tn_debug_info_open(&info));
    CHILD_REQUIRE(!info);
    has_no_library = false;
    CHILD_REQUIRE(tn_debug_info_open(&info)); /* it is looked for once */
    CHILD_REQUIRE(!info);
}

static void without_the_library_there_is_none(void **state)
{
    (void)state;
    child_run(open_without_library, &state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_the_library_there_is_none), /* before it is loaded */
        cmocka_unit_test(functions_are_found_in_every_scope),
        cmocka_unit_test(names_are_those_of_the_linker_for_cxx),
        cmocka_unit_test(calls_of_inlined_functions_have_places),
        cmocka_unit_test(functions_in_functions_are_bounded),
        cmocka_unit_test(a_module_ends_where_it_says),
        cmocka_unit_test(without_memory_there_is_none),
        cmocka_unit_test(symbols_have_what_is_known),
        cmocka_unit_test(every_allocation_of_a_symbol_may_fail),
    };
    void *library = dlopen(LIBDW_SCRIPTED, RTLD_NOW | RTLD_LOCAL);

    script = library ? dlsym(library, "scripted") : NULL;
    if (!script) {
        (void)printf("the libdw of this test is missing\n");
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
