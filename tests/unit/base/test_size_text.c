/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "base/size_text.h"

static void sizes_as_pytorch_prints_them(void **state)
{
    static const struct {
        double bytes;
        const char *text;
    } cases[] = {
        {0, "0.0B"},
        {1023, "1023.0B"},
        {1024, "1.0KiB"},
        {1536, "1.5KiB"},
        {-2048, "-2.0KiB"},
        {20971520, "20.0MiB"},
        {1073741823, "1024.0MiB"},
        {1073741824, "1.0GiB"},
        {18446744073709551615.0, "16.0EiB"},
        {1024.0 * 1024 * 1152921504606846976.0, "1.0YiB"},
        {4096.0 * 1024 * 1024 * 1152921504606846976.0, "4096.0YiB"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(tn_size_text(cases[i].bytes).text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_as_pytorch_prints_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
