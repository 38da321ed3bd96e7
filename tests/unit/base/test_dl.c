/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "base/dl.h"

#include <string.h>

static void a_function_of_a_library_is_found(void **state)
{
    char why[256] = "";
    int (*get_version)(int *version) = NULL;
    int (*other)(void) = NULL;
    int version = 0;
    void *library = tn_dl_open(FAKE_CUDA, why, sizeof why);

    (void)state;
    assert_non_null(library);
    assert_string_equal(why, "");
    assert_true(tn_dl_find(library, "cuDriverGetVersion", &get_version));
    assert_int_equal(get_version(&version), 0);
    assert_int_equal(version, 13000);
    assert_false(tn_dl_find(library, "cuNoSuchFunction", &other));
    assert_null(other);
}

static void what_cannot_be_opened_has_a_reason(void **state)
{
    char why[256] = "";
    char little[8] = "";

    (void)state;
    assert_null(tn_dl_open("/no/such/library.so", why, sizeof why));
    assert_non_null(strstr(why, "/no/such/library.so"));
    assert_null(tn_dl_open("/no/such/library.so", little, sizeof little));
    assert_int_equal(strlen(little), sizeof little - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_of_a_library_is_found),
        cmocka_unit_test(what_cannot_be_opened_has_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
