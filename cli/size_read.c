/* SPDX-License-Identifier: MIT */
#include "size_read.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool cli_unit_read(const char *unit, uint64_t *bytes_out)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } units[] = {{"", 1},
                 {"B", 1},
                 {"K", (uint64_t)1 << 10},
                 {"KiB", (uint64_t)1 << 10},
                 {"M", (uint64_t)1 << 20},
                 {"MiB", (uint64_t)1 << 20},
                 {"G", (uint64_t)1 << 30},
                 {"GiB", (uint64_t)1 << 30},
                 {"T", (uint64_t)1 << 40},
                 {"TiB", (uint64_t)1 << 40},
                 {"KB", 1000},
                 {"MB", 1000000},
                 {"GB", 1000000000},
                 {"TB", 1000000000000}};

    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcasecmp(unit, units[i].name) == 0) {
            *bytes_out = units[i].bytes;
            return true;
        }
    }
    return false;
}

/* A whole number, exact to 64 bits. */
static bool whole_read(const char *text, uint64_t *number_out, const char **end_out)
{
    const bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    char *end = NULL;

    errno = 0;
    const unsigned long long number = strtoull(text, &end, hexadecimal ? 16 : 10);

    *number_out = number;
    *end_out = end;
    return errno == 0;
}

/* The digits after the point, in units. */
static bool fraction_read(const char **text, uint64_t unit, uint64_t *bytes_out)
{
    const size_t count = strspn(*text, "0123456789");
    double part = 0;
    double place = 1;

    for (size_t i = 0; i < count; i++) {
        place /= 10;
        part += place * ((*text)[i] - '0');
    }
    *text += count;
    *bytes_out = (uint64_t)llround(part * (double)unit);
    return count > 0;
}

bool cli_size_read(const char *text, uint64_t *bytes_out)
{
    const char *end = NULL;
    uint64_t number = 0;
    uint64_t more = 0;
    uint64_t unit;

    if (*text < '0' || *text > '9' || !whole_read(text, &number, &end)) {
        return false;
    }
    const char *fraction = *end == '.' ? end + 1 : NULL;

    end += fraction ? 1 + strspn(fraction, "0123456789") : 0;
    end += strspn(end, " ");
    if (!cli_unit_read(end, &unit) || number > UINT64_MAX / unit ||
        (fraction && !fraction_read(&fraction, unit, &more)) || number * unit > UINT64_MAX - more) {
        return false;
    }
    *bytes_out = number * unit + more;
    return true;
}
