/* SPDX-License-Identifier: MIT */
/*
 * Modules whose tables are odd, cut or contradict themselves, as a linker or a debugger may leave
 * them in memory: what is in no segment is not read, and a function that no table names has no
 * name. The module is made here; the linker's list is replaced by it.
 */
#define _GNU_SOURCE    /* RTLD_NEXT, dl_iterate_phdr */
#undef _FORTIFY_SOURCE /* whose functions are inline */
#include "support/child.h"
#include "support/failing.h"
#include "support/test.h"

#include "base/os_code.h"
#include "base/os_symbol.h"

#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum {
    SEGMENTS = 3, /* code, data, and the dynamic section, which lies in the data */
    ENTRIES = 8,
    WORDS = 16,
    SYMBOLS = 4,
    STRINGS = 64,
    CODE_SIZE = 4096,
    FUNCTION = 0x100, /* offset in the code */
    LONG_NAME = TN_OS_SYMBOL_MAX
};

/* The only readable segment. */
struct data {
    Elf64_Dyn dynamic[ENTRIES];
    Elf64_Sym symbols[SYMBOLS];
    char strings[LONG_NAME + STRINGS];
    uint32_t hash[WORDS]; /* last, so that the segment can end in it */
};

/* A module at the address of `data`: addresses in it are offsets, or absolute. */
struct module {
    struct data data;
    char code[CODE_SIZE]; /* behind the data, so that its offset is positive */
    Elf64_Phdr segments[SEGMENTS];
    struct dl_phdr_info info;
};

static struct module module;
static bool is_made;          /* whether the module is in place of all others */
static atomic_bool is_locked; /* whether the linker's lock is held by somebody */
static atomic_bool waits;     /* somebody waits for it */

int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *info, size_t size, void *context),
                    void *context)
{
    int (*real)(int (*)(struct dl_phdr_info *, size_t, void *), void *) = NULL;
    void *const found = dlsym(RTLD_NEXT, "dl_iterate_phdr");

    while (atomic_load(&is_locked)) {
        atomic_store(&waits, true);
        (void)sched_yield();
    }
    if (is_made) {
        return visit(&module.info, sizeof module.info, context);
    }
    memcpy(&real, &found, sizeof real);
    return real(visit, context);
}

FAILING(ssize_t, -1, readlink, (const char *path, char *out, size_t size), (path, out, size))

static Elf64_Addr offset_of(const void *part)
{
    return (Elf64_Addr)((const char *)part - (const char *)&module);
}

static void entry_set(size_t index, Elf64_Sxword tag, Elf64_Xword value)
{
    module.data.dynamic[index] = (Elf64_Dyn){.d_tag = tag, .d_un.d_val = value};
}

static void symbol_set(size_t index, Elf64_Word name, unsigned char binding, Elf64_Addr begin,
                       Elf64_Xword size)
{
    module.data.symbols[index] = (Elf64_Sym){
        .st_name = name,
        .st_info = (unsigned char)(binding << 4 | STT_FUNC),
        .st_shndx = 1,
        .st_value = offset_of(module.code) + begin,
        .st_size = size,
    };
}

/* A module with a GNU hash table: of four symbols the first is not hashed. "function" is number 3,
 * symbol 1 covers another place, symbol 2 is not defined. */
static void module_make(void)
{
    struct data *data = &module.data;

    memset(&module, 0, sizeof module);
    module.info = (struct dl_phdr_info){
        .dlpi_addr = (Elf64_Addr)&module,
        .dlpi_name = "made",
        .dlpi_phdr = module.segments,
        .dlpi_phnum = SEGMENTS,
    };
    module.segments[0] = (Elf64_Phdr){.p_type = PT_LOAD,
                                      .p_flags = PF_R | PF_X,
                                      .p_vaddr = offset_of(module.code),
                                      .p_memsz = sizeof module.code};
    module.segments[1] =
        (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R, .p_vaddr = 0, .p_memsz = sizeof *data};
    module.segments[2] = (Elf64_Phdr){
        .p_type = PT_DYNAMIC, .p_vaddr = offset_of(data->dynamic), .p_memsz = sizeof data->dynamic};
    entry_set(0, DT_SYMTAB, offset_of(data->symbols));
    entry_set(1, DT_STRTAB, (Elf64_Addr)data->strings); /* absolute, as glibc makes them */
    entry_set(2, DT_STRSZ, STRINGS);
    entry_set(3, DT_GNU_HASH, offset_of(data->hash));
    memcpy(data->strings + 1, "function", sizeof "function");
    memcpy(data->strings + 20, "other", sizeof "other");
    symbol_set(1, 20, STB_GLOBAL, 0x800, 16);
    symbol_set(2, 20, STB_GLOBAL, FUNCTION, 16);
    data->symbols[2].st_shndx = SHN_UNDEF;
    symbol_set(3, 1, STB_GLOBAL, FUNCTION, 16);
    /* One bucket, symbols from number 1, one word of filter, and three hashes of one chain. */
    const uint32_t hash[] = {1, 1, 1, 0, 0, 0, 1, 0x10, 0x20, 0x31};

    memcpy(data->hash, hash, sizeof hash);
}

