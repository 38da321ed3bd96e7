/* SPDX-License-Identifier: MIT */
/*
 * Which of many like numbers stands out. The distance of a number is that from the median in units
 * of the median absolute deviation, times 1.4826, which for a normal distribution is the standard
 * deviation. From 3.5 on, and 1 % of the median, it is an outlier.
 */
#ifndef TN_REPORT_SPREAD_H
#define TN_REPORT_SPREAD_H

#include <stdbool.h>
#include <stddef.h>

enum {
    TN_SPREAD_MIN = 3 /* of fewer numbers none is an outlier */
};

struct tn_spread {
    size_t count;
    double median;
    double deviation; /* 0: more than half of the numbers are equal */
};

/* Of `count` numbers, 1 at least, which it overwrites. */
struct tn_spread tn_spread_of(double *numbers, size_t count);

/* Never negative; at most 999.9, as where all others are equal. */
double tn_spread_distance(const struct tn_spread *spread, double number);

bool tn_spread_has_outlier(const struct tn_spread *spread, double number);

#endif
