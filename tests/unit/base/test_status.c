/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "base/errinfo.h"
#include "base/finding.h"
#include "tarn/status.h"

#include <string.h>

static void names_and_texts_exist_for_every_code(void **state)
{
    (void)state;
    for (int i = 0; i < TARN_STATUS_COUNT; i++) {
        assert_true(tarn_status_name((enum tarn_status)i)[0] == 'T');
        assert_true(tarn_status_text((enum tarn_status)i)[0] != '\0');
    }
    assert_string_equal(tarn_status_name((enum tarn_status)999), "unknown status");
    assert_string_equal(tarn_status_text((enum tarn_status)999), "unknown status");
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

/* Names of files and keys, which anybody may have chosen, are parts of many texts. */
static void texts_are_safe_to_show(void **state)
{
    char name[TARN_ERROR_TEXT_MAX + 8];
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    struct tarn_error error;

    (void)state;
    (void)tn_fail(&error, TARN_ERR_IO, "cannot read %s", "\x1b[2J\xc2\x9b\xe2\x80\xae\xff\n");
    assert_string_equal(error.text, "cannot read \\x1b[2J\\x9b\\u202e\\xff\\x0a");
    tn_finding_add(&findings, "%s", "\x1b");
    assert_string_equal(findings.text[0], "\\x1b");
    memset(name, 'a', sizeof name);
    for (size_t cut = 1; cut < 4; cut++) { /* a character of four bytes does not fit */
        memcpy(name + TARN_ERROR_TEXT_MAX - 1 - cut, "\xf0\x9f\x94\xa5", 5);
        (void)tn_fail(&error, TARN_ERR_IO, "%s", name);
        assert_int_equal(strlen(error.text), TARN_ERROR_TEXT_MAX - 1 - cut);
        assert_int_equal(strspn(error.text, "a"), TARN_ERROR_TEXT_MAX - 1 - cut);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_texts_exist_for_every_code),
        cmocka_unit_test(fail_fills_the_error_and_returns_the_status),
        cmocka_unit_test(texts_are_safe_to_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
