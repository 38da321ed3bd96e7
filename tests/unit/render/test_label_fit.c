/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "render/label_fit.h"
#include "tarn/host.h"

#include <string.h>

/* What rows show of their labels. */
static void check(const char *const *labels, size_t count, size_t room, const char *const *wanted)
{
    struct tn_label_fit fit;

    assert_true(tn_label_fit_init(&fit, labels, count, room));
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(fit.texts[i] ? fit.texts[i] : labels[i], wanted[i]);
    }
    tn_label_fit_fini(&fit);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void outer_frames_go_first(void **state)
{
    static const char *const labels[] = {"aaa < bbb < ccc < ddd", "xxx < bbb", "(no frames)"};
    static const char *const at_15[] = {"aaa < bbb < ...", "xxx < bbb", "(no frames)"};
    static const char *const at_9[] = {"aaa < ...", "xxx < bbb", "(no frames)"};

    (void)state;
    check(labels, 3, 21, labels);
    check(labels, 3, 15, at_15);
    check(labels, 3, 9, at_9);
    check(labels, 3, 1, (const char *const[]){"aaa < ...", "xxx < ...", "(no frames)"});
    check(labels, 0, 1, labels);
}

/* Characters count, not bytes; a gap at the end is not doubled. */
static void characters_and_gaps(void **state)
{
    static const char *const labels[] = {"\xc3\xa4\xc3\xa4\xc3\xa4 < bbb < ... < ddd"};
    static const char *const wanted[] = {"\xc3\xa4\xc3\xa4\xc3\xa4 < bbb < ..."};

    (void)state;
    check(labels, 1, 15, wanted);
}

/* Rows that differ still do. */
static void rows_stay_apart(void **state)
{
    static const char *const two[] = {"aaa < bbb < ccc < x1 < yyy", "aaa < bbb < ccc < x2 < yyy"};
    static const char *const at_24[] = {"aaa < ... < x1 < ...", "aaa < ... < x2 < ..."};
    static const char *const at_15[] = {"... < x1 < ...", "... < x2 < ..."};
    static const char *const like[] = {"aaa < p1 < bbb < x1 < yyy", "aaa < p1 < bbb < x2 < yyy",
                                       "aaa < p2 < bbb < x1 < yyy", "aaa < p2 < bbb < x2 < yyy"};
    static const char *const equal[] = {"aaa < bbb < ccc", "aaa < bbb < ccc"};

    (void)state;
    check(two, 2, 24, (const char *const[]){"aaa < ... < x1 < ...", "aaa < ... < x2 < ..."});
    check(two, 2, 20, at_24);
    check(two, 2, 15, at_15);
    check(equal, 2, 10, (const char *const[]){"aaa < ...", "aaa < ..."});

    struct tn_label_fit fit;

    assert_true(tn_label_fit_init(&fit, like, 4, 15));
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(fit.texts[i] ? fit.texts[i] : like[i],
                                    fit.texts[k] ? fit.texts[k] : like[k]);
        }
    }
    tn_label_fit_fini(&fit);
}

static void failures_leave_nothing(void **state)
{
    static const char *const labels[] = {"aaa < bbb < ccc < x1", "aaa < bbb < ccc < x2",
                                         "ddd < bbb < ccc < x2"};
    bool good = false;
    uint64_t n = 0;

    (void)state;
    while (!good) {
        struct tn_label_fit fit;

        tarn_host_fail_nth(++n);
        good = tn_label_fit_init(&fit, labels, 3, 15);
        tarn_host_fail_nth(0);
        if (good) {
            tn_label_fit_fini(&fit);
        }
        assert_int_equal(tarn_host_get_usage().live_bytes, 0);
    }
    assert_true(n > 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outer_frames_go_first),
        cmocka_unit_test(characters_and_gaps),
        cmocka_unit_test(rows_stay_apart),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
