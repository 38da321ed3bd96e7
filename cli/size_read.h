/* SPDX-License-Identifier: MIT */
/*
 * Sizes as people write them: a number, whole or with a fraction, and a unit in either case. Powers
 * of 1024 are K, KiB, M, MiB, G, GiB, T, TiB; powers of 1000 are KB, MB, GB, TB; without a unit it
 * is bytes.
 */
#ifndef CLI_SIZE_READ_H
#define CLI_SIZE_READ_H

#include <stdbool.h>
#include <stdint.h>

/* What messages call allowed. */
#define CLI_SIZE_ALLOWED                                                                           \
    "bytes, or a number with KiB, MiB, GiB, TiB (or K, M, G, T) or with KB, MB, GB, TB"

/* Bytes per unit; false for an unknown unit. */
bool cli_unit_read(const char *unit, uint64_t *bytes_out);

/* The size, rounded to whole bytes; hexadecimal bytes begin with 0x. False for anything else, and
 * beyond 64 bits. */
bool cli_size_read(const char *text, uint64_t *bytes_out);

#endif
