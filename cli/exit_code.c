/* SPDX-License-Identifier: MIT */
#include "exit_code.h"

const struct cli_exit_row cli_exit_rows[] = {
    {CLI_EXIT_OK, "success"},
    {CLI_EXIT_GATE, "a requested check failed: inconsistencies, a difference, a threshold"},
    {CLI_EXIT_USAGE, "invalid command, option or value"},
    {CLI_EXIT_FORMAT, "not a snapshot, damaged, or of an unsupported kind"},
    {CLI_EXIT_UNSAFE, "rejected: the file tries to import or call something"},
    {CLI_EXIT_TRUNCATED, "the input ends early; what could be read was used"},
    {CLI_EXIT_IO, "cannot read or write, or the output exists"},
    {CLI_EXIT_LIMIT, "out of memory, or a limit was exceeded"},
    {CLI_EXIT_INTERNAL, "a bug in tarn, or a device failure"},
    {CLI_EXIT_NOT_STARTED, "run: the program cannot be started"},
    {CLI_EXIT_NOT_FOUND, "run: there is no such program"},
    {CLI_EXIT_INTERRUPTED, "interrupted"},
    {CLI_EXIT_OK, NULL},
};

enum cli_exit cli_exit_from_status(enum tarn_status status)
{
    switch (status) {
    case TARN_OK:
        return CLI_EXIT_OK;
    case TARN_ERR_MISMATCH:
        return CLI_EXIT_GATE;
    case TARN_ERR_INVALID_ARGUMENT:
    case TARN_ERR_CONFIG:
    case TARN_ERR_NOT_FOUND:
        return CLI_EXIT_USAGE;
    case TARN_ERR_FORMAT:
    case TARN_ERR_NOT_SUPPORTED:
        return CLI_EXIT_FORMAT;
    case TARN_ERR_UNSAFE:
        return CLI_EXIT_UNSAFE;
    case TARN_ERR_TRUNCATED:
        return CLI_EXIT_TRUNCATED;
    case TARN_ERR_IO:
        return CLI_EXIT_IO;
    case TARN_ERR_LIMIT:
    case TARN_ERR_HOST_MEMORY:
    case TARN_ERR_OUT_OF_MEMORY:
        return CLI_EXIT_LIMIT;
    case TARN_ERR_INVALID_POINTER:
    case TARN_ERR_STATE:
    case TARN_ERR_DEVICE:
    case TARN_ERR_NOT_READY:
    case TARN_ERR_INTERNAL:
    case TARN_ERR_CANCELLED: /* the program cancels no calls */
    case TARN_STATUS_COUNT:
        break;
    }
    return CLI_EXIT_INTERNAL;
}
