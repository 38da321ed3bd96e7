/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "base/cxx_name.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void expect_name(const char *mangled, const char *wanted)
{
    char *name = tn_cxx_name(mangled);

    if (!name || strcmp(name, wanted) != 0) {
        fail_msg("%s: \"%s\" instead of \"%s\"", mangled, name ? name : "(none)", wanted);
    }
    tn_cxx_name_free(name);
}

/* First, while this program has no C++ runtime. */
static void without_cxx_nothing_is_loaded_for_it(void **state)
{
    (void)state;
    if (dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD) ||
        dlsym(RTLD_DEFAULT, "__cxa_demangle")) {
        (void)printf("skip: something here has loaded the C++ runtime\n");
        skip();
    }
    assert_null(tn_cxx_name("_ZN3foo3barEi"));
    assert_null(dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD));
}

static void names_are_those_of_the_source(void **state)
{
    (void)state;
    if (!dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL)) {
        (void)printf("skip: there is no libstdc++ here\n");
        skip();
    }
    expect_name("_ZN3foo3barEi", "foo::bar(int)");
    expect_name("_ZN2at6native3addERKNS_6TensorES3_", "at::native::add(at::Tensor const&, "
                                                      "at::Tensor const&)");
    expect_name("_ZZN3foo3barEiENKUlvE_clEv", "foo::bar(int)::{lambda()#1}::operator()() const");
    assert_null(tn_cxx_name("main"));
    assert_null(tn_cxx_name(""));
    assert_null(tn_cxx_name("_Z"));
    assert_null(tn_cxx_name("_Znonsense"));
    tn_cxx_name_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_cxx_nothing_is_loaded_for_it),
        cmocka_unit_test(names_are_those_of_the_source),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