static void hash_of_old_style(uint32_t symbols)
{
    entry_set(3, DT_HASH, offset_of(module.data.hash));
    module.data.hash[0] = 1;
    module.data.hash[1] = symbols;
}

/* A static one: it is large. */
static struct tn_os_symbol symbol;

static void expect_at(size_t offset, const char *name)
{
    memset(&symbol, 'x', sizeof symbol);
    is_made = true;
    const bool found = tn_os_symbol_find((uintptr_t)module.code + offset, &symbol);

    is_made = false;
    assert_true(found);
    assert_string_equal(symbol.name, name);
}

static void expect(const char *name)
{
    expect_at(FUNCTION + 1, name);
    assert_string_equal(symbol.module, "made");
}

static void both_tables_name_the_function(void **state)
{
    (void)state;
    module_make();
    expect("function");
    expect_at(FUNCTION + 15, "function");
    expect_at(FUNCTION + 16, "");
    expect_at(FUNCTION - 1, "");
    expect_at(0x800, "other");
    hash_of_old_style(SYMBOLS);
    expect("function");
}

/* What begins last, wherever it is in the table. */
static void the_innermost_function_is_chosen(void **state)
{
    (void)state;
    module_make();
    symbol_set(1, 20, STB_GLOBAL, 0, CODE_SIZE);
    expect("function");
    symbol_set(1, 20, STB_WEAK, FUNCTION, 16);
    expect("function"); /* the global one of two */
    symbol_set(3, 1, STB_WEAK, FUNCTION, 16);
    expect("other"); /* the first of two weak ones */
}

static void without_a_table_there_is_no_name(void **state)
{
    static const Elf64_Sxword needed[] = {DT_SYMTAB, DT_STRTAB, DT_STRSZ, DT_GNU_HASH};

    (void)state;
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        module_make();
        assert_int_equal(module.data.dynamic[i].d_tag, needed[i]);
        module.data.dynamic[i].d_tag = DT_DEBUG;
        expect("");
    }
    module_make();
    module.segments[2].p_type = PT_NOTE; /* no dynamic section */
    expect("");
    module_make();
    for (size_t i = 4; i < ENTRIES; i++) {
        entry_set(i, DT_DEBUG, 0);
    }
    module.data.dynamic[3].d_tag = DT_DEBUG; /* nor an end */
    expect("");
}

static void what_no_segment_has_is_not_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        module_make();
        entry_set(i, module.data.dynamic[i].d_tag, UINT64_MAX / 2);
        expect("");
    }
    module_make();
    module.segments[1].p_flags = 0; /* nothing can be read */
    expect("");
    module_make();
    module.segments[2].p_memsz = sizeof module; /* longer than the data */
    expect("");
    module_make();
    entry_set(3, DT_GNU_HASH, sizeof module.data - 15);
    expect(""); /* a head of a table that is cut */
    module_make();
    hash_of_old_style(UINT32_MAX);
    expect("");
    module_make();
    entry_set(2, DT_STRSZ, 0);
    expect("");
}

static void a_hash_table_may_be_wrong(void **state)
{
    static const struct {
        size_t word;
        uint32_t value;
    } rows[] = {
        {0, UINT32_MAX}, /* more buckets than there are words */
        {1, 0},          /* no symbol may have the number 0 */
        {1, 4},          /* the bucket begins before the first symbol */
        {2, UINT32_MAX}, /* a longer filter */
        {6, 0},          /* an empty bucket */
        {6, UINT32_MAX}, /* a chain that begins behind the table */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        module_make();
        module.data.hash[rows[i].word] = rows[i].value;
        expect("");
    }
    /* A chain that does not end: the data ends first. */
    module_make();
    module.segments[1].p_memsz = offset_of(&module.data.hash[10]);
    module.data.hash[9] = 0x30;
    expect("");
}

static void a_name_may_be_wrong(void **state)
{
    (void)state;
    module_make();
    module.data.symbols[3].st_name = STRINGS; /* behind the strings */
    expect("");
    module_make();
    module.data.symbols[3].st_name = STRINGS - 2; /* not ended within them */
    memset(module.data.strings + STRINGS - 2, 'y', 10);
    expect("");
    module_make();
    entry_set(2, DT_STRSZ, sizeof module.data.strings);
    memset(module.data.strings + 1, 'y', LONG_NAME); /* longer than any that is taken */
    expect("");
    module_make();
    entry_set(2, DT_STRSZ, sizeof module.data.strings);
    memset(module.data.strings + 1, 'y', LONG_NAME - 1); /* the longest */
    expect_at(FUNCTION, module.data.strings + 1);
}

