/* SPDX-License-Identifier: MIT */
/*
 * How much of a long search a test makes: all of it, or one part in TARN_TEST_SHARE. Builds with a
 * sanitizer take a part in every change (tools/run_tests.sh), because the build with all checks on
 * makes the whole search at the same time; make nightly has them take all of it.
 */
#ifndef TESTS_SUPPORT_SHARE_H
#define TESTS_SUPPORT_SHARE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* At least 1. */
static inline uint64_t test_share(void)
{
    const char *text = getenv("TARN_TEST_SHARE");
    const uint64_t share = text ? strtoull(text, NULL, 10) : 1;

    return share > 1 ? share : 1;
}

/* One part of `count`, rounded up. */
static inline uint64_t test_part(uint64_t count)
{
    return (count + test_share() - 1) / test_share();
}

/* Whether to run what one thread does: by day the thread sanitizer's build leaves it to others. */
static inline bool test_one_thread(void)
{
#ifdef __SANITIZE_THREAD__
    return test_share() == 1;
#else
    return true;
#endif
}

#endif
