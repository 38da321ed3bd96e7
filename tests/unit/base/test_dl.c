/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "support/test.h"

#include "base/dl.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

static char *(*real_dlerror)(void);
static bool is_silent; /* the linker gives no reasons */

char *dlerror(void)
{
    return is_silent ? NULL : real_dlerror();
}

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
    is_silent = true;
    assert_null(tn_dl_open("/no/such/library.so", why, sizeof why));
    is_silent = false;
    assert_string_equal(why, "no reason given");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_of_a_library_is_found),
        cmocka_unit_test(what_cannot_be_opened_has_a_reason),
    };
    void *const found = dlsym(RTLD_NEXT, "dlerror"); /* now, because dlsym ends the last reason */

    memcpy(&real_dlerror, &found, sizeof found);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
