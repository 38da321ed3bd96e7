/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "base/plural.h"

static void one_is_singular(void **state)
{
    (void)state;
    assert_string_equal(tn_plural(1, "stacks").text, "stack");
    assert_string_equal(tn_plural(1, "categories").text, "category");
    assert_string_equal(tn_plural(1, "files").text, "file");
    assert_string_equal(tn_plural(0, "stacks").text, "stacks");
    assert_string_equal(tn_plural(2, "categories").text, "categories");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_is_singular),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
