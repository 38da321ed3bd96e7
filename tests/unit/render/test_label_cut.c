/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "render/label_cut.h"
#include "tarn/host.h"

#include <string.h>

static void check(const char *const *labels, size_t count, size_t room, const char *const *wanted)
{
    struct tn_label_fit fit;

    assert_true(tn_label_fit_init(&fit, labels, count, room));
    assert_true(tn_labels_cut(&fit, labels, room));
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(fit.texts[i] ? fit.texts[i] : labels[i], wanted[i]);
    }
    tn_label_fit_fini(&fit);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void ends_go(void **state)
{
    static const char *const labels[] = {"activations.py:66:forward < model.py:1:run",
                                         "functional.py:3504:cross_entropy < model.py:2:run",
                                         "(no frames)"};
    static const char *const at_28[] = {"activations.py:66:forward", "functional.py:3504:cross_...",
                                        "(no frames)"};

    (void)state;
    check(labels, 3, 28, at_28);
    check(labels, 3, 15,
          (const char *const[]){"activations.py:66:forward < ...",
                                "functional.py:3504:cross_entropy < ...", "(no frames)"});
}

static void paths_keep_their_ends(void **state)
{
    static const char *const labels[] = {"/home/me/site-packages/models/attention.py", "a/b.py"};
    static const char *const at_24[] = {".../models/attention.py", "a/b.py"};

    (void)state;
    check(labels, 2, 24, at_24);
}

/* What two rows would have in common is not cut. */
static void rows_stay_apart(void **state)
{
    static const char *const labels[] = {"a_function_with_a_long_name_1",
                                         "a_function_with_a_long_name_2"};

    (void)state;
    check(labels, 2, 20, labels);
}

static void failures_leave_nothing(void **state)
{
    static const char *const labels[] = {"activations.py:66:forward < model.py:1:run",
                                         "functional.py:3504:cross_entropy < model.py:2:run"};
    bool good = false;
    uint64_t n = 0;

    (void)state;
    while (!good) {
        struct tn_label_fit fit;

        assert_true(tn_label_fit_init(&fit, labels, 2, 20));
        tarn_host_fail_nth(++n);
        good = tn_labels_cut(&fit, labels, 20);
        tarn_host_fail_nth(0);
        tn_label_fit_fini(&fit);
        assert_int_equal(tarn_host_get_usage().live_bytes, 0);
    }
    assert_true(n > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_go),
        cmocka_unit_test(paths_keep_their_ends),
        cmocka_unit_test(rows_stay_apart),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
