/* SPDX-License-Identifier: MIT */
/*
 * 200,000 random operations in 100 programs, the same on the allocator and on the reference
 * allocator. A failing program is shrunk and printed as C.
 */
#include "support/test.h"

#include "property/shrink.h"
#include "support/share.h"

#include <dirent.h>

enum {
    PROGRAMS_A_CASE = 10,
    OPERATIONS = 2000
};

static void run_seeds(void **state)
{
    const uint64_t *first = *state;
    char text[PAIR_TEXT_MAX];

    for (uint64_t seed = *first; seed < *first + test_part(PROGRAMS_A_CASE); seed++) {
        struct program program = program_from_seed(seed, OPERATIONS);
        const bool passed = shrink_passes(&program, 16, false, text);

        if (!passed) {
            print_message("seed %llu: %s\n", (unsigned long long)seed, text);
            shrink(&program, text);
            program_print(&program, text, stderr);
        }
        program_fini(&program);
        assert_true(passed);
    }
}

/* A program that breaks nothing, from bytes: the fuzzer's decoder. */
static void bytes_are_a_program(void **state)
{
    uint8_t bytes[2 + 5 * 400];
    uint32_t x = 12345;
    char text[PAIR_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++) {
        x = x * 1103515245u + 12345u;
        bytes[i] = (uint8_t)(x >> 16);
    }
    struct program program = program_from_bytes(bytes, sizeof bytes);

    assert_int_equal(program.count, 400);
    if (!shrink_passes(&program, 1, false, text)) {
        fail_msg("%s", text);
    }
    program_fini(&program);
}

/* Programs that a fuzzer found worth keeping. */
static void corpus_is_the_same_on_both(void **state)
{
    DIR *folder = opendir(FUZZ_CORPUS_DIR "/ops");
    const struct dirent *entry;
    unsigned files = 0;

    (void)state;
    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL) {
        static uint8_t bytes[1 << 16];
        char path[512];
        char text[PAIR_TEXT_MAX];

        if (entry->d_name[0] == '.') {
            continue;
        }
        (void)snprintf(path, sizeof path, "%s/ops/%s", FUZZ_CORPUS_DIR, entry->d_name);
        FILE *file = fopen(path, "rb");

        assert_non_null(file);
        struct program program = program_from_bytes(bytes, fread(bytes, 1, sizeof bytes, file));

        (void)fclose(file);
        if (!shrink_passes(&program, 4, false, text)) {
            fail_msg("%s: %s", path, text);
        }
        program_fini(&program);
        files++;
    }
    (void)closedir(folder);
    assert_true(files > 0);
}

/* Blocks that a program has reused within a capture; the program breaks nothing. */
static uint64_t reclaimed_by(const struct program *program)
{
    struct pair *pair = pair_create(program, 16);
    char text[PAIR_TEXT_MAX];

    for (size_t i = 0; i < program->count; i++) {
        if (!pair_apply(pair, &program->ops[i], text)) {
            fail_msg("operation %zu: %s", i, text);
        }
    }
    const uint64_t reclaimed = pair_reclaimed(pair);

    pair_destroy(pair);
    return reclaimed;
}

/* The programs come to what only the graph under capture allows. */
static void programs_reuse_blocks_within_captures(void **state)
{
    uint64_t reclaimed = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct program program = program_from_seed(seed, OPERATIONS);

        reclaimed += reclaimed_by(&program);
        program_fini(&program);
    }
    assert_true(reclaimed >= 10);
}

/* Programs put blocks where others have been. */
static void programs_allocate_at_addresses(void **state)
{
    uint64_t placed = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct program program = program_from_seed(seed, OPERATIONS);
        struct pair *pair = pair_create(&program, 16);
        char text[PAIR_TEXT_MAX];

        for (size_t i = 0; i < program.count; i++) {
            assert_true(pair_apply(pair, &program.ops[i], text));
        }
        placed += pair_placed(pair);
        pair_destroy(pair);
        program_fini(&program);
    }
    assert_true(placed >= 100);
}

static void fewer_bytes_than_an_operation_are_an_empty_program(void **state)
{
    const uint8_t bytes[6] = {1, 2, 3, 4, 5, 6};
    struct program program = program_from_bytes(bytes, sizeof bytes);

    (void)state;
    assert_int_equal(program.count, 0);
    program_fini(&program);
}

static void a_seed_is_always_the_same_program(void **state)
{
    struct program a = program_from_seed(7, 50);
    struct program b = program_from_seed(7, 50);

    (void)state;
    for (size_t i = 0; i < a.count; i++) {
        assert_int_equal(a.ops[i].kind, b.ops[i].kind);
        assert_true(a.ops[i].value == b.ops[i].value && a.ops[i].slot == b.ops[i].slot);
    }
    program_fini(&a);
    program_fini(&b);
}

int main(void)
{
    static uint64_t first[10];
    struct CMUnitTest tests[16] = {
        cmocka_unit_test(bytes_are_a_program),
        cmocka_unit_test(corpus_is_the_same_on_both),
        cmocka_unit_test(programs_reuse_blocks_within_captures),
        cmocka_unit_test(programs_allocate_at_addresses),
        cmocka_unit_test(fewer_bytes_than_an_operation_are_an_empty_program),
        cmocka_unit_test(a_seed_is_always_the_same_program),
    };

    for (size_t i = 0; i < 10; i++) {
        first[i] = 1 + i * PROGRAMS_A_CASE;
        tests[6 + i] = (struct CMUnitTest){
            .name = "ten_programs_are_the_same_on_both",
            .test_func = run_seeds,
            .initial_state = &first[i],
        };
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
