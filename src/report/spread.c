/* SPDX-License-Identifier: MIT */
#include "report/spread.h"

#include "report/result.h"

#define OUTLIER_DISTANCE 3.5
#define OUTLIER_SHARE    0.01
#define NORMAL_FACTOR    1.4826 /* of the median distance to the standard deviation */
#define FAR_AWAY         999.9  /* a distance where all others are equal */

static double away(double number, double from)
{
    return number > from ? number - from : from - number;
}

struct tn_spread tn_spread_of(double *numbers, size_t count)
{
    struct tn_spread spread = {.count = count, .median = tn_median(numbers, count)};

    for (size_t i = 0; i < count; i++) {
        numbers[i] = away(numbers[i], spread.median);
    }
    spread.deviation = tn_median(numbers, count) * NORMAL_FACTOR;
    return spread;
}

double tn_spread_distance(const struct tn_spread *spread, double number)
{
    const double distance = away(number, spread->median);

    if (distance <= 0) {
        return 0;
    }
    return spread->deviation > 0 && distance / spread->deviation < FAR_AWAY
               ? distance / spread->deviation
               : FAR_AWAY;
}

bool tn_spread_has_outlier(const struct tn_spread *spread, double number)
{
    return spread->count >= TN_SPREAD_MIN &&
           tn_spread_distance(spread, number) >= OUTLIER_DISTANCE &&
           away(number, spread->median) > spread->median * OUTLIER_SHARE;
}
