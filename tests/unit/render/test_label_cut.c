/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "render/label_cut.h"
#include "tarn/host.h"
#include "tarn/report.h"

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

/* Characters count; a gap before or behind what is cut goes first. */
static void characters_and_gaps(void **state)
{
    static const char *const labels[] = {
        "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f_\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f_a_function",
        "a/function/of/some.py:1:length < b.py:2:main",
    };
    static const char *const at_16[] = {
        "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f_\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f_a_f...",
        "a/function/of...",
    };

    (void)state;
    check(labels, 2, 16, at_16);
}

/* Rows of one label are cut alike; more rows than are compared stay as they are. */
static void equal_rows_and_many(void **state)
{
    enum {
        MANY = 201
    };
    static const char *const equal[] = {"a_function_with_a_long_name",
                                        "a_function_with_a_long_name"};
    static const char *const at_20[] = {"a_function_with_a...", "a_function_with_a..."};
    static const char *many[MANY];
    static const char *wanted[MANY];

    (void)state;
    check(equal, 2, 20, at_20);
    for (int i = 0; i < MANY; i++) {
        many[i] = i % 2 ? "a_function_with_a_long_name < b.py:1:main" : "short < b.py:1:f";
        wanted[i] = i % 2 ? "a_function_with_a_long_name < ..." : "short < b.py:1:f";
    }
    check(many, MANY, 20, wanted);
}

/* Without host memory rows have their labels as they are. */
static void groups_keep_their_labels_without_memory(void **state)
{
    static const struct tarn_group groups[] = {{.text = "aaa < bbb < ccc < x1_with_a_long_name"},
                                               {.text = "aaa < bbb < ccc < x2_with_a_long_name"},
                                               {.text = "a_function_with_a_long_name"}};
    struct tn_label_fit fit;
    size_t failed = 0;

    (void)state;
    for (uint64_t n = 1; n < 100; n++) {
        tarn_host_fail_nth(n);
        tn_group_labels_fit(&fit, groups, 3, sizeof *groups, 20);
        tarn_host_fail_nth(0);
        assert_true(fit.count == 0 || fit.count == 3);
        failed += fit.count == 0;
        const bool is_whole = fit.count > 0;

        if (is_whole) {
            assert_string_equal(fit.texts[2], "a_function_with_a...");
        }
        tn_label_fit_fini(&fit);
        assert_int_equal(tarn_host_get_usage().live_bytes, 0);
        if (is_whole) {
            break;
        }
    }
    assert_true(failed > 8);
    tn_group_labels_fit(&fit, groups, 3, sizeof *groups, 0);
    assert_int_equal(fit.count, 0);
    tn_group_labels_fit(&fit, groups, 0, sizeof *groups, 20);
    assert_int_equal(fit.count, 0);
}

static void paths_keep_their_ends(void **state)
{
    static const char *const labels[] = {"/home/me/site-packages/models/attention.py", "a/b.py"};
    static const char *const at_24[] = {".../models/attention.py", "a/b.py"};

    (void)state;
    check(labels, 2, 24, at_24);

    static const char *const long_name[] = {"/home/a_module_with_a_long_name.py"};
    static const char *const its_end[] = {"...with_a_long_name.py"};

    check(long_name, 1, 22, its_end);
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
        cmocka_unit_test(characters_and_gaps),
        cmocka_unit_test(equal_rows_and_many),
        cmocka_unit_test(groups_keep_their_labels_without_memory),
        cmocka_unit_test(paths_keep_their_ends),
        cmocka_unit_test(rows_stay_apart),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
