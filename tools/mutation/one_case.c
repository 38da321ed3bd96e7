/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a program of cmocka tests: it runs the one case that the environment variable
 * TN_CASE names, so that a slow program's fast cases can be run alone (run.py).
 */
#include <stdlib.h>

__attribute__((weak)) void cmocka_set_test_filter(const char *pattern);

__attribute__((constructor)) static void choose_case(void)
{
    if (cmocka_set_test_filter && getenv("TN_CASE")) {
        cmocka_set_test_filter(getenv("TN_CASE"));
    }
}
