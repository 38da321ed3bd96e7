/* SPDX-License-Identifier: MIT */
/* 240,000 random calls of four threads in all, the same on the allocator and on the reference. */
#include "support/test.h"

#include "property/merged.h"
#include "support/share.h"

enum {
    SETTINGS = 12
};

static void threads_are_the_same_as_one(void **state)
{
    const uint64_t *number = *state;
    const struct merged_settings settings = {.config = merged_config(*number),
                                             .threads = 4,
                                             .seed = *number + 1,
                                             .calls = 1000,
                                             .rounds = test_part(5)};
    char text[MERGED_TEXT_MAX];

    if (!merged_run(&settings, text)) {
        fail_msg("%s", text);
    }
}

int main(void)
{
    static uint64_t numbers[SETTINGS];
    struct CMUnitTest tests[SETTINGS];

    for (uint64_t i = 0; i < SETTINGS; i++) {
        numbers[i] = i;
        tests[i] =
            (struct CMUnitTest)cmocka_unit_test_prestate(threads_are_the_same_as_one, &numbers[i]);
    }
    return cmocka_run_group_tests_name("threads_are_the_same_as_one", tests, NULL, NULL);
}
