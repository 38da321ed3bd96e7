/* SPDX-License-Identifier: MIT */
/* What every fuzz target defines. */
#ifndef FUZZ_TARGET_H
#define FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

/* Runs one input; always returns 0. Finds a bug by stopping the program. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
