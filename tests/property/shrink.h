/* SPDX-License-Identifier: MIT */
/*
 * Makes a failing program small. A program is run in a process of its own, so that an assertion or
 * a crash is a failure like any other. Operations are left out in runs of n/2, n/4, ... 1 as long
 * as the rest still fails in the same way (delta debugging without the complements), until nothing
 * more can go.
 */
#ifndef TESTS_PROPERTY_SHRINK_H
#define TESTS_PROPERTY_SHRINK_H

#include "property/pair.h"

/* Whether the program runs through. If not, `text` says what went wrong. `quiet`: what it writes to
 * standard error is dropped. */
bool shrink_passes(const struct program *program, unsigned walk_every, bool quiet,
                   char text[PAIR_TEXT_MAX]);

/* Shrinks a program that fails; `text` is about the small one. */
void shrink(struct program *program, char text[PAIR_TEXT_MAX]);

#endif
