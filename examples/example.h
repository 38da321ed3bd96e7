/* SPDX-License-Identifier: MIT */
/* What the examples share: ending with the library's own sentence when a call fails. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <tarn/status.h>

#include <stdio.h>
#include <stdlib.h>

/* CHECK(tarn_something(..., &error)) */
#define CHECK(call)                                                                                \
    do {                                                                                           \
        if ((call) != TARN_OK) {                                                                   \
            (void)fprintf(stderr, "%s\n", error.text);                                             \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* For what must be true of the contents. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#endif
