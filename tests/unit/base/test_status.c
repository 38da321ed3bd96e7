/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "base/errinfo.h"
#include "tarn/status.h"

static void names_and_texts_exist_for_every_code(void **state)
{
    (void)state;
    for (int i = 0; i < TARN_STATUS_COUNT; i++) {
        assert_true(tarn_status_name((enum tarn_status)i)[0] == 'T');
        assert_true(tarn_status_text((enum tarn_status)i)[0] != '\0');
    }
    assert_string_equal(tarn_status_name((enum tarn_status)999), "unknown status");
}

static void fail_fills_the_error_and_returns_the_status(void **state)
{
    struct tarn_error error;

    (void)state;
    assert_int_equal(tn_fail(&error, TARN_ERR_IO, "cannot read %d", 7), TARN_ERR_IO);
    assert_int_equal(error.status, TARN_ERR_IO);
    assert_int_equal(error.offset, -1);
    assert_string_equal(error.text, "cannot read 7");
    assert_int_equal(tn_fail_at(NULL, TARN_ERR_FORMAT, 3, "x"), TARN_ERR_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_texts_exist_for_every_code),
        cmocka_unit_test(fail_fills_the_error_and_returns_the_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
