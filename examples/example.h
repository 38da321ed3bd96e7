/* SPDX-License-Identifier: MIT */
/* Shared by the examples: exits with the library's error text if a call fails. */
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

/* Checks the contents of memory. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#endif