/* The linker has none for the program. */
static void a_module_without_a_name_is_the_program(void **state)
{
    char program[sizeof symbol.module] = "";

    (void)state;
    assert_true(readlink("/proc/self/exe", program, sizeof program - 1) > 0);
    module_make();
    module.info.dlpi_name = NULL;
    expect_at(FUNCTION, "function");
    assert_string_equal(symbol.module, program);
    module.info.dlpi_name = "";
    expect_at(FUNCTION, "function");
    assert_string_equal(symbol.module, program);
    fail_calls("readlink", 0, 1, EACCES); /* of /proc */
    expect_at(FUNCTION, "function");
    assert_true(fail_none());
    assert_string_equal(symbol.module, "");
}

/* The module has the code of this program, which holds the library. */
static void own_code_begin(const char *name)
{
    module_make();
    module.info.dlpi_addr = 0;
    module.info.dlpi_name = name;
    module.segments[0].p_vaddr = (uintptr_t)&tn_os_code_own - 16;
    module.segments[0].p_memsz = 32;
    is_made = true;
}

static void expect_own(void *context)
{
    const bool is_library = context != NULL;

    own_code_begin(is_library ? "library" : NULL);
    const struct tn_code_range own = tn_os_code_own();

    is_made = false;
    CHILD_REQUIRE(tn_code_range_has(&own, (uintptr_t)&tn_os_code_own) == is_library);
    CHILD_REQUIRE(own.end - own.begin == (is_library ? 32 : 0));
}

/* It is asked once, so in other processes. A program's own code is nobody's. */
static void own_code_is_that_of_a_library(void **state)
{
    int any = 0;

    (void)state;
    child_run(expect_own, NULL);
    child_run(expect_own, &any);
}

static void *find_nothing(void *argument)
{
    struct tn_code_range range;

    (void)argument;
    return tn_os_code_find(1, &range) ? &is_locked : NULL;
}

/* While another thread waits for the linker, this one gives up some time. */
static void nobody_waits_for_ever(void **state)
{
    const struct timespec pause = {.tv_nsec = 20000000}; /* until it looks again */
    struct tn_code_range range;
    pthread_t thread;
    void *found = &thread;

    (void)state;
    assert_int_equal(nanosleep(&pause, NULL), 0);
    atomic_store(&is_locked, true);
    assert_int_equal(pthread_create(&thread, NULL, find_nothing, NULL), 0);
    while (!atomic_load(&waits)) {
        (void)sched_yield();
    }
    assert_false(tn_os_code_find(1, &range));
    atomic_store(&is_locked, false);
    assert_int_equal(pthread_join(thread, &found), 0);
    assert_null(found);
}

/* More code than the table of ranges has room for: the rest is not found. */
static void ranges_of_code_are_bounded(void **state)
{
    static Elf64_Phdr many[TN_CODE_RANGES_MAX + 1];
    struct tn_code_range range;

    (void)state;
    module_make();
    for (size_t i = 0; i < TN_CODE_RANGES_MAX + 1; i++) {
        many[i] = (Elf64_Phdr){
            .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = 16 * i, .p_memsz = 8};
    }
    module.info.dlpi_phdr = many;
    module.info.dlpi_phnum = TN_CODE_RANGES_MAX + 1;
    is_made = true;
    const bool has_last =
        tn_os_code_find(module.info.dlpi_addr + (uintptr_t)16 * (TN_CODE_RANGES_MAX - 1), &range);
    const bool has_more =
        tn_os_code_find(module.info.dlpi_addr + (uintptr_t)16 * TN_CODE_RANGES_MAX, &range);

    is_made = false;
    assert_true(has_last);
    assert_false(has_more);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_tables_name_the_function),
        cmocka_unit_test(the_innermost_function_is_chosen),
        cmocka_unit_test(without_a_table_there_is_no_name),
        cmocka_unit_test(what_no_segment_has_is_not_read),
        cmocka_unit_test(a_hash_table_may_be_wrong),
        cmocka_unit_test(a_name_may_be_wrong),
        cmocka_unit_test(a_module_without_a_name_is_the_program),
        cmocka_unit_test(own_code_is_that_of_a_library),
        cmocka_unit_test(nobody_waits_for_ever),
        cmocka_unit_test(ranges_of_code_are_bounded), /* last: the table is kept */
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
